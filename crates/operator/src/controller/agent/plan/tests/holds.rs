//! Hosts that are free and yet not offered: claimed ones, and those that have just come back.

use super::*;

/// What is written of the checks, after so many seconds.
fn validated_after(agent: &Agent, row: &HostDetail, seconds: i64) -> (Agent, (String, String), Then) {
    let mut snapshot = snapshot(Some(agent.clone()), Some(row.clone()));
    snapshot.now = now() + SignedDuration::from_secs(seconds);
    let plan = plan(&snapshot);
    let agent = after(agent, &plan);
    let all = agent.status.iter().flat_map(|status| &status.conditions);
    let found = all.into_iter().find(|one| one.type_ == "Validated").unwrap();
    let said = says(&found.status, &found.reason);
    (agent, said, plan.then)
}

/// Of a lent host that was last in this state and that no cluster wants any more.
fn let_go(last: &'static str) -> Agent {
    let mut agent = converged(wanting("blue"), lent(last, BLUE));
    assert_eq!(agent.status.as_ref().unwrap().debug_info.state, last);
    agent.spec.cluster_deployment_name = None;
    agent
}

#[test]
fn a_host_that_has_just_come_back_is_not_offered_at_once_however_late_the_reconcile_is() {
    // The hub has had it back for an hour: `row` registered long ago.
    for last in ["unbinding", "installed", "reclaiming", "disabled"] {
        let mut shown = let_go(last);
        if last == "disabled" {
            let status = shown.status.as_mut().unwrap();
            let validated = status.conditions.iter_mut().find(|one| one.type_ == "Validated");
            validated.unwrap().status = "Unknown".into();
        }
        let (back, said, then) = validated_after(&shown, &row("known-unbound"), 100);
        assert_ne!(said.0, "True", "{last}: in the very write that says it is back");
        assert_eq!(back.status.as_ref().unwrap().debug_info.state, "known-unbound");
        assert_eq!(then, Then::After(Duration::from_secs(7)), "{last}");
        let (still, said, then) = validated_after(&back, &row("known-unbound"), 104);
        assert_ne!(said.0, "True", "{last}");
        assert_eq!(still, back, "{last}: nothing more is written meanwhile");
        assert_eq!(then, Then::After(Duration::from_secs(3)), "{last}");
        let (_, said, _) = validated_after(&still, &row("known-unbound"), 107);
        assert_eq!(said, says("True", "ValidationsPassing"), "{last}");
    }
}

#[test]
fn a_host_in_discovery_after_its_return_is_held_back_through_all_its_states() {
    let shown = let_go("unbinding");
    let mut fresh = row("discovering-unbound");
    fresh.host.inventory.clear();
    let (back, ..) = validated_after(&shown, &fresh, 100);
    let (back, said, _) = validated_after(&back, &row("insufficient-unbound"), 102);
    assert_ne!(said.0, "True");
    let (back, said, _) = validated_after(&back, &row("known-unbound"), 104);
    assert_ne!(said.0, "True");
    // Another operator takes over whose clock is an hour behind: it does not hold the host for an hour.
    let (_, said, then) = validated_after(&back, &row("known-unbound"), -3600);
    assert_ne!(said.0, "True");
    assert_eq!(then, Then::After(Duration::from_secs(7)));
    let (_, said, _) = validated_after(&back, &row("known-unbound"), 107);
    assert_eq!(said, says("True", "ValidationsPassing"));
}

#[test]
fn a_host_that_was_never_anybodys_is_offered_at_once() {
    let fresh = plan(&snapshot(Some(agent()), Some(row("known-unbound"))));
    assert_eq!(condition(&fresh, "Validated"), says("True", "ValidationsPassing"));
}

/// In the way a machine of Cluster API claims it.
fn reserved(mut agent: Agent) -> Agent {
    agent
        .labels_mut()
        .insert(label::AGENT_MACHINE.into(), "m1".into());
    agent
}

/// A free host with this object, whose cluster is not there yet.
fn held(agent: &Agent, row: HostDetail) -> Snapshot {
    let mut snapshot = snapshot(Some(agent.clone()), Some(row));
    if snapshot.target != Target::NotWanted {
        snapshot.target = Target::NotInHub;
    }
    snapshot
}

