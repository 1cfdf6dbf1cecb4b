//! Machines of Cluster API whose hosts the hub knows.

use crate::capi::{northern, unfit_agents};
use crate::capi_whole::restored_deployment;
use crate::lent::{machine, says as said, state};
use crate::machines::{Capi, agent_of, holder, message, waits};
use crate::world::World;
use kube::api::DeleteParams;
use muster_operator::crd::infra_env::AgentApproval;
use muster_operator::crd::{Agent, AgentMachine};
use serde_json::json;
use uuid::Uuid;

fn can_be_chosen(agent: &Agent) -> bool {
    let is = |type_: &str, wanted: &str| said(agent, type_).0 == wanted;
    state(agent) == "known-unbound"
        && is("Bound", "False")
        && is("Connected", "True")
        && is("Validated", "True")
}

async fn cluster_of(world: &World, pool: Uuid, host: Uuid) -> Option<Uuid> {
    world.hub.host(pool, host).await.unwrap().cluster_id
}

#[tokio::test(flavor = "multi_thread")]
async fn among_agents_that_will_not_do_the_approved_host_of_the_hub_is_reserved_and_bound() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    world.fleet(pool, 2, |config| {
        config.first_index = 0;
        config.return_boots = None;
    });
    let [approved, raw] = [0, 1].map(|index| machine(pool, index).id());
    for (host, is_approved) in [(approved, true), (raw, false)] {
        let name = host.to_string();
        world.agent_when(&name, "can be chosen", can_be_chosen).await;
        let patch =
            json!({ "metadata": { "labels": { "zone": "north" } }, "spec": { "approved": is_approved } });
        world.change_agent(&name, patch).await.unwrap();
    }
    restored_deployment(&world, "blue").await;
    world.operator().idle().await;
    // Agents that are made by hand are no hosts, which the hub's side would say of them.
    world.stop_operator().await;
    unfit_agents(&world).await;
    world.capi_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", northern()).await;
    let provider = world.provider().await;
    let lent = world.lent_machine("m1").await;
    assert_eq!(agent_of(&lent), Some(approved.to_string()));
    world.capi_machine(Capi::V1Beta2, "blue", "m2", northern()).await;
    let none = world.machine_when("m2", "has none", waits).await;
    let text = message(&none, "AgentReserved");
    assert!(text.contains("2 not approved"), "{text}");
    provider.stop().await;
    world.start_operator().await;
    world
        .until("it is bound in the hub", async || {
            cluster_of(&world, pool, approved).await.is_some()
        })
        .await;
    assert_eq!(cluster_of(&world, pool, raw).await, None);
    assert_eq!(holder(&world.agent(&raw.to_string()).await), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_the_hub_stays_bound_when_its_machine_is_paused_and_deleted() {
    let mut world = World::start().await;
    let pool = world
        .pool_of("lab", |infra_env| {
            infra_env.spec.agent_approval = Some(AgentApproval { auto_approve: true });
        })
        .await;
    let name = world.free_host(pool).await;
    let host: Uuid = name.parse().unwrap();
    restored_deployment(&world, "blue").await;
    world.capi_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.lent_machine("m1").await;
    world
        .until("it is bound in the hub", async || {
            cluster_of(&world, pool, host).await.is_some()
        })
        .await;
    let before = cluster_of(&world, pool, host).await;
    let pause = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "true" } } });
    world
        .patch::<AgentMachine>(&world.clusters, "m1", pause)
        .await
        .unwrap();
    let machines = world.api::<AgentMachine>(&world.clusters);
    machines.delete("m1", &DeleteParams::default()).await.unwrap();
    world.gone::<AgentMachine>(&world.clusters, "m1").await;
    world.unhooked("m1").await;
    // A fresh operator finds nothing to undo.
    world.stop_operator().await;
    world.start_operator().await;
    world
        .until("it has reconciled", async || {
            world.operator().counted("reconciles", "agent").await > 1
        })
        .await;
    assert_eq!(cluster_of(&world, pool, host).await, before);
    let agent = world.agent(&name).await;
    assert_eq!(agent.spec.cluster_deployment_name, world.reference("blue"));
    assert_eq!(holder(&agent), Some("m1"));
    let state = state(&agent);
    assert!(
        !state.starts_with("unbinding") && !state.ends_with("-unbound"),
        "{state}"
    );
}
