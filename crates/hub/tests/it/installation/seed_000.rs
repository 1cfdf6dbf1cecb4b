//! The user stories of late binding, as its proposal tells them.

use super::{THREE, boot_home, is_free};
use crate::world::{V1, V2, World};
use jiff::SignedDuration;
use muster_hub::worker;
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<String> {
    let hosts = list.as_array().cloned().unwrap_or_default();
    let mut ids: Vec<_> = hosts
        .iter()
        .map(|host| host["id"].as_str().unwrap_or_default().to_owned())
        .collect();
    ids.sort();
    ids
}

fn machine_ids(world: &World, machines: &[usize]) -> Vec<String> {
    let mut ids: Vec<_> = machines
        .iter()
        .map(|machine| world.machines[*machine].id().to_string())
        .collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn story_1_an_infrastructure_admin_creates_a_discovery_image_and_boots_hosts_for_cluster_creators() {
    let mut world = World::empty(100).await;
    let pool = world.pool("datacenter", None).await;
    world.infra_env = pool;
    // The image is there before any cluster is.
    let path = format!("{V2}/infra-envs/{pool}/downloads/files?file_name=discovery.ign");
    let (status, ignition) = world.fetch("GET", &path, None).await;
    assert_eq!(status, 200);
    let ignition = String::from_utf8(ignition).expect("text");
    assert!(ignition.contains(&pool.to_string()), "the image names its pool");
    let (status, link) = world
        .call(
            "GET",
            &format!("{V2}/infra-envs/{pool}/downloads/image-url"),
            None,
        )
        .await;
    assert_eq!(status, 200, "{link}");

    world.boot(pool, 3, &[]);
    world.until_hosts(&THREE, "known-unbound", 10).await;
    let (_, hosts) = world
        .call("GET", &format!("{V2}/infra-envs/{pool}/hosts"), None)
        .await;
    assert_eq!(ids(&hosts), machine_ids(&world, &THREE));
    for host in hosts.as_array().expect("a list") {
        assert!(is_free(host), "{host}");
    }
    // The admin sees what happened to free hosts, though no cluster knows of them.
    let events = world.event_names(&format!("infra_env_id={pool}")).await;
    assert!(
        events.iter().any(|name| name == "host_registration_succeeded"),
        "{events:?}"
    );

    // A cluster creator installs on them.
    world.installed_cluster("creators", &THREE).await;
    assert_eq!(world.statuses(&THREE).await, ["installed"; 3]);
}

#[tokio::test]
async fn story_2_an_infrastructure_admin_ships_hosts_with_the_image_and_they_boot_at_a_later_time() {
    let mut world = World::empty(101).await;
    let pool = world.pool("remote", None).await;
    world.infra_env = pool;
    // One was tried out at the factory, two were not; then all are on a lorry for three months.
    world.boot(pool, 1, &[]);
    world.until_host(0, "known-unbound", 10).await;
    world.power_off(0);
    world.run_for(SignedDuration::from_mins(5)).await;
    assert_eq!(world.status(0).await, "disconnected-unbound");
    for _ in 0..90 {
        world.clock.advance(SignedDuration::from_hours(24));
        world.settle().await;
        worker::flush::once(&world.hub)
            .await
            .expect("signs of life are written");
    }
    world.crash().await;
    assert_eq!(
        world.status(0).await,
        "disconnected-unbound",
        "nobody threw it away"
    );

    world.power_on(0);
    world.boot(pool, 2, &[]);
    world.until_hosts(&THREE, "known-unbound", 15).await;
    world.installed_cluster("far-away", &THREE).await;
    assert_eq!(world.statuses(&THREE).await, ["installed"; 3]);
}

#[tokio::test]
async fn story_3_a_cluster_creator_views_available_agents_and_uses_them_for_creation_or_expansion() {
    let mut world = World::with_machines(102, 5, &[]).await;
    let (status, page) = world.call("GET", &format!("{V1}/hosts?free=true"), None).await;
    assert_eq!(status, 200, "{page}");
    assert_eq!(ids(&page["hosts"]), machine_ids(&world, &[0, 1, 2, 3, 4]));
    // Creation.
    let cluster = world.installed_cluster("prod", &THREE).await;
    let (_, page) = world.call("GET", &format!("{V1}/hosts?free=true"), None).await;
    assert_eq!(ids(&page["hosts"]), machine_ids(&world, &[3, 4]));
    // Expansion.
    assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
    assert_eq!(world.bind_to(3, cluster).await.0, 200);
    world.until_host(3, "known", 15).await;
    assert_eq!(world.host_act(3, "install").await.0, 202);
    world.until_host(3, "added-to-existing-cluster", 60).await;
    let (_, page) = world.call("GET", &format!("{V1}/hosts?free=true"), None).await;
    assert_eq!(ids(&page["hosts"]), machine_ids(&world, &[4]));
}

#[tokio::test]
async fn story_4_a_cluster_creator_reassigns_an_agent_from_one_cluster_to_another_not_during_installation() {
    let mut world = World::with_machines(103, 4, &[]).await;
    let first = world.ready_cluster("first", &THREE).await;
    let second = world.new_cluster("second").await;
    // Before the installation: at once.
    assert_eq!(world.bind_to(3, first).await.0, 200);
    world.until_host(3, "known", 10).await;
    assert_eq!(world.move_host(3, 1).await, 202);
    assert_eq!(world.cluster_of(3).await, Some(second));
    world.until_cluster(first, "ready", 10).await;

    // During it: refused, by name, and nothing changes.
    world.install(first).await;
    world.until_host(0, "installing-in-progress", 30).await;
    assert_eq!(world.unbind(0).await, 409);
    assert_eq!(world.move_host(0, 1).await, 409);
    let wish = Some(json!({ "cluster_id": second }));
    let path = format!("{}/actions/bind", world.host_path(0));
    assert_eq!(world.call("POST", &path, wish).await.0, 409);
    assert_eq!(world.cluster_of(0).await, Some(first));
    // Nor may anybody join a cluster that is being installed.
    assert_eq!(world.move_host(3, 0).await, 409);
    assert_eq!(world.cluster_of(3).await, Some(second));

    // After it: by way of the discovery image.
    world.until_cluster(first, "installed", 120).await;
    assert_eq!(world.move_host(0, 1).await, 202);
    assert_eq!(world.status(0).await, "unbinding-pending-user-action");
    world.boot_discovery(0);
    world
        .until("the host is in the second cluster", 20, |world| {
            let host = world.hub.index.host(world.key(0)).expect("registered");
            host.cluster.is_some_and(|cluster| cluster.0 == second)
        })
        .await;
    world
        .until("it was discovered there", 15, |world| {
            ["known", "insufficient", "pending-for-input"].contains(&world.host_status(0))
        })
        .await;
    assert_eq!(world.unbind(1).await, 200);
    boot_home(&mut world, &[1]).await;
}
