//! Installations that go well, and every way back to the pool after them.

use super::{THREE, boot_home, last, props};
use crate::world::{V1, V2, World};
use jiff::SignedDuration;
use muster_domain::ClusterId;
use muster_hub::worker;
use muster_simfleet::Condition;
use serde_json::{Value, json};
use uuid::Uuid;

const SINGLE_NODE_NAMES: &str = "generated/manifests/openshift/50-master-single-node-names.yaml";

async fn roles(world: &mut World, machines: &[usize]) -> Vec<String> {
    let mut roles = Vec::new();
    for machine in machines {
        let host = world.host(*machine).await;
        roles.push(host["role"].as_str().expect("a role").to_owned());
    }
    roles
}

#[tokio::test]
async fn three_masters_become_a_cluster() {
    let mut world = World::with_machines(1, 3, &[]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    assert_eq!(world.cluster_status(cluster), "preparing-for-installation");
    world.until_cluster(cluster, "installing", 20).await;
    world.until_cluster(cluster, "finalizing", 60).await;
    world.until_cluster(cluster, "installed", 60).await;
    assert_eq!(world.statuses(&THREE).await, ["installed"; 3]);
    let seen = world.cluster(cluster).await;
    assert_eq!(seen["progress"]["total_percentage"], 100, "{seen}");
    assert_eq!(roles(&mut world, &THREE).await, ["master"; 3]);
    for machine in THREE {
        assert_eq!(world.machines[machine].condition(), Condition::Installed);
        assert_eq!(world.machines[machine].installs().done, 1);
        assert_eq!(
            world.host(machine).await["progress"]["installation_percentage"],
            100
        );
    }
    // Who installed a cluster may log in to it.
    let (status, body) = world
        .call("GET", &format!("{V2}/clusters/{cluster}/credentials"), None)
        .await;
    assert_eq!(
        (status, &body["password"]),
        (200, &json!("correct-horse")),
        "{body}"
    );
    let path = format!("{V2}/clusters/{cluster}/downloads/credentials?file_name=kubeconfig");
    assert_eq!(world.fetch("GET", &path, None).await.0, 200);
    let events = world.event_names(&format!("cluster_id={cluster}")).await;
    for name in [
        "cluster_prepare_installation_started",
        "cluster_installation_completed",
    ] {
        assert!(
            events.iter().any(|event| event == name),
            "{name} is missing: {events:?}"
        );
    }
    world.nobody_is_left_without_a_word().await;
}

#[tokio::test]
async fn hosts_whose_tests_are_done_already_need_not_report_again() {
    let mut world = World::with_machines(21, 3, &[]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    // Nobody reads them meanwhile: whoever does makes the hub look.
    while THREE.map(|machine| world.host_status(machine)) != ["preparing-successful"; 3] {
        world.settle().await;
        world.clock.advance(SignedDuration::from_secs(5));
        world.machines_act().await;
    }
    // Before anybody looks at them, or the cluster would begin.
    world.cancel(cluster).await;
    world.until_cluster(cluster, "ready", 5).await;
    world.install(cluster).await;
    // The files are there before anybody looks at the hosts: that look is the last thing somebody asks for.
    worker::outbox::once(&world.hub).await.expect("the outbox works");
    world.until_cluster(cluster, "installed", 120).await;
}

#[tokio::test]
async fn a_cluster_with_workers_installs_all_of_its_hosts() {
    let mut world = World::with_machines(2, 5, &[]).await;
    let all = [0, 1, 2, 3, 4];
    let cluster = world.installed_cluster("wide", &all).await;
    assert_eq!(world.statuses(&all).await, ["installed"; 5]);
    let mut roles = roles(&mut world, &all).await;
    roles.sort();
    assert_eq!(roles, ["master", "master", "master", "worker", "worker"]);
    assert_eq!(world.cluster_status(cluster), "installed");
}

#[tokio::test]
async fn a_single_node_is_a_whole_cluster() {
    let mut world = World::with_machines(3, 1, &[]).await;
    let wish = world.single_node_wish("edge");
    let cluster = world.ready(wish, &[0]).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    assert_eq!(world.status(0).await, "installed");
    let seen = world.cluster(cluster).await;
    let address = world.machines[0].machine().address().to_string();
    assert_eq!(seen["api_vips"][0]["ip"], address.as_str(), "{seen}");
    // What the checks promise is there: the node answers the cluster's names.
    let names = world
        .hub
        .store
        .file_read(ClusterId(cluster), SINGLE_NODE_NAMES)
        .await;
    assert!(names.expect("files").is_some());
}

#[tokio::test]
async fn without_names_of_its_own_a_single_node_needs_dns_records() {
    let mut world = World::with(20, |settings| settings.checks.single_node_dns = false).await;
    world.infra_env = world.pool("sim", None).await;
    world.boot(world.infra_env, 1, &[]);
    world.run_for(SignedDuration::from_mins(3)).await;
    let wish = world.single_node_wish("edge");
    let cluster = world.ready(wish, &[0]).await;
    let host = world.host(0).await;
    let found = host["validations_info"].as_str().expect("findings");
    assert!(found.contains("can resolve api.edge.example.com"), "{found}");
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    let names = world
        .hub
        .store
        .file_read(ClusterId(cluster), SINGLE_NODE_NAMES)
        .await;
    assert_eq!(names.expect("files"), None);
}

#[tokio::test]
async fn two_masters_and_an_arbiter_are_enough() {
    let mut world = World::with_machines(4, 3, &[]).await;
    let mut wish = world.cluster_wish("two");
    wish["control_plane_count"] = json!(2);
    let cluster = world.ready(wish, &THREE).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    let mut roles = roles(&mut world, &THREE).await;
    roles.sort();
    assert_eq!(roles, ["arbiter", "master", "master"]);
}

#[tokio::test]
async fn a_worker_is_added_to_a_cluster_that_was_installed_here() {
    let mut world = World::with_machines(5, 4, &[]).await;
    let cluster = world.installed_cluster("prod", &THREE).await;
    let (status, body) = world.act(cluster, "allow-add-hosts").await;
    assert_eq!(status, 202, "{body}");
    assert_eq!(world.cluster_status(cluster), "adding-hosts");
    let (status, body) = world.bind_to(3, cluster).await;
    assert_eq!(status, 200, "{body}");
    world.until_host(3, "known", 15).await;
    let (status, body) = world.host_act(3, "install").await;
    assert_eq!(status, 202, "{body}");
    world.until_host(3, "added-to-existing-cluster", 60).await;
    assert_eq!(world.cluster_status(cluster), "adding-hosts");
    assert_eq!(
        world.statuses(&THREE).await,
        ["installed"; 3],
        "the others are left alone"
    );
    world.nobody_is_left_without_a_word().await;
}

#[tokio::test]
async fn a_worker_is_added_to_a_cluster_that_was_imported() {
    let mut world = World::with_machines(6, 1, &[]).await;
    let wish = json!({ "name": "theirs", "api_vip_dnsname": "api.theirs.example.com",
        "openshift_cluster_id": Uuid::from_u128(77), "openshift_version": "4.20" });
    let (status, body) = world
        .call("POST", &format!("{V2}/clusters/import"), Some(wish))
        .await;
    assert_eq!(status, 201, "{body}");
    let cluster = crate::world::id(&body);
    assert_eq!(world.bind_to(0, cluster).await.0, 200);
    world.until_host(0, "known", 15).await;
    assert_eq!(world.host(0).await["kind"], "AddToExistingClusterHost");
    assert_eq!(world.host_act(0, "install").await.0, 202);
    world.until_host(0, "added-to-existing-cluster", 60).await;
    assert_eq!(world.unbind(0).await, 200);
    assert_eq!(world.status(0).await, "unbinding-pending-user-action");
    boot_home(&mut world, &[0]).await;
}

#[tokio::test]
async fn ignition_of_ones_own_installs_without_a_controller() {
    let mut world = World::with_machines(7, 5, &[]).await;
    let all = [0, 1, 2, 3, 4];
    let cluster = world.ready_cluster("k3s", &all).await;
    for role in ["master", "worker"] {
        let config = json!({ "ignition": { "version": "3.4.0" },
            "storage": { "files": [{ "path": format!("/etc/{role}-of-mine") }] } });
        world.upload_ignition(cluster, role, config).await;
    }
    world.heard = Some(Vec::new());
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    assert_eq!(world.statuses(&all).await, ["installed"; 5]);
    for machine in all {
        let host = world.host(machine).await;
        assert!(!host["bootstrap"].as_bool().unwrap_or_default(), "{host}");
        let file = format!("/etc/{}-of-mine", host["role"].as_str().expect("a role"));
        let heard = world.heard.as_ref().expect("somebody listened");
        let served = heard
            .iter()
            .find(|one| one.machine == machine && one.path.ends_with("/downloads/ignition"));
        let served = String::from_utf8_lossy(&served.expect("its ignition").body).into_owned();
        assert!(served.contains(&file), "{served}");
    }
    assert_eq!(world.cluster(cluster).await["progress"]["total_percentage"], 100);
}

#[tokio::test]
async fn a_cancelled_installation_is_reset_and_installed_again() {
    let mut world = World::with_machines(8, 3, &[]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    world.until_stage(1, "Writing image to disk", 60).await;
    world.cancel(cluster).await;
    assert_eq!(world.cluster_status(cluster), "cancelled");
    assert_eq!(world.statuses(&THREE).await, ["cancelled"; 3]);
    world.nobody_is_left_without_a_word().await;
    world.run_for(SignedDuration::from_mins(5)).await;
    world.reset(cluster).await;
    // Their agents still run: nobody has to walk to the machines.
    world.until_cluster(cluster, "ready", 15).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    assert_eq!(world.statuses(&THREE).await, ["installed"; 3]);
}

#[tokio::test]
async fn a_preparation_that_is_cancelled_leaves_the_cluster_ready() {
    let mut world = World::with_machines(9, 3, &["slow-images:100%:5m"]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    world.until_hosts(&THREE, "preparing-for-installation", 5).await;
    world.cancel(cluster).await;
    world.until_cluster(cluster, "ready", 10).await;
    world.until_hosts(&THREE, "known", 5).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
}

#[tokio::test]
async fn after_a_reset_installed_hosts_come_back_by_a_boot() {
    let mut world = World::with_machines(10, 3, &[]).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "finalizing", 60).await;
    world.reset(cluster).await;
    assert_eq!(world.statuses(&THREE).await, ["resetting-pending-user-action"; 3]);
    assert_eq!(world.cluster_status(cluster), "insufficient");
    world.nobody_is_left_without_a_word().await;
    for machine in THREE {
        world.boot_discovery(machine);
    }
    world.until_cluster(cluster, "ready", 15).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
}

#[tokio::test]
async fn late_bound_hosts_of_a_deleted_cluster_are_installed_in_the_next() {
    let mut world = World::with_machines(11, 3, &[]).await;
    let first = world.installed_cluster("first", &THREE).await;
    world.delete_cluster(first).await;
    assert_eq!(world.cluster_status(first), "gone");
    assert_eq!(world.statuses(&THREE).await, ["unbinding-pending-user-action"; 3]);
    for machine in THREE {
        assert_eq!(world.cluster_of(machine).await, None);
        assert!(
            world
                .host(machine)
                .await
                .get("cluster_id")
                .is_none_or(Value::is_null)
        );
    }
    world.nobody_is_left_without_a_word().await;
    boot_home(&mut world, &THREE).await;
    let second = world.installed_cluster("second", &THREE).await;
    assert_eq!(world.statuses(&THREE).await, ["installed"; 3]);
    assert_eq!(world.cluster_of(0).await, Some(second));
}

#[tokio::test]
async fn early_bound_hosts_go_with_their_cluster() {
    let mut world = World::empty(12).await;
    let cluster = world.new_cluster("owner").await;
    let pool = world.pool("own", Some(cluster)).await;
    world.boot(pool, 3, &[]);
    world.until_cluster(cluster, "ready", 20).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    world.delete_cluster(cluster).await;
    for machine in THREE {
        let path = world.host_path(machine);
        assert_eq!(world.call("GET", &path, None).await.0, 404);
    }
    let events = world
        .event_names(&format!("infra_env_id={pool}&deleted_hosts=true"))
        .await;
    let told = events.iter().filter(|name| *name == "host_deregistered").count();
    assert_eq!(told, 3, "{events:?}");
}

#[tokio::test]
async fn a_return_is_receipted_with_route_time_and_what_was_cleared() {
    let mut world = World::with_machines(13, 4, &[]).await;
    // By its agent: bound, never installed.
    let cluster = world.ready_cluster("prod", &THREE).await;
    world
        .change_host(
            0,
            json!({ "host_name": "given-name", "ignition_endpoint_token": "t0ken" }),
        )
        .await;
    assert_eq!(world.unbind(0).await, 200);
    world.until_host(0, "known-unbound", 10).await;
    let receipts = world.receipts(0).await;
    let receipt = props(last(&receipts));
    assert_eq!(receipt["route"], "agent-restart", "{receipt}");
    let cleared = receipt["cleared"].as_array().expect("a list").clone();
    for kind in ["hostname", "ignition token"] {
        assert!(cleared.contains(&json!(kind)), "{kind}: {receipt}");
    }
    assert!(receipt["seconds"].as_i64().expect("a number") <= 120, "{receipt}");

    // By a boot: installed and unbound, half an hour later.
    assert_eq!(world.bind_to(3, cluster).await.0, 200);
    world.until_cluster(cluster, "ready", 15).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    assert_eq!(world.unbind(3).await, 200);
    world.run_for(SignedDuration::from_mins(30)).await;
    boot_home(&mut world, &[3]).await;
    let receipts = world.receipts(3).await;
    assert_eq!(receipts.len(), 1);
    let receipt = props(last(&receipts));
    assert_eq!(receipt["route"], "boot", "{receipt}");
    assert!(
        receipt["seconds"].as_i64().expect("a number") >= 1800,
        "{receipt}"
    );
    let cleared = receipt["cleared"].as_array().expect("a list").clone();
    for kind in ["role", "installation disk", "progress"] {
        assert!(cleared.contains(&json!(kind)), "{kind}: {receipt}");
    }
    let message = last(&receipts)["message"].as_str().expect("text");
    assert!(!message.contains("prod"), "{message}");
}

#[tokio::test]
async fn an_installed_host_is_reclaimed_in_band() {
    let mut world = World::with_machines(14, 3, &[]).await;
    world.installed_cluster("prod", &THREE).await;
    let (status, body) = world.reclaim(0).await;
    assert_eq!(status, 202, "{body}");
    assert_eq!(world.status(0).await, "reclaiming");
    assert_eq!(world.cluster_of(0).await, None);
    world.nobody_is_left_without_a_word().await;
    world.start_reclaim(0);
    world.until_host(0, "reclaiming-rebooting", 15).await;
    world.until_host(0, "known-unbound", 15).await;
    let receipts = world.receipts(0).await;
    assert_eq!(props(last(&receipts))["route"], "reclaim");
}

#[tokio::test]
async fn a_reclaim_that_fails_asks_for_a_person() {
    let mut world = World::with_machines(15, 3, &["reclaim-failure:#0"]).await;
    world.installed_cluster("prod", &THREE).await;
    assert_eq!(world.reclaim(0).await.0, 202);
    world.start_reclaim(0);
    world.until_host(0, "unbinding-pending-user-action", 15).await;
    world.nobody_is_left_without_a_word().await;
    boot_home(&mut world, &[0]).await;
    let receipts = world.receipts(0).await;
    assert_eq!(props(last(&receipts))["route"], "boot");
}

#[tokio::test]
async fn a_reclaim_that_nobody_answers_asks_for_a_person_after_an_hour() {
    let mut world = World::with_machines(16, 3, &[]).await;
    world.installed_cluster("prod", &THREE).await;
    assert_eq!(world.reclaim(0).await.0, 202);
    world.run_for(SignedDuration::from_mins(59)).await;
    assert_eq!(world.status(0).await, "reclaiming");
    world.run_for(SignedDuration::from_mins(2)).await;
    assert_eq!(world.status(0).await, "unbinding-pending-user-action");
    world.nobody_is_left_without_a_word().await;
    boot_home(&mut world, &[0]).await;
}

#[tokio::test]
async fn a_host_that_boots_discovery_while_installed_comes_back_once_it_is_unbound() {
    let mut world = World::with_machines(17, 3, &[]).await;
    world.installed_cluster("prod", &THREE).await;
    world.boot_discovery(2);
    world.run_for(SignedDuration::from_mins(10)).await;
    assert_eq!(world.status(2).await, "installed");
    assert_eq!(world.unbind(2).await, 200);
    // The agent that was refused keeps asking, so no second boot is needed.
    world.until_host(2, "known-unbound", 15).await;
}

#[tokio::test]
async fn a_host_moves_from_an_installed_cluster_to_the_next() {
    let mut world = World::with_machines(18, 4, &[]).await;
    world.installed_cluster("first", &THREE).await;
    let second = world.new_cluster("second").await;
    assert_eq!(world.move_host(0, 1).await, 202);
    assert_eq!(world.status(0).await, "unbinding-pending-user-action");
    world.boot_discovery(0);
    world
        .until("it arrived", 20, |world| {
            let row = world.hub.index.host(world.key(0)).expect("registered");
            row.cluster.is_some_and(|cluster| cluster.0 == second)
                && ["known", "insufficient", "pending-for-input"].contains(&row.status().word())
        })
        .await;
    let path = format!("{}/move", world.host_path(0).replace(V2, V1));
    let (status, body) = world.call("GET", &path, None).await;
    assert_eq!(status, 200, "{body}");
}

/// Whoever manages hosts from elsewhere says so whenever the hub's choice differs from "auto-assign".
#[tokio::test]
async fn a_role_that_is_left_to_the_hub_stays_as_decided_once_the_installation_begins() {
    let mut world = World::empty(431).await;
    let cluster = world.new_cluster("owner").await;
    let pool = world.pool("own", Some(cluster)).await;
    world.boot(pool, 3, &[]);
    world.until_cluster(cluster, "ready", 20).await;
    world.install(cluster).await;
    for machine in 0..3 {
        let host = world.hub.index.host(world.key(machine)).expect("there");
        assert_eq!(host.status().word(), "known", "it has not followed yet");
        world
            .change_host(machine, serde_json::json!({ "host_role": "auto-assign" }))
            .await;
        let host = world.hub.index.host(world.key(machine)).expect("there");
        assert_eq!(host.role.word(), "master");
    }
    world.until_cluster(cluster, "finalizing", 60).await;
}

#[tokio::test]
async fn a_cluster_that_brings_its_own_network_is_ready_with_its_manifests_and_installs() {
    let mut world = World::with_machines(22, 3, &[]).await;
    let mut wish = world.cluster_wish("cilium");
    wish["network_type"] = json!("Cilium");
    let cluster = world.create_cluster(wish).await;
    for machine in THREE {
        assert_eq!(world.bind_to(machine, cluster).await.0, 200);
    }
    world.until_hosts(&THREE, "known", 15).await;
    world.until_cluster(cluster, "insufficient", 5).await;
    let said = world.cluster(cluster).await["status_info"].to_string();
    assert!(
        said.contains("Cilium") && said.contains("upload the manifests"),
        "{said}"
    );
    let manifest = json!({ "file_name": "cilium.yaml", "content": "a2luZDogQ29uZmlnTWFwCg==" });
    let path = format!("{V2}/clusters/{cluster}/manifests");
    let (status, body) = world.call("POST", &path, Some(manifest)).await;
    assert_eq!(status, 201, "{body}");
    world.until_cluster(cluster, "ready", 5).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
}
