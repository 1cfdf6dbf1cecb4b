//! Hosts that join running clusters: with a power controller, with a pool of their own, and when their InfraEnv goes.

use crate::agent_day_two::{Asks, Joining};
use crate::agent_reclaim::reclaiming;
use crate::lent::{says, stage, state, word};
use crate::world::{World, condition};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use muster_operator::crd::keys::{annotation, label};
use muster_operator::crd::metal3::BareMetalHost;
use muster_operator::crd::{Agent, AgentClusterInstall, ClusterDeployment, InfraEnv};
use serde_json::{Value, json};

pub const METAL: &str = "rack-1";

/// The machine of the host gets a power controller, and the Agent knows.
pub async fn with_metal(joining: &Joining, annotations: Value, spec: Value) {
    let world = &joining.world;
    let mac = crate::lent::machine(joining.pool, 0).mac(0);
    let mut whole = json!({ "bootMACAddress": mac, "online": true });
    whole
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    let host: BareMetalHost = serde_json::from_value(json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": METAL, "labels": { label::INFRA_ENV: "lab" }, "annotations": annotations },
        "spec": whole,
    }))
    .unwrap();
    world.create(&world.pool, &host).await;
    let labelled = |agent: &Agent| {
        agent
            .labels()
            .get(label::BARE_METAL_HOST)
            .is_some_and(|name| name == METAL)
    };
    world
        .agent_when(&joining.name, "with its machine", labelled)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_a_power_controller_joins_a_running_cluster_like_any_other() {
    let joining = Joining::described(World::start().await, json!({})).await;
    let world = &joining.world;
    with_metal(&joining, json!({}), json!({})).await;
    joining.rebooted().await;
    world.kubeconfig_of("spoke").await;
    joining.allow_requests().await;
    let client = joining.request(&Asks::client(&joining)).await;
    world
        .until("the node may speak", async || joining.is_approved(&client).await)
        .await;
    joining.make_node(true, json!({})).await;
    let serving = joining.request(&Asks::serving(&joining)).await;
    world
        .until("the node may be spoken to", async || {
            joining.is_approved(&serving).await
        })
        .await;
    let agent = world.agent_in(&joining.name, "added-to-existing-cluster").await;
    assert_eq!(says(&agent, "Installed"), word("True", "InstallationCompleted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_a_machine_that_its_cluster_knows_are_left_to_the_cluster() {
    let joining = Joining::described(World::start().await, json!({})).await;
    let world = &joining.world;
    let known = json!({ annotation::BMAC_SPOKE_CREATED: "today" });
    with_metal(&joining, known, json!({})).await;
    joining.rebooted().await;
    world.kubeconfig_of("spoke").await;
    joining.allow_requests().await;
    let client = joining.request(&Asks::client(&joining)).await;
    joining.make_node(true, json!({})).await;
    world.agent_in(&joining.name, "added-to-existing-cluster").await;
    assert!(!joining.is_approved(&client).await);
}

async fn delete_infra_env(world: &World) {
    world.delete::<InfraEnv>(&world.pool, "lab").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_of_a_bound_host_stays_when_its_infra_env_goes() {
    let joining = Joining::described(World::start().await, json!({})).await;
    joining.rebooted().await;
    joining.join().await;
    let world = &joining.world;
    delete_infra_env(world).await;
    world.gone::<InfraEnv>(&world.pool, "lab").await;
    world.gone::<Agent>(&world.pool, &joining.name).await;
    let rows = world.hub.host_rows(joining.name.parse().unwrap()).await.unwrap();
    assert!(rows.hosts.is_empty());
    assert!(joining.nodes().get_opt(&joining.node).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_of_a_deleted_agent_goes_while_cluster_and_infra_env_live() {
    let joining = Joining::described(World::start().await, json!({})).await;
    joining.rebooted().await;
    joining.join().await;
    let world = &joining.world;
    world.delete::<Agent>(&world.pool, &joining.name).await;
    joining.node_is_gone().await;
}

/// An object of the cluster itself, in the namespace of the pool.
async fn of_cluster(world: &World, kind: &str, object: Value) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("machine.openshift.io", "v1beta1", kind);
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(world.kube.clone(), &world.pool, &resource);
    let mut whole = json!({ "apiVersion": resource.api_version, "kind": resource.kind });
    whole["metadata"] = object;
    let object: DynamicObject = serde_json::from_value(whole).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_manages_its_own_machines_loses_the_node_of_a_host_and_not_its_power_controller() {
    let joining = Joining::described(World::start().await, json!({})).await;
    with_metal(&joining, json!({}), json!({})).await;
    joining.rebooted().await;
    joining.join().await;
    let world = &joining.world;
    let sets = of_cluster(world, "MachineSet", json!({ "name": "workers" })).await;
    let machine = json!({
        "name": "machine-1", "labels": { "machine.openshift.io/cluster-api-machineset": "workers" },
        "annotations": { "metal3.io/BareMetalHost": format!("{}/{METAL}", world.pool) },
    });
    let machines = of_cluster(world, "Machine", machine).await;
    let annotated = json!({ "metadata": { "annotations": {
        "machine.openshift.io/machine": format!("{}/machine-1", world.pool),
    }}});
    joining
        .nodes()
        .patch(&joining.node, &PatchParams::default(), &Patch::Merge(annotated))
        .await
        .unwrap();
    world.delete::<Agent>(&world.pool, &joining.name).await;
    joining.node_is_gone().await;
    let metal: BareMetalHost = world.get(&world.pool, METAL).await;
    assert_eq!(metal.metadata.deletion_timestamp, None);
    let machine = machines.get("machine-1").await.unwrap();
    assert_eq!(machine.annotations().len(), 1, "{:?}", machine.annotations());
    let set = sets.get("workers").await.unwrap();
    assert!(set.annotations().is_empty(), "{:?}", set.annotations());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_infra_env_waits_as_a_whole_for_a_host_whose_disk_is_written() {
    let joining = Joining::described(World::start().await, json!({})).await;
    joining.rebooted().await;
    let world = &joining.world;
    let free = world.silent_host(joining.pool).await;
    delete_infra_env(world).await;
    let names_hosts = |infra_env: &InfraEnv| {
        let status = infra_env.status.clone().unwrap_or_default();
        condition(&status.conditions, "Cleanup").is_some_and(|(status, reason, message)| {
            (status, reason) == ("False", "HostsAreInstalling") && message.contains(&joining.node)
        })
    };
    world
        .when::<InfraEnv>(&world.pool, "lab", "says who is waited for", names_hosts)
        .await;
    let rows = world.hub.host_rows(free.parse().unwrap()).await.unwrap();
    assert_eq!(rows.hosts.len(), 1, "the others are still there");
    joining.come_up().await;
    world.gone::<InfraEnv>(&world.pool, "lab").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_a_deleted_cluster_that_runs_are_fetched_back_from_the_inside() {
    let world = World::without_operator().await;
    let operator = reclaiming(&world).await;
    let joining = Joining::described(world, json!({})).await;
    joining.rebooted().await;
    joining.join().await;
    let world = &joining.world;
    let id = world.cluster_id("spoke").await;
    world.delete_deployment("spoke").await;
    let agent = world.agent_in(&joining.name, "reclaiming").await;
    assert_eq!(agent.spec.cluster_deployment_name, None);
    let sets: Api<DaemonSet> = Api::namespaced(world.kube.clone(), "assisted-installer");
    let set = sets.get(&format!("{}-reclaim", joining.node)).await.unwrap();
    assert_eq!(set.owner_references()[0].name, joining.node);
    world.cluster_is_gone("spoke", id).await;
    joining.remote.boot_discovery(0);
    world.agent_in(&joining.name, "known-unbound").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_a_preserved_cluster_are_neither_removed_nor_fetched_back() {
    let world = World::without_operator().await;
    let operator = reclaiming(&world).await;
    let joining = Joining::described(world, json!({})).await;
    joining.rebooted().await;
    joining.join().await;
    let world = &joining.world;
    let preserve = json!({ "spec": { "preserveOnDelete": true } });
    world
        .patch::<ClusterDeployment>(&world.clusters, "spoke", preserve)
        .await
        .unwrap();
    operator.idle().await;
    let id = world.cluster_id("spoke").await;
    world.delete_deployment("spoke").await;
    world.cluster_is_gone("spoke", id).await;
    world.gone::<Agent>(&world.pool, &joining.name).await;
    operator.idle().await;
    assert!(joining.nodes().get_opt(&joining.node).await.unwrap().is_some());
    let sets: Api<DaemonSet> = Api::namespaced(world.kube.clone(), "assisted-installer");
    let set = sets.get_opt(&format!("{}-reclaim", joining.node)).await.unwrap();
    assert!(set.is_none(), "nobody boots it");
    let rows = world.hub.host_rows(joining.name.parse().unwrap()).await.unwrap();
    assert!(rows.hosts.is_empty());
    operator.stop().await;
}

/// The pool of workers of the cluster; there is one for all tests, and this is the only one that touches it.
fn pools(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfigPool");
    Api::all_with(world.kube.clone(), &ApiResource::from_gvk(&kind))
}

async fn workers_are_paused(world: &World) -> bool {
    let pool = pools(world).get("worker").await.unwrap();
    pool.data["spec"]["paused"].as_bool().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_hold_still_as_soon_as_the_cluster_answers_and_go_on_when_the_host_leaves() {
    let world = World::start().await;
    let pool: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": { "name": "worker" }, "spec": { "paused": false },
    }))
    .unwrap();
    // A run before may have left it.
    let _ = pools(&world).create(&PostParams::default(), &pool).await;
    let running = Patch::Merge(json!({ "spec": { "paused": false } }));
    pools(&world)
        .patch("worker", &PatchParams::default(), &running)
        .await
        .unwrap();
    let patch = json!({ "spec": { "nodeLabels": { "zone": "north" }, "machineConfigPool": "infra" } });
    let joining = Joining::described(world, patch).await;
    joining.rebooted().await;
    let world = &joining.world;
    assert!(
        !workers_are_paused(world).await,
        "nobody can reach the cluster yet"
    );
    world.kubeconfig_of("spoke").await;
    world
        .until("the workers hold still", async || workers_are_paused(world).await)
        .await;
    let noted =
        |install: &AgentClusterInstall| install.annotations().contains_key(annotation::WORKERS_PAUSED);
    world.install_when("spoke", "noted", noted).await;
    assert_eq!(stage(&world.agent(&joining.name).await), "Rebooting");
    world.want(&joining.name, None).await.unwrap();
    world
        .until("the workers go on", async || !workers_are_paused(world).await)
        .await;
    world
        .install_when("spoke", "done", |install| !noted(install))
        .await;
    world
        .agent_when(&joining.name, "on its way back", |agent| {
            state(agent).starts_with("unbinding") || state(agent).ends_with("-unbound")
        })
        .await;
    only_a_pause_from_here_is_ended(joining.world).await;
}

/// After a restart, and before the cluster goes.
async fn only_a_pause_from_here_is_ended(mut world: World) {
    world.operator().idle().await;
    world.stop_operator().await;
    pause_workers(&world).await;
    world.start_operator().await;
    world.operator().idle().await;
    assert!(workers_are_paused(&world).await, "somebody else paused them");
    world.stop_operator().await;
    let note = json!({ "metadata": { "annotations": { annotation::WORKERS_PAUSED: "true" } } });
    world.change_install("spoke", note).await;
    let id = world.cluster_id("spoke").await;
    world.delete_deployment("spoke").await;
    world.start_operator().await;
    world.cluster_is_gone("spoke", id).await;
    assert!(!workers_are_paused(&world).await);
}

async fn pause_workers(world: &World) {
    let paused = Patch::Merge(json!({ "spec": { "paused": true } }));
    pools(world)
        .patch("worker", &PatchParams::default(), &paused)
        .await
        .unwrap();
}
