//! Replies that are lost, doubled or late, and installers that cannot be started.

use crate::installation::THREE;
use crate::installation::moments::{bring_home, try_again};
use crate::world::World;
use jiff::SignedDuration;
use uuid::Uuid;

/// Installs, and starts over as often as people would, until it is done.
async fn install_patiently(world: &mut World, cluster: Uuid) {
    for _ in 0..8 {
        world.install(cluster).await;
        let end = world.clock.now() + SignedDuration::from_hours(4);
        while !["installed", "ready", "insufficient", "error"].contains(&world.cluster_status(cluster)) {
            assert!(world.clock.now() < end, "{}", world.describe());
            world.step(end).await;
        }
        world.nobody_is_left_without_a_word().await;
        match world.cluster_status(cluster) {
            "installed" => return,
            "error" => {
                world.reset(cluster).await;
                super::super::moments::boot_those_who_wait(world);
            }
            _ => {}
        }
        world.until_cluster(cluster, "ready", 60).await;
    }
    panic!("eight attempts were not enough\n{}", world.describe());
}

async fn installs_with(faults: &[&str]) {
    let mut world = World::with_machines(320, 3, faults).await;
    world.until_hosts(&THREE, "known-unbound", 60).await;
    let wish = world.cluster_wish("prod");
    let cluster = world.create_cluster(wish).await;
    for machine in THREE {
        assert_eq!(world.bind_to(machine, cluster).await.0, 200);
    }
    world.until_cluster(cluster, "ready", 120).await;
    install_patiently(&mut world, cluster).await;
    assert_eq!(world.statuses(&THREE).await, ["installed"; 3]);
    bring_home_later(&mut world, cluster).await;
}

/// With broken messages everything takes longer.
async fn bring_home_later(world: &mut World, cluster: Uuid) {
    world.delete_cluster(cluster).await;
    super::super::moments::boot_those_who_wait(world);
    world.until_hosts(&THREE, "known-unbound", 120).await;
}

#[tokio::test]
async fn lost_replies_are_asked_for_again() {
    installs_with(&["lost-replies:100%:30%"]).await;
}

#[tokio::test]
async fn doubled_replies_do_nothing_twice() {
    installs_with(&["doubled-replies:100%"]).await;
}

#[tokio::test]
async fn late_replies_are_waited_for() {
    installs_with(&["slow-replies:100%:45s"]).await;
}

#[tokio::test]
async fn a_bad_network_delays_an_installation_and_loses_nobody() {
    for seed in 321..327 {
        let mut world = World::with_machines(seed, 3, &[]).await;
        let cluster = world.ready_cluster("prod", &THREE).await;
        world.faults = true;
        world.install(cluster).await;
        world.run_for(SignedDuration::from_hours(1)).await;
        world.nobody_is_left_without_a_word().await;
        world.faults = false;
        world.run_for(SignedDuration::from_mins(30)).await;
        if world.cluster_status(cluster) != "installed" {
            try_again(&mut world, cluster).await;
        }
        bring_home(&mut world, cluster).await;
    }
}

#[tokio::test]
async fn an_installer_that_cannot_be_started_is_told_with_its_exit_code() {
    for code in [1, 2, 125, 137] {
        let fault = format!("install-exit:#1:{code}");
        let mut world = World::with_machines(330, 3, &[&fault]).await;
        let cluster = world.ready_cluster("prod", &THREE).await;
        world.install(cluster).await;
        world.until_cluster(cluster, "error", 60).await;
        let host = world.host(1).await;
        assert_eq!(host["status"], "error", "{host}");
        assert!(
            host["status_info"].as_str().expect("text").contains("failed"),
            "{host}"
        );
        world.nobody_is_left_without_a_word().await;
        try_again(&mut world, cluster).await;
        bring_home(&mut world, cluster).await;
    }
}
