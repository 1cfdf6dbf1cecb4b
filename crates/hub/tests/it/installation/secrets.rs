//! Secrets are given to those who need them and to nobody else: every field that takes one gets a word of its own, and
//! everything that can be read is searched for all of them.

use super::THREE;
use super::residue::holds;
use crate::world::{V1, V2, World};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

const POOL_PULL_SECRET: &str = "quokka-pool-pull";
const POOL_PROXY: &str = "quokka-pool-proxy";
const POOL_IGNITION: &str = "quokka-pool-ignition";
const POOL_NETWORK: &str = "quokka-pool-network";
const PULL_SECRET: &str = "quokka-cluster-pull";
const PROXY: &str = "quokka-cluster-proxy";
const CONFIG: &str = "quokka-cluster-config";
const MANIFEST: &str = "quokka-manifest";
const HOST_IGNITION: &str = "quokka-host-ignition";
const TOKEN: &str = "quokka-host-token";
const HEADER: &str = "quokka-host-header";
const BMC: &str = "quokka-bmc";
/// Made by what stands in for `openshift-install`.
const KUBEADMIN: &str = "correct-horse";

const ALL: [&str; 13] = [
    POOL_PULL_SECRET,
    POOL_PROXY,
    POOL_IGNITION,
    POOL_NETWORK,
    PULL_SECRET,
    PROXY,
    CONFIG,
    MANIFEST,
    HOST_IGNITION,
    TOKEN,
    HEADER,
    BMC,
    KUBEADMIN,
];

/// Who may hold what, and why. Operations are named as in the OpenAPI document, with the file that is asked for.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    // What somebody set and reads back to change it: clients and the operator compare, as with the recorded service.
    ("GetInfraEnv", &[POOL_IGNITION, POOL_NETWORK], READ_BACK),
    ("ListInfraEnvs", &[POOL_IGNITION, POOL_NETWORK], READ_BACK),
    ("v2GetCluster", &[CONFIG, HOST_IGNITION], READ_BACK),
    ("v2ListClusters", &[CONFIG], READ_BACK),
    ("v2GetHost", &[HOST_IGNITION], READ_BACK),
    ("v2ListHosts", &[HOST_IGNITION], READ_BACK),
    ("ListClusterHosts", &[HOST_IGNITION], READ_BACK),
    ("findHost", &[HOST_IGNITION], READ_BACK),
    ("v2DownloadClusterManifest word.yaml", &[MANIFEST], READ_BACK),
    // What machines boot with, and reach the hub and registries by.
    (
        "v2DownloadInfraEnvFiles discovery.ign",
        &[POOL_PULL_SECRET, POOL_PROXY, POOL_IGNITION, POOL_NETWORK],
        BOOTED,
    ),
    (
        "v2DownloadInfraEnvFiles static-network-config",
        &[POOL_NETWORK],
        BOOTED,
    ),
    ("DownloadMinimalInitrd", &[POOL_PROXY, POOL_NETWORK], BOOTED),
    // What the installer reads and makes, and nodes are installed with.
    (
        "v2GetClusterInstallConfig",
        &[PULL_SECRET, PROXY, CONFIG],
        INSTALLED,
    ),
    (
        "V2DownloadClusterFiles install-config.yaml",
        &[PULL_SECRET, PROXY, CONFIG],
        INSTALLED,
    ),
    (
        "V2DownloadClusterFiles bootstrap.ign",
        &[PULL_SECRET, PROXY, CONFIG],
        INSTALLED,
    ),
    (
        "V2DownloadClusterFiles master.ign",
        &[PULL_SECRET, PROXY, CONFIG],
        INSTALLED,
    ),
    (
        "V2DownloadClusterFiles worker.ign",
        &[PULL_SECRET, PROXY, CONFIG],
        INSTALLED,
    ),
    (
        "V2DownloadClusterFiles arbiter.ign",
        &[PULL_SECRET, PROXY, CONFIG],
        INSTALLED,
    ),
    (
        "v2DownloadHostIgnition",
        &[PULL_SECRET, PROXY, CONFIG, HOST_IGNITION],
        INSTALLED,
    ),
    (
        "v2GetHostIgnition",
        &[PULL_SECRET, PROXY, CONFIG, HOST_IGNITION],
        INSTALLED,
    ),
    // Who installed a cluster logs in to it.
    ("V2GetCredentials", &[KUBEADMIN], LOGIN),
    (
        "V2DownloadClusterCredentials kubeadmin-password",
        &[KUBEADMIN],
        LOGIN,
    ),
];

