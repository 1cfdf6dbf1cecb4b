//! Every limit: nothing waits longer than it says, and what ends it is told.

use crate::fake_installer::alter;
use crate::installation::THREE;
use crate::installation::moments::{Moment, bring_home, installing, reach, try_again};
use crate::world::{V1, V2, World};
use jiff::SignedDuration;
use muster_hub::worker;
use serde_json::json;
use uuid::Uuid;

/// The cluster's policy is to fail instead of waiting.
async fn impatient(world: &World, cluster: Uuid) {
    alter(&world.hub, cluster, |cluster| {
        cluster.org_soft_timeouts_enabled = false
    })
    .await;
}

/// The cluster's policy is to wait instead of failing.
async fn patient(world: &World, cluster: Uuid) {
    alter(&world.hub, cluster, |cluster| {
        cluster.org_soft_timeouts_enabled = true
    })
    .await;
}

async fn minutes_until(world: &mut World, minutes: i64, what: &str, is_true: impl Fn(&World) -> bool) -> i64 {
    let start = world.clock.now();
    world.until(what, minutes, is_true).await;
    world.clock.now().duration_since(start).as_mins()
}

#[tokio::test]
async fn the_last_tests_end_after_17_minutes() {
    let mut world = World::with_machines(350, 3, &["slow-images:#1:40m"]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    let minutes = minutes_until(&mut world, 20, "the preparation is over", |world| {
        world.cluster_status(cluster) != "preparing-for-installation"
    })
    .await;
    assert!((16..=18).contains(&minutes), "{minutes}\n{}", world.describe());
    assert_eq!(world.cluster_status(cluster), "ready");
    world.nobody_is_left_without_a_word().await;
    let events = world.event_names(&format!("cluster_id={cluster}")).await;
    assert!(
        events.iter().any(|name| name == "prepare_installation_failed"),
        "{events:?}"
    );
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn files_that_are_not_made_end_the_preparation_after_18_minutes() {
    let mut world = World::with_machines(351, 3, &[]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    // Whoever makes files is busy all the while.
    world.clock.advance(SignedDuration::from_mins(17));
    worker::limits::once(&world.hub).await.expect("limits");
    assert_eq!(world.cluster_status(cluster), "preparing-for-installation");
    world.clock.advance(SignedDuration::from_secs(61));
    worker::limits::once(&world.hub).await.expect("limits");
    assert_eq!(world.cluster_status(cluster), "ready");
    let info = world
        .hub
        .index
        .cluster(muster_domain::ClusterId(cluster))
        .expect("there")
        .install
        .preparation
        .clone();
    assert!(info.reason.contains("files"), "{info:?}");
    world.nobody_is_left_without_a_word().await;
    // What comes late is not taken for the next attempt.
    world.until_cluster(cluster, "ready", 15).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
}

#[tokio::test]
async fn an_installer_must_start_within_20_minutes() {
    let mut world = World::with_machines(352, 3, &[]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.lost = vec![(Some(1), "/progress")];
    world.install(cluster).await;
    world.until_host(1, "installing", 30).await;
    let minutes = minutes_until(&mut world, 30, "it failed", |world| {
        world.host_status(1) == "error"
    })
    .await;
    assert!((19..=21).contains(&minutes), "{minutes}");
    world.until_cluster(cluster, "error", 2).await;
    world.nobody_is_left_without_a_word().await;
    world.lost.clear();
    try_again(&mut world, cluster).await;
}

/// How long a host may stay at a stage without news, if the cluster does not wait.
const STAGES: [(Moment, i64); 15] = [
    (Moment::Bootstrap("Starting installation"), 30),
    (Moment::Bootstrap("Installing"), 60),
    (Moment::Bootstrap("Writing image to disk"), 30),
    (Moment::Bootstrap("Waiting for control plane"), 60),
    (Moment::Bootstrap("Waiting for bootkube"), 60),
    (Moment::Bootstrap("Waiting for controller"), 60),
    (Moment::Bootstrap("Rebooting"), 40),
    (Moment::Bootstrap("Configuring"), 60),
    (Moment::Bootstrap("Joined"), 60),
    (Moment::Master("Starting installation"), 30),
    (Moment::Master("Installing"), 60),
    (Moment::Master("Writing image to disk"), 30),
    (Moment::Master("Rebooting"), 40),
    (Moment::Master("Configuring"), 60),
    (Moment::Master("Joined"), 60),
];

#[tokio::test]
async fn each_stage_has_its_limit_and_the_installation_ends_with_it() {
    for (moment, limit) in STAGES {
        let (mut world, cluster, who) = installing(353, moment).await;
        impatient(&world, cluster).await;
        world.lost = vec![(Some(who), "/progress")];
        let minutes = minutes_until(&mut world, 120, "it is over", |world| {
            world.host_status(who) != "installing-in-progress"
        })
        .await;
        // Others may wait for this one, and their time may be over a little sooner.
        assert!(
            (limit - 10..=limit + 1).contains(&minutes),
            "{moment:?}: {minutes}\n{}",
            world.describe()
        );
        let expected = match moment {
            Moment::Bootstrap("Rebooting") | Moment::Master("Rebooting") => "installing-pending-user-action",
            _ => "error",
        };
        assert_eq!(
            world.status(who).await,
            expected,
            "{moment:?}\n{}",
            world.describe()
        );
        world.nobody_is_left_without_a_word().await;
        world.lost.clear();
        bring_home(&mut world, cluster).await;
    }
}

#[tokio::test]
async fn a_patient_cluster_tells_of_a_slow_stage_and_waits_for_a_day() {
    let (mut world, cluster, who) = installing(354, Moment::Master("Writing image to disk")).await;
    patient(&world, cluster).await;
    world.lost = vec![(Some(who), "/progress")];
    world.run_for(SignedDuration::from_mins(35)).await;
    let host = world.host(who).await;
    assert_eq!(host["status"], "installing-in-progress", "{host}");
    assert_eq!(host["progress"]["stage_timed_out"], true, "{host}");
    let events = world.event_names(&format!("cluster_id={cluster}")).await;
    assert!(
        events.iter().any(|name| name == "host_stage_timed_out"),
        "{events:?}"
    );
    world.nobody_is_left_without_a_word().await;
    world.run_for(SignedDuration::from_hours(23)).await;
    assert_eq!(
        world.cluster_status(cluster),
        "installing",
        "{}",
        world.describe()
    );
    world.until_cluster(cluster, "error", 60).await;
    assert_eq!(world.statuses(&THREE).await, ["error"; 3]);
    world.nobody_is_left_without_a_word().await;
    world.lost.clear();
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn a_host_that_falls_silent_fails_after_3_minutes_and_the_first_one_after_5() {
    for (moment, limit) in [
        (Moment::Master("Writing image to disk"), 3),
        (Moment::Bootstrap("Writing image to disk"), 5),
    ] {
        let (mut world, cluster, who) = installing(355, moment).await;
        impatient(&world, cluster).await;
        world.power_off(who);
        let minutes = minutes_until(&mut world, 20, "it failed", |world| {
            world.host_status(who) == "error"
        })
        .await;
        assert!((limit - 1..=limit).contains(&minutes), "{moment:?}: {minutes}");
        world.until_cluster(cluster, "error", 1).await;
        world.nobody_is_left_without_a_word().await;
        world.power_on(who);
        try_again(&mut world, cluster).await;
    }
}

#[tokio::test]
async fn a_patient_cluster_says_that_a_host_is_silent_and_what_to_do() {
    let (mut world, cluster, who) = installing(356, Moment::Master("Writing image to disk")).await;
    patient(&world, cluster).await;
    world.power_off(who);
    world.run_for(SignedDuration::from_mins(10)).await;
    let host = world.host(who).await;
    assert_eq!(host["status"], "installing-in-progress", "{host}");
    assert_eq!(host["connection_timed_out"], true, "{host}");
    let told = world.explain_host(who).await;
    assert_ne!(told["next_action"], "Wait.", "{told}");
    world.power_on(who);
    world.until_cluster(cluster, "error", 30).await;
    try_again(&mut world, cluster).await;
}

#[tokio::test]
async fn a_hub_with_soft_timeouts_makes_patient_clusters_and_says_so() {
    for (seed, soft) in [(363, true), (364, false)] {
        let mut world = World::with(seed, |settings| settings.soft_timeouts = soft).await;
        world.infra_env = world.pool("sim", None).await;
        world.boot(world.infra_env, 3, &[]);
        world.run_for(SignedDuration::from_mins(3)).await;
        let cluster = world.ready_cluster("prod", &THREE).await;
        let shown = world.cluster(cluster).await["org_soft_timeouts_enabled"].clone();
        assert_eq!(shown.as_bool().unwrap_or_default(), soft);
        world.install(cluster).await;
        let who = reach(&mut world, cluster, Moment::Master("Writing image to disk")).await;
        world.lost = vec![(Some(who), "/progress")];
        world.run_for(SignedDuration::from_mins(45)).await;
        let expected = if soft { "installing" } else { "error" };
        assert_eq!(world.cluster_status(cluster), expected, "{}", world.describe());
    }
}

#[tokio::test]
async fn a_silent_host_of_a_patient_cluster_is_also_seen_to_be_slow() {
    let (mut world, cluster, who) = installing(362, Moment::Master("Writing image to disk")).await;
    patient(&world, cluster).await;
    world.power_off(who);
    world.run_for(SignedDuration::from_mins(40)).await;
    let host = world.host(who).await;
    assert_eq!(host["connection_timed_out"], true, "{host}");
    assert_eq!(host["progress"]["stage_timed_out"], true, "{host}");
    world.nobody_is_left_without_a_word().await;
    world.cancel(cluster).await;
    world.boot_discovery(who);
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn a_router_certificate_that_never_comes_ends_finalizing_after_70_minutes() {
    let (mut world, cluster, _) = installing(357, Moment::Cluster("finalizing")).await;
    impatient(&world, cluster).await;
    world.lost = vec![(None, "/ingress-cert")];
    let minutes = minutes_until(&mut world, 100, "it failed", |world| {
        world.cluster_status(cluster) == "error"
    })
    .await;
    assert!((69..=75).contains(&minutes), "{minutes}");
    world.nobody_is_left_without_a_word().await;
    world.lost.clear();
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn operators_that_never_work_end_finalizing_after_5_hours() {
    let (mut world, cluster, _) = installing(358, Moment::Cluster("finalizing")).await;
    impatient(&world, cluster).await;
    world.lost = vec![(None, "/monitored-operators")];
    let minutes = minutes_until(&mut world, 400, "it failed", |world| {
        world.cluster_status(cluster) == "error"
    })
    .await;
    assert!((299..=302).contains(&minutes), "{minutes}");
    world.nobody_is_left_without_a_word().await;
    world.lost.clear();
    try_again(&mut world, cluster).await;
}

#[tokio::test]
async fn a_patient_cluster_finalizes_for_a_day_and_not_longer() {
    let (mut world, cluster, _) = installing(359, Moment::Cluster("finalizing")).await;
    patient(&world, cluster).await;
    world.lost = vec![(None, "/monitored-operators")];
    world.run_for(SignedDuration::from_hours(23)).await;
    assert_eq!(world.cluster_status(cluster), "finalizing");
    world.nobody_is_left_without_a_word().await;
    world.until_cluster(cluster, "error", 70).await;
    world.nobody_is_left_without_a_word().await;
    world.lost.clear();
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn logs_that_never_come_are_given_up() {
    let (mut world, cluster, who) = installing(360, Moment::Master("Writing image to disk")).await;
    world.power_off(who);
    world.cancel(cluster).await;
    world.run_for(SignedDuration::from_mins(15)).await;
    assert_eq!(world.host(who).await["logs_info"], "timeout");
    // The others were asked and have sent theirs.
    let other = THREE
        .into_iter()
        .find(|machine| *machine != who)
        .expect("three of them");
    assert_eq!(world.host(other).await["logs_info"], "completed");
    world.power_on(who);
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn a_day_two_host_that_fails_is_reset_alone() {
    let mut world = World::with_machines(361, 4, &["fail:#3:writing-image-to-disk"]).await;
    let cluster = world.installed_cluster("prod", &THREE).await;
    assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
    assert_eq!(world.bind_to(3, cluster).await.0, 200);
    world.until_host(3, "known", 15).await;
    assert_eq!(world.host_act(3, "install").await.0, 202);
    world.until_host(3, "error", 60).await;
    assert_eq!(world.cluster_status(cluster), "adding-hosts");
    world.nobody_is_left_without_a_word().await;
    let (status, body) = world.host_act(3, "reset").await;
    assert!(status < 300, "{status} {body}");
    world.until_host(3, "known", 20).await;
    assert_eq!(world.host_act(3, "install").await.0, 202);
    world.until_host(3, "added-to-existing-cluster", 60).await;
    reach(&mut world, cluster, Moment::Cluster("adding-hosts")).await;
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn a_followed_node_that_comes_up_after_its_time_is_part_of_its_cluster_all_the_same() {
    let mut world = World::with_machines(362, 4, &[]).await;
    let cluster = world.installed_cluster("prod", &THREE).await;
    assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
    impatient(&world, cluster).await;
    assert_eq!(world.bind_to(3, cluster).await.0, 200);
    world.until_host(3, "known", 15).await;
    let path = world.host_path(3);
    let follow = Some(json!({ "followed": true }));
    let (status, body) = world.call("PATCH", &path.replace(V2, V1), follow).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(world.host_act(3, "install").await.0, 202);
    world.until_stage(3, "Rebooting", 60).await;
    for (stage, minutes, expected) in [("Joined", 65, "error"), ("Done", 0, "added-to-existing-cluster")] {
        let report = Some(json!({ "current_stage": stage }));
        let (status, body) = world.call("PUT", &format!("{path}/progress"), report).await;
        assert_eq!(status, 200, "{stage}: {body}");
        world.run_for(SignedDuration::from_mins(minutes)).await;
        assert_eq!(world.status(3).await, expected, "{stage}");
        world.nobody_is_left_without_a_word().await;
    }
    let events = world.events_of_host(3).await;
    let told = |event: &serde_json::Value| event["message"].to_string().contains("recovered");
    assert!(events.iter().any(told), "{events:?}");
    bring_home(&mut world, cluster).await;
}
