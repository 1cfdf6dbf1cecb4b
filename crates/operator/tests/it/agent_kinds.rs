//! Agents on servers that know nothing of the machines behind nodes: neither Machines nor BareMetalHosts nor pools of
//! workers are installed, where the operator runs and in the cluster that hosts join.

use crate::agent_day_two::Joining;
use crate::own_server::{HIVE, OURS, Place, world_at};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use muster_operator::crd::keys::{annotation, label};
use muster_operator::crd::{Agent, AgentClusterInstall};
use serde_json::json;
use std::path::Path;

/// The node says that a machine is behind it, and the Agent that it has a power controller.
async fn claim_machines(joining: &Joining) {
    let machine =
        json!({ "metadata": { "annotations": { "machine.openshift.io/machine": "machines/gone" } } });
    joining
        .nodes()
        .patch(&joining.node, &PatchParams::default(), &Patch::Merge(machine))
        .await
        .unwrap();
    let metal = json!({ "metadata": { "labels": { label::BARE_METAL_HOST: "gone" } } });
    joining.world.change_agent(&joining.name, metal).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_kinds_of_others_are_not_installed_hosts_join_come_back_and_go() {
    let place = Place::open().await;
    let front = place.front("one").await;
    place.define(&front, &[OURS, HIVE].map(Path::new)).await;
    let mut world = world_at(&front).await;
    world.start_operator().await;
    let joining = Joining::described(world, json!({})).await;
    let world = &joining.world;
    joining.rebooted().await;
    joining.join().await;

    // As if workers had been held still for a host that joined.
    let noted = json!({ "metadata": { "annotations": { annotation::WORKERS_PAUSED: "true" } } });
    world.change_install("spoke", noted).await;
    let is_over =
        |install: &AgentClusterInstall| !install.annotations().contains_key(annotation::WORKERS_PAUSED);
    world.install_when("spoke", "nobody holds still", is_over).await;

    claim_machines(&joining).await;
    world.want(&joining.name, None).await.unwrap();
    world
        .agent_in(&joining.name, "unbinding-pending-user-action")
        .await;
    joining.remote.boot_discovery(0);
    let is_clean = |agent: &Agent| {
        let status = agent.status.as_ref();
        status.is_some_and(|status| {
            status.debug_info.state == "known-unbound" && status.deprovision_info.is_none()
        })
    };
    world
        .agent_when(&joining.name, "back, and nothing is left to clean", is_clean)
        .await;
    assert!(joining.nodes().get_opt(&joining.node).await.unwrap().is_none());

    world.want(&joining.name, Some("spoke")).await.unwrap();
    joining.rebooted().await;
    joining.make_node(false, json!({})).await;
    claim_machines(&joining).await;
    world.delete::<Agent>(&world.pool, &joining.name).await;
    joining.node_is_gone().await;
}
