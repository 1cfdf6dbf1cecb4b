//! What an install order says: images, the operating system, and disks that are kept.

use super::THREE;
use crate::world::{V2, World};
use jiff::SignedDuration;
use muster_domain::catalog::Catalog;
use serde_json::{Value, json};
use uuid::Uuid;

const MCO: &str = "registry.example.com/mco@sha256:35";
const GATHER: &str = "registry.example.com/gather@sha256:3c";

/// The arguments of a step that a machine was given.
fn asked(world: &World, machine: usize, step: &str) -> Vec<Value> {
    let heard = world.heard.as_ref().expect("somebody listened");
    let polls = heard
        .iter()
        .filter(|one| one.machine == machine && one.method == "GET" && one.path.contains("/instructions"));
    let steps = polls.flat_map(|poll| {
        let body: Value = serde_json::from_slice(&poll.body).unwrap_or_default();
        body["instructions"].as_array().cloned().unwrap_or_default()
    });
    steps
        .filter(|one| one["step_type"] == step)
        .map(|one| serde_json::from_str(one["args"][0].as_str().unwrap_or("null")).expect("JSON"))
        .collect()
}

/// The installer's arguments in the order that a machine was given.
fn installer_args(world: &World, machine: usize) -> Vec<String> {
    let orders = asked(world, machine, "install");
    let order = orders.first().expect("an order to install");
    serde_json::from_str(order["installer_args"].as_str().unwrap_or("[]")).expect("a list")
}

async fn start(world: &mut World, cluster: Uuid) {
    world.heard = Some(Vec::new());
    world.install(cluster).await;
    world.until_cluster(cluster, "installing", 20).await;
    let has_order = |world: &World| {
        THREE
            .iter()
            .all(|machine| !asked(world, *machine, "install").is_empty())
    };
    world.until("everybody has an order", 5, has_order).await;
}

#[tokio::test]
async fn hosts_that_keep_partitions_are_not_measured_and_are_installed() {
    for flag in ["--save-partlabel", "--save-partindex"] {
        let mut world = World::with_machines(410, 3, &[]).await;
        let cluster = world.ready_cluster("prod", &THREE).await;
        let path = format!("{}/installer-args", world.host_path(1));
        let (status, body) = world
            .call("PATCH", &path, Some(json!({ "args": [flag, "5"] })))
            .await;
        assert!(status < 300, "{status} {body}");
        world.until_cluster(cluster, "ready", 5).await;
        start(&mut world, cluster).await;
        assert!(asked(&world, 1, "installation-disk-speed-check").is_empty());
        assert!(!asked(&world, 0, "installation-disk-speed-check").is_empty());
        let order = asked(&world, 1, "install").remove(0);
        assert_eq!(order["skip_installation_disk_cleanup"], true, "{order}");
        world.until_cluster(cluster, "installed", 120).await;
    }
}

#[tokio::test]
async fn tests_that_the_site_switched_off_are_not_waited_for() {
    let mut world = World::with(411, |settings| {
        settings.disabled_steps = [
            "installation-disk-speed-check".to_owned(),
            "container-image-availability".to_owned(),
        ]
        .into();
    })
    .await;
    world.infra_env = world.pool("sim", None).await;
    world.boot(world.infra_env, 3, &[]);
    world.run_for(SignedDuration::from_mins(3)).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    start(&mut world, cluster).await;
    assert!(asked(&world, 0, "container-image-availability").is_empty());
    world.until_cluster(cluster, "installed", 120).await;
}

