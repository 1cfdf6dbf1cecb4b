//! Laws that hold after any history, however odd.

use super::super::super::{Report, Role, Status, deadline, steps};
use super::*;
use proptest::prelude::*;

fn any_gates() -> impl Strategy<Value = Gates> {
    let outcome = || {
        prop_oneof![
            Just(Outcome::Unknown),
            Just(Outcome::Passed),
            Just(Outcome::Failed)
        ]
    };
    (any::<[bool; 6]>(), outcome(), outcome()).prop_map(|(flags, disk_speed, images)| Gates {
        inventory: flags[0],
        inventory_fully_truncated: flags[1] && flags[2],
        min_hardware: flags[2],
        inputs: flags[3],
        vsphere_disks: flags[4],
        sufficient: flags[5],
        disk_speed,
        images,
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    let cluster = || prop_oneof![Just(ALPHA), Just(BETA)];
    let stage = (0..Stage::ALL.len()).prop_map(|index| Stage::ALL[index]);
    prop_oneof![
        3 => Just(registered()),
        3 => cluster().prop_map(|to| Event::Bind { to }),
        2 => Just(Event::Unbind),
        1 => Just(Event::Release),
        1 => Just(Event::Reclaim),
        2 => cluster().prop_map(|to| Event::Move { to }),
        2 => cluster().prop_map(|to| Event::FinishMove { to, refused: None }),
        1 => cluster().prop_map(|to| Event::FinishMove { to, refused: Some(gone()) }),
        1 => Just(Event::MoveAbandoned { why: gone() }),
        1 => Just(Event::ReclaimReady),
        1 => Just(Event::ReclaimFailed { why: "no space".into() }),
        1 => Just(Event::Cancel),
        1 => Just(Event::Reset),
        2 => Just(Event::Install),
        1 => Just(Event::InstallFailed { why: "exit 1".into() }),
        1 => Just(Event::Assigned { role: Role::Master, bootstrap: true }),
        2 => Just(Event::InstallerStopped),
        1 => Just(Event::MediaLost),
        1 => Just(Event::MediaBack),
        2 => Just(Event::CheckedIn),
        2 => Just(Event::Due),
        4 => any_gates().prop_map(|gates| Event::Measured { gates, complaints: "why".into() }),
        4 => Just(Event::Measured { gates: good_gates(), complaints: String::new() }),
        3 => (stage, "[a-z]{0,3}").prop_map(|(stage, info)| Event::Progressed { stage, info }),
    ]
}

type History = Vec<(Event, i64, usize, bool)>;

fn any_history() -> impl Strategy<Value = (usize, History)> {
    let standing = 0..cluster::Phase::ALL.len();
    let events = prop::collection::vec((any_event(), 0_i64..120, standing, any::<bool>()), 1..40);
    (0..=Phase::ALL.len(), events)
}

/// A host as it may have come into this phase; beyond the last phase it is a free one.
fn arrived(from: usize) -> Host {
    let Some(phase) = Phase::ALL.get(from).copied() else {
        return Host::arriving(free().key(), None, noon());
    };
    let mut host = lent(phase);
    if phase.needs_cluster() {
        host.role = Role::Worker;
    }
    host.installer_may_run = matches!(phase, Phase::Installing | Phase::InProgress | Phase::Failed);
    host.progress.stage = match phase {
        Phase::InProgress => Some(Stage::Writing),
        Phase::BootFix => Some(Stage::Rebooting),
        Phase::Installed | Phase::Added => Some(Stage::Done),
        _ => None,
    };
    host
}

/// Plays a history from one of the phases and checks `law` after every decision.
fn play((from, history): &(usize, History), mut law: impl FnMut(&Host, &Decision, &Event, &Around<'_>)) {
    let mut host = arrived(*from);
    let mut now = noon();
    for (event, later, phase, adds) in history {
        now += SignedDuration::from_secs(*later * 15);
        let mut around = in_cluster(now, cluster::Phase::ALL[*phase]);
        around.cluster.as_mut().unwrap().adds_hosts = *adds;
        if host.cluster.is_some() {
            // While it is lent, somebody fills in secrets.
            host.tenant = secretive();
        }
        if let Ok(decision) = next(&host, event, &around) {
            law(&host, &decision, event, &around);
            host = decision.host;
        }
    }
}

#[test]
fn the_histories_below_go_almost_every_way_the_diagram_shows() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut reached = std::collections::BTreeSet::new();
    let mut returned_running = 0;
    for _ in 0..2_000 {
        let history = any_history().new_tree(&mut runner).unwrap().current();
        play(&history, |before, decision, _, _| {
            reached.insert((before.phase, decision.host.phase));
            returned_running += usize::from(decision.host.is_free() && decision.host.installer_may_run);
        });
    }
    let ways = super::super::super::diagram::ways();
    let missing: Vec<_> = ways.iter().filter(|way| !reached.contains(way)).collect();
    // A few ways need a rare chain of events; the tables walk them.
    assert!(missing.len() * 10 < ways.len(), "never gone: {missing:?}");
    assert!(returned_running > 20, "{returned_running}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_free_host_holds_no_secret_and_a_phase_fits_its_binding(history in any_history()) {
        play(&history, |_, decision, event, _| {
            let host = &decision.host;
            assert!(!host.phase.is_returning() || host.is_free(), "{event:?}: {:?} is still bound", host.phase);
            assert!(!host.phase.needs_cluster() || !host.is_free(), "{event:?}: {:?} without a cluster", host.phase);
            if host.is_free() {
                let text = serde_json::to_string(host).unwrap();
                assert!(!text.contains("canary"), "{event:?} left a secret on a free host: {text}");
            }
        });
    }

    #[test]
    fn a_host_changes_clusters_only_by_passing_through_clean_hands(history in any_history()) {
        play(&history, |before, decision, event, _| {
            let after = &decision.host;
            if after.cluster != before.cluster {
                let text = serde_json::to_string(after).unwrap();
                assert!(!text.contains("canary"), "{event:?} carried a secret along");
                assert!(before.cluster.is_none() || after.cluster.is_none() || matches!(event, Event::Move { .. }));
            }
            let named: Vec<_> = decision.effects.iter().collect();
            assert!(named.len() <= 1, "two wishes at once");
        });
    }

    #[test]
    fn the_same_report_twice_changes_nothing_more(history in any_history()) {
        play(&history, |_, decision, event, around| {
            let report = matches!(
                event,
                Event::Measured { .. } | Event::Progressed { .. } | Event::CheckedIn | Event::MediaLost | Event::MediaBack
            );
            if report && let Ok(again) = next(&decision.host, event, around) {
                // Measuring may move a host that has just entered a phase one step on; a third time it must rest.
                let third = next(&again.host, event, around).map_or(again.host.clone(), |third| third.host);
                assert_eq!(third, again.host, "{event:?}");
                if matches!(event, Event::Progressed { .. } | Event::CheckedIn | Event::MediaLost) {
                    assert_eq!(again.host, decision.host, "{event:?}");
                    assert!(again.journal.is_empty(), "{event:?} told twice");
                }
            }
        });
    }

    #[test]
    fn what_is_due_is_done_and_not_due_again_at_once(history in any_history()) {
        play(&history, |_, decision, _, around| {
            let host = &decision.host;
            if let Some(due) = deadline::of(host, around) {
                let then = Around { now: due.max(around.now), ..around.clone() };
                let after = next(host, &Event::Due, &then).unwrap().host;
                let again = deadline::of(&after, &then);
                assert!(again.is_none_or(|again| again > then.now), "{:?} is due for ever", host.phase);
            }
        });
    }

    #[test]
    fn every_host_can_be_brought_home(history in any_history()) {
        let mut last = None;
        play(&history, |_, decision, _, around| last = Some((decision.host.clone(), around.now)));
        let Some((mut host, now)) = last else { return Ok(()) };
        let around = in_cluster(now, cluster::Phase::Draft);
        if !host.is_free() {
            host = next(&host, &Event::Release, &around).unwrap().host;
        }
        host = next(&host, &registered(), &around).unwrap().host;
        host = next(&host, &Event::InstallerStopped, &around).unwrap().host;
        host = next(&host, &Event::Measured { gates: good_gates(), complaints: String::new() }, &around).unwrap().host;
        prop_assert_eq!(host.status(), Status::KnownUnbound);
    }

    #[test]
    fn a_host_that_may_still_be_written_is_never_offered_and_is_told_to_stop(history in any_history()) {
        play(&history, |before, decision, event, _| {
            let host = &decision.host;
            if host.installer_may_run {
                assert_ne!(host.status(), Status::KnownUnbound, "{event:?} after {:?}", before.phase);
                assert_ne!(host.status(), Status::Known, "{event:?} after {:?}", before.phase);
                let waits = matches!(
                    host.status(),
                    Status::UnbindingPendingUserAction | Status::ResettingPendingUserAction | Status::DiscoveringUnbound
                );
                let told = steps::orders(host).steps.contains(&steps::Step::StopInstallation);
                assert!(!waits || told, "{:?} is not told to stop", host.status());
            }
            let started = !before.installer_may_run && host.installer_may_run;
            assert!(!started || host.phase == Phase::Installing, "{event:?} started an installer");
        });
    }

    #[test]
    fn a_receipt_names_only_kinds_of_things_and_comes_once(history in any_history()) {
        play(&history, |before, decision, _, _| {
            let receipts: Vec<_> = decision.journal.iter().filter(|entry| entry.name == "host_returned").collect();
            assert_eq!(receipts.len(), usize::from(before.returning.is_some() && decision.host.returning.is_none() && decision.host.is_free()));
            for receipt in receipts {
                assert!(!format!("{} {}", receipt.message, receipt.props).contains("canary"));
                assert_eq!(receipt.cluster, None);
            }
        });
    }

    #[test]
    fn no_agent_is_sent_into_a_hot_loop(history in any_history()) {
        play(&history, |_, decision, _, _| {
            let orders = steps::orders(&decision.host);
            assert!(orders.next_poll_seconds > 0 || orders.after == steps::After::Exit);
        });
    }

    #[test]
    fn a_forgotten_report_is_not_remembered_as_seen(history in any_history()) {
        play(&history, |_, decision, _, _| {
            for report in Report::ALL {
                if decision.forget.contains(&report) {
                    assert!(!decision.host.report_hashes.contains_key(&report));
                }
            }
        });
    }
}
