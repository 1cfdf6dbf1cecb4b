//! How it gives its Agent back.

use super::*;
use crate::crd::agent::reason as of_agent;

fn waiting_for_hook() -> Value {
    json!({ "conditions": [{ "type": "Deleting", "status": "True", "reason": "WaitingForPreTerminateHook" }] })
}

fn with_agent(mut snapshot: Snapshot, change: impl FnOnce(&mut Agent)) -> Snapshot {
    change(Arc::make_mut(snapshot.agent.as_mut().unwrap()));
    snapshot
}

type Change = Box<dyn Fn(&mut Agent)>;

/// Without what the claim wrote.
fn claim_off(agent: &mut Agent) {
    agent.labels_mut().remove(label::AGENT_MACHINE);
    agent
        .annotations_mut()
        .remove(annotation::AGENT_MACHINE_NAMESPACE);
    agent.spec.cluster_deployment_name = None;
}

fn is_released(snapshot: &Snapshot) -> bool {
    let machine = snapshot.lineage.machine.as_ref().unwrap();
    !machine.annotations().contains_key(annotation::CAPI_DELETE_HOOK)
        && !keys::has_finalizer(&*snapshot.machine, finalizer::AGENT_MACHINE)
}

#[test]
fn the_agent_is_unbound_when_the_hook_is_reached_in_either_version() {
    let older = json!({ "conditions": [{ "type": "PreTerminateDeleteHookSucceeded", "status": "False" }] });
    let kept = json!({ "deprecated": { "v1beta1": older.clone() } });
    for status in [waiting_for_hook(), older, kept] {
        let bound = with_agent(claimed(), |agent| state(agent, "installed"));
        let plan = plan(&bound.machine_leaves(status));
        let [Step::PatchAgent(agent, patch)] = &plan.steps[..] else {
            panic!("{plan:?}")
        };
        let free = patched(&**agent, patch);
        assert_eq!(free.spec.cluster_deployment_name, None);
        assert!(!free.labels().contains_key(label::AGENT_MACHINE));
        assert!(
            !free
                .annotations()
                .contains_key(annotation::AGENT_MACHINE_NAMESPACE)
        );
        assert!(free.spec.approved, "what people wrote stays");
    }
}

#[test]
fn before_the_hook_is_reached_the_agent_stays() {
    let draining =
        json!({ "conditions": [{ "type": "Deleting", "status": "True", "reason": "DrainingNode" }] });
    assert_eq!(plan(&claimed().machine_leaves(draining)), Plan::default());
    assert_eq!(plan(&claimed().leaves()), Plan::default(), "the Machine is alive");
}

#[test]
fn the_hook_holds_until_the_host_has_left() {
    let leaving = converged(
        with_agent(claimed(), |agent| state(agent, "installed")).machine_leaves(waiting_for_hook()),
    );
    assert_eq!(leaving.agent.as_ref().unwrap().spec.cluster_deployment_name, None);
    assert_eq!(
        says(&leaving, "AgentReserved"),
        word("False", "AgentLeaving"),
        "why it is still there is said"
    );
    for held in [
        "installed",
        "error",
        "unbinding",
        "reclaiming",
        "reclaiming-rebooting",
        "added-to-existing-cluster",
        "",
    ] {
        let snapshot = with_agent(leaving.clone(), |agent| state(agent, held));
        let planned = plan(&snapshot);
        assert!(
            !planned.steps.iter().any(|step| matches!(step, Step::Tell(_))),
            "once is enough: {planned:?}"
        );
        let snapshot = converged(snapshot);
        assert!(!is_released(&snapshot), "{held}");
        let (_, _, text) = found(&snapshot, "Ready");
        assert!(text.contains("pool/a") && text.contains(held), "{text}");
    }
    for free in [
        "unbinding-pending-user-action",
        "discovering-unbound",
        "known-unbound",
        "disconnected-unbound",
        "insufficient-unbound",
        "disabled-unbound",
    ] {
        let snapshot = converged(with_agent(leaving.clone(), |agent| state(agent, free)));
        assert!(is_released(&snapshot), "{free}");
    }
}

