//! Clusters whose nodes fetch their ignition from an endpoint, on the first day.

use super::THREE;
use crate::world::{V2, World};
use jiff::SignedDuration;
use serde_json::{Value, json};
use uuid::Uuid;

const URL: &str = "https://ignition.example.com/ignition";

/// Free machines of a hub with or without an `openshift-install`.
async fn world(seed: u64, with_installer: bool, machines: u32) -> World {
    let mut world = World::with(seed, |settings| {
        if !with_installer {
            settings.installer.program = None;
        }
    })
    .await;
    world.infra_env = world.pool("sim", None).await;
    world.boot(world.infra_env, machines, &[]);
    world.run_for(SignedDuration::from_mins(3)).await;
    world
}

async fn served_by_an_endpoint(world: &mut World, machines: &[usize]) -> Uuid {
    let mut wish = world.cluster_wish("hosted");
    wish["ignition_endpoint"] = json!({ "url": URL });
    world.ready(wish, machines).await
}

/// The ignition that a machine fetched for its disk.
fn ignition_of(world: &World, machine: usize) -> Value {
    let heard = world.heard.as_ref().expect("somebody listened");
    let served = heard
        .iter()
        .find(|one| one.machine == machine && one.path.ends_with("/downloads/ignition"));
    serde_json::from_slice(&served.expect("its ignition").body).expect("JSON")
}

#[tokio::test]
async fn hosts_fetch_from_an_endpoint_with_token_and_headers_and_the_cluster_is_installed() {
    let all = [0, 1, 2, 3, 4];
    let mut world = world(400, false, 5).await;
    let cluster = served_by_an_endpoint(&mut world, &all).await;
    for machine in all {
        let change = json!({ "ignition_endpoint_token": format!("token-{machine}"),
            "ignition_endpoint_http_headers": [{ "key": "NodePool", "value": format!("pool-{machine}") }] });
        world.change_host(machine, change).await;
    }
    world.until_cluster(cluster, "ready", 5).await;
    world.heard = Some(Vec::new());
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    assert_eq!(world.statuses(&all).await, ["installed"; 5]);
    assert_eq!(world.cluster(cluster).await["progress"]["total_percentage"], 100);
    for machine in all {
        let host = world.host(machine).await;
        let role = host["role"].as_str().expect("a role");
        let config = ignition_of(&world, machine);
        let merged = &config["ignition"]["config"]["merge"][0];
        assert_eq!(merged["source"], format!("{URL}/{role}"), "{config}");
        let headers = json!([
            { "name": "Authorization", "value": format!("Bearer token-{machine}") },
            { "name": "NodePool", "value": format!("pool-{machine}") },
        ]);
        assert_eq!(merged["httpHeaders"], headers, "{config}");
    }
    // Nobody here knows how to log in.
    let path = format!("{V2}/clusters/{cluster}/credentials");
    let (status, body) = world.call("GET", &path, None).await;
    assert_eq!(status, 409, "{body}");
    world.nobody_is_left_without_a_word().await;
}

#[tokio::test]
async fn an_endpoint_named_early_does_not_keep_the_installer_from_making_the_cluster() {
    let mut world = world(401, true, 4).await;
    let cluster = served_by_an_endpoint(&mut world, &THREE).await;
    let plan = world
        .plan(json!({ "verb": "install-cluster", "cluster_id": cluster }))
        .await;
    assert!(plan.to_string().contains("added later"), "{plan}");
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    let path = format!("{V2}/clusters/{cluster}/credentials");
    let (status, body) = world.call("GET", &path, None).await;
    assert_eq!(status, 200, "{body}");
    // Those who come later are sent there.
    assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
    assert_eq!(world.bind_to(3, cluster).await.0, 200);
    world.until_host(3, "known", 15).await;
    world.heard = Some(Vec::new());
    assert_eq!(world.host_act(3, "install").await.0, 202);
    world.until_host(3, "added-to-existing-cluster", 60).await;
    let config = ignition_of(&world, 3);
    assert_eq!(
        config["ignition"]["config"]["merge"][0]["source"],
        format!("{URL}/worker"),
        "{config}"
    );
}
