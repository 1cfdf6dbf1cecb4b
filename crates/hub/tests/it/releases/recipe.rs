//! How the databases in `testdata/databases` were made: a hub of that release, machines in every phase, then a copy.
//!
//! `MUSTER_FIXTURE=testdata/databases/0.1.0 cargo test -p muster-hub --test it -- --ignored write_this_release`, once in
//! memory's place on SQLite and once with `MUSTER_TEST_DATABASE=postgres`. For a release only: what is there stays.

use super::{Expected, missing_phases};
use crate::place::{Place, is_postgres};
use crate::world::{PULL_SECRET, V1, V2, World};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::SignedDuration;
use muster_domain::cluster::Cluster;
use muster_domain::host::Host;
use muster_simfleet::Profile;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use uuid::Uuid;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK5fZ7RM4rPRmz3yCqBRUGGcbgyWYFXr8nYrVvYyB7Ck me";
const WRITING: &str = "Writing image to disk";

/// A machine with a cluster of its own.
#[derive(Clone, Copy)]
struct Single {
    machine: usize,
    cluster: Uuid,
}

/// Machines that were booted together.
fn boot(world: &mut World, pool: Uuid, count: u32, faults: &[&str]) -> usize {
    let first = world.machines.len();
    world.boot(pool, count, faults);
    first
}

async fn single(world: &mut World, machine: usize, name: &str) -> Single {
    let wish = world.single_node_wish(name);
    let cluster = world.create_cluster(wish).await;
    assert_eq!(world.bind_to(machine, cluster).await.0, 200);
    Single { machine, cluster }
}

async fn install_all(world: &mut World, clusters: &[Uuid]) {
    for cluster in clusters {
        world.until_cluster(*cluster, "ready", 30).await;
    }
    for cluster in clusters {
        world.install(*cluster).await;
    }
}

/// Its requests of this kind are lost from now on, so that it stays where it is.
fn hold(world: &mut World, machine: usize, part: &'static str) {
    world.lost.push((Some(machine), part));
}

async fn post(world: &mut World, path: &str, body: Value) -> Value {
    let (status, body) = world.call("POST", path, Some(body)).await;
    assert!((200..300).contains(&status), "{path}: {status} {body}");
    body
}

