//! A running cluster is deleted while hosts join it.

use super::THREE;
use crate::world::World;
use serde_json::{Value, json};
use uuid::Uuid;

/// A cluster that takes on hosts, and the image of its own that they boot.
async fn growing(seed: u64) -> (World, Uuid, Uuid) {
    let mut world = World::with_machines(seed, 3, &[]).await;
    let cluster = world.installed_cluster("alpha", &THREE).await;
    assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
    let own = world.pool("own", Some(cluster)).await;
    world.boot(own, 1, &[]);
    world.until_host(3, "known", 15).await;
    assert_eq!(world.host_act(3, "install").await.0, 202);
    world.until_stage(3, "Writing image to disk", 30).await;
    (world, cluster, own)
}

/// The step by which the host is deleted says that it is cancelled first.
fn is_cancelled_first(plan: &Value) {
    assert_eq!(plan["allowed"], true, "{plan}");
    let mut steps = plan["steps"].as_array().expect("steps").iter();
    let deletion = steps
        .find(|step| step["action"] == "delete the host")
        .expect("a deletion");
    let note = deletion["note"].as_str().unwrap_or_default();
    assert!(note.starts_with("Its installation is cancelled first"), "{plan}");
}

#[tokio::test]
async fn a_host_that_is_being_installed_is_cancelled_and_deleted_with_the_cluster_it_joins() {
    let (mut world, cluster, _) = growing(430).await;
    let plan = world
        .plan(json!({ "verb": "delete-cluster", "cluster_id": cluster }))
        .await;
    is_cancelled_first(&plan);

    world.delete_cluster(cluster).await;
    assert_eq!(world.host_status(3), "gone");
    let names: Vec<_> = world.event_names(&format!("cluster_id={cluster}")).await;
    let place = |name: &str| names.iter().position(|one| one == name);
    let told = [
        "host_installation_cancelled",
        "host_deregistered",
        "cluster_deregistered",
    ]
    .map(place);
    assert!(told.iter().all(Option::is_some), "{names:?}");
    assert_eq!(place("cluster_deregister_failed"), None);
    // Its agent hears of it when it asks the next time.
    world.run_for(jiff::SignedDuration::from_mins(5)).await;
    assert!(!world.machines[3].is_installing(), "{}", world.describe());
}

#[tokio::test]
async fn a_host_that_joins_a_running_cluster_can_be_deleted_alone_in_the_middle_of_its_installation() {
    let (mut world, cluster, own) = growing(431).await;
    let host = world.machines[3].id();
    let plan = world
        .plan(json!({ "verb": "delete-host", "infra_env_id": own, "host_id": host }))
        .await;
    is_cancelled_first(&plan);
    let path = world.host_path(3);
    let (status, body) = world.call("DELETE", &path, None).await;
    assert_eq!(status, 204, "{body}");
    let names = world.event_names(&format!("cluster_id={cluster}")).await;
    assert!(
        names.contains(&"host_installation_cancelled".to_owned()),
        "{names:?}"
    );
}