fn message(plan: &Plan) -> String {
    let status = status_of(plan);
    let mut all = status["conditions"].as_array().unwrap().iter();
    let found = all.find(|one| one["type"] == "Validated").unwrap();
    found["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_free_host_that_somebody_has_a_hand_on_is_not_offered_and_neither_is_it_for_a_moment_after() {
    for claimed in [wanting("blue"), reserved(agent()), reserved(wanting("blue"))] {
        let before = converged(agent(), row("known-unbound"));
        let mut taken = before.clone();
        taken.spec = claimed.spec.clone();
        taken.metadata.labels = claimed.metadata.labels.clone();
        let claim = plan(&held(&taken, row("known-unbound")));
        assert_eq!(
            condition(&claim, "Validated"),
            says("Unknown", "ValidationsUnknown")
        );
        assert_eq!(
            condition(&claim, "Bound"),
            says("False", "Unbound"),
            "nothing else is hidden"
        );
        let taken = after(&taken, &claim);
        let again = plan(&held(&taken, row("known-unbound")));
        assert_eq!(again.steps, [], "it is said once");
        let mut let_go = taken;
        let_go.spec.cluster_deployment_name = None;
        let_go.labels_mut().remove(label::AGENT_MACHINE);
        let (back, said, then) = validated_after(&let_go, &row("known-unbound"), 100);
        assert_eq!(said, says("False", "ValidationsUnknown"));
        assert_eq!(then, Then::After(Duration::from_secs(7)));
        let (back, said, _) = validated_after(&back, &row("known-unbound"), 106);
        assert_ne!(said.0, "True");
        let (_, said, _) = validated_after(&back, &row("known-unbound"), 107);
        assert_eq!(said, says("True", "ValidationsPassing"));
    }
}

#[test]
fn a_claimed_host_whose_checks_fail_still_says_why_and_is_held_after_all_the_same() {
    let claim = plan(&held(&wanting("blue"), row("insufficient-unbound")));
    assert_eq!(
        condition(&claim, "Validated"),
        says("False", "ValidationsFailing")
    );
    assert!(
        message(&claim).ends_with(": too little memory"),
        "{}",
        message(&claim)
    );
    let mut let_go = after(&wanting("blue"), &claim);
    let_go.spec.cluster_deployment_name = None;
    // It has got better in the same moment.
    let (back, said, then) = validated_after(&let_go, &row("known-unbound"), 100);
    assert_eq!(said, says("Unknown", "ValidationsUnknown"));
    assert_eq!(then, Then::After(Duration::from_secs(7)));
    let (_, said, _) = validated_after(&back, &row("known-unbound"), 107);
    assert_eq!(said, says("True", "ValidationsPassing"));
}

#[test]
fn a_claimed_host_that_is_bound_says_what_its_checks_say() {
    let bound = converged(reserved(wanting("blue")), lent("known", BLUE));
    let all = bound.status.unwrap().conditions;
    let validated = all.iter().find(|one| one.type_ == "Validated").unwrap();
    assert_eq!(
        says(&validated.status, &validated.reason),
        says("True", "ValidationsPassing")
    );
}

#[test]
fn while_the_hub_does_not_answer_an_agent_that_is_claimed_is_offered_no_more() {
    let free = converged(agent(), row("known-unbound"));
    let mut snapshot = snapshot(Some(reserved(free.clone())), None);
    snapshot.hub_error = Some("no answer".into());
    let claim = plan(&snapshot);
    assert_eq!(
        condition(&claim, "Validated"),
        says("Unknown", "ValidationsUnknown")
    );
    let taken = after(&reserved(free.clone()), &claim);
    snapshot.agent = Some(Arc::new(taken.clone()));
    assert_eq!(plan(&snapshot).steps, [], "it is said once");
    let mut let_go = taken;
    let_go.labels_mut().remove(label::AGENT_MACHINE);
    snapshot.agent = Some(Arc::new(let_go.clone()));
    assert_eq!(plan(&snapshot).steps, [], "nobody knows how the host is");
    let (_, said, then) = validated_after(&let_go, &row("known-unbound"), 100);
    assert_ne!(said.0, "True");
    assert_eq!(then, Then::After(Duration::from_secs(7)));
}
