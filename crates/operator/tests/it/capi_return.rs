//! Machines of Cluster API that go: their Agents are given back first, or stay where they are.

use crate::machines::{Capi, HOOK, agent_of, but, free, holder, installed, waits};
use crate::world::World;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use muster_operator::crd::AgentMachine;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_machine_gives_its_agent_back_before_it_goes() {
    for version in [Capi::V1Beta1, Capi::V1Beta2] {
        let world = World::without_operator().await;
        world
            .hand_made("a", free(), |agent| agent.spec.hostname = "kept".into())
            .await;
        let provider = world.provider().await;
        world.hosted_cluster(version, "blue").await;
        world.capi_machine(version, "blue", "m1", json!({})).await;
        world.lent_machine("m1").await;
        assert!(world.is_hooked("m1").await);
        world.show("a", but("Bound", "True", "Bound")).await;
        world.show_state("a", "installed").await;
        // The next one waits for the same host.
        world.capi_machine(version, "blue", "m2", json!({})).await;
        world.machine_when("m2", "waits", waits).await;
        world.terminate(version, "m1").await;
        let freed = world
            .agent_when("a", "is let go", |agent| {
                agent.spec.cluster_deployment_name.is_none()
            })
            .await;
        assert_eq!(holder(&freed), None);
        assert!(freed.spec.approved && freed.spec.hostname == "kept");
        // Not before the host has left.
        for state in ["unbinding", "reclaiming", "reclaiming-rebooting"] {
            world.show_state("a", state).await;
            provider.idle().await;
            assert!(world.is_hooked("m1").await, "{state}");
        }
        world.show_state("a", "unbinding-pending-user-action").await;
        world.unhooked("m1").await;
        let machine = world
            .machine_when("m1", "may go", |machine| machine.finalizers().is_empty())
            .await;
        assert_eq!(
            agent_of(&machine).as_deref(),
            Some("a"),
            "it is not claimed again"
        );
        world.show("a", free()).await;
        assert_eq!(agent_of(&world.lent_machine("m2").await).as_deref(), Some("a"));
        // The one that left does not undo what the next one did.
        let machines = world.api::<AgentMachine>(&world.clusters);
        machines.delete("m1", &DeleteParams::default()).await.unwrap();
        world.gone::<AgentMachine>(&world.clusters, "m1").await;
        provider.idle().await;
        let agent = world.agent("a").await;
        assert_eq!(holder(&agent), Some("m2"));
        assert_eq!(agent.spec.cluster_deployment_name, world.reference("blue"));
        provider.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hook_holds_through_a_restart() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.lent_machine("m1").await;
    world.show("a", but("Bound", "True", "Bound")).await;
    // A state from before anybody has taken the host out must not let the Machine go.
    world.show_state("a", "error").await;
    world.terminate(Capi::V1Beta2, "m1").await;
    world
        .agent_when("a", "is let go", |agent| holder(agent).is_none())
        .await;
    provider.kill();
    let provider = world.provider().await;
    provider.idle().await;
    assert!(world.is_hooked("m1").await);
    world.show_state("a", "known-unbound").await;
    world.unhooked("m1").await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hook_holds_also_for_a_machine_that_was_restored_without_its_status() {
    for id in [None, Some("agent://a")] {
        let world = World::without_operator().await;
        world.hosted_cluster(Capi::V1Beta2, "blue").await;
        world.hand_made("a", installed(), world.claimed_by("m1")).await;
        world
            .restored_machine("blue", "m1", json!({ "providerID": id }))
            .await;
        world.terminate(Capi::V1Beta2, "m1").await;
        let provider = world.provider().await;
        let freed = world
            .agent_when("a", "is let go", |agent| holder(agent).is_none())
            .await;
        assert_eq!(freed.spec.cluster_deployment_name, None);
        for state in ["unbinding", "reclaiming", "reclaiming-rebooting"] {
            world.show_state("a", state).await;
            provider.idle().await;
            assert!(world.is_hooked("m1").await, "{id:?} {state}");
        }
        let machine: AgentMachine = world.get(&world.clusters, "m1").await;
        assert_eq!(
            agent_of(&machine).as_deref(),
            Some("a"),
            "so it knows for whom it waits"
        );
        world.show_state("a", "known-unbound").await;
        world.unhooked("m1").await;
        provider.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_paused_and_deleted_leaves_its_agent_bound() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.lent_machine("m1").await;
    let before = world.agent("a").await;
    let pause = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "true" } } });
    world
        .patch::<AgentMachine>(&world.clusters, "m1", pause)
        .await
        .unwrap();
    let machines = world.api::<AgentMachine>(&world.clusters);
    machines.delete("m1", &DeleteParams::default()).await.unwrap();
    world.gone::<AgentMachine>(&world.clusters, "m1").await;
    world.unhooked("m1").await;
    assert_eq!(world.agent("a").await.spec, before.spec);
    assert_eq!(holder(&world.agent("a").await), Some("m1"));
    // Restored, it finds its Agent.
    let machines = world.capi(Capi::V1Beta2, "Machine");
    let loose = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    machines
        .patch("m1", &PatchParams::default(), &loose)
        .await
        .unwrap();
    machines.delete("m1", &DeleteParams::default()).await.unwrap();
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_machine_is_left_alone_until_it_is_not() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let pause = |value: Value| json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": value } } });
    world
        .patch::<AgentMachine>(&world.clusters, "m1", pause(json!("true")))
        .await
        .unwrap();
    let provider = world.provider().await;
    provider.idle().await;
    let machine: AgentMachine = world.get(&world.clusters, "m1").await;
    assert!(machine.finalizers().is_empty() && machine.status.is_none());
    assert!(!world.is_hooked("m1").await);
    assert_eq!(holder(&world.agent("a").await), None);
    world
        .patch::<AgentMachine>(&world.clusters, "m1", pause(Value::Null))
        .await
        .unwrap();
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    let machine = world.capi(Capi::V1Beta2, "Machine").get("m1").await.unwrap();
    assert_eq!(machine.annotations()[HOOK], "");
    provider.stop().await;
}