const READ_BACK: &str = "it is what somebody set, and reads back to change it";
const BOOTED: &str = "machines boot with it";
const INSTALLED: &str = "nodes are installed with it";
const LOGIN: &str = "this is what it is asked for";

fn pull_secret(word: &str) -> String {
    let auth = STANDARD.encode(format!("user:{word}"));
    json!({ "auths": { "registry.example.com": { "auth": auth } } }).to_string()
}

fn ignition(word: &str) -> String {
    let source = format!("data:,{word}");
    json!({ "ignition": { "version": "3.2.0" },
        "storage": { "files": [{ "path": "/etc/word", "contents": { "source": source } }] } })
    .to_string()
}

fn proxy(word: &str) -> String {
    format!("http://user:{word}@proxy.example.com:3128")
}

async fn made(world: &mut World, method: &str, path: &str, wish: Value) -> Value {
    let (status, body) = world.call(method, path, Some(wish)).await;
    assert!((200..300).contains(&status), "{path}: {status} {body}");
    body
}

/// A pool, its machines, and a cluster that is ready; every field that takes a secret holds one.
async fn planted(world: &mut World) -> Uuid {
    let network = json!([{ "network_yaml": format!("interfaces:\n- name: eth0\n  description: {POOL_NETWORK}\n"),
        "mac_interface_map": [{ "mac_address": "02:00:00:00:00:99", "logical_nic_name": "eth0" }] }]);
    let pool = made(
        world,
        "POST",
        &format!("{V2}/infra-envs"),
        json!({ "name": "pool", "pull_secret": pull_secret(POOL_PULL_SECRET), "static_network_config": network,
            "proxy": { "http_proxy": proxy(POOL_PROXY), "https_proxy": proxy(POOL_PROXY) },
            "ignition_config_override": ignition(POOL_IGNITION) }),
    )
    .await;
    world.infra_env = crate::world::id(&pool);
    world.boot(world.infra_env, 3, &[]);
    world.until_hosts(&THREE, "known-unbound", 10).await;
    let mut wish = world.cluster_wish("blue");
    wish["pull_secret"] = pull_secret(PULL_SECRET).into();
    wish["http_proxy"] = proxy(PROXY).into();
    wish["https_proxy"] = proxy(PROXY).into();
    let cluster = world.create_cluster(wish).await;
    let path = format!("{V2}/clusters/{cluster}");
    let mirror = format!("{CONFIG}.example.com/x");
    let config = json!({ "imageDigestSources": [{ "source": "quay.io/x", "mirrors": [mirror] }] });
    made(
        world,
        "PATCH",
        &format!("{path}/install-config"),
        config.to_string().into(),
    )
    .await;
    let manifest = STANDARD.encode(format!("kind: Secret\ndata: {MANIFEST}\n"));
    let manifest = json!({ "file_name": "word.yaml", "content": manifest });
    made(world, "POST", &format!("{path}/manifests"), manifest).await;
    for machine in THREE {
        assert_eq!(world.bind_to(machine, cluster).await.0, 200);
    }
    world.until_cluster(cluster, "ready", 15).await;
    for machine in THREE {
        world
            .change_host(
                machine,
                json!({ "ignition_endpoint_token": TOKEN,
                    "fencing_credentials": { "address": "redfish://x", "username": "u", "password": BMC },
                    "ignition_endpoint_http_headers": [{ "key": "X-Word", "value": HEADER }] }),
            )
            .await;
        let path = format!("{}/ignition", world.host_path(machine));
        made(
            world,
            "PATCH",
            &path,
            json!({ "config": ignition(HOST_IGNITION) }),
        )
        .await;
    }
    world.until_cluster(cluster, "ready", 15).await;
    cluster
}

