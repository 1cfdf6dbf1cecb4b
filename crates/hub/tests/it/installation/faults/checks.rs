//! Tests before the installation that fail, and hardware that changes after it was lent.

use crate::installation::THREE;
use crate::installation::moments::bring_home;
use crate::world::World;
use muster_simfleet::Profile;
use serde_json::json;

async fn settled_back(world: &mut World, cluster: uuid::Uuid) {
    world
        .until("the preparation is over", 25, |world| {
            ["ready", "insufficient"].contains(&world.cluster_status(cluster))
        })
        .await;
    world.nobody_is_left_without_a_word().await;
}

#[tokio::test]
async fn images_that_cannot_be_pulled_leave_the_cluster_ready_for_another_attempt() {
    let mut world = World::with_machines(340, 3, &["image-failure:#1"]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    settled_back(&mut world, cluster).await;
    let events = world.event_names(&format!("cluster_id={cluster}")).await;
    assert!(
        events.iter().any(|name| name == "prepare_installation_failed"),
        "{events:?}"
    );
    world.until_cluster(cluster, "ready", 10).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
}

#[tokio::test]
async fn a_disk_slower_than_supported_is_told_and_installed_to() {
    let mut world = World::with_machines(345, 3, &["slow-disk:#1"]).await;
    let cluster = world.installed_cluster("prod", &THREE).await;
    let events = world.events(&format!("cluster_id={cluster}")).await;
    let told: Vec<_> = events
        .iter()
        .filter(|event| event["name"] == "disk_speed_slower_than_supported")
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["host_id"], world.machines[1].id().to_string().as_str());
}