async fn pools(world: &mut World) -> [Uuid; 2] {
    let every_setting = json!({ "name": "lab", "pull_secret": PULL_SECRET, "image_type": "full-iso",
        "ssh_authorized_key": KEY, "additional_ntp_sources": "ntp.example.com",
        "proxy": { "http_proxy": "http://proxy.example.com:3128", "no_proxy": "example.com" },
        "kernel_arguments": [{ "operation": "append", "value": "audit=0" }],
        "ignition_config_override": r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/mine"}]}}"# });
    let lab = post(world, &format!("{V2}/infra-envs"), every_setting).await;
    let edge = json!({ "name": "edge", "pull_secret": PULL_SECRET, "image_type": "minimal-iso",
        "static_network_config": [{ "network_yaml": "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: true\n",
            "mac_interface_map": [{ "mac_address": "52:54:00:00:00:99", "logical_nic_name": "eth0" }] }] });
    let edge = post(world, &format!("{V2}/infra-envs"), edge).await;
    [crate::world::id(&lab), crate::world::id(&edge)]
}

async fn lived_in(place: Place) -> World {
    let mut world = World::on(place, 1, |_| ()).await;
    let [lab, edge] = pools(&mut world).await;
    world.infra_env = lab;

    // Who will be what.
    let three = boot(&mut world, lab, 4, &[]);
    let installed = boot(&mut world, lab, 1, &[]);
    let fails = boot(&mut world, lab, 1, &["fail:#0:writing-image-to-disk"]);
    let cancelled = boot(&mut world, lab, 1, &[]);
    let reset = boot(&mut world, lab, 1, &[]);
    let returns = boot(&mut world, lab, 1, &[]);
    let reclaimed = boot(&mut world, lab, 2, &[]);
    let wrong_boot = boot(&mut world, lab, 1, &["wrong-boot:#0"]);
    let writes = boot(&mut world, lab, 1, &[]);
    let finalizes = boot(&mut world, lab, 1, &[]);
    let resets = boot(&mut world, lab, 1, &[]);
    let ordered = boot(&mut world, lab, 1, &[]);
    let prepares = boot(&mut world, lab, 3, &["slow-images:#0:15m"]);
    let unfit = boot(&mut world, lab, 3, &["image-failure:#1:9", "slow-images:#0:15m"]);
    let moves = boot(&mut world, lab, 1, &[]);
    let free = boot(&mut world, edge, 7, &[]);
    let mut small = world.setup(edge, &[]);
    small.profile = Some(Profile::TooSmall);
    let too_small = world.machines.len();
    world.boot_as(small, 1);
    world.run_for(SignedDuration::from_mins(5)).await;

    // What lasts.
    let prod = world.new_cluster("prod").await;
    for machine in three..three + 3 {
        assert_eq!(world.bind_to(machine, prod).await.0, 200);
    }
    let manifest = json!({ "file_name": "mine.yaml", "content": "a2luZDogQ29uZmlnTWFwCg==" });
    post(&mut world, &format!("{V2}/clusters/{prod}/manifests"), manifest).await;
    world.plant_secrets(three).await;
    let installed = single(&mut world, installed, "installed").await;
    let fails = single(&mut world, fails, "fails").await;
    let cancelled = single(&mut world, cancelled, "cancelled").await;
    let reset = single(&mut world, reset, "reset").await;
    let returns = single(&mut world, returns, "returns").await;
    let reclaiming = single(&mut world, reclaimed, "reclaiming").await;
    let rebooting = single(&mut world, reclaimed + 1, "rebooting").await;
    let finalizes = single(&mut world, finalizes, "finalizes").await;
    let all = [
        installed, fails, cancelled, reset, returns, reclaiming, rebooting, finalizes,
    ];
    let mut clusters: Vec<_> = all.iter().map(|one| one.cluster).collect();
    clusters.push(prod);
    install_all(&mut world, &clusters).await;

    world.until_stage(cancelled.machine, WRITING, 60).await;
    world.cancel(cancelled.cluster).await;
    world.until_cluster(fails.cluster, "error", 60).await;
    world.until_cluster(finalizes.cluster, "finalizing", 90).await;
    // Who reports the end speaks for the cluster.
    world.lost.push((Some(finalizes.machine), "/clusters/"));
    for one in [installed, reset, returns, reclaiming, rebooting] {
        world.until_cluster(one.cluster, "installed", 120).await;
    }
    world.until_cluster(prod, "installed", 120).await;
    world.delete_cluster(reset.cluster).await;
    crate::installation::boot_home(&mut world, &[reset.machine]).await;
    let reset = single(&mut world, reset.machine, "reset").await;
    install_all(&mut world, &[reset.cluster]).await;
    world.until_cluster(reset.cluster, "finalizing", 90).await;
    world.reset(reset.cluster).await;
    assert_eq!(world.unbind(returns.machine).await, 200);

    // A running cluster takes on a host, and one that was imported waits for some.
    assert_eq!(world.act(prod, "allow-add-hosts").await.0, 202);
    assert_eq!(world.bind_to(three + 3, prod).await.0, 200);
    world.until_host(three + 3, "known", 15).await;
    assert_eq!(world.host_act(three + 3, "install").await.0, 202);
    world.until_host(three + 3, "added-to-existing-cluster", 60).await;
    let theirs = json!({ "name": "theirs", "api_vip_dnsname": "api.theirs.example.com",
        "openshift_cluster_id": Uuid::from_u128(77), "openshift_version": "4.20" });
    post(&mut world, &format!("{V2}/clusters/import"), theirs).await;

    // In discovery: of an image that binds, bound and known, silent, too small, deleted.
    let own = world.new_cluster("owner").await;
    let pool = world.pool("own", Some(own)).await;
    let early = boot(&mut world, pool, 1, &[]);
    let draft = world.new_cluster("draft").await;
    assert_eq!(world.bind_to(free, draft).await.0, 200);
    // One alone has nobody to try its network with.
    world.until_host(early, "insufficient", 15).await;
    world.until_host(free, "insufficient", 15).await;
    let gone = world.host_path(free + 1);
    world.power_off(free + 1);
    assert_eq!(world.call("DELETE", &gone, None).await.0, 204);
    world.power_off(free + 2);
    world.run_for(SignedDuration::from_mins(5)).await;
    assert_eq!(world.host_status(too_small), "insufficient-unbound");

    // What has an hour.
    let wrong_boot = single(&mut world, wrong_boot, "wrong-boot").await;
    install_all(&mut world, &[wrong_boot.cluster]).await;
    world
        .until_host(wrong_boot.machine, "installing-pending-user-action", 90)
        .await;

    // What has minutes.
    let writes = single(&mut world, writes, "writes").await;
    let resets = single(&mut world, resets, "resets").await;
    install_all(&mut world, &[writes.cluster, resets.cluster]).await;
    for one in [writes, resets] {
        world.until_stage(one.machine, WRITING, 60).await;
        hold(&mut world, one.machine, "/progress");
    }
    let starts = single(&mut world, free + 5, "starts").await;
    world.until_cluster(starts.cluster, "ready", 30).await;
    assert_eq!(world.bind_to(moves, draft).await.0, 200);
    let ordered = single(&mut world, ordered, "ordered").await;
    let mut crowds = Vec::new();
    for (name, first) in [("prepares", prepares), ("unfit", unfit)] {
        let cluster = world.new_cluster(name).await;
        for machine in first..first + 3 {
            assert_eq!(world.bind_to(machine, cluster).await.0, 200);
        }
        crowds.push(cluster);
    }
    world.until_cluster(ordered.cluster, "ready", 30).await;
    for cluster in &crowds {
        world.until_cluster(*cluster, "ready", 30).await;
    }
    world.power_off(moves);
    world.run_for(SignedDuration::from_mins(5)).await;
    hold(&mut world, ordered.machine, "/progress");
    for cluster in [ordered.cluster, crowds[0]] {
        world.install(cluster).await;
    }
    world.until_host(ordered.machine, "installing", 15).await;
    world
        .until_hosts(&[prepares + 1, prepares + 2], "preparing-successful", 12)
        .await;
    assert_eq!(world.reclaim(reclaiming.machine).await.0, 202);
    assert_eq!(world.reclaim(rebooting.machine).await.0, 202);
    world.start_reclaim(rebooting.machine);
    world
        .until_host(rebooting.machine, "reclaiming-rebooting", 10)
        .await;
    world.power_off(rebooting.machine);
    world.install(crowds[1]).await;
    // The next reconcile of the cluster would take that away.
    for _ in 0..200 {
        world.machines_act().await;
        if world.host_status(unfit + 1) == "preparing-failed" {
            break;
        }
        world.settle().await;
        world.clock.advance(SignedDuration::from_secs(2));
    }

    // What has this moment: from here on no worker of the hub does anything.
    let next = world.single_node_wish("next");
    let next = world.create_cluster(next).await;
    let move_to = format!("{}/move", world.host_path(moves).replace(V2, V1));
    post(&mut world, &move_to, json!({ "cluster_id": next })).await;
    world.power_on(moves);
    for _ in 0..600 {
        if world.host_status(moves) == "known-unbound" {
            break;
        }
        world.clock.advance(SignedDuration::from_secs(1));
        world.machines_act().await;
    }
    world.install(starts.cluster).await;
    world.power_off(free + 3);
    assert_eq!(world.bind_to(free + 3, draft).await.0, 200);
    world.power_off(resets.machine);
    world.reset(resets.cluster).await;
    world.power_off(free);
    assert_eq!(world.unbind(free).await, 200);
    world
}

/// What is in the database.
async fn stored(world: &World) -> Expected {
    let store = &world.store;
    let soon = world.clock.now() + SignedDuration::from_hours(1);
    let mut expected = Expected {
        release: env!("CARGO_PKG_VERSION").into(),
        now: world.clock.now(),
        orders: store.outbox_due(soon, 1000).await.expect("readable").len(),
        tombstones: store.tombstones_load().await.expect("readable").len(),
        events: store.counts().await.expect("readable").events,
        ..Expected::default()
    };
    for host in store.load::<Host>(None, 1000).await.expect("readable") {
        expected.hosts.push(super::stored_host(store, &host).await);
    }
    for cluster in store.list::<Cluster>().await.expect("readable") {
        expected
            .clusters
            .push(super::stored_cluster(store, &cluster).await);
    }
    expected
}

/// What a hub that starts on it shows.
async fn shown(world: &mut World, expected: &mut Expected) {
    world.crash().await;
    let (_, clusters) = world.call("GET", &format!("{V2}/clusters"), None).await;
    for cluster in clusters.as_array().expect("a list") {
        let seen = super::shown_cluster(cluster);
        expected.shown_clusters.insert(crate::world::id(cluster), seen);
    }
    let (_, pools) = world.call("GET", &format!("{V2}/infra-envs"), None).await;
    for pool in pools.as_array().expect("a list") {
        let id = crate::world::id(pool);
        expected.infra_envs.insert(id, super::shown_infra_env(pool));
        let (_, hosts) = world
            .call("GET", &format!("{V2}/infra-envs/{id}/hosts"), None)
            .await;
        for host in hosts.as_array().expect("a list") {
            let name = format!("{id}/{}", crate::world::id(host));
            expected.shown_hosts.insert(name, super::shown_host(host));
        }
    }
}

fn gzipped(bytes: &[u8], to: &Path) {
    let mut encoder = GzEncoder::new(std::fs::File::create(to).expect("a file"), Compression::best());
    encoder.write_all(bytes).expect("room on the disk");
    encoder.finish().expect("room on the disk");
}

async fn copy_sqlite(file: &str, to: &Path) {
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().join("copy.db");
    let mut connection = sqlx::SqliteConnection::connect(&format!("sqlite://{file}"))
        .await
        .expect("the file");
    sqlx::query(AssertSqlSafe(format!("vacuum into '{}'", copy.display())))
        .execute(&mut connection)
        .await
        .expect("a copy");
    gzipped(&std::fs::read(copy).expect("the copy"), to);
}

/// Statements that any client can send.
fn copy_postgres(url: &str, to: &Path) {
    let words = [
        "--inserts",
        "--rows-per-insert=50",
        "--no-owner",
        "--no-privileges",
    ];
    let dump = Command::new("pg_dump")
        .args(words)
        .arg(url)
        .output()
        .expect("pg_dump");
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let text = String::from_utf8(dump.stdout).expect("text");
    // Words to psql itself, and settings that only its own release knows.
    let foreign = ["\\restrict", "\\unrestrict", "SET transaction_timeout"];
    let lines = text
        .lines()
        .filter(|line| !foreign.iter().any(|word| line.starts_with(word)));
    let statements: String = lines.flat_map(|line| [line, "\n"]).collect();
    gzipped(statements.as_bytes(), to);
}

#[tokio::test]
#[ignore = "writes what later releases are tested with; see the head of this file"]
async fn write_this_release() {
    let to = PathBuf::from(std::env::var("MUSTER_FIXTURE").expect("MUSTER_FIXTURE names a directory"));
    std::fs::create_dir_all(&to).expect("a directory");
    let place = Place::on_disk().await;
    let database = place.address_of_database();
    let mut world = lived_in(place).await;
    let mut expected = stored(&world).await;
    assert_eq!(
        missing_phases(&expected),
        Vec::<String>::new(),
        "{}",
        world.describe()
    );
    let name = if is_postgres() {
        copy_postgres(&database, &to.join("postgres.sql.gz"));
        "postgres.json"
    } else {
        copy_sqlite(&database, &to.join("sqlite.db.gz")).await;
        "sqlite.json"
    };
    shown(&mut world, &mut expected).await;
    let text = serde_json::to_string_pretty(&expected).expect("plain data");
    std::fs::write(to.join(name), text + "\n").expect("room on the disk");
}
