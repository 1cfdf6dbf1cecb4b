//! Zero residue: after a return nothing that came from the old tenant is on the host, in its files or in its news.

use super::{THREE, boot_home};
use crate::world::{V1, V2, World};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_domain::host::Phase;
use serde_json::{Value, json};
use std::io::Read;
use uuid::Uuid;

/// Every secret or private thing of the tenant holds this word.
const CANARY: &str = "canary";
/// The pool's own secret: it may be in the pool's files and nowhere else.
const POOL_SECRET: &str = r#"{"auths":{"registry.example.com":{"auth":"bWFnbm9saWE6bWFnbm9saWE="}}}"#;
const POOL_WORD: &str = "magnolia";
const TENANT_SECRET: &str = r#"{"auths":{"canary-registry.example.com":{"auth":"Y2FuYXJ5OmNhbmFyeQ=="}}}"#;
const SSH_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f canary@example.com";
/// Not words, but the tenant's all the same: addresses, and what the installer made.
const OTHERS: [&str; 4] = ["10.64.0.177", "10.64.0.178", "correct-horse", "6c3b2b4e-8a8c"];

/// Whether the word is somewhere in it, also in files inside of files.
pub fn holds(bytes: &[u8], word: &str) -> bool {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let mut inner = unpacked(bytes).into_iter().chain(wrapped(bytes));
    text.contains(word) || inner.any(|inner| holds(&inner, word))
}

/// What a compressed archive holds.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    bytes.starts_with(&[0x1f, 0x8b]).then(|| {
        flate2::read::GzDecoder::new(bytes)
            .read_to_end(&mut content)
            .expect("a whole archive");
        content
    })
}

/// What long runs of base64 in it stand for.
fn wrapped(bytes: &[u8]) -> Vec<Vec<u8>> {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let runs = bytes.split(|byte| !letter(byte)).filter(|run| run.len() >= 8);
    let decode = |run: &[u8]| {
        let whole = run.len() / 4 * 4;
        STANDARD.decode(&run[..whole]).ok()
    };
    runs.filter_map(decode).collect()
}

#[track_caller]
fn clean_but(what: &str, bytes: &[u8], others: &[&str]) {
    let found = holds(bytes, CANARY) || others.iter().any(|other| holds(bytes, other));
    let text = String::from_utf8_lossy(bytes);
    assert!(!found, "{what} still holds something of the tenant's: {text}");
}

#[track_caller]
fn clean(what: &str, bytes: &[u8]) {
    clean_but(what, bytes, &OTHERS);
}

/// A pool whose files all have something in them, and free machines that boot its image.
async fn pool(world: &mut World, machines: &[usize]) {
    let network = json!([{ "network_yaml": "interfaces:\n- name: eth0\n  description: magnolia\n",
        "mac_interface_map": [{ "mac_address": "02:00:00:00:00:99", "logical_nic_name": "eth0" }] }]);
    let wish = json!({ "name": "pool", "pull_secret": POOL_SECRET, "static_network_config": network });
    let (status, body) = world.call("POST", &format!("{V2}/infra-envs"), Some(wish)).await;
    assert_eq!(status, 201, "{body}");
    world.infra_env = crate::world::id(&body);
    let count = u32::try_from(machines.len()).expect("a few");
    world.boot(world.infra_env, count, &["reclaim-failure:#2"]);
    world.until_hosts(machines, "known-unbound", 10).await;
}

/// Where the cluster's nodes get their configuration.
fn endpoint() -> Value {
    let ca = "-----BEGIN CERTIFICATE-----\ncanary\n-----END CERTIFICATE-----\n";
    json!({ "url": "https://canary-endpoint.example.com:22623/config", "ca_certificate": STANDARD.encode(ca) })
}

/// A cluster in which every field that a tenant can fill is filled.
async fn tenant(world: &mut World) -> Uuid {
    tenant_with(
        world,
        json!({ "additional_ntp_source": "canary-clock.example.com" }),
    )
    .await
}

