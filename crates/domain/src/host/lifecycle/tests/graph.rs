//! The whole graph: every phase can be left, ends by itself or says why not, and every status word is derived.

use super::super::super::deadline::{self, Patience};
use super::super::super::{Kind, Media, Role, Status};
use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts that together show every fact a decision may look at in a phase.
fn variants(phase: Phase) -> Vec<Host> {
    let mut hosts = Vec::new();
    let lenders: &[Option<ClusterId>] = match phase {
        Phase::Discovery => &[None, Some(ALPHA)],
        phase if phase.is_returning() => &[None],
        _ => &[Some(ALPHA)],
    };
    let gates = [
        Gates::default(),
        good_gates(),
        Gates {
            min_hardware: false,
            ..good_gates()
        },
        Gates {
            inputs: false,
            ..good_gates()
        },
        Gates {
            sufficient: false,
            ..good_gates()
        },
        Gates {
            disk_speed: Outcome::Failed,
            ..good_gates()
        },
        Gates {
            images: Outcome::Failed,
            ..good_gates()
        },
        Gates {
            inventory_fully_truncated: true,
            ..good_gates()
        },
    ];
    let stages = [
        None,
        Some(Stage::Starting),
        Some(Stage::Rebooting),
        Some(Stage::Done),
    ];
    for cluster in lenders {
        for gates in gates {
            for stage in stages {
                for (connected, media) in [
                    (true, Media::Unset),
                    (false, Media::Unset),
                    (true, Media::Disconnected),
                ] {
                    for kind in [Kind::Host, Kind::AddToExistingClusterHost] {
                        let mut host = lent(phase);
                        host.cluster = *cluster;
                        (host.gates, host.connected, host.media, host.kind) = (gates, connected, media, kind);
                        host.role = Role::Worker;
                        host.progress.stage = stage;
                        hosts.push(host);
                    }
                }
            }
        }
    }
    hosts
}

fn events() -> Vec<Event> {
    let mut events = vec![
        registered(),
        Event::Bind { to: BETA },
        Event::Unbind,
        Event::Release,
        Event::Reclaim,
        Event::Move { to: BETA },
        Event::FinishMove {
            to: BETA,
            refused: None,
        },
        Event::FinishMove {
            to: BETA,
            refused: Some(gone()),
        },
        Event::MoveAbandoned { why: gone() },
        Event::ReclaimReady,
        Event::ReclaimFailed {
            why: "no space".into(),
        },
        Event::Cancel,
        Event::Reset,
        Event::Install,
        Event::InstallFailed { why: "exit 1".into() },
        Event::Assigned {
            role: Role::Master,
            bootstrap: true,
        },
        Event::InstallerStopped,
        Event::MediaLost,
        Event::MediaBack,
        Event::CheckedIn,
        Event::Due,
        Event::Measured {
            gates: good_gates(),
            complaints: String::new(),
        },
        Event::Measured {
            gates: Gates::default(),
            complaints: "no inventory".into(),
        },
    ];
    events.extend(Stage::ALL.iter().map(|stage| Event::Progressed {
        stage: *stage,
        info: String::new(),
    }));
    events
}

fn surroundings() -> Vec<Around<'static>> {
    let clocks = [
        noon(),
        noon() + minutes(200),
        noon() + SignedDuration::from_hours(30),
    ];
    let mut all = Vec::new();
    for now in clocks {
        all.push(at(now));
        for phase in cluster::Phase::ALL {
            for flag in [false, true] {
                let mut around = in_cluster(now, phase);
                let state = around.cluster.as_mut().unwrap();
                (state.adds_hosts, state.can_do_without) = (flag, true);
                all.push(around);
            }
        }
    }
    all
}