#[test]
fn the_hook_of_a_machine_without_status_holds_until_its_host_has_left() {
    for id in [None, Some("agent://a")] {
        let restored = snapshot(Vec::new()).change(|machine| machine.spec.provider_id = id.map(Into::into));
        let mut running = labelled(&restored, "a");
        state(Arc::make_mut(&mut running), "installed");
        let leaving = read(restored, vec![running]).machine_leaves(waiting_for_hook());
        let first = plan(&leaving);
        let [Step::Status(noted), Step::Tell(_)] = &first.steps[..] else {
            panic!("{first:?}")
        };
        assert_eq!(noted["agentRef"], json!({ "name": "a", "namespace": "pool" }));
        let leaving = converged(leaving);
        let agent = leaving.agent.as_ref().unwrap();
        assert_eq!(
            (agent.spec.cluster_deployment_name.as_ref(), is_released(&leaving)),
            (None, false)
        );
        for held in ["unbinding", "reclaiming", "reclaiming-rebooting"] {
            let on_its_way = converged(with_agent(leaving.clone(), |agent| state(agent, held)));
            assert!(!is_released(&on_its_way), "{held}");
        }
        let back = converged(with_agent(leaving, |agent| state(agent, "known-unbound")));
        assert!(is_released(&back));
    }
}

#[test]
fn a_host_that_failed_is_let_go_only_after_it_could_not_be_taken_out() {
    let leaving =
        converged(with_agent(claimed(), |agent| state(agent, "error")).machine_leaves(waiting_for_hook()));
    assert!(!is_released(&leaving), "nobody has acted yet");
    let refused = with_agent(leaving, |agent| {
        say(agent, condition::SPEC_SYNCED, "False", of_agent::INPUT_ERROR);
    });
    assert!(is_released(&converged(refused)));
}

#[test]
fn after_the_release_nothing_more_is_done_to_the_agent() {
    let mut released = converged(claimed().machine_leaves(waiting_for_hook()));
    assert!(is_released(&released));
    let mut next = agent("a", 16);
    next.spec.cluster_deployment_name = released.lineage.deployment().cloned();
    next.labels_mut().insert(label::AGENT_MACHINE.into(), "m2".into());
    released.agent = Some(Arc::new(next));
    assert_eq!(plan(&released), Plan::default());
}

#[test]
fn the_claim_of_the_next_machine_is_not_undone() {
    let mut leaving = claimed().machine_leaves(waiting_for_hook());
    leaving = with_agent(leaving, |agent| {
        agent
            .labels_mut()
            .insert(label::AGENT_MACHINE.into(), "m2".into());
        state(agent, "binding");
    });
    let done = converged(leaving.clone());
    assert_eq!(done.agent, leaving.agent);
    assert!(is_released(&done));
}

#[test]
fn paused_and_deleted_it_goes_and_the_agent_stays_bound() {
    let before = claimed().leaves().paused();
    let done = converged(before.clone());
    assert!(is_released(&done));
    assert_eq!(done.agent, before.agent);
    assert!(done.agent.unwrap().spec.cluster_deployment_name.is_some());
}

#[test]
fn a_paused_machine_whose_owner_goes_is_left_alone() {
    assert_eq!(
        plan(&claimed().paused().machine_leaves(waiting_for_hook())),
        Plan::default()
    );
}

#[test]
fn one_without_an_agent_goes_at_once_and_claims_nothing() {
    let leaving = snapshot(vec![agent("a", 1)]).leaves();
    let done = converged(leaving);
    assert_eq!(done.agent, None);
    assert!(is_released(&done));
}

#[test]
fn without_its_machine_it_still_gives_the_agent_back() {
    let mut orphan = with_agent(claimed(), |agent| state(agent, "known")).leaves();
    orphan.lineage.machine = None;
    let done = converged(orphan);
    assert_eq!(done.agent.as_ref().unwrap().spec.cluster_deployment_name, None);
    assert!(
        keys::has_finalizer(&*done.machine, finalizer::AGENT_MACHINE),
        "it waits"
    );
    let left = converged(with_agent(done, |agent| state(agent, "known-unbound")));
    assert!(!keys::has_finalizer(&*left.machine, finalizer::AGENT_MACHINE));
}