#[tokio::test]
async fn images_that_the_catalogue_names_for_a_release_are_in_the_order() {
    let releases = json!([{ "openshift_version": "4.20.33", "cpu_architecture": "x86_64", "default": true,
        "url": "registry.example.com/release:4.20.33-x86_64", "mco_image": MCO, "must_gather_image": GATHER }]);
    let mut world = World::with(412, |settings| {
        settings.catalog = Catalog::from_json(None, Some(&releases.to_string())).expect("a catalogue");
    })
    .await;
    world.infra_env = world.pool("sim", None).await;
    world.boot(world.infra_env, 3, &[]);
    world.run_for(SignedDuration::from_mins(3)).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    start(&mut world, cluster).await;
    for machine in THREE {
        let order = asked(&world, machine, "install").remove(0);
        assert_eq!(order["mco_image"], MCO, "{order}");
        assert_eq!(order["must_gather_image"], GATHER, "{order}");
        let pulled = asked(&world, machine, "container-image-availability").remove(0);
        for image in [MCO, GATHER] {
            assert!(pulled["images"].to_string().contains(image), "{pulled}");
        }
    }
}

async fn offer(world: &mut World, version: &str) {
    let path = format!("{V2}/infra-envs/{}", world.infra_env);
    let (status, body) = world
        .call("PATCH", &path, Some(json!({ "openshift_version": version })))
        .await;
    assert_eq!(status, 201, "{body}");
}

#[tokio::test]
async fn a_host_is_told_its_image_by_what_it_booted_and_not_by_what_its_pool_offers_now() {
    let mut world = World::empty(413).await;
    world.infra_env = world.pool("sim", None).await;
    offer(&mut world, "4.21").await;
    world.boot(world.infra_env, 2, &[]);
    world.run_for(SignedDuration::from_mins(3)).await;
    offer(&mut world, "4.20").await;
    world.boot(world.infra_env, 1, &[]);
    world.run_for(SignedDuration::from_mins(3)).await;
    // Binding makes their agents register again, which is not another boot.
    let cluster = world.ready_cluster("prod", &THREE).await;
    start(&mut world, cluster).await;
    for machine in [0, 1] {
        let args = installer_args(&world, machine);
        let at = args
            .iter()
            .position(|arg| arg == "--image-url")
            .expect("another image");
        assert!(args[at + 1].contains("4.20"), "{args:?}");
    }
    let args = installer_args(&world, 2);
    assert!(!args.contains(&"--image-url".to_owned()), "{args:?}");
    world.until_cluster(cluster, "installed", 120).await;
    // Installed, returned and booted again, they run what the pool offers by then.
    world.delete_cluster(cluster).await;
    super::boot_home(&mut world, &THREE).await;
    let cluster = world.ready_cluster("next", &THREE).await;
    start(&mut world, cluster).await;
    for machine in THREE {
        let args = installer_args(&world, machine);
        assert!(!args.contains(&"--image-url".to_owned()), "{args:?}");
    }
}

#[tokio::test]
async fn an_operating_system_that_cannot_be_named_is_told_before_and_after_the_start() {
    let images = json!([
        { "openshift_version": "4.20", "url": "https://images.example.com/our-own-4.20.iso", "version": "420.1" },
        { "openshift_version": "4.21", "url": "https://images.example.com/our-own-4.21.iso", "version": "421.1" },
    ]);
    let mut world = World::with(414, |settings| {
        settings.catalog = Catalog::from_json(Some(&images.to_string()), None).expect("a catalogue");
    })
    .await;
    world.infra_env = world.pool("sim", None).await;
    offer(&mut world, "4.21").await;
    world.boot(world.infra_env, 3, &[]);
    world.run_for(SignedDuration::from_mins(3)).await;
    let cluster = world.ready_cluster("prod", &THREE).await;
    let plan = world
        .plan(json!({ "verb": "install-cluster", "cluster_id": cluster }))
        .await;
    assert_eq!(plan["warnings"].as_array().expect("a list").len(), 3, "{plan}");
    start(&mut world, cluster).await;
    let events = world.events(&format!("cluster_id={cluster}")).await;
    let told: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "host_os_image_not_found")
        .map(|event| event["message"].as_str().expect("text"))
        .collect();
    assert_eq!(told.len(), 3, "{events:?}");
    assert!(
        told.iter()
            .all(|text| text.contains("4.21") && text.contains("4.20") && text.contains("--image-url")),
        "{told:?}"
    );
}
