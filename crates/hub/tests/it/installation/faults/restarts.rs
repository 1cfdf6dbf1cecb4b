//! Machines restart at the wrong time, or from the wrong device.

use crate::installation::THREE;
use crate::installation::moments::{self, Moment, bring_home, installing, reach, try_again};
use crate::world::World;
use jiff::SignedDuration;

#[tokio::test]
async fn an_agent_that_registers_again_before_anything_is_written_costs_only_the_preparation() {
    for moment in moments::BEFORE_WRITING {
        let (mut world, cluster, who) = installing(310, moment).await;
        world.boot_discovery(who);
        world.run_for(SignedDuration::from_mins(25)).await;
        world.nobody_is_left_without_a_word().await;
        match world.cluster_status(cluster) {
            "ready" => world.install(cluster).await,
            // The others were done first, and the cluster had begun to install when the agent was back.
            "error" if moment == Moment::Host("preparing-successful") => {
                try_again(&mut world, cluster).await;
            }
            "installing" | "finalizing" | "installed" => {}
            other => panic!("{moment:?}: {other}\n{}", world.describe()),
        }
        world.until_cluster(cluster, "installed", 120).await;
    }
}

#[tokio::test]
async fn a_machine_that_restarts_while_its_disk_is_written_fails_with_a_reason_and_can_be_reset() {
    for moment in moments::WHILE_WRITING {
        let (mut world, cluster, who) = installing(311, moment).await;
        world.boot_discovery(who);
        world.until_cluster(cluster, "error", 30).await;
        let host = world.host(who).await;
        assert_eq!(host["status"], "error", "{moment:?} {host}");
        assert!(
            host["status_info"].as_str().expect("text").contains("restarted"),
            "{host}"
        );
        world.nobody_is_left_without_a_word().await;
        try_again(&mut world, cluster).await;
        bring_home(&mut world, cluster).await;
    }
}

#[tokio::test]
async fn a_machine_that_boots_discovery_after_it_ran_its_own_system_fails_and_needs_no_second_boot() {
    for moment in [
        Moment::Master("Configuring"),
        Moment::Master("Joined"),
        Moment::Bootstrap("Configuring"),
        Moment::Bootstrap("Joined"),
    ] {
        let (mut world, cluster, who) = installing(318, moment).await;
        world.boot_discovery(who);
        world.until_cluster(cluster, "error", 30).await;
        assert_eq!(world.status(who).await, "error", "{moment:?}");
        world.nobody_is_left_without_a_word().await;
        world.reset(cluster).await;
        world
            .until("its agent registered again", 10, |world| {
                ["discovering", "known", "insufficient"].contains(&world.host_status(who))
            })
            .await;
        try_again(&mut world, cluster).await;
    }
}

#[tokio::test]
async fn a_machine_that_boots_discovery_instead_of_its_disk_goes_on_once_the_boot_order_is_fixed() {
    for moment in [Moment::Master("Rebooting"), Moment::Bootstrap("Rebooting")] {
        let (mut world, cluster, who) = installing(312, moment).await;
        world.boot_discovery(who);
        world.until_host(who, "installing-pending-user-action", 30).await;
        world
            .until_cluster(cluster, "installing-pending-user-action", 5)
            .await;
        let told = world.explain_host(who).await;
        assert!(
            told["next_action"].as_str().expect("text").contains("boot order"),
            "{told}"
        );
        world.nobody_is_left_without_a_word().await;
        // Somebody comes by hours later; nobody else has failed meanwhile.
        world.run_for(SignedDuration::from_hours(3)).await;
        assert_eq!(world.cluster_status(cluster), "installing-pending-user-action");
        world.boot_disk(who);
        world.until_cluster(cluster, "installed", 180).await;
        assert_eq!(world.statuses(&THREE).await, ["installed"; 3], "{moment:?}");
    }
}

