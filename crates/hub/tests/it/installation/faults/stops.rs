//! People change their minds at any stage: cancel, reset, delete.

use crate::installation::THREE;
use crate::installation::moments::{self, Moment, boot_those_who_wait, bring_home, installing, try_again};
use crate::world::V2;
use jiff::SignedDuration;

#[tokio::test]
async fn cancelled_at_any_stage_and_deleted_everybody_comes_home_after_the_installer_has_stopped() {
    for moment in moments::all() {
        let (mut world, cluster, _) = installing(370, moment).await;
        world.cancel(cluster).await;
        world.nobody_is_left_without_a_word().await;
        bring_home(&mut world, cluster).await;
        for machine in THREE {
            assert_eq!(
                world.receipts(machine).await.len(),
                1,
                "{moment:?}: one return, one receipt"
            );
        }
    }
}

#[tokio::test]
async fn reset_at_any_stage_and_installed_again() {
    for moment in moments::all() {
        let (mut world, cluster, _) = installing(371, moment).await;
        world.reset(cluster).await;
        try_again(&mut world, cluster).await;
        assert_eq!(world.statuses(&THREE).await, ["installed"; 3], "{moment:?}");
    }
}

#[tokio::test]
async fn cancelled_a_while_ago_and_reset_at_any_stage() {
    for moment in moments::WHILE_WRITING.into_iter().chain(moments::AFTER_WRITING) {
        let (mut world, cluster, _) = installing(372, moment).await;
        world.cancel(cluster).await;
        world.run_for(SignedDuration::from_mins(30)).await;
        for machine in THREE {
            assert!(
                !world.machines[machine].is_installing(),
                "{moment:?}: it was told to stop"
            );
        }
        world.reset(cluster).await;
        try_again(&mut world, cluster).await;
    }
}

#[tokio::test]
async fn deleted_at_any_stage_unless_disks_are_being_written() {
    for moment in moments::all() {
        let (mut world, cluster, _) = installing(373, moment).await;
        if world.cluster_status(cluster) == "installing" {
            let (status, body) = world
                .call("DELETE", &format!("{V2}/clusters/{cluster}"), None)
                .await;
            assert_eq!(status, 409, "{moment:?} {body}");
            assert_eq!(world.cluster_status(cluster), "installing");
        }
        bring_home(&mut world, cluster).await;
    }
}

#[tokio::test]
async fn unbound_after_a_cancel_every_host_is_free_again() {
    for moment in moments::WHILE_WRITING {
        let (mut world, cluster, _) = installing(374, moment).await;
        world.cancel(cluster).await;
        for machine in THREE {
            assert_eq!(world.unbind(machine).await, 200);
            assert_eq!(world.status(machine).await, "unbinding-pending-user-action");
        }
        boot_those_who_wait(&mut world);
        world.until_hosts(&THREE, "known-unbound", 20).await;
        for machine in THREE {
            assert!(!world.machines[machine].is_installing(), "{moment:?}");
        }
        world
            .until("the cluster waits for hosts", 5, |world| {
                world.cluster_status(cluster) == "cancelled"
            })
            .await;
        world.delete_cluster(cluster).await;
    }
}

#[tokio::test]
async fn an_installer_that_cannot_be_reached_is_stopped_before_its_host_is_lent_again() {
    let (mut world, cluster, who) = installing(375, Moment::Master("Writing image to disk")).await;
    world.cancel(cluster).await;
    // Its agent does not hear of it for a while, and the installer goes on.
    world.lost = vec![(Some(who), "/instructions")];
    world.delete_cluster(cluster).await;
    world.run_for(SignedDuration::from_mins(10)).await;
    assert_ne!(world.host_status(who), "known-unbound");
    world.lost.clear();
    let end = world.clock.now() + SignedDuration::from_mins(30);
    while world.host_status(who) != "known-unbound" {
        assert!(world.clock.now() < end, "{}", world.describe());
        world.step(end).await;
    }
    assert!(!world.machines[who].is_installing());
    boot_those_who_wait(&mut world);
    world.until_hosts(&THREE, "known-unbound", 20).await;
}