/// phase → phases it can become, over everything above.
fn graph() -> BTreeMap<Phase, BTreeSet<Phase>> {
    let (events, surroundings) = (events(), surroundings());
    let mut edges: BTreeMap<Phase, BTreeSet<Phase>> = BTreeMap::new();
    for phase in Phase::ALL {
        // Every seventh variant still shows each fact with each other one; all of them take half a minute.
        for host in variants(phase).into_iter().step_by(7) {
            for event in &events {
                for around in &surroundings {
                    if let Ok(decision) = next(&host, event, around) {
                        edges.entry(phase).or_default().insert(decision.host.phase);
                    }
                }
            }
        }
    }
    edges
}

#[test]
fn every_phase_has_an_exit_and_the_way_to_the_free_pool_is_open_from_everywhere() {
    let graph = graph();
    for phase in Phase::ALL {
        let exits = graph
            .get(&phase)
            .map_or(0, |to| to.iter().filter(|to| **to != phase).count());
        // Discovery is home: staying there is fine, and binding leads out of it.
        assert!(exits > 0, "{phase:?} cannot be left");
        let mut reached = BTreeSet::from([phase]);
        while let Some(new) = reached
            .iter()
            .flat_map(|from| &graph[from])
            .find(|to| !reached.contains(to))
            .copied()
        {
            reached.insert(new);
        }
        assert!(
            reached.contains(&Phase::Discovery),
            "{phase:?} never gets back to discovery"
        );
    }
}

#[test]
fn every_phase_ends_by_itself_or_says_why_it_need_not() {
    for phase in Phase::ALL {
        let mut host = lent(phase);
        host.progress = progress(Stage::Writing);
        host.role = Role::Worker;
        let mut around = in_cluster(noon(), cluster::Phase::Installing);
        around.cluster.as_mut().unwrap().can_do_without = true;
        let due = deadline::of(&host, &around);
        match deadline::patience(phase) {
            Patience::Limited(text) => {
                assert!(due.is_some(), "{phase:?} has no deadline");
                assert!(!text.is_empty());
                around.now = due.unwrap();
                let after = next(&host, &Event::Due, &around).unwrap().host;
                assert_ne!(
                    after.status(),
                    host.status(),
                    "{phase:?}: its deadline changes nothing"
                );
            }
            Patience::Endless(reason) => assert!(reason.len() > 20, "{phase:?} must say why"),
        }
    }
}

#[test]
fn every_refusal_has_a_reason_and_almost_every_one_a_next_action() {
    for phase in Phase::ALL {
        for host in variants(phase) {
            for event in events() {
                if let Err(refused) = next(&host, &event, &in_cluster(noon(), cluster::Phase::Draft)) {
                    assert!(
                        refused.reason.ends_with('.') && refused.reason.len() > 10,
                        "{refused:?}"
                    );
                    assert!(!refused.code.contains(' '), "{refused:?}");
                    let personal = matches!(
                        event,
                        Event::Bind { .. }
                            | Event::Unbind
                            | Event::Release
                            | Event::Reclaim
                            | Event::Registered { .. }
                    );
                    assert!(
                        !personal || !refused.next_action.is_empty(),
                        "{event:?} {refused:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn all_status_words_but_the_two_retired_ones_are_derived() {
    let derived: BTreeSet<Status> = Phase::ALL
        .into_iter()
        .flat_map(variants)
        .map(|host| host.status())
        .collect();
    let retired = BTreeSet::from([Status::Disabled, Status::DisabledUnbound]);
    let all: BTreeSet<Status> = Status::ALL.iter().copied().collect();
    assert_eq!(all.len(), 28);
    assert_eq!(&all - &derived, retired);
}

#[test]
fn unbound_words_are_said_of_free_hosts_only() {
    for host in Phase::ALL.into_iter().flat_map(variants) {
        let word = host.status().word();
        let of_free =
            word.ends_with("-unbound") || word.starts_with("unbinding") || word.starts_with("reclaiming");
        assert_eq!(of_free, host.is_free(), "{word}");
    }
}

#[test]
fn words_round_trip() {
    for status in Status::ALL {
        assert_eq!(Status::from_word(status.word()), Some(*status));
    }
    assert_eq!(Status::from_word("sleeping"), None);
}
