//! A cluster is deleted with its own hosts while something may still be written.

use crate::world::{V2, World};
use jiff::SignedDuration;
use uuid::Uuid;

const SLOW: usize = 5;

/// Machines that booted the cluster's own image; all are installed but one, whose disk is being written.
async fn finalizing_with_a_slow_worker(seed: u64) -> (World, Uuid) {
    let mut world = World::empty(seed).await;
    let cluster = world.new_cluster("owner").await;
    let pool = world.pool("own", Some(cluster)).await;
    world.boot(pool, 6, &[]);
    world.until_cluster(cluster, "ready", 20).await;
    for machine in 0..6 {
        let role = if machine < 3 { "master" } else { "worker" };
        world
            .change_host(machine, serde_json::json!({ "host_role": role }))
            .await;
    }
    world.until_cluster(cluster, "ready", 20).await;
    world.install(cluster).await;
    world.until_stage(SLOW, "Writing image to disk", 60).await;
    world.lost = vec![(Some(SLOW), "/progress")];
    world.until_cluster(cluster, "finalizing", 25).await;
    assert!(world.machines[SLOW].is_installing());
    (world, cluster)
}

async fn delete(world: &mut World, cluster: Uuid) -> (u16, serde_json::Value) {
    world
        .call("DELETE", &format!("{V2}/clusters/{cluster}"), None)
        .await
}

#[tokio::test]
async fn a_host_that_writes_refuses_by_name_and_nothing_is_deleted() {
    let (mut world, cluster) = finalizing_with_a_slow_worker(420).await;
    let name = world.hub.index.host(world.key(SLOW)).expect("there").name();
    let plan = world
        .plan(serde_json::json!({ "verb": "delete-cluster", "cluster_id": cluster }))
        .await;
    assert_eq!(plan["allowed"], false, "{plan}");
    let (status, body) = delete(&mut world, cluster).await;
    assert_eq!(status, 409, "{body}");
    let reason = body["reason"].as_str().expect("a reason");
    assert!(reason.contains(&name) && reason.contains("Cancel"), "{reason}");
    assert!(!reason.contains(&world.hub.index.host(world.key(0)).expect("there").name()));
    assert_eq!(world.cluster_status(cluster), "finalizing");
    for machine in 0..6 {
        assert!(world.hub.index.host(world.key(machine)).is_some());
    }
}

#[tokio::test]
async fn the_agent_of_a_deleted_host_stops_its_installer() {
    let (mut world, cluster) = finalizing_with_a_slow_worker(421).await;
    world.cancel(cluster).await;
    // At once: its agent has not heard of the cancellation.
    let (status, body) = delete(&mut world, cluster).await;
    assert_eq!(status, 204, "{body}");
    assert!(world.machines[SLOW].is_installing());
    world.run_for(SignedDuration::from_mins(3)).await;
    assert!(!world.machines[SLOW].is_installing(), "it was told to stop");
}
