//! The hub dies, or is down for a while, in the middle of installations.

use crate::fake_installer::alter;
use crate::installation::THREE;
use crate::installation::moments::{self, Moment, bring_home, installing, try_again};
use crate::world::World;
use jiff::SignedDuration;

#[tokio::test]
async fn a_hub_killed_at_any_stage_goes_on_where_it_was() {
    for moment in moments::all() {
        let (mut world, cluster, _) = installing(300, moment).await;
        world.crash().await;
        world.until_cluster(cluster, "installed", 120).await;
        assert_eq!(
            world.statuses(&THREE).await,
            ["installed"; 3],
            "killed at {moment:?}"
        );
        for machine in THREE {
            assert_eq!(
                world.machines[machine].installs().done,
                1,
                "{moment:?}: installed once"
            );
        }
    }
}

#[tokio::test]
async fn a_hub_that_dies_all_the_time_still_installs() {
    let mut world = World::with_machines(301, 3, &[]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    let end = world.clock.now() + SignedDuration::from_hours(2);
    while world.cluster_status(cluster) != "installed" {
        assert!(world.clock.now() < end, "{}", world.describe());
        world.step(end).await;
        world.crash().await;
    }
    assert_eq!(world.statuses(&THREE).await, ["installed"; 3]);
}

/// Longer than agents try before they give up and register again.
async fn away_for_half_an_hour(world: &mut World) {
    world.hub_is_away = true;
    world.run_for(SignedDuration::from_mins(30)).await;
    world.hub_is_away = false;
    world.crash().await;
}

#[tokio::test]
async fn hosts_that_were_installing_go_on_when_the_hub_returns_after_half_an_hour() {
    let moments = moments::WHILE_WRITING
        .into_iter()
        .chain(moments::AFTER_WRITING)
        // An installer that was only ordered cannot have begun; that is the next test's.
        .filter(|moment| *moment != Moment::Host("installing"));
    for moment in moments {
        let (mut world, cluster, _) = installing(302, moment).await;
        away_for_half_an_hour(&mut world).await;
        world.until_cluster(cluster, "installed", 180).await;
        assert_eq!(
            world.statuses(&THREE).await,
            ["installed"; 3],
            "away at {moment:?}"
        );
        for machine in THREE {
            assert_eq!(
                world.machines[machine].installs().done,
                1,
                "{moment:?}: installed once"
            );
        }
    }
}

#[tokio::test]
async fn an_impatient_cluster_forgives_what_came_due_while_the_hub_was_away() {
    for moment in [
        Moment::Master("Starting installation"),
        Moment::Master("Writing image to disk"),
        Moment::Bootstrap("Waiting for control plane"),
    ] {
        let (mut world, cluster, _) = installing(305, moment).await;
        alter(&world.hub, cluster, |cluster| {
            cluster.org_soft_timeouts_enabled = false
        })
        .await;
        away_for_half_an_hour(&mut world).await;
        world.until_cluster(cluster, "installed", 180).await;
    }
}

#[tokio::test]
async fn a_host_that_falls_silent_right_after_a_restart_is_missed_once_agents_had_time_to_return() {
    let (mut world, cluster, who) = installing(306, Moment::Master("Writing image to disk")).await;
    alter(&world.hub, cluster, |cluster| {
        cluster.org_soft_timeouts_enabled = false
    })
    .await;
    world.crash().await;
    world.power_off(who);
    world.run_for(SignedDuration::from_mins(19)).await;
    assert_eq!(world.status(who).await, "installing-in-progress");
    world.until_host(who, "error", 3).await;
    world.power_on(who);
    try_again(&mut world, cluster).await;
}

#[tokio::test]
async fn an_installation_that_had_not_begun_can_be_started_again_when_the_hub_returns() {
    let moments = moments::BEFORE_WRITING
        .into_iter()
        .chain([Moment::Host("installing")]);
    for moment in moments {
        let (mut world, cluster, _) = installing(303, moment).await;
        away_for_half_an_hour(&mut world).await;
        world.run_for(SignedDuration::from_mins(45)).await;
        world.nobody_is_left_without_a_word().await;
        if world.cluster_status(cluster) != "installed" {
            try_again(&mut world, cluster).await;
        }
        bring_home(&mut world, cluster).await;
    }
}

#[tokio::test]
async fn a_deletion_is_whole_even_when_the_hub_dies_right_after_it() {
    let (mut world, cluster, _) = installing(304, Moment::Cluster("finalizing")).await;
    world.delete_cluster(cluster).await;
    world.crash().await;
    assert_eq!(world.cluster_status(cluster), "gone");
    assert_eq!(world.statuses(&THREE).await, ["unbinding-pending-user-action"; 3]);
    moments::boot_those_who_wait(&mut world);
    world.until_hosts(&THREE, "known-unbound", 15).await;
}
