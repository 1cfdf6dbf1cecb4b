//! Hosts that the hub takes for free although they may run for a cluster.

use super::*;
use crate::crd::agent::{AgentStatus, DeprovisionInfo};

/// The Agent of a host that last worked for the blue cluster.
fn remembered(state: &str, wants: Option<&str>) -> Agent {
    let mut agent = wants.map_or_else(agent, wanting);
    agent.annotations_mut().extend([
        (annotation::AGENT_STATE.to_owned(), state.to_owned()),
        (annotation::AGENT_STAGE.to_owned(), "Done".to_owned()),
        (annotation::INSTALLED_IN.to_owned(), "clusters/blue".to_owned()),
    ]);
    agent
}

fn state(agent: &Agent) -> &str {
    &agent.annotations()[annotation::AGENT_STATE]
}

fn unbound_from(cluster: &str, mut agent: Agent) -> Agent {
    agent.status = Some(AgentStatus {
        deprovision_info: Some(DeprovisionInfo {
            cluster_name: cluster.into(),
            cluster_namespace: "clusters".into(),
            node_name: "worker-1".into(),
            message: String::new(),
        }),
        ..AgentStatus::default()
    });
    agent
}

fn is_bound(agent: &Agent, row: &HostDetail) -> bool {
    let mut agent = agent.clone();
    for _ in 0..4 {
        let plan = plan(&snapshot(Some(agent.clone()), Some(row.clone())));
        if calls(&plan).iter().any(|call| matches!(call, Call::Bind(_))) {
            return true;
        }
        agent = after(&agent, &plan);
    }
    false
}

#[test]
fn an_installed_host_that_the_hub_forgot_is_not_installed_again_by_itself() {
    for noted in ["installed", "added-to-existing-cluster"] {
        for now in ["discovering-unbound", "known-unbound", "insufficient-unbound"] {
            let mut forgotten = row(now);
            (forgotten.followed, forgotten.approved) = (false, false);
            let agent = remembered(noted, Some("blue"));
            let first = plan(&snapshot(Some(agent.clone()), Some(forgotten.clone())));
            assert_eq!(
                (synced(&first), calls(&first).len(), first.then),
                (says("False", "InputError"), 0, Then::Rest)
            );
            let warned = |step: &&Step| matches!(step, Step::Tell(news) if news.warning);
            assert_eq!(first.steps.iter().filter(warned).count(), 1);
            let agent = after(&agent, &first);
            assert_eq!(state(&agent), noted, "what is remembered stays");
            let second = plan(&snapshot(Some(agent), Some(forgotten)));
            assert_eq!(second.steps, [], "and there is one event");
        }
    }
}

#[test]
fn who_clears_the_reference_confirms_that_the_host_may_be_used_again() {
    let free = row("known-unbound");
    let cleared = converged(remembered("installed", None), free.clone());
    assert_eq!(state(&cleared), "known-unbound");
    assert!(!cleared.annotations().contains_key(annotation::INSTALLED_IN));
    let anew = Agent {
        spec: wanting("green").spec,
        ..cleared
    };
    assert!(is_bound(&anew, &free));
}

#[test]
fn while_the_cluster_is_missing_too_nothing_is_forgotten() {
    for missing in [Target::Absent, Target::NotInHub] {
        let agent = remembered("installed", Some("blue"));
        let mut snapshot = snapshot(Some(agent.clone()), Some(row("known-unbound")));
        snapshot.target = missing;
        let plan = plan(&snapshot);
        assert_eq!(calls(&plan).len(), 0);
        assert_eq!(state(&after(&agent, &plan)), "installed");
    }
}

#[test]
fn a_host_that_the_hub_took_back_itself_is_lent_again() {
    for status in [
        "unbinding",
        "unbinding-pending-user-action",
        "reclaiming",
        "reclaiming-rebooting",
    ] {
        let agent = converged(remembered("installed", Some("green")), row(status));
        assert_eq!(state(&agent), status);
        assert!(is_bound(&agent, &row("known-unbound")), "{status}");
    }
    let mut moving = row("known-unbound");
    moving.moving_to = Some(GREEN);
    let agent = converged(remembered("installed", Some("green")), moving);
    assert_eq!(state(&agent), "known-unbound");
}

#[test]
fn a_host_that_was_unbound_comes_back_even_if_no_operator_ran() {
    let agent = unbound_from("blue", remembered("installed", Some("green")));
    assert!(is_bound(&agent, &row("known-unbound")));
    // The note of an earlier cluster that does not answer says nothing about this one.
    let agent = unbound_from("red", remembered("installed", Some("green")));
    assert!(!is_bound(&agent, &row("known-unbound")));
}

#[test]
fn where_a_host_is_installed_is_noted_as_long_as_it_is() {
    let agent = converged(wanting("blue"), at_stage(lent("installed", BLUE), "Done"));
    assert_eq!(agent.annotations()[annotation::INSTALLED_IN], "clusters/blue");
    let agent = converged(agent, lent("known", BLUE));
    assert!(!agent.annotations().contains_key(annotation::INSTALLED_IN));
}