#[test]
fn an_agent_that_is_being_deleted_is_waited_for() {
    let leaving = with_agent(claimed(), |agent| {
        agent.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(900).unwrap()));
        state(agent, "installed");
    });
    let waits = converged(leaving.machine_leaves(waiting_for_hook()));
    assert!(!is_released(&waits));
    assert!(found(&waits, "AgentReserved").2.contains("being deleted"));
}

#[test]
fn a_machine_waits_only_for_an_agent_that_is_still_its_own_to_lose() {
    let forget = |agent: &mut Agent| {
        claim_off(agent);
        state(agent, "");
        say(agent, condition::BOUND, "Unknown", of_agent::NOT_AVAILABLE);
    };
    let other = || {
        Some(ClusterRef {
            name: "red".into(),
            namespace: "x".into(),
        })
    };
    let cases: [(&str, Change, bool); 7] = [
        (
            "bound to another cluster by hand",
            Box::new(move |agent| {
                claim_off(agent);
                agent.spec.cluster_deployment_name = other();
            }),
            true,
        ),
        (
            "of another machine, and bound to another cluster",
            Box::new(move |agent| {
                agent
                    .labels_mut()
                    .insert(label::AGENT_MACHINE.into(), "m2".into());
                agent.spec.cluster_deployment_name = other();
            }),
            true,
        ),
        ("unknown to the hub", Box::new(forget), true),
        (
            "unknown to the hub, and wanted by another cluster",
            Box::new(move |agent| {
                forget(agent);
                agent.spec.cluster_deployment_name = other();
            }),
            true,
        ),
        ("not reconciled since it was let go", Box::new(claim_off), false),
        (
            "without a word of where it is",
            Box::new(|agent| {
                claim_off(agent);
                state(agent, "");
            }),
            false,
        ),
        (
            "never reconciled",
            Box::new(|agent| {
                claim_off(agent);
                agent.status = None;
            }),
            false,
        ),
    ];
    for (what, change, goes) in cases {
        let bound = with_agent(claimed(), |agent| state(agent, "installed"));
        let leaving = with_agent(bound, change).machine_leaves(waiting_for_hook());
        let before = leaving.agent.clone();
        let done = converged(leaving);
        assert_eq!(is_released(&done), goes, "{what}");
        assert_eq!(done.agent, before, "{what}: nobody touches it");
    }
}

#[test]
fn a_machine_that_goes_lets_go_of_every_agent_that_carries_its_name() {
    let mut leaving = with_agent(claimed(), |agent| state(agent, "installed"));
    leaving.strays = vec![labelled(&leaving, "b"), labelled(&leaving, "c")];
    let done = converged(leaving.machine_leaves(waiting_for_hook()));
    assert!(done.strays.is_empty());
    assert_eq!(done.agent.as_ref().unwrap().spec.cluster_deployment_name, None);
    // The one its status names is gone: the others are still let go before the machine is.
    let mut alone = claimed();
    (alone.agent, alone.strays) = (None, vec![labelled(&alone, "b")]);
    let done = converged(alone.leaves());
    assert!(done.strays.is_empty() && is_released(&done));
}

#[test]
fn a_machine_that_goes_leaves_other_nodes_alone_and_names_them_in_one_event() {
    let mut alone = claimed();
    let mut node = labelled(&alone, "b");
    state(Arc::make_mut(&mut node), "installed");
    (alone.agent, alone.strays) = (None, vec![node.clone()]);
    let leaving = alone.leaves();
    let last = plan(&leaving);
    let notes = last.steps.iter().filter_map(|step| match step {
        Step::Tell(news) => Some(news.note.as_str()),
        _ => None,
    });
    assert!(
        matches!(&notes.collect::<Vec<_>>()[..], [note] if note.contains("pool/b (installed)")),
        "{last:?}"
    );
    let done = converged(leaving);
    assert!(is_released(&done));
    assert_eq!(done.strays, [node]);
}