/// Settings of a cluster whose ignition is not made here: what only that could carry out is refused.
fn elsewhere() -> Value {
    json!({ "ntp_sources": "canary-clock.example.com", "olm_operators": [],
        "disk_encryption": { "enable_on": "none", "mode": "tang",
            "tang_servers": r#"[{"url":"http://canary-tang.example.com","thumbprint":"canary-print"}]"# } })
}

/// The same with settings of which a cluster can have only one or the other.
async fn tenant_with(world: &mut World, either: Value) -> Uuid {
    let mut wish = json!({ "name": "canary-cluster", "openshift_version": "4.20", "pull_secret": TENANT_SECRET,
        "base_dns_domain": "canary-domain.example.com", "ssh_public_key": SSH_KEY,
        "api_vips": [{ "ip": OTHERS[0] }], "ingress_vips": [{ "ip": OTHERS[1] }],
        "http_proxy": "http://canary:canary@canary-proxy.example.com:3128",
        "https_proxy": "http://canary:canary@canary-proxy.example.com:3128",
        "no_proxy": "canary-direct.example.com", "tags": "canary_tag",
        "disk_encryption": { "enable_on": "all", "mode": "tang",
            "tang_servers": r#"[{"url":"http://canary-tang.example.com","thumbprint":"canary-print"}]"# },
        "olm_operators": [{ "name": "lso", "properties": "{\"canary\":\"canary-property\"}" }] });
    for (key, value) in either.as_object().expect("settings") {
        wish[key] = value.clone();
    }
    let cluster = world.create_cluster(wish).await;
    let path = format!("{V2}/clusters/{cluster}/install-config");
    let overrides = json!({ "imageDigestSources": [{ "source": "quay.io/x", "mirrors": ["canary-mirror.example.com/x"] }] });
    let (status, body) = world
        .call("PATCH", &path, Some(json!(overrides.to_string())))
        .await;
    assert_eq!(status, 201, "{body}");
    let manifest = json!({ "folder": "manifests", "file_name": "canary.yaml",
        "content": STANDARD.encode("kind: ConfigMap\nmetadata:\n  name: canary-map\n") });
    let path = format!("{V2}/clusters/{cluster}/manifests");
    let (status, body) = world.call("POST", &path, Some(manifest)).await;
    assert_eq!(status, 201, "{body}");
    for machine in THREE {
        assert_eq!(world.bind_to(machine, cluster).await.0, 200);
    }
    world.until_cluster(cluster, "ready", 15).await;
    for machine in THREE {
        plant(world, machine).await;
    }
    world.until_cluster(cluster, "ready", 15).await;
    cluster
}

async fn plant(world: &mut World, machine: usize) {
    plant_as(world, machine, "master").await;
}

async fn plant_as(world: &mut World, machine: usize, role: &str) {
    let host = world.host(machine).await;
    let inventory: Value = serde_json::from_str(host["inventory"].as_str().expect("text")).expect("JSON");
    let disks = inventory["disks"].as_array().expect("a list");
    let id = |disk: Option<&Value>| {
        disk.and_then(|disk| disk["id"].as_str())
            .expect("a disk")
            .to_owned()
    };
    let (disk, other) = (id(disks.first()), id(disks.last()));
    assert_ne!(disk, other, "one to install to and one to keep");
    let change = json!({ "host_name": format!("canary-host-{machine}"), "host_role": role,
        "ignition_endpoint_token": "canary-token",
        "ignition_endpoint_http_headers": [{ "key": "X-Canary", "value": "canary-header" }],
        "node_labels": [{ "key": "canary", "value": "canary-label" }],
        "machine_config_pool_name": "canary-pool",
        "disks_selected_config": [{ "id": disk, "role": "install" }],
        "disks_skip_formatting": [{ "disk_id": other, "skip_formatting": true }],
        "fencing_credentials": { "address": "redfish+https://canary-bmc.example.com/1", "username": "canary", "password": "canary" } });
    world.change_host(machine, change).await;
    let path = world.host_path(machine);
    let args = json!({ "args": ["--append-karg", "canary=1"] });
    let (status, body) = world
        .call("PATCH", &format!("{path}/installer-args"), Some(args))
        .await;
    assert!(status < 300, "{status} {body}");
    let config = r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/canary","contents":{"source":"data:,canary"}}]}}"#;
    let (status, body) = world
        .call(
            "PATCH",
            &format!("{path}/ignition"),
            Some(json!({ "config": config })),
        )
        .await;
    assert!(status < 300, "{status} {body}");
}

/// What is stored about the host, whole.
async fn stored(world: &World, machine: usize) -> Vec<u8> {
    let row = world
        .store
        .find(world.key(machine))
        .await
        .expect("readable")
        .expect("kept");
    let reports = world
        .store
        .host_reports(world.key(machine))
        .await
        .expect("readable");
    format!("{} {reports:?}", serde_json::to_string(&row).expect("plain data")).into_bytes()
}

/// Everything anybody can read about the host, and everything its pool serves.
async fn views(world: &mut World, machine: usize) -> Vec<(String, Vec<u8>)> {
    let (pool, host) = (world.infra_env, world.host_path(machine));
    let own = host.replace(V2, V1);
    let paths = [
        host.clone(),
        format!("{V2}/infra-envs/{pool}"),
        format!("{V1}/hosts?free=true"),
        format!("{own}/explain"),
        format!("{own}/verdicts"),
        format!("{V1}/infra-envs/{pool}/explain"),
        format!("{V2}/infra-envs/{pool}/downloads/files?file_name=discovery.ign"),
        format!("{V2}/infra-envs/{pool}/downloads/files?file_name=ipxe-script"),
        format!("{V2}/infra-envs/{pool}/downloads/files?file_name=static-network-config"),
        format!("{V2}/infra-envs/{pool}/downloads/minimal-initrd"),
    ];
    let mut all = Vec::new();
    for path in paths {
        let (status, body) = world.fetch("GET", &path, None).await;
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        all.push((path, body));
    }
    let id = world.machines[machine].id().to_string();
    let path = format!("{V2}/infra-envs/{pool}/hosts");
    let (_, hosts) = world.call("GET", &path, None).await;
    let listed = hosts
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["id"] == id.as_str());
    all.push((path, listed.expect("listed").to_string().into_bytes()));
    all
}

/// The return was a moment ago: nothing is left, wherever one looks.
async fn nothing_is_left(world: &mut World, machines: &[usize]) {
    for machine in machines {
        clean("its row", &stored(world, *machine).await);
        let row = world.hub.index.host(world.key(*machine)).expect("registered");
        // Disks are the machine's own; that one of them must be kept was the tenant's wish.
        assert!(row.tenant.skip_formatting.is_empty() && !row.tenant.disk_chosen);
        for (path, body) in views(world, *machine).await {
            clean(&path, &body);
        }
        let events = world.events_of_host(*machine).await;
        let returned = events
            .iter()
            .rposition(|event| event["name"] == "host_returned")
            .expect("a receipt");
        for event in &events[returned..] {
            clean("its news", event.to_string().as_bytes());
        }
    }
    let heard = world.heard.take().unwrap_or_default();
    for one in heard.iter().filter(|one| machines.contains(&one.machine)) {
        assert!(one.status < 500, "{one:?}");
        clean(&format!("{} {}", one.method, one.path), &one.body);
    }
}

/// Another tenant gets the same machines: what they are served is theirs alone.
async fn the_next_tenant_finds_nothing(world: &mut World, machines: &[usize]) {
    world.heard = Some(Vec::new());
    world.installed_cluster("next", machines).await;
    let heard = world.heard.take().unwrap_or_default();
    assert!(
        heard.iter().any(|one| one.path.ends_with("/downloads/ignition")),
        "ignition was served"
    );
    // The same program makes the same password for everybody here; the addresses are the old tenant's own.
    for one in &heard {
        clean_but(&format!("{} {}", one.method, one.path), &one.body, &OTHERS[..2]);
    }
    for machine in machines {
        clean_but("its row", &stored(world, *machine).await, &OTHERS[..2]);
    }
}

/// What the cluster's own files hold.
async fn cluster_files(world: &World, cluster: Uuid) -> Vec<(String, Vec<u8>)> {
    let id = muster_domain::ClusterId(cluster);
    let mut all = Vec::new();
    for file in world.store.file_list(id, "").await.expect("readable") {
        let content = world.store.file_read(id, &file.path).await.expect("readable");
        all.push((file.path, content.expect("there")));
    }
    all
}

#[tokio::test]
async fn the_canaries_are_really_there_before() {
    let mut world = World::empty(400).await;
    pool(&mut world, &THREE).await;
    let cluster = tenant(&mut world).await;
    world.heard = Some(Vec::new());
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    let row = stored(&world, 0).await;
    for word in ["canary-tang", "canary-clock", "canary-header", "canary-bmc"] {
        assert!(holds(&row, word), "{word}");
    }
    let row = world.hub.index.host(world.key(0)).expect("registered");
    assert!(!row.tenant.skip_formatting.is_empty());
    let (_, initrd) = views(&mut world, 0)
        .await
        .into_iter()
        .find(|(path, _)| path.ends_with("initrd"))
        .expect("one");
    assert!(holds(&initrd, POOL_WORD), "an archive is looked into");
    let heard = world.heard.take().expect("somebody listened");
    let ignition = heard.iter().find(|one| one.path.ends_with("/downloads/ignition"));
    assert!(holds(&ignition.expect("served").body, CANARY));
    let install = heard.iter().find(|one| holds(&one.body, "canary=1"));
    assert!(install.is_some(), "the install step has its arguments");
    assert!(
        cluster_files(&world, cluster)
            .await
            .iter()
            .any(|(_, body)| holds(body, CANARY))
    );
}

#[tokio::test]
async fn the_two_pull_secrets_never_meet() {
    let mut world = World::empty(401).await;
    pool(&mut world, &THREE).await;
    let cluster = tenant(&mut world).await;
    world.heard = Some(Vec::new());
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    let files = cluster_files(&world, cluster).await;
    assert!(
        files.iter().any(|(path, _)| path.starts_with("generated/")),
        "files were made"
    );
    for (path, body) in files {
        assert!(!holds(&body, POOL_WORD), "the pool's secret is in {path}");
    }
    for one in world.heard.take().expect("somebody listened") {
        assert!(
            !holds(&one.body, POOL_WORD),
            "the pool's secret is in {}",
            one.path
        );
    }
    let path = format!(
        "{V2}/infra-envs/{}/downloads/files?file_name=discovery.ign",
        world.infra_env
    );
    let (_, discovery) = world.fetch("GET", &path, None).await;
    assert!(holds(&discovery, POOL_WORD));
    assert!(
        !holds(&discovery, CANARY),
        "{}",
        String::from_utf8_lossy(&discovery)
    );
}

#[tokio::test]
async fn nothing_is_left_after_the_cluster_was_deleted() {
    let mut world = World::empty(402).await;
    pool(&mut world, &THREE).await;
    let cluster = tenant(&mut world).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    world.delete_cluster(cluster).await;
    world.settle().await;
    assert_eq!(cluster_files(&world, cluster).await, Vec::new());
    for machine in THREE {
        clean("its row, at once", &stored(&world, machine).await);
    }
    world.heard = Some(Vec::new());
    boot_home(&mut world, &THREE).await;
    nothing_is_left(&mut world, &THREE).await;
    the_next_tenant_finds_nothing(&mut world, &THREE).await;
}

#[tokio::test]
async fn nothing_is_left_after_an_installed_host_was_unbound_or_reclaimed() {
    let mut world = World::empty(403).await;
    pool(&mut world, &THREE).await;
    let cluster = tenant(&mut world).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    // Its controller has said its last word.
    world.run_for(jiff::SignedDuration::from_mins(10)).await;
    world.heard = Some(Vec::new());
    assert_eq!(world.unbind(0).await, 200);
    // The first by itself, the second tries and fails.
    for machine in [1, 2] {
        assert_eq!(world.reclaim(machine).await.0, 202);
        clean("its row, at once", &stored(&world, machine).await);
        world.start_reclaim(machine);
    }
    world.until_host(1, "known-unbound", 30).await;
    world.until_host(2, "unbinding-pending-user-action", 30).await;
    boot_home(&mut world, &[0, 2]).await;
    nothing_is_left(&mut world, &THREE).await;
    the_next_tenant_finds_nothing(&mut world, &THREE).await;
}

#[tokio::test]
async fn nothing_is_left_after_an_installation_was_cancelled_or_never_began() {
    let mut world = World::empty(404).await;
    pool(&mut world, &THREE).await;
    let cluster = tenant(&mut world).await;
    assert_eq!(world.unbind(0).await, 200);
    world.until_host(0, "known-unbound", 10).await;
    nothing_is_left(&mut world, &[0]).await;

    assert_eq!(world.bind_to(0, cluster).await.0, 200);
    world.until_host(0, "known", 15).await;
    plant(&mut world, 0).await;
    world.until_cluster(cluster, "ready", 15).await;
    world.install(cluster).await;
    world.until_stage(1, "Writing image to disk", 60).await;
    world.cancel(cluster).await;
    // Logs of the cancelled installation arrive, and are the cluster's.
    world.run_for(jiff::SignedDuration::from_mins(5)).await;
    for machine in THREE {
        assert_eq!(world.unbind(machine).await, 200);
    }
    super::moments::boot_those_who_wait(&mut world);
    world.until_hosts(&THREE, "known-unbound", 20).await;
    nothing_is_left(&mut world, &THREE).await;
    world.delete_cluster(cluster).await;
    the_next_tenant_finds_nothing(&mut world, &THREE).await;
}

#[tokio::test]
async fn nothing_is_left_of_ignition_that_was_brought() {
    let mut world = World::empty(405).await;
    pool(&mut world, &THREE).await;
    let cluster = tenant_with(&mut world, elsewhere()).await;
    let config = json!({ "ignition": { "version": "3.4.0" },
        "storage": { "files": [{ "path": "/etc/canary", "contents": { "source": "data:,canary" } }] } });
    world.upload_ignition(cluster, "master", config).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    world.delete_cluster(cluster).await;
    world.settle().await;
    assert_eq!(cluster_files(&world, cluster).await, Vec::new());
    world.heard = Some(Vec::new());
    boot_home(&mut world, &THREE).await;
    nothing_is_left(&mut world, &THREE).await;
    the_next_tenant_finds_nothing(&mut world, &THREE).await;
}

#[tokio::test]
async fn nothing_is_left_of_an_ignition_endpoint() {
    // On a hub that makes no files of its own.
    let mut world = World::with(407, |settings| settings.installer.program = None).await;
    pool(&mut world, &THREE).await;
    let mut either = elsewhere();
    either["ignition_endpoint"] = endpoint();
    let cluster = tenant_with(&mut world, either).await;
    world.heard = Some(Vec::new());
    world.install(cluster).await;
    world.until_stage(1, "Writing image to disk", 60).await;
    let heard = world.heard.take().expect("somebody listened");
    assert!(
        heard.iter().any(|one| holds(&one.body, "canary-endpoint")),
        "it was served"
    );
    world.cancel(cluster).await;
    // Installers are stopped, and logs of the cancelled installation arrive.
    world.run_for(jiff::SignedDuration::from_mins(5)).await;
    world.delete_cluster(cluster).await;
    world.settle().await;
    world.heard = Some(Vec::new());
    super::moments::boot_those_who_wait(&mut world);
    world.until_hosts(&THREE, "known-unbound", 20).await;
    nothing_is_left(&mut world, &THREE).await;
}

/// A host that joins a running cluster reports where it got its ignition from, and the ignition itself.
#[tokio::test]
async fn nothing_is_left_of_a_cluster_that_ran_already() {
    let four = [0, 1, 2, 3];
    let mut world = World::empty(406).await;
    pool(&mut world, &four).await;
    let cluster = tenant(&mut world).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
    let path = format!("{V2}/clusters/{cluster}");
    let (status, body) = world
        .call("PATCH", &path, Some(json!({ "ignition_endpoint": endpoint() })))
        .await;
    assert_eq!(status, 201, "{body}");

    for returned in ["before it was installed", "after it joined"] {
        assert_eq!(world.bind_to(3, cluster).await.0, 200);
        world.until_host(3, "known", 15).await;
        plant_as(&mut world, 3, "worker").await;
        world.until_host(3, "known", 15).await;
        let report = world.host(3).await["api_vip_connectivity"].clone();
        let report: Value = serde_json::from_str(report.as_str().expect("reported")).expect("JSON");
        for field in ["url", "ignition"] {
            assert!(
                holds(report[field].to_string().as_bytes(), CANARY),
                "{field}: {report}"
            );
        }
        world.heard = Some(Vec::new());
        if returned == "after it joined" {
            assert_eq!(world.host_act(3, "install").await.0, 202);
            world.until_host(3, "added-to-existing-cluster", 60).await;
            world.heard = Some(Vec::new());
        }
        assert_eq!(world.unbind(3).await, 200);
        clean("its row, at once", &stored(&world, 3).await);
        if returned == "after it joined" {
            boot_home(&mut world, &[3]).await;
        }
        world.until_host(3, "known-unbound", 10).await;
        println!("{returned}");
        nothing_is_left(&mut world, &[3]).await;
    }
}

/// Every way to write on a host, and what it was answered.
async fn write_on(world: &mut World, machine: usize) -> Vec<(String, u16)> {
    let path = world.host_path(machine);
    let own = path.replace(V2, V1);
    let disk = world.host(machine).await["installation_disk_id"].clone();
    let is_free = super::is_free(&world.host(machine).await);
    let mut change = json!({ "host_role": "worker", "ignition_endpoint_token": "canary-other-token",
        "ignition_endpoint_http_headers": [{ "key": "X-Canary", "value": "canary-header" }],
        "node_labels": [{ "key": "canary", "value": "canary-label" }], "machine_config_pool_name": "canary-pool" });
    if !is_free {
        // A free host's name is the pool's.
        change["host_name"] = json!(format!("canary-host-{machine}"));
    }
    let config =
        json!({ "config": r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/canary"}]}}"# });
    let mut ways = vec![
        (path.clone(), change),
        (
            format!("{path}/installer-args"),
            json!({ "args": ["--append-karg", "canary=2"] }),
        ),
        (format!("{path}/ignition"), config),
        (
            own,
            json!({ "clear": ["fencing", "machine-config-pool", "hostname"] }),
        ),
    ];
    if disk.as_str().is_some_and(|disk| !disk.is_empty()) {
        ways.push((
            path,
            json!({ "disks_selected_config": [{ "id": disk, "role": "install" }] }),
        ));
    }
    let mut answers = Vec::new();
    for (way, body) in ways {
        let (status, body) = world.call("PATCH", &way, Some(body)).await;
        assert!(status < 300 || status == 409, "{way}: {status} {body}");
        answers.push((way, status));
    }
    answers
}

/// The phases in which somebody tried to write on a host.
type Tried = Vec<Phase>;

/// The first only data of older releases has, and the second ends in the moment in which it begins.
const PASSED_BY: [Phase; 2] = [Phase::Resetting, Phase::PrepareFailed];

fn is_in(world: &World, machine: usize, state: &str, tried: &mut Tried) {
    assert_eq!(world.host_status(machine), state);
    let host = world.hub.index.host(world.key(machine)).expect("registered");
    tried.push(host.phase);
}

/// Nobody gets anything onto a host in this state.
async fn keeps_shut(world: &mut World, machine: usize, state: &str, tried: &mut Tried) {
    is_in(world, machine, state, tried);
    let before = stored(world, machine).await;
    let answers = write_on(world, machine).await;
    // Whoever takes away what is not there, or chooses what is chosen, changes nothing.
    assert!(
        answers[..3].iter().all(|(_, status)| *status == 409),
        "{state}: {answers:?}"
    );
    assert_eq!(stored(world, machine).await, before, "{state}");
}

/// Whoever gets it next may write on it, and all of that goes when it comes back.
async fn takes_settings(world: &mut World, machine: usize, state: &str, tried: &mut Tried) {
    is_in(world, machine, state, tried);
    let answers = write_on(world, machine).await;
    assert!(
        answers[..3].iter().all(|(_, status)| *status < 300),
        "{state}: {answers:?}"
    );
    assert!(holds(&stored(world, machine).await, CANARY), "{state}");
}

#[tokio::test]
async fn nothing_is_left_of_what_was_written_in_any_state_of_a_host_by_any_way() {
    let mut tried = Tried::new();
    lent_and_returned(&mut tried).await;
    stopped_and_failed(&mut tried).await;
    for phase in Phase::ALL {
        assert_ne!(
            tried.contains(&phase),
            PASSED_BY.contains(&phase),
            "{phase:?} was tried: {tried:?}"
        );
    }
}

async fn lent_and_returned(tried: &mut Tried) {
    let four = [0, 1, 2, 3];
    let mut world = World::empty(408).await;
    pool(&mut world, &four).await;
    let cluster = tenant(&mut world).await;
    keeps_what_is_right(&mut world, cluster, tried).await;

    // Installed, and taken back by each way.
    world.install(cluster).await;
    world.until_host(1, "preparing-for-installation", 10).await;
    keeps_shut(&mut world, 1, "preparing-for-installation", tried).await;
    world.until_stage(1, "Writing image to disk", 60).await;
    keeps_shut(&mut world, 1, "installing-in-progress", tried).await;
    world.until_cluster(cluster, "installed", 120).await;
    world.run_for(jiff::SignedDuration::from_mins(10)).await;
    keeps_shut(&mut world, 1, "installed", tried).await;

    assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
    assert_eq!(world.bind_to(3, cluster).await.0, 200);
    world.until_host(3, "known", 15).await;
    plant_as(&mut world, 3, "worker").await;
    world.until_host(3, "known", 15).await;
    assert_eq!(world.host_act(3, "install").await.0, 202);
    world.until_host(3, "added-to-existing-cluster", 60).await;
    keeps_shut(&mut world, 3, "added-to-existing-cluster", tried).await;

    for machine in [0, 3] {
        assert_eq!(world.unbind(machine).await, 200);
        keeps_shut(&mut world, machine, "unbinding-pending-user-action", tried).await;
    }
    for machine in [1, 2] {
        assert_eq!(world.reclaim(machine).await.0, 202);
        keeps_shut(&mut world, machine, "reclaiming", tried).await;
        world.start_reclaim(machine);
    }
    world.until_host(1, "reclaiming-rebooting", 30).await;
    keeps_shut(&mut world, 1, "reclaiming-rebooting", tried).await;
    world.until_host(1, "known-unbound", 30).await;
    boot_home(&mut world, &[0, 2, 3]).await;
    nothing_is_left(&mut world, &four).await;
    the_next_tenant_finds_nothing(&mut world, &THREE).await;
}

/// Installations that end before they are done.
async fn stopped_and_failed(tried: &mut Tried) {
    let mut world = World::empty(409).await;
    pool(&mut world, &THREE).await;
    let cluster = tenant(&mut world).await;
    // One that is still tested keeps the others waiting.
    world.lost.push((Some(2), "instructions"));
    world.install(cluster).await;
    world.until_host(0, "preparing-successful", 10).await;
    keeps_shut(&mut world, 0, "preparing-successful", tried).await;
    world.lost = vec![(None, "instructions")];
    world.run_for(jiff::SignedDuration::from_secs(30)).await;
    world.lost.clear();
    world.until_host(0, "installing", 20).await;
    keeps_shut(&mut world, 0, "installing", tried).await;

    world.until_stage(1, "Writing image to disk", 60).await;
    world.cancel(cluster).await;
    keeps_shut(&mut world, 1, "cancelled", tried).await;
    // Logs of the cancelled installation arrive.
    world.run_for(jiff::SignedDuration::from_mins(5)).await;
    world.reset(cluster).await;
    keeps_shut(&mut world, 1, "resetting-pending-user-action", tried).await;
    world.until_cluster(cluster, "ready", 15).await;

    world.install(cluster).await;
    let is_first = |machine: &usize| {
        world
            .hub
            .index
            .host(world.key(*machine))
            .expect("registered")
            .bootstrap
    };
    let (first, others): (Vec<_>, Vec<_>) = THREE.into_iter().partition(is_first);
    world.until_stage(others[0], "Rebooting", 60).await;
    world.boot_discovery(others[0]);
    world
        .until_host(others[0], "installing-pending-user-action", 10)
        .await;
    keeps_shut(&mut world, others[0], "installing-pending-user-action", tried).await;
    world.boot_discovery(first[0]);
    world.until_host(first[0], "error", 10).await;
    keeps_shut(&mut world, first[0], "error", tried).await;

    world.delete_cluster(cluster).await;
    world.settle().await;
    world.heard = Some(Vec::new());
    boot_home(&mut world, &THREE).await;
    nothing_is_left(&mut world, &THREE).await;
    the_next_tenant_finds_nothing(&mut world, &THREE).await;
}

/// What the last borrower's agent may still be on its way with.
async fn late_answer(world: &mut World, machine: usize) {
    let output = json!({ "is_success": true, "url": "https://canary-endpoint.example.com:22623/config",
        "ignition": r#"{"canary":true}"# });
    let reply = json!({ "step_type": "api-vip-connectivity-check", "step_id": "api-vip-connectivity-check-1",
        "exit_code": 0, "output": output.to_string(), "error": "" });
    let path = format!("{}/instructions", world.host_path(machine));
    let (status, body) = world.call("POST", &path, Some(reply)).await;
    assert_eq!(status, 204, "{body}");
    clean("its row", &stored(world, machine).await);
}

/// The first machine goes to and fro without an installation, and gets lost on the way.
async fn keeps_what_is_right(world: &mut World, cluster: Uuid, tried: &mut Tried) {
    assert_eq!(world.unbind(0).await, 200);
    keeps_shut(world, 0, "unbinding", tried).await;
    late_answer(world, 0).await;
    world.power_off(0);
    world.run_for(jiff::SignedDuration::from_mins(4)).await;
    keeps_shut(world, 0, "disconnected-unbound", tried).await;
    late_answer(world, 0).await;
    world.power_on(0);
    world.until_host(0, "known-unbound", 10).await;
    nothing_is_left(world, &[0]).await;
    // Between two loans: the settings of the next one.
    takes_settings(world, 0, "known-unbound", tried).await;
    world.power_off(0);
    world.run_for(jiff::SignedDuration::from_mins(4)).await;
    takes_settings(world, 0, "disconnected-unbound", tried).await;
    world.power_on(0);
    world.until_host(0, "known-unbound", 10).await;
    assert_eq!(world.bind_to(0, cluster).await.0, 200);
    takes_settings(world, 0, "binding", tried).await;
    world.until_host(0, "known", 15).await;
    takes_settings(world, 0, "known", tried).await;
    assert_eq!(world.unbind(0).await, 200);
    clean("its row, at once", &stored(world, 0).await);
    world.until_host(0, "known-unbound", 10).await;
    nothing_is_left(world, &[0]).await;
    assert_eq!(world.bind_to(0, cluster).await.0, 200);
    world.until_host(0, "known", 15).await;
    plant(world, 0).await;
    world.until_cluster(cluster, "ready", 15).await;
}
