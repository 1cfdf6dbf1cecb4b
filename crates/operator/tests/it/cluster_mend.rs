//! Clusters that somebody got wrong, or deleted: the operator notices what is mended, and what is made again is
//! whole.

use crate::described::{one_host, says};
use crate::lent::word;
use crate::world::{PULL_SECRET, World, named};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use muster_contract::v2::manifest::ManifestsQuery;
use muster_operator::crd::condition::find_install;
use muster_operator::crd::{AgentClusterInstall, ClusterDeployment};
use serde_json::json;
use uuid::Uuid;

fn config_map(name: &str, file: &str, text: &str) -> ConfigMap {
    ConfigMap {
        metadata: named(name),
        data: Some([(file.to_owned(), text.to_owned())].into()),
        ..ConfigMap::default()
    }
}

async fn manifests(world: &World, id: Uuid) -> Vec<String> {
    let all = world.hub.manifests(id, &ManifestsQuery::default()).await;
    all.unwrap_or_default()
        .into_iter()
        .map(|manifest| manifest.file_name)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_was_deleted_in_the_hub_is_made_again_with_its_manifests() {
    let mut world = World::start().await;
    world
        .create(&world.clusters, &config_map("extra", "a.yaml", "a: 1"))
        .await;
    let mut spec = one_host();
    spec["manifestsConfigMapRefs"] = json!([{ "name": "extra" }]);
    world.describe("blue", spec).await;
    world.install_waits("blue").await;
    let id = world.cluster_id("blue").await;
    world
        .until("the hub has the manifest", async || {
            manifests(&world, id).await == ["a.yaml"]
        })
        .await;
    world.operator().idle().await;

    world.hub.delete_cluster(id).await.unwrap();
    world
        .until("the cluster is there again, with its manifest", async || {
            manifests(&world, id).await == ["a.yaml"]
        })
        .await;
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_that_nobody_watches_yet_can_be_mended() {
    let world = World::start().await;
    world.image_set().await;
    let wrong = Secret {
        metadata: named("blue-pull"),
        string_data: Some([("pull-secret".to_owned(), PULL_SECRET.to_owned())].into()),
        ..Secret::default()
    };
    world.create(&world.clusters, &wrong).await;
    world.deploy("blue", |_| ()).await;
    world.install("blue", one_host()).await;
    world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    let right = json!({ "stringData": { ".dockerconfigjson": PULL_SECRET } });
    world
        .patch::<Secret>(&world.clusters, "blue-pull", right)
        .await
        .unwrap();
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mirrors_may_come_after_the_cluster_that_names_them() {
    let world = World::start().await;
    let mut spec = one_host();
    spec["mirrorRegistryRef"] = json!({ "name": "mirrors", "namespace": world.clusters });
    world.describe("blue", spec).await;
    world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    let registries =
        "[[registry]]\nprefix = \"quay.io/a\"\n[[registry.mirror]]\nlocation = \"mirror.example.com/a\"\n";
    world
        .create(
            &world.clusters,
            &config_map("mirrors", "registries.conf", registries),
        )
        .await;
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    let overrides = world.cluster("blue").await.install_config_overrides;
    assert!(overrides.contains("mirror.example.com"), "{overrides}");
}

async fn point(world: &World, to: &str) {
    let patch = json!({ "spec": { "clusterInstallRef": { "name": to } } });
    world
        .patch::<ClusterDeployment>(&world.clusters, "blue", patch)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_that_its_deployment_does_not_name_says_so() {
    let world = World::start().await;
    world.describe("blue", one_host()).await;
    world.install_waits("blue").await;
    point(&world, "bleu").await;
    let install = world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    let conditions = install.status.clone().unwrap().conditions;
    let synced = find_install(&conditions, "SpecSynced").unwrap();
    assert!(
        synced.message.contains("spec.clusterInstallRef"),
        "{}",
        synced.message
    );
    assert_eq!(says(&install, "Completed"), word("Unknown", "NotAvailable"));
    point(&world, "blue").await;
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_that_was_replaced_by_another_can_be_deleted_and_the_cluster_stays() {
    let mut world = World::start().await;
    world.describe("blue", one_host()).await;
    world.install_waits("blue").await;
    let id = world.cluster_id("blue").await;
    let mut spec = one_host();
    spec["clusterDeploymentRef"] = json!({ "name": "blue" });
    world.install("other", spec).await;
    world
        .install_says("other", "SpecSynced", "False", "InputError")
        .await;
    point(&world, "other").await;
    world.install_says("other", "SpecSynced", "True", "SyncOK").await;
    world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    world.delete::<AgentClusterInstall>(&world.clusters, "blue").await;
    world.gone::<AgentClusterInstall>(&world.clusters, "blue").await;
    world.operator().idle().await;
    assert_eq!(
        world.hub.cluster(id).await.unwrap().id,
        id,
        "it belongs to the ClusterDeployment"
    );
    world.assert_converged().await;
}
