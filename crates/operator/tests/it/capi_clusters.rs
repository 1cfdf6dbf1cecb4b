//! Clusters of Cluster API that are made anew, share a name with another, or are paused.

use crate::machines::Capi;
use crate::world::{World, run};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use muster_operator::Options;
use muster_operator::crd::keys::label;
use muster_operator::crd::{AgentCluster, AgentMachine, ClusterDeployment};
use serde_json::{Value, json};
use uuid::Uuid;

fn is_ready(cluster: &AgentCluster) -> bool {
    cluster.status.as_ref().is_some_and(|status| status.ready)
}

/// Reason and message of the condition, and the ClusterDeployment that is named.
fn ready_of(cluster: &AgentCluster) -> (String, String, String) {
    let status = cluster.status.clone().unwrap_or_default();
    let (reason, message) = status
        .conditions
        .first()
        .map(|said| (said.reason.clone(), said.message.clone()))
        .unwrap_or_default();
    (reason, message, status.cluster_deployment_reference.name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_made_anew_waits_for_the_old_deployment_to_go_and_makes_its_own() {
    let world = World::without_operator().await;
    let provider = world.provider().await;
    let first = world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.when(&world.clusters, "blue", "ready", is_ready).await;
    // Its hosts take their time to leave.
    let held = json!({ "metadata": { "finalizers": ["example.com/hosts-leave"] } });
    let old: ClusterDeployment = world.patch(&world.clusters, "blue", held).await.unwrap();
    let clusters = world.api::<AgentCluster>(&world.clusters);
    clusters.delete("blue", &DeleteParams::default()).await.unwrap();
    world.gone::<AgentCluster>(&world.clusters, "blue").await;
    world
        .when(&world.clusters, "blue", "goes", |found: &ClusterDeployment| {
            found.metadata.deletion_timestamp.is_some()
        })
        .await;
    let again = AgentCluster {
        metadata: ObjectMeta {
            name: Some("blue".into()),
            owner_references: first.metadata.owner_references.clone(),
            ..ObjectMeta::default()
        },
        spec: first.spec.clone(),
        status: None,
    };
    world.create(&world.clusters, &again).await;
    let waits = world
        .when(&world.clusters, "blue", "waits", |cluster: &AgentCluster| {
            ready_of(cluster).1.contains("still being deleted")
        })
        .await;
    assert_eq!(ready_of(&waits).2, "", "what goes is not named");
    provider.idle().await;
    let loose = json!({ "metadata": { "finalizers": null } });
    world
        .patch::<ClusterDeployment>(&world.clusters, "blue", loose)
        .await
        .unwrap();
    let done = world.when(&world.clusters, "blue", "ready", is_ready).await;
    assert_eq!(ready_of(&done).2, "blue");
    let new: ClusterDeployment = world.get(&world.clusters, "blue").await;
    assert_ne!(new.uid(), old.uid());
    assert_eq!(Some(&new.owner_references()[0].uid), done.metadata.uid.as_ref());
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_of_another_cluster_is_reported_and_left_alone_until_it_is_free() {
    let world = World::without_operator().await;
    world.running_cluster("blue").await;
    let of = |name: Option<&str>| json!({ "metadata": { "labels": { label::AGENT_CLUSTER: name } } });
    let taken: ClusterDeployment = world
        .patch(&world.clusters, "blue", of(Some("red")))
        .await
        .unwrap();
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world
        .when(&world.clusters, "blue", "taken", |cluster: &AgentCluster| {
            ready_of(cluster).0 == "ClusterDeploymentTaken"
        })
        .await;
    provider.idle().await;
    let after: ClusterDeployment = world.get(&world.clusters, "blue").await;
    assert_eq!(after.resource_version(), taken.resource_version());
    world
        .patch::<ClusterDeployment>(&world.clusters, "blue", of(None))
        .await
        .unwrap();
    world.when(&world.clusters, "blue", "ready", is_ready).await;
    let adopted: ClusterDeployment = world.get(&world.clusters, "blue").await;
    assert_eq!(adopted.uid(), taken.uid());
    assert_eq!(adopted.labels()[label::AGENT_CLUSTER], "blue");
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_that_may_not_be_read_is_reported_and_not_read_again_and_again() {
    let world = World::without_operator().await;
    let provider = world.provider().await;
    let plane = json!({ "controlPlaneRef": {
        "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "blue",
    } });
    world.cluster_with(Capi::V1Beta2, "blue", plane).await;
    let waits = world
        .when(&world.clusters, "blue", "waits", |cluster: &AgentCluster| {
            ready_of(cluster).0 == "WaitingForControlPlane"
        })
        .await;
    let text = ready_of(&waits).1;
    assert!(
        text.contains("the verb get on kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"),
        "{text}"
    );
    // With a ClusterDeployment of somebody's own it is ready, and its machines are woken by every Agent.
    world.running_cluster("blue").await;
    world.when(&world.clusters, "blue", "ready", is_ready).await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.machine_when("m1", "waits", crate::machines::waits).await;
    let reads = || provider.requests.snapshot()["get"];
    let reconciles = async || provider.counted("reconciles", "agent-machine").await;
    let mut before = (reads(), reconciles().await);
    for name in ["a", "b", "c"] {
        before = (reads(), reconciles().await);
        let said = crate::machines::but("Validated", "False", "ValidationsFailing");
        world.hand_made(name, said, |_| ()).await;
        world
            .until("it was woken", async || reconciles().await > before.1)
            .await;
    }
    let lease_questions = reconciles().await - before.1;
    assert!(reads() <= before.0 + lease_questions, "nothing else is asked");
    provider.stop().await;
}

/// An installed machine, as any provider leaves it, and its node without an id.
async fn installed(world: &World, name: &str) -> String {
    let node = format!("node-{}", Uuid::new_v4().simple());
    let new: Node = serde_json::from_value(json!({ "metadata": { "name": node } })).unwrap();
    let nodes: Api<Node> = Api::all(world.kube.clone());
    nodes.create(&PostParams::default(), &new).await.unwrap();
    world.capi_machine(Capi::V1Beta2, "blue", name, json!({})).await;
    let id = json!({ "spec": { "providerID": format!("agent://{name}") } });
    world
        .patch::<AgentMachine>(&world.clusters, name, id)
        .await
        .unwrap();
    let status = json!({ "status": { "ready": true, "agentRef": { "name": name, "namespace": world.pool },
        "addresses": [{ "type": "InternalDNS", "address": node }] } });
    world
        .api::<AgentMachine>(&world.clusters)
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_named_as_soon_as_the_cluster_says_where_they_are_and_is_paused_no_more() {
    let world = World::without_operator().await;
    world.running_cluster("blue").await;
    world.kubeconfig_of("blue").await;
    world.capi_cluster(Capi::V1Beta2, "blue").await;
    let options = Options {
        controllers: "node-provider-id".parse().unwrap(),
        ..world.options()
    };
    let operator = run(options).await;
    let nodes: Api<Node> = Api::all(world.kube.clone());
    let named = async |node: &str| {
        nodes
            .get(node)
            .await
            .unwrap()
            .spec
            .and_then(|spec| spec.provider_id)
    };
    let first = installed(&world, "m1").await;
    operator.idle().await;
    assert_eq!(named(&first).await, None, "nobody knows its cluster yet");
    world.cluster_is_ready("blue").await;
    world
        .until("the first is named", async || {
            named(&first).await.as_deref() == Some("agent://m1")
        })
        .await;
    let pause = async |paused: Value| {
        let patch = Patch::Merge(json!({ "spec": { "paused": paused } }));
        let clusters = world.capi(Capi::V1Beta2, "Cluster");
        clusters
            .patch("blue", &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    pause(json!(true)).await;
    operator.idle().await;
    let second = installed(&world, "m2").await;
    operator.idle().await;
    assert_eq!(
        named(&second).await,
        None,
        "nothing of a paused cluster is touched"
    );
    pause(Value::Null).await;
    world
        .until("the second is named", async || {
            named(&second).await.as_deref() == Some("agent://m2")
        })
        .await;
    operator.stop().await;
    for node in [first, second] {
        nodes.delete(&node, &DeleteParams::default()).await.unwrap();
    }
}
