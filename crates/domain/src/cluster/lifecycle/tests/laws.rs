//! Laws that hold after any history, however odd.

use super::*;
use crate::host::{LogsInfo, Phase as On};
use proptest::prelude::*;

fn any_hosts() -> impl Strategy<Value = Vec<Host>> {
    let phases = [
        On::Discovery,
        On::Preparing,
        On::Prepared,
        On::Prepared,
        On::PrepareFailed,
        On::Installing,
        On::InProgress,
        On::InProgress,
        On::BootFix,
        On::Installed,
        On::Installed,
        On::Installed,
        On::Failed,
    ];
    let one = (
        0..phases.len(),
        0..Stage::ALL.len(),
        prop_oneof![5 => Just(Role::Master), 1 => Just(Role::Arbiter), 3 => Just(Role::Worker)],
        prop::bool::weighted(0.9),
    );
    // All alike half of the time, or a cluster would hardly ever get anywhere.
    let alike = (0..phases.len(), 0..Stage::ALL.len()).prop_map(move |(phase, stage)| {
        (1..=3)
            .map(|n| at_stage(host(n, Role::Master, phases[phase]), Stage::ALL[stage]))
            .collect()
    });
    let mixed = prop::collection::vec(one, 0..6).prop_map(move |list| {
        let hosts = list
            .into_iter()
            .enumerate()
            .map(|(n, (phase, stage, role, connected))| {
                let mut host = at_stage(host(n as u128 + 1, role, phases[phase]), Stage::ALL[stage]);
                host.connected = connected;
                host
            });
        hosts.collect()
    });
    prop_oneof![3 => alike, 2 => mixed]
}

fn any_event() -> impl Strategy<Value = Event> {
    let stage = (0..FinalizingStage::ALL.len()).prop_map(|at| FinalizingStage::ALL[at]);
    let operator = (0..OperatorStatus::ALL.len()).prop_map(|at| OperatorStatus::ALL[at]);
    let logs = (0..LogsInfo::ALL.len()).prop_map(|at| LogsInfo::ALL[at]);
    prop_oneof![
        3 => any::<[bool; 3]>().prop_map(|flags| Event::Measured {
            gates: Gates { inputs: flags[0], vips_defined: flags[1], required: flags[2] },
            complaints: "why".into(),
        }),
        4 => Just(Event::Measured { gates: ready(), complaints: String::new() }),
        1 => Just(Event::Update),
        1 => Just(Event::AddHosts),
        5 => Just(Event::Install),
        5 => (1_u32..4).prop_map(|attempt| files(attempt, Ok(()))),
        1 => (1_u32..4).prop_map(|attempt| files(attempt, Err("exit 1"))),
        12 => any_hosts().prop_map(|hosts| Event::Counted { tally: tally(&hosts) }),
        1 => Just(Event::Cancel),
        1 => Just(Event::Reset),
        2 => stage.prop_map(|stage| Event::FinalizingStage { stage }),
        2 => operator.prop_map(console),
        2 => Just(Event::IngressCert),
        1 => logs.prop_map(|state| Event::LogsProgress { state }),
        1 => Just(Event::LogsUploaded),
        2 => Just(Event::Due),
    ]
}

type History = Vec<(Event, i64)>;

fn any_history() -> impl Strategy<Value = (usize, bool, History)> {
    let events = prop::collection::vec((any_event(), 0_i64..90), 1..50);
    (0..Phase::ALL.len(), any::<bool>(), events)
}

/// A cluster as it may have come into this phase.
fn arrived(phase: Phase) -> Cluster {
    let mut row = cluster(phase);
    let progress = &mut row.install.progress;
    match phase {
        Phase::Draft | Phase::Preparing | Phase::Unmonitored => {}
        Phase::Installing | Phase::Finalizing | Phase::BootFix | Phase::Error | Phase::Cancelled => {
            progress.preparing = 100;
            progress.weigh();
        }
        Phase::Installed | Phase::AddingHosts => progress.complete(),
    }
    if phase == Phase::AddingHosts {
        row.kind = Kind::AddHostsCluster;
    }
    row.install_started_at = Some(noon());
    let over = matches!(
        phase,
        Phase::Installed | Phase::AddingHosts | Phase::Error | Phase::Cancelled
    );
    row.install_completed_at = over.then_some(noon());
    row
}

/// Plays a history from one of the phases and checks `law` after every decision.
fn play(
    (from, soft, history): &(usize, bool, History),
    mut law: impl FnMut(&Cluster, &Decision, &Event, Timestamp),
) -> Cluster {
    let mut row = arrived(Phase::ALL[*from]);
    row.org_soft_timeouts_enabled = *soft;
    let mut now = noon();
    for (event, later) in history {
        now += minutes(*later);
        if let Ok(decision) = next(&row, event, now) {
            law(&row, &decision, event, now);
            row = decision.cluster;
        }
    }
    row
}

