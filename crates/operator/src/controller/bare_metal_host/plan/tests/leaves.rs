//! BareMetalHosts that are not ours any more, or that are deleted.

use super::*;

fn deleted(mut host: BareMetalHost) -> BareMetalHost {
    host.metadata.deletion_timestamp = Some(clock::time(now()));
    host
}

fn lent() -> Agent {
    let mut agent = agent("installed", "Done");
    agent.spec.cluster_deployment_name = Some(crate::crd::reference::ClusterRef {
        name: "blue".into(),
        namespace: "clusters".into(),
    });
    agent
}

fn with_agent(host: BareMetalHost) -> BareMetalHost {
    annotated(host, &[(annotation::BMAC_REMOVE_ON_DELETE, "true")])
}

#[test]
fn without_the_label_nothing_is_kept_and_nothing_else_touched() {
    let mut foreign = detached(booted_live("provisioned"));
    foreign.labels_mut().remove(label::INFRA_ENV);
    let plan = plan(&live(foreign, Some(waiting())));
    assert_eq!(
        plan.steps,
        [Step::PatchHost(json!({ "metadata": { "finalizers": null } }))]
    );
}

#[test]
fn a_deleted_host_is_let_go_and_its_agent_stays() {
    for (boot, machine) in ways() {
        for agent in [None, Some(lent())] {
            let paused = deleted(detached(machine("provisioned")));
            let snapshot = super::snapshot(boot, paused, agent.clone());
            assert_eq!(snapshot.way(), boot);
            let snapshot = reconciled(&snapshot);
            assert!(snapshot.host.finalizers().is_empty(), "{boot:?}");
            assert_eq!(
                noted(&snapshot, annotation::METAL3_PAUSED),
                None,
                "{boot:?}: it would never go"
            );
            assert_eq!(
                noted(&snapshot, annotation::METAL3_DETACHED),
                Some(OURS),
                "{boot:?}: nor be wiped"
            );
            assert_eq!(snapshot.agent.is_some(), agent.is_some());
        }
    }
}

#[test]
fn an_agent_that_is_to_go_too_goes_when_the_machine_is_wiped() {
    let snapshot = reconciled(&converged(
        deleted(with_agent(detached(deployed("provisioned")))),
        Some(lent()),
    ));
    assert_eq!(snapshot.host.finalizers(), [finalizer::BARE_METAL_HOST]);
    assert_eq!(
        snapshot.host.spec.automated_cleaning_mode.as_deref(),
        Some("metadata")
    );
    assert_eq!(noted(&snapshot, annotation::METAL3_DETACHED), None);
    assert_eq!(noted(&snapshot, annotation::METAL3_PAUSED), None);
    assert!(snapshot.agent.is_some());
    let wiped = reconciled(&in_state(&snapshot, "deleting"));
    assert!(wiped.agent.is_none() && wiped.host.finalizers().is_empty());
}

#[test]
fn a_free_agent_goes_at_once_and_before_its_host() {
    let snapshot = converged(
        deleted(with_agent(deployed("available"))),
        Some(agent("known-unbound", "")),
    );
    let plan = plan(&snapshot);
    assert_eq!(plan.steps[0], Step::DeleteAgent);
    assert!(after(&snapshot, &plan).host.finalizers().is_empty());
}

#[test]
fn with_live_images_an_agent_is_never_taken_along() {
    let snapshot = live(deleted(with_agent(booted_live("provisioned"))), Some(lent()));
    assert!(!plan(&snapshot).steps.contains(&Step::DeleteAgent));
    assert!(reconciled(&snapshot).host.finalizers().is_empty());
}

#[test]
fn a_host_that_we_have_let_go_of_is_still_unpaused() {
    let mut gone = deleted(with_agent(detached(deployed("provisioned"))));
    gone.metadata.finalizers = None;
    let snapshot = reconciled(&converged(gone, Some(lent())));
    assert_eq!(noted(&snapshot, annotation::METAL3_PAUSED), None);
    assert_eq!(noted(&snapshot, annotation::METAL3_DETACHED), None);
    assert!(snapshot.agent.is_some());
}
