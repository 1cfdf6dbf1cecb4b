//! The whole graph: every phase can be left, ends by itself or says why not.

use super::super::super::deadline::{Patience, patience};
use super::super::super::diagram;
use super::*;

#[test]
fn every_phase_has_an_exit() {
    let map = diagram::explore();
    for phase in Phase::ALL {
        let exits = map.ways.keys().any(|(from, _)| *from == phase);
        // These two are ends: deleting the cluster is the way out.
        let ends = matches!(phase, Phase::AddingHosts | Phase::Unmonitored);
        assert_eq!(exits, !ends, "{phase:?}");
        assert!(
            !ends || next(&cluster(phase), &Event::Delete, noon()).is_ok(),
            "{phase:?}"
        );
    }
}

#[test]
fn every_phase_but_the_placeholder_can_be_entered() {
    let map = diagram::explore();
    for phase in Phase::ALL {
        let entered = map.ways.keys().any(|(_, to)| *to == phase);
        assert_eq!(entered, phase != Phase::Unmonitored, "{phase:?}");
    }
}

#[test]
fn from_everywhere_a_reset_or_a_deletion_leads_out() {
    for phase in Phase::ALL {
        let cluster = cluster(phase);
        let reset = next(&cluster, &Event::Reset, noon()).is_ok();
        let delete = next(&cluster, &Event::Delete, noon()).is_ok();
        assert!(reset || delete, "{phase:?}");
    }
}

#[test]
fn every_phase_ends_by_itself_or_says_why_it_need_not() {
    for phase in Phase::ALL {
        for cluster in diagram::clusters(phase) {
            let due = deadline::of(&cluster, &Timers::USUAL);
            match patience(phase) {
                Patience::Limited(text) => {
                    assert!(!text.is_empty());
                    let due = due.unwrap_or_else(|| panic!("{phase:?} has no deadline"));
                    let after = next(&cluster, &Event::Due, due).unwrap().cluster;
                    assert_ne!(after.phase, phase, "{phase:?}: its deadline changes nothing");
                }
                Patience::Endless(reason) => {
                    assert!(reason.len() > 20, "{phase:?} must say why");
                    assert_eq!(due, None, "{phase:?}");
                }
            }
        }
    }
}

#[test]
fn every_refusal_has_a_reason_and_a_next_action() {
    for phase in Phase::ALL {
        for cluster in diagram::clusters(phase) {
            for event in diagram::events() {
                if let Err(refused) = next(&cluster, &event, noon()) {
                    assert!(
                        refused.reason.ends_with('.') && refused.reason.len() > 10,
                        "{refused:?}"
                    );
                    assert!(!refused.next_action.is_empty(), "{event:?} {refused:?}");
                    assert!(!refused.code.contains(' '), "{refused:?}");
                }
            }
        }
    }
}

#[test]
fn every_status_has_a_text() {
    for phase in Phase::ALL
        .into_iter()
        .filter(|phase| *phase != Phase::Unmonitored)
    {
        for cluster in diagram::clusters(phase) {
            let word = cluster.status();
            assert!(!super::super::status_text(word).is_empty(), "{word}");
        }
    }
}

#[test]
fn the_document_names_every_status_word_and_never_changes_by_itself() {
    let text = diagram::markdown();
    for word in [
        "insufficient",
        "ready",
        "error",
        "preparing-for-installation",
        "pending-for-input",
        "installing",
        "finalizing",
        "installed",
        "adding-hosts",
        "cancelled",
        "installing-pending-user-action",
        "unmonitored",
    ] {
        assert!(text.contains(&format!("`{word}`")), "{word}");
    }
    assert_eq!(text, diagram::markdown());
}