#[test]
fn the_histories_below_go_almost_every_way_the_diagram_shows() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut reached = std::collections::BTreeSet::new();
    for _ in 0..500 {
        let history = any_history().new_tree(&mut runner).unwrap().current();
        play(&history, |before, decision, _, _| {
            reached.insert((before.phase, decision.cluster.phase));
        });
    }
    let ways = super::super::super::diagram::explore().ways;
    let missing: Vec<_> = ways.keys().filter(|way| !reached.contains(way)).collect();
    // A few ways need a rare chain of events; the tables walk them.
    assert!(missing.len() * 10 < ways.len(), "never gone: {missing:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_history_leaves_a_cluster_stuck(history in any_history()) {
        play(&history, |_, decision, _, now| {
            let row = &decision.cluster;
            let leaves = |event: Event| next(row, &event, now).is_ok();
            assert!(leaves(Event::Delete) || leaves(Event::Cancel), "{:?} cannot be left", row.phase);
            // Whatever only waits for others either ends by the clock or says why it need not.
            if let deadline::Patience::Limited(_) = deadline::patience(row.phase) {
                let mut row = row.clone();
                let mut steps = 0;
                let phase = row.phase;
                while row.phase == phase {
                    let due = deadline::of(&row, &Timers::USUAL).expect("it has a deadline").max(now);
                    row = next(&row, &Event::Due, due).unwrap().cluster;
                    steps += 1;
                    assert!(steps < 4, "{phase:?} does not end by its deadlines");
                }
            }
        });
    }

    #[test]
    fn what_is_due_is_done_and_not_due_again_at_once(history in any_history()) {
        play(&history, |_, decision, _, now| {
            if let Some(due) = deadline::of(&decision.cluster, &Timers::USUAL) {
                let then = due.max(now);
                let after = next(&decision.cluster, &Event::Due, then).unwrap().cluster;
                let again = deadline::of(&after, &Timers::USUAL);
                assert!(again.is_none_or(|again| again > then), "{:?} is due for ever", decision.cluster.phase);
            }
        });
    }

    #[test]
    fn progress_goes_back_only_when_an_installation_starts_over(history in any_history()) {
        play(&history, |before, decision, event, _| {
            let (was, is) = (before.install.progress, decision.cluster.install.progress);
            let back = is.total < was.total || is.installing < was.installing || is.finalizing < was.finalizing;
            assert!(!back || matches!(event, Event::Reset | Event::Install), "{event:?}: {was:?} -> {is:?}");
            assert!((0..=100).contains(&is.total));
            assert_eq!(is.total == 100, matches!(decision.cluster.phase, Phase::Installed | Phase::AddingHosts));
        });
    }

    #[test]
    fn replaying_an_event_changes_nothing_more(history in any_history()) {
        play(&history, |_, decision, event, now| {
            // A request is a request each time it is made; a report or a deadline is not.
            let request = matches!(event, Event::Install | Event::Cancel | Event::Reset | Event::AddHosts | Event::Delete);
            let told_each_time = matches!(event, Event::LogsUploaded);
            if !request && let Ok(again) = next(&decision.cluster, event, now) {
                assert_eq!(&again.cluster, &decision.cluster, "{event:?}");
                assert!(told_each_time || again.journal.is_empty(), "{event:?} told twice");
                assert!(again.effects.is_empty(), "{event:?} done twice");
            }
        });
    }

    #[test]
    fn files_of_another_attempt_change_nothing(history in any_history(), attempt in 0_u32..9, good in any::<bool>()) {
        play(&history, |_, decision, _, now| {
            if attempt != decision.cluster.install.attempt {
                let outcome = if good { Ok(()) } else { Err("late") };
                let after = next(&decision.cluster, &files(attempt, outcome), now).unwrap();
                assert_eq!(after.cluster, decision.cluster);
                assert!(after.journal.is_empty() && after.effects.is_empty());
            }
        });
    }

    #[test]
    fn attempts_only_grow_and_each_has_its_files_made_once(history in any_history()) {
        let mut made = vec![1];
        let last = play(&history, |before, decision, _, _| {
            assert!(decision.cluster.install.attempt >= before.install.attempt);
            for effect in &decision.effects {
                if let crate::host::Effect::MakeFiles { attempt, .. } = effect {
                    made.push(*attempt);
                }
            }
        });
        prop_assert_eq!(made, (1..=last.install.attempt).collect::<Vec<_>>());
    }

    #[test]
    fn times_of_an_installation_fit_its_phase(history in any_history()) {
        play(&history, |_, decision, _, _| {
            let row = &decision.cluster;
            let over = matches!(row.phase, Phase::Installed | Phase::AddingHosts | Phase::Error | Phase::Cancelled);
            assert!(!over || row.install_completed_at.is_some(), "{:?}", row.phase);
            assert!(!row.phase.is_installing() || row.install_started_at.is_some() && row.install_completed_at.is_none());
        });
    }

    #[test]
    fn every_change_of_status_is_told_once_and_nothing_else_is_called_one(history in any_history()) {
        play(&history, |before, decision, event, _| {
            let moved = before.status() != decision.cluster.status();
            let told = decision.journal.iter().filter(|entry| entry.name == "cluster_status_updated").count();
            assert!(told >= usize::from(moved), "{event:?}");
            assert!(told <= 1 || matches!(event, Event::Counted { .. }), "{event:?}");
            assert!(moved || told == 0, "{event:?}");
            assert!(!decision.why.is_empty());
        });
    }
}