#[tokio::test]
async fn a_boot_order_that_nobody_fixes_ends_the_installation_after_a_day() {
    let (mut world, cluster, who) = installing(313, Moment::Master("Rebooting")).await;
    world.boot_discovery(who);
    world
        .until_cluster(cluster, "installing-pending-user-action", 30)
        .await;
    world.run_for(SignedDuration::from_hours(23)).await;
    assert_eq!(world.cluster_status(cluster), "installing-pending-user-action");
    world.until_cluster(cluster, "error", 90).await;
    world.nobody_is_left_without_a_word().await;
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn a_worker_whose_boot_order_nobody_fixes_is_given_up_after_an_hour_and_the_cluster_goes_on() {
    let mut world = World::with_machines(314, 6, &[]).await;
    let all = [0, 1, 2, 3, 4, 5];
    let cluster = world.ready_cluster("wide", &all).await;
    world.install(cluster).await;
    let is_worker = |world: &World, machine: usize| {
        let host = world.hub.index.host(world.key(machine)).expect("registered");
        host.role == muster_domain::host::Role::Worker && world.stage(machine) == "Rebooting"
    };
    world
        .until("a worker reboots", 60, |world| {
            all.iter().any(|machine| is_worker(world, *machine))
        })
        .await;
    let who = *all
        .iter()
        .find(|machine| is_worker(&world, **machine))
        .expect("a worker");
    world.boot_discovery(who);
    world.until_host(who, "installing-pending-user-action", 30).await;
    world.run_for(SignedDuration::from_mins(58)).await;
    assert_eq!(world.status(who).await, "installing-pending-user-action");
    world.until_host(who, "error", 4).await;
    world.nobody_is_left_without_a_word().await;
    world.until_cluster(cluster, "installed", 180).await;
    assert_eq!(world.status(who).await, "error");
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn a_machine_that_loses_power_on_its_way_into_the_cluster_goes_on_when_it_is_back() {
    for moment in [
        Moment::Master("Rebooting"),
        Moment::Master("Configuring"),
        Moment::Bootstrap("Rebooting"),
        Moment::Bootstrap("Joined"),
    ] {
        let (mut world, cluster, who) = installing(315, moment).await;
        world.power_off(who);
        world.run_for(SignedDuration::from_mins(20)).await;
        world.power_on(who);
        world.until_cluster(cluster, "installed", 180).await;
        assert_eq!(world.statuses(&THREE).await, ["installed"; 3], "{moment:?}");
    }
}

#[tokio::test]
async fn a_reset_during_a_wrong_boot_brings_the_host_back_by_itself() {
    let (mut world, cluster, who) = installing(316, Moment::Master("Rebooting")).await;
    world.boot_discovery(who);
    world
        .until_cluster(cluster, "installing-pending-user-action", 30)
        .await;
    world.reset(cluster).await;
    // Discovery runs there already: it registers again without another boot.
    world
        .until("it is discovered again", 10, |world| {
            ["discovering", "known", "insufficient"].contains(&world.host_status(who))
        })
        .await;
    try_again(&mut world, cluster).await;
}

#[tokio::test]
async fn a_failed_worker_does_not_keep_the_others_from_a_cluster() {
    let mut world = World::with_machines(317, 6, &[]).await;
    let all = [0, 1, 2, 3, 4, 5];
    let cluster = world.ready_cluster("wide", &all).await;
    world.install(cluster).await;
    reach(&mut world, cluster, Moment::Master("Writing image to disk")).await;
    let worker = *all
        .iter()
        .find(|machine| {
            let host = world.hub.index.host(world.key(**machine)).expect("registered");
            host.role == muster_domain::host::Role::Worker
        })
        .expect("a worker");
    world.boot_discovery(worker);
    world.until_host(worker, "error", 30).await;
    world.until_cluster(cluster, "installed", 180).await;
    let seen = world.cluster(cluster).await;
    assert!(
        seen["status_info"].as_str().expect("text").contains("1 worker"),
        "{seen}"
    );
    bring_home(&mut world, cluster).await;
}