/// The label of each GET of the OpenAPI document with its address, for every file and form that can be asked for.
fn questions(document: &Value, world: &World, cluster: Uuid) -> Vec<(String, String)> {
    let host = world.machines[0].id().to_string();
    let ids = [
        ("{infra_env_id}", world.infra_env.to_string()),
        ("{cluster_id}", cluster.to_string()),
        ("{host_id}", host),
        ("{role}", "master".to_owned()),
        ("{operator_name}", "lso".to_owned()),
        ("{id}", "none".to_owned()),
    ];
    let mut all = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let operation = &operations["get"];
        let Some(name) = operation["operationId"].as_str() else {
            continue;
        };
        let path = ids
            .iter()
            .fold(path.clone(), |path, (id, value)| path.replace(id, value));
        assert!(
            !path.contains('{'),
            "{path} has an id that this test does not know"
        );
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let chosen = parameters.filter(|one| one["in"] == "query").find_map(|one| {
            let field = one["name"].as_str()?;
            let words = words(document, &one["schema"]);
            match (field, words.is_empty()) {
                ("file_name", true) => Some((field, vec!["word.yaml".to_owned()])),
                ("image", true) => Some((field, vec!["quay.io/x".to_owned()])),
                ("file_name" | "logs_type", false) => Some((field, words)),
                _ => None,
            }
        });
        match chosen {
            None => all.push((name.to_owned(), path)),
            Some((field, words)) => all.extend(
                words
                    .iter()
                    .map(|word| (format!("{name} {word}"), format!("{path}?{field}={word}"))),
            ),
        }
    }
    for other in ["/metrics", "/health", "/ready"] {
        all.push((other.to_owned(), other.to_owned()));
    }
    all
}

/// The words of an enum.
fn words(document: &Value, schema: &Value) -> Vec<String> {
    let named = schema["$ref"]
        .as_str()
        .and_then(|name| document.pointer(name.trim_start_matches('#')));
    let words = named.unwrap_or(schema)["enum"].as_array().into_iter().flatten();
    words
        .filter_map(|word| word.as_str().filter(|word| !word.is_empty()))
        .map(str::to_owned)
        .collect()
}

async fn everything(world: &mut World, cluster: Uuid) -> Vec<(String, Vec<u8>)> {
    let (status, document) = world.call("GET", "/openapi.json", None).await;
    assert_eq!(status, 200);
    let questions = questions(&document, world, cluster);
    assert!(questions.len() > 60, "{}", questions.len());
    let mut all = Vec::new();
    for (name, path) in questions {
        let (_, body) = world.fetch("GET", &path, None).await;
        all.push((name, body));
    }
    all
}

