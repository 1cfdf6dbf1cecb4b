//! A server whose Cluster API has the older version only, and is installed after the operator was started.

use crate::machines::{Capi, agent_of, free, holder};
use crate::own_server::{HIVE, OURS, Place, THEIRS, world_at};
use crate::world::run_over;
use kube::api::{Api, DeleteParams};
use muster_operator::crd::AgentMachine;
use serde_json::{Value, json};
use std::path::Path;

/// The definitions of Cluster API without the newer version.
fn older_kinds() -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(THEIRS).join("cluster-api.yaml")).unwrap();
    let documents = text
        .split("\n---\n")
        .map(|text| -> Value { serde_norway::from_str(text).unwrap() });
    let without = |mut definition: Value| {
        let versions = definition["spec"]["versions"].as_array_mut().unwrap();
        versions.retain(|version| version["name"] == "v1beta1");
        assert_eq!(versions.len(), 1);
        versions[0]["storage"] = json!(true);
        definition
    };
    documents.map(without).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_api_of_the_older_version_that_is_installed_later_is_found_and_spoken() {
    let place = Place::open().await;
    let front = place.front("one").await;
    let others = ["hypershift.yaml", "machine-api.yaml", "metal3.yaml"];
    let others = others.map(|name| Path::new(THEIRS).join(name));
    let mut files: Vec<&Path> = others.iter().map(AsRef::as_ref).collect();
    files.extend([OURS, HIVE].map(Path::new));
    place.define(&front, &files).await;
    let world = world_at(&front).await;
    let provider = run_over(world.provider_options(), world.server.connection().await);
    provider.idle().await;

    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("older.json");
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": older_kinds() });
    std::fs::write(&file, list.to_string()).unwrap();
    place.define(&front, &[&file]).await;
    world.hand_made("a", free(), |_| ()).await;
    world.hosted_cluster(Capi::V1Beta1, "blue").await;
    world.capi_machine(Capi::V1Beta1, "blue", "m1", json!({})).await;
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    assert!(world.is_hooked_in(Capi::V1Beta1, "m1").await);

    world.terminate(Capi::V1Beta1, "m1").await;
    let freed = world
        .agent_when("a", "is let go", |agent| holder(agent).is_none())
        .await;
    assert_eq!(freed.spec.cluster_deployment_name, None);
    world
        .until("the hook is off", async || {
            !world.is_hooked_in(Capi::V1Beta1, "m1").await
        })
        .await;
    let machines: Api<AgentMachine> = world.api(&world.clusters);
    machines.delete("m1", &DeleteParams::default()).await.unwrap();
    world.gone::<AgentMachine>(&world.clusters, "m1").await;
    assert!(world.agent("a").await.metadata.deletion_timestamp.is_none());
    provider.stop().await;
}