#[tokio::test]
async fn a_disk_whose_test_fails_is_named_and_another_host_takes_its_place() {
    let mut world = World::with_machines(341, 4, &["slow-images:#1:2m"]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    world.until_host(1, "preparing-for-installation", 5).await;
    let path = format!("{}/instructions", world.host_path(1));
    let reply = json!({ "step_type": "installation-disk-speed-check", "step_id": "x", "exit_code": 1, "output": "", "error": "fio" });
    assert_eq!(world.call("POST", &path, Some(reply)).await.0, 204);
    settled_back(&mut world, cluster).await;
    world.until_host(1, "insufficient", 5).await;
    let told = world.explain_host(1).await;
    let blockers = told["blockers"].to_string();
    assert!(blockers.contains("sufficient-installation-disk-speed"), "{told}");
    assert_eq!(world.unbind(1).await, 200);
    assert_eq!(world.bind_to(3, cluster).await.0, 200);
    world.until_cluster(cluster, "ready", 20).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    // What was measured for one cluster is no news to the pool.
    world.until_host(1, "known-unbound", 10).await;
}

#[tokio::test]
async fn a_disk_that_is_too_small_after_the_bind_is_told_and_the_host_can_go_home() {
    let mut world = World::with_machines(342, 4, &["shrinking-disk:#1"]).await;
    let cluster = world.new_cluster("prod").await;
    for machine in THREE {
        assert_eq!(world.bind_to(machine, cluster).await.0, 200);
    }
    world.until_host(1, "insufficient", 15).await;
    world.until_cluster(cluster, "insufficient", 5).await;
    let told = world.explain_host(1).await;
    assert!(
        told["blockers"].to_string().contains("has-min-valid-disks"),
        "{told}"
    );
    world.nobody_is_left_without_a_word().await;
    let (status, body) = world.act(cluster, "install").await;
    assert_eq!(status, 409, "{body}");
    assert_eq!(world.unbind(1).await, 200);
    world.until_host(1, "known-unbound", 10).await;
    assert_eq!(world.bind_to(3, cluster).await.0, 200);
    world.until_cluster(cluster, "ready", 20).await;
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn a_machine_too_small_for_the_control_plane_becomes_a_worker_or_is_told_so() {
    let mut world = World::with_machines(343, 2, &[]).await;
    let mut setup = world.setup(world.infra_env, &[]);
    setup.profile = Some(Profile::SmallDisk);
    world.boot_as(setup, 1);
    world.run_for(jiff::SignedDuration::from_mins(4)).await;
    if world.host_status(2) != "known-unbound" {
        world.nobody_is_left_without_a_word().await;
        assert_eq!(world.unbind(2).await, 409);
        return;
    }
    let cluster = world.new_cluster("prod").await;
    for machine in THREE {
        assert_eq!(world.bind_to(machine, cluster).await.0, 200);
    }
    world.run_for(jiff::SignedDuration::from_mins(6)).await;
    assert_eq!(
        world.cluster_status(cluster),
        "insufficient",
        "{}",
        world.describe()
    );
    world.nobody_is_left_without_a_word().await;
    bring_home(&mut world, cluster).await;
}

#[tokio::test]
async fn a_failing_openshift_install_is_told_and_nothing_is_stuck() {
    let mut world = World::with(344, |settings| {
        settings.installer.program = Some("/bin/false".into())
    })
    .await;
    world.infra_env = world.pool("sim", None).await;
    world.boot(world.infra_env, 3, &[]);
    world.until_hosts(&THREE, "known-unbound", 10).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "ready", 10).await;
    let events = world.events(&format!("cluster_id={cluster}")).await;
    let told = events
        .iter()
        .find(|event| event["name"] == "prepare_installation_failed")
        .expect("the failure is told");
    assert!(
        told["message"].as_str().expect("text").contains("exit status: 1"),
        "{told}"
    );
    world.nobody_is_left_without_a_word().await;
    // The program was put right meanwhile.
    let repaired = World::empty(1).await.settings.installer.program;
    world.settings.installer.program = repaired;
    world.crash().await;
    world.until_cluster(cluster, "ready", 10).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
}

const TANG: &str = r#"[{"url":"http://tang.example.com","thumbprint":"print"}]"#;

async fn reply(world: &mut World, machine: usize, reply: serde_json::Value) {
    let path = format!("{}/instructions", world.host_path(machine));
    assert_eq!(world.call("POST", &path, Some(reply)).await.0, 204);
    world.settle().await;
}

#[tokio::test]
async fn tang_servers_that_cannot_be_tried_any_more_are_told_with_the_error() {
    let mut world = World::with_machines(346, 3, &[]).await;
    let mut wish = world.cluster_wish("prod");
    wish["disk_encryption"] = json!({ "enable_on": "all", "mode": "tang", "tang_servers": TANG });
    world.ready(wish, &THREE).await;
    for times in 1..=2 {
        let failed = json!({ "step_type": "tang-connectivity-check", "step_id": "x", "exit_code": 1,
            "error": "no route\n to tang.example.com" });
        reply(&mut world, 1, failed).await;
        let host = world.host(1).await;
        assert_eq!(host["status"], "insufficient", "{times}: {host}");
        let told = host["status_info"].as_str().expect("text");
        assert!(told.contains("no route to tang.example.com"), "{told}");
        let kept = host["tang_connectivity"].as_str().expect("text");
        assert!(!kept.contains(r#""is_success":true"#), "{kept}");
    }
    // The next answer that is right makes it right again.
    let output = json!({ "is_success": true, "tang_server_response": [] }).to_string();
    let right =
        json!({ "step_type": "tang-connectivity-check", "step_id": "x", "exit_code": 0, "output": output });
    reply(&mut world, 1, right).await;
    assert_eq!(world.status(1).await, "known");
}

#[tokio::test]
async fn images_that_could_not_be_tried_fail_the_preparation_with_the_cause() {
    let mut world = World::with_machines(347, 3, &["slow-images:#1:10m"]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    world.until_host(1, "preparing-for-installation", 5).await;
    let failed = json!({ "step_type": "container-image-availability", "step_id": "x", "exit_code": 125,
        "error": "cannot start podman" });
    reply(&mut world, 1, failed).await;
    let statuses: serde_json::Value =
        serde_json::from_str(world.host(1).await["images_status"].as_str().expect("text")).expect("JSON");
    let all = statuses.as_object().expect("by image");
    assert!(!all.is_empty());
    for (name, image) in all {
        assert_eq!(
            (&image["result"], &image["error"]),
            (&json!("failure"), &json!("cannot start podman")),
            "{name}"
        );
    }
    settled_back(&mut world, cluster).await;
    let events = world.events(&format!("cluster_id={cluster}")).await;
    let told = events.iter().any(|event| {
        event["message"]
            .as_str()
            .expect("text")
            .contains("cannot start podman")
    });
    assert!(told, "{events:?}");
}
