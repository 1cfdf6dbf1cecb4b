//! Nodes that join and their requests are watched where that is allowed, and only as long as somebody joins.

use crate::agent_day_two::{Asks, Joining};
use crate::lent::{says, word};
use crate::world::{Running, World, run};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, ListParams, PostParams};
use muster_operator::Options;
use serde_json::{Value, json};
use std::time::Duration;

/// Options of an operator that polls so rarely that no test waits for it.
async fn never_polls(world: &World) -> Running {
    let options = Options {
        retry: Duration::from_secs(3600),
        ..world.options()
    };
    run(options).await
}

async fn watched(operator: &Running) -> Option<u32> {
    let text = operator.metrics().await?;
    let line = text
        .lines()
        .find(|line| line.starts_with("muster_operator_clusters_watched "))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_is_heard_of_at_once_and_its_cluster_is_watched_no_longer_than_that() {
    let world = World::without_operator().await;
    let operator = never_polls(&world).await;
    world.kubeconfig_of("spoke").await;
    let joining = Joining::start(world).await;
    let world = &joining.world;
    let watches = async |wanted| watched(&operator).await == Some(wanted);
    world
        .until("the cluster is watched", async || watches(1).await)
        .await;
    joining.allow_requests().await;
    let client = joining.request(&Asks::client(&joining)).await;
    world
        .until("the node may speak", async || joining.is_approved(&client).await)
        .await;
    joining.make_node(false, json!({})).await;
    world
        .agent_when(&joining.name, "joined", |agent| {
            crate::lent::stage(agent) == "Joined"
        })
        .await;
    let serving = joining.request(&Asks::serving(&joining)).await;
    world
        .until("the node may be spoken to", async || {
            joining.is_approved(&serving).await
        })
        .await;
    joining.make_node(true, json!({})).await;
    let agent = world.agent_in(&joining.name, "added-to-existing-cluster").await;
    assert_eq!(says(&agent, "Installed"), word("True", "InstallationCompleted"));
    world
        .until("nobody joins any more", async || watches(0).await)
        .await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_taken_back_while_it_joins_ends_the_watch() {
    let world = World::start().await;
    world.kubeconfig_of("spoke").await;
    let joining = Joining::start(world).await;
    let world = &joining.world;
    let watches = async |wanted| watched(world.operator()).await == Some(wanted);
    world
        .until("the cluster is watched", async || watches(1).await)
        .await;
    world.want(&joining.name, None).await.unwrap();
    world
        .until("nobody joins any more", async || watches(0).await)
        .await;
}

/// May do in the cluster all that is needed but watch.
async fn kubeconfig_without_watch(joining: &Joining) {
    let user = format!("blind-{}", joining.node);
    let metadata = json!({ "name": user });
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    let certificates = "certificates.k8s.io";
    let role: ClusterRole = serde_json::from_value(json!({ "metadata": metadata, "rules": [
        rule("", &["nodes"], &["get", "list", "patch"]),
        rule(certificates, &["certificatesigningrequests"], &["get", "list"]),
        rule(certificates, &["certificatesigningrequests/approval"], &["patch"]),
        rule(certificates, &["signers"], &["approve"]),
    ] }))
    .unwrap();
    let group = "rbac.authorization.k8s.io";
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": metadata, "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": user },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
    }))
    .unwrap();
    let (world, post) = (&joining.world, PostParams::default());
    Api::all(world.kube.clone()).create(&post, &role).await.unwrap();
    Api::all(world.kube.clone())
        .create(&post, &binding)
        .await
        .unwrap();
    let text = std::fs::read_to_string(&world.server.admin).unwrap();
    let mut kubeconfig: Value = serde_norway::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"]["as"] = json!(user);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig.to_string()).unwrap();
    world.kubeconfig_at("spoke", file.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_watching_is_not_allowed_an_event_says_so_and_the_node_is_polled() {
    let joining = Joining::start(World::start().await).await;
    kubeconfig_without_watch(&joining).await;
    let world = &joining.world;
    let events: Api<Event> = Api::namespaced(world.kube.clone(), &world.pool);
    let about = ListParams::default().fields(&format!("regarding.name={}", joining.name));
    let warned = async || {
        let all = events.list(&about).await.unwrap();
        let mut events = all.items.into_iter();
        events.any(|event| {
            let note = event.note.unwrap_or_default();
            event.reason.as_deref() == Some("NodeNotWatched") && note.contains("certificatesigningrequests")
        })
    };
    world.until("there is an event", warned).await;
    joining.allow_requests().await;
    joining.request(&Asks::client(&joining)).await;
    joining.make_node(true, json!({})).await;
    joining.request(&Asks::serving(&joining)).await;
    world.agent_in(&joining.name, "added-to-existing-cluster").await;
}
