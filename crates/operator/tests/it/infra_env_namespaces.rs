//! InfraEnvs of an operator that watches their namespace only, and what they name in others.

use crate::lent::machine;
use crate::world::{World, condition, named, run_over};
use k8s_openapi::api::core::v1::ConfigMap;
use muster_operator::Options;
use muster_operator::crd::InfraEnv;
use muster_operator::crd::infra_env::{IMAGE_CREATED, reason};
use muster_operator::crd::reference::{ClusterRef, FullRef};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_a_namespace_that_is_not_watched_is_read_whenever_it_is_needed() {
    let mut world = World::without_operator().await;
    let options = Options {
        namespaces: vec![world.pool.clone()],
        ..world.options()
    };
    let operator = run_over(options, world.server.connection().await);

    // A cluster that comes later.
    let cluster = ClusterRef {
        name: "blue".into(),
        namespace: world.clusters.clone(),
    };
    world
        .infra_env("early", |infra_env| infra_env.spec.cluster_ref = Some(cluster))
        .await;
    let says = |infra_env: &InfraEnv, word: &str| {
        let status = infra_env.status.clone().unwrap_or_default();
        condition(&status.conditions, IMAGE_CREATED).is_some_and(|(_, reason, _)| reason == word)
    };
    let waits = |infra_env: &InfraEnv| says(infra_env, reason::MISSING_CLUSTER);
    world
        .when(&world.pool, "early", "waiting for its cluster", waits)
        .await;
    operator.reconciles_again("infra-env").await;
    world.new_cluster("blue", |_| ()).await;
    let has_image = |infra_env: &InfraEnv| says(infra_env, reason::AVAILABLE);
    world.when(&world.pool, "early", "available", has_image).await;

    // Mirror registries that change: they were labelled, and yet no watch reports them.
    let map = |text: &str| json!({ "data": { "registries.conf": format!("unqualified-search-registries = [\"{text}\"]") } });
    let first = ConfigMap {
        metadata: named("mirrors"),
        ..serde_json::from_value(map("one")).unwrap()
    };
    world.create(&world.clusters, &first).await;
    let reference = FullRef {
        namespace: world.clusters.clone(),
        name: "mirrors".into(),
    };
    let pool = world
        .pool_of("lab", |infra_env| {
            infra_env.spec.mirror_registry_ref = Some(reference)
        })
        .await;
    let before = world.hub.infra_env(pool).await.unwrap().ignition_config_override;
    assert!(!before.is_empty());
    world
        .patch::<ConfigMap>(&world.clusters, "mirrors", map("two"))
        .await
        .unwrap();
    let touched = json!({ "metadata": { "annotations": { "touched": "yes" } } });
    world
        .patch::<InfraEnv>(&world.pool, "lab", touched)
        .await
        .unwrap();
    world
        .until("the image has the new mirrors", async || {
            world.hub.infra_env(pool).await.unwrap().ignition_config_override != before
        })
        .await;

    // Its hosts can be lent to clusters there.
    world.fleet(pool, 1, |config| config.first_index = 0);
    let host = machine(pool, 0).id().to_string();
    world.agent_in(&host, "known-unbound").await;
    world.want(&host, Some("blue")).await.unwrap();
    world
        .agent_when(&host, "lent", |agent| {
            crate::lent::says(agent, "Bound") == crate::lent::word("True", "Bound")
        })
        .await;
    operator.stop().await;
}
