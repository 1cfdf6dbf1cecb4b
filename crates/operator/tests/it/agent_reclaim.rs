//! Hosts that are fetched back from the inside of the clusters they run for.

use crate::agent_day_two::Joining;
use crate::lent::{says, word};
use crate::world::{Running, World};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::Api;
use muster_operator::crd::Agent;
use muster_operator::crd::keys::label;
use serde_json::json;

const AUTHORITY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/src/controller/bare_metal_host/plan/tests/authority.pem"
);

/// An operator that fetches hosts back.
pub async fn reclaiming(world: &World) -> Running {
    let options = muster_operator::Options {
        reclaim_image: Some("registry.example.com/muster-agent:1".into()),
        ..world.options()
    };
    crate::world::run(options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_way_into_the_cluster_the_host_waits_for_somebody_to_boot_it() {
    let world = World::without_operator().await;
    let operator = reclaiming(&world).await;
    let joining = Joining::done(world).await;
    let world = &joining.world;
    // The cluster is down: nobody answers there.
    let down = json!({ "stringData": { "kubeconfig": unreachable() } });
    world
        .patch::<k8s_openapi::api::core::v1::Secret>(&world.clusters, "spoke-admin-kubeconfig", down)
        .await
        .unwrap();
    world.want(&joining.name, None).await.unwrap();
    world
        .agent_in(&joining.name, "unbinding-pending-user-action")
        .await;
    joining.remote.boot_discovery(0);
    world.agent_in(&joining.name, "known-unbound").await;
    let says_why = |agent: &Agent| {
        let info = agent
            .status
            .as_ref()
            .and_then(|status| status.deprovision_info.as_ref());
        info.is_some_and(|info| info.message.contains("cannot remove the node"))
    };
    world
        .agent_when(&joining.name, "says what is left", says_why)
        .await;
    operator.stop().await;
}

fn unreachable() -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{ "name": "a", "cluster": { "server": "https://127.0.0.1:1" } }],
        "users": [{ "name": "a", "user": { "token": "a" } }],
        "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }],
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_runs_is_fetched_back_from_the_inside() {
    let world = World::without_operator().await;
    let operator = reclaiming(&world).await;
    let joining = Joining::done(world).await;
    let world = &joining.world;
    world.want(&joining.name, None).await.unwrap();
    let agent = world.agent_in(&joining.name, "reclaiming").await;
    assert_eq!(
        says(&agent, "Bound"),
        word("True", "Bound"),
        "nobody else may take it yet"
    );
    let sets: Api<DaemonSet> = Api::namespaced(world.kube.clone(), "assisted-installer");
    let set = sets.get(&format!("{}-reclaim", joining.node)).await.unwrap();
    assert_eq!(set.owner_references()[0].name, joining.node);
    let pod = set.spec.template.spec.unwrap();
    assert_eq!(
        pod.containers[0].image.as_deref(),
        Some("registry.example.com/muster-agent:1")
    );
    let words = format!("{:?}", pod.containers[0].args);
    assert!(words.contains(&joining.name), "{words}");
    // What the agent on the node would do.
    joining.remote.boot_discovery(0);
    world.agent_in(&joining.name, "known-unbound").await;
    world
        .until("its node is gone", async || {
            joining.nodes().get_opt(&joining.node).await.unwrap().is_none()
        })
        .await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_power_controller_a_host_is_fetched_by_an_agent_that_trusts_the_hub() {
    let world = World::without_operator().await;
    world.house.close().await;
    world
        .house
        .reopen_with(|config| config.site.service_ca = Some(AUTHORITY.into()))
        .await;
    let operator = reclaiming(&world).await;
    let joining = Joining::done(world).await;
    let world = &joining.world;
    let orphaned = json!({ "metadata": { "labels": { label::BARE_METAL_HOST: "gone" } } });
    world.change_agent(&joining.name, orphaned).await.unwrap();
    world.want(&joining.name, None).await.unwrap();
    world.agent_in(&joining.name, "reclaiming").await;
    let maps: Api<ConfigMap> = Api::namespaced(world.kube.clone(), "assisted-installer");
    let map = maps.get("reclaim-config").await.unwrap();
    let authority = std::fs::read_to_string(AUTHORITY).unwrap();
    assert_eq!(map.data.unwrap()["service-ca-cert.crt"], authority);
    let sets: Api<DaemonSet> = Api::namespaced(world.kube.clone(), "assisted-installer");
    let set = sets.get(&format!("{}-reclaim", joining.node)).await.unwrap();
    let words = format!("{:?}", set.spec.template.spec.unwrap().containers[0].args);
    assert!(words.contains("--cacert="), "{words}");
    operator.stop().await;
}
