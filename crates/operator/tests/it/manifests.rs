//! Manifests that people add to a cluster by ConfigMaps: the hub has what the ConfigMaps say, and nothing else.

use crate::described::one_host;
use crate::world::{World, named};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use muster_contract::v2::manifest::{ManifestFolder, ManifestQuery, ManifestsQuery};
use muster_operator::crd::condition::find_install;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

fn config_map(name: &str, files: &[(&str, &str)]) -> ConfigMap {
    let files = files
        .iter()
        .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
    ConfigMap {
        metadata: named(name),
        data: Some(files.collect()),
        ..ConfigMap::default()
    }
}

/// What the hub has of people: the text of each file.
async fn kept(world: &World, id: Uuid) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let views = world.hub.manifests(id, &ManifestsQuery::default()).await;
    for view in views.unwrap_or_default() {
        let query = ManifestQuery {
            folder: Some(ManifestFolder::Openshift),
            file_name: view.file_name.clone(),
        };
        if let Ok(content) = world.hub.manifest_file(id, &query).await {
            all.insert(view.file_name, String::from_utf8(content).unwrap());
        }
    }
    all
}

async fn has(world: &World, id: Uuid, files: &[(&str, &str)]) {
    let wanted: BTreeMap<String, String> = files
        .iter()
        .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()))
        .collect();
    let what = format!("the hub has {wanted:?}");
    world.until(&what, async || kept(world, id).await == wanted).await;
}

/// A cluster that names manifests; the hub's id of it.
async fn described(world: &World, names: Value) -> Uuid {
    let mut spec = one_host();
    spec.as_object_mut()
        .unwrap()
        .extend(names.as_object().unwrap().clone());
    world.describe("blue", spec).await;
    world.install_waits("blue").await;
    world.cluster_id("blue").await
}

async fn write(world: &World, name: &str, data: Value) {
    world
        .patch::<ConfigMap>(&world.clusters, name, json!({ "data": data }))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_follow_their_config_maps_until_nobody_names_them() {
    let mut world = World::start().await;
    let (one, two) = (
        config_map("one", &[("a.yaml", "a: 1"), ("b.yaml", "b: 1")]),
        config_map("two", &[("c.yaml", "c: 1")]),
    );
    world.create(&world.clusters, &one).await;
    world.create(&world.clusters, &two).await;
    let names = json!({ "manifestsConfigMapRefs": [{ "name": "one" }, { "name": "two" }] });
    let id = described(&world, names).await;
    has(
        &world,
        id,
        &[("a.yaml", "a: 1"), ("b.yaml", "b: 1"), ("c.yaml", "c: 1")],
    )
    .await;

    write(&world, "one", json!({ "a.yaml": "a: 2", "b.yaml": null })).await;
    has(&world, id, &[("a.yaml", "a: 2"), ("c.yaml", "c: 1")]).await;

    let fewer = json!({ "spec": { "manifestsConfigMapRefs": [{ "name": "two" }] } });
    world.change_install("blue", fewer).await;
    has(&world, id, &[("c.yaml", "c: 1")]).await;
    world
        .change_install("blue", json!({ "spec": { "manifestsConfigMapRefs": null } }))
        .await;
    has(&world, id, &[]).await;
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_map_that_goes_while_it_is_named_is_missed_until_it_is_back() {
    let world = World::start().await;
    let extra = config_map("extra", &[("a.yaml", "a: 1")]);
    world.create(&world.clusters, &extra).await;
    let id = described(&world, json!({ "manifestsConfigMapRefs": [{ "name": "extra" }] })).await;
    has(&world, id, &[("a.yaml", "a: 1")]).await;
    let maps = world.api::<ConfigMap>(&world.clusters);
    maps.delete("extra", &DeleteParams::default()).await.unwrap();
    let install = world
        .install_says("blue", "SpecSynced", "False", "BackendError")
        .await;
    let conditions = install.status.unwrap().conditions;
    let synced = find_install(&conditions, "SpecSynced").unwrap();
    assert!(synced.message.contains("\"extra\""), "{}", synced.message);
    world
        .create(&world.clusters, &config_map("extra", &[("a.yaml", "a: 2")]))
        .await;
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    has(&world, id, &[("a.yaml", "a: 2")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_the_hub_refuses_is_reported_and_can_be_mended() {
    let world = World::start().await;
    let extra = config_map("extra", &[("a.yaml", "a: 1"), ("notes.txt", "hello")]);
    world.create(&world.clusters, &extra).await;
    let id = described(&world, json!({ "manifestsConfigMapRefs": [{ "name": "extra" }] })).await;
    let install = world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    let conditions = install.status.unwrap().conditions;
    let synced = find_install(&conditions, "SpecSynced").unwrap();
    assert!(synced.message.contains("notes.txt"), "{}", synced.message);
    write(&world, "extra", json!({ "notes.txt": null })).await;
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    has(&world, id, &[("a.yaml", "a: 1")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_single_reference_counts_until_there_is_a_list() {
    let world = World::start().await;
    for (name, file) in [("old", "old.yaml"), ("new", "new.yaml")] {
        world
            .create(&world.clusters, &config_map(name, &[(file, "a: 1")]))
            .await;
    }
    let id = described(&world, json!({ "manifestsConfigMapRef": { "name": "old" } })).await;
    has(&world, id, &[("old.yaml", "a: 1")]).await;
    let list = json!({ "spec": { "manifestsConfigMapRefs": [{ "name": "new" }] } });
    world.change_install("blue", list).await;
    has(&world, id, &[("new.yaml", "a: 1")]).await;
}