/// Requests with a secret at a place where something else belongs.
async fn mistakes(world: &mut World, cluster: Uuid) -> Vec<(String, Vec<u8>)> {
    let (pools, clusters) = (format!("{V2}/infra-envs"), format!("{V2}/clusters"));
    let (pool, own) = (
        format!("{pools}/{}", world.infra_env),
        format!("{clusters}/{cluster}"),
    );
    let host = world.host_path(0);
    let fencing = |fields: Value| json!({ "fencing_credentials": fields });
    let requests = [
        (
            "POST",
            pools.clone(),
            json!({ "name": "x", "pull_secret": { "auths": POOL_PULL_SECRET } }),
        ),
        (
            "POST",
            pools.clone(),
            json!({ "name": "x", "pull_secret": POOL_PULL_SECRET }),
        ),
        (
            "POST",
            pools,
            json!({ "name": "x", "pull_secret": pull_secret(POOL_PULL_SECRET), "proxy": proxy(POOL_PROXY) }),
        ),
        (
            "PATCH",
            pool.clone(),
            json!({ "proxy": { "http_proxy": format!("ftp://user:{POOL_PROXY}@x") } }),
        ),
        (
            "PATCH",
            pool.clone(),
            json!({ "proxy": { "http_proxy": format!("http://user:{POOL_PROXY}@x y") } }),
        ),
        (
            "PATCH",
            pool.clone(),
            json!({ "ignition_config_override": format!("not JSON: {POOL_IGNITION}") }),
        ),
        (
            "PATCH",
            pool.clone(),
            json!({ "ignition_config_override": json!({ "ignition": { "version": POOL_IGNITION } }).to_string() }),
        ),
        ("PATCH", pool, json!({ "static_network_config": [POOL_NETWORK] })),
        (
            "POST",
            clusters.clone(),
            json!({ "name": "x", "openshift_version": "4.20", "pull_secret": [PULL_SECRET] }),
        ),
        (
            "POST",
            clusters,
            json!({ "name": "x", "openshift_version": "4.20", "pull_secret": PULL_SECRET }),
        ),
        (
            "PATCH",
            own.clone(),
            json!({ "https_proxy": format!("user:{PROXY}@x") }),
        ),
        (
            "PATCH",
            own.clone(),
            json!({ "https_proxy": { "url": proxy(PROXY) } }),
        ),
        ("PATCH", format!("{own}/install-config"), CONFIG.into()),
        (
            "POST",
            format!("{own}/manifests"),
            json!({ "file_name": "x.yaml", "content": MANIFEST }),
        ),
        (
            "POST",
            format!("{own}/manifests"),
            json!({ "file_name": "x.yaml", "content": STANDARD.encode(format!("a: [{MANIFEST}")) }),
        ),
        (
            "POST",
            format!("{own}/manifests"),
            json!({ "file_name": "x.json", "content": STANDARD.encode(format!("{MANIFEST}: 1")) }),
        ),
        ("PATCH", host.clone(), fencing(json!([BMC]))),
        ("PATCH", host.clone(), fencing(json!(BMC))),
        (
            "PATCH",
            host.clone(),
            fencing(json!({ "address": { "password": BMC } })),
        ),
        (
            "PATCH",
            host.clone(),
            fencing(json!({ "address": "redfish://x", "username": "u", "password": [BMC] })),
        ),
        (
            "PATCH",
            host.clone(),
            fencing(
                json!({ "address": "redfish://x", "username": "u", "password": BMC, "certificate_verification": BMC }),
            ),
        ),
        (
            "PATCH",
            host.clone(),
            json!({ "ignition_endpoint_token": [TOKEN] }),
        ),
        (
            "PATCH",
            host.clone(),
            json!({ "ignition_endpoint_token": format!("{TOKEN}\n") }),
        ),
        (
            "PATCH",
            host.clone(),
            json!({ "ignition_endpoint_http_headers": [HEADER] }),
        ),
        (
            "PATCH",
            host.clone(),
            json!({ "ignition_endpoint_http_headers": [{ "key": "a b", "value": HEADER }] }),
        ),
        (
            "PATCH",
            host.clone(),
            json!({ "ignition_endpoint_http_headers": [{ "key": "a", "value": format!("{HEADER}\r\n") }] }),
        ),
        (
            "PATCH",
            format!("{host}/ignition"),
            json!({ "config": [HOST_IGNITION] }),
        ),
        (
            "PATCH",
            format!("{host}/ignition"),
            json!({ "config": format!("{{{HOST_IGNITION}") }),
        ),
        (
            "PUT",
            format!("{V1}/clusters/{cluster}/ignition/master"),
            json!({ "ignition": CONFIG }),
        ),
        ("POST", format!("{V1}/plan"), json!({ "verb": BMC })),
    ];
    let mut all = Vec::new();
    for (method, path, body) in requests {
        let told = body.to_string();
        let (status, answer) = world.fetch(method, &path, Some(body)).await;
        assert!((400..500).contains(&status), "{method} {path} {told}: {status}");
        all.push((format!("refusal of {method} {told}"), answer));
    }
    all
}

/// Said in the test itself, so that an empty log is none that nobody listened to.
const HEARD: &str = "is anybody there";

/// Everything the hub logs on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Which words are found where they must not be, and which permissions nobody used.
fn judged(seen: &[(String, Vec<u8>)]) -> (Vec<String>, BTreeSet<(&'static str, &'static str)>) {
    let mut leaks = Vec::new();
    let mut used = BTreeSet::new();
    for (place, body) in seen {
        for word in ALL.into_iter().filter(|word| holds(body, word)) {
            let allowed = ALLOWED
                .iter()
                .find(|(name, words, _)| name == place && words.contains(&word));
            match allowed {
                Some((name, ..)) => drop(used.insert((*name, word))),
                None => leaks.push(format!("{place} holds {word}")),
            }
        }
    }
    (leaks, used)
}

#[tokio::test]
async fn secrets_are_where_they_are_needed_and_nowhere_else() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let listening = tracing::subscriber::set_default(subscriber);
    tracing::info!("{HEARD}");
    let mut world = World::empty(410).await;
    let cluster = planted(&mut world).await;
    let mut seen = everything(&mut world, cluster).await;
    seen.extend(mistakes(&mut world, cluster).await);
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 120).await;
    seen.extend(everything(&mut world, cluster).await);
    drop(listening);
    let written = std::mem::take(&mut *log.0.lock().expect("nobody panics"));
    assert!(holds(&written, HEARD), "somebody listened");
    seen.push(("the log".to_owned(), written));
    let (leaks, used) = judged(&seen);
    let leaks: BTreeSet<_> = leaks.into_iter().collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    for (place, words, reason) in ALLOWED {
        for word in *words {
            assert!(
                used.contains(&(*place, *word)),
                "{place} holds no {word} any more ({reason})"
            );
        }
    }
}
