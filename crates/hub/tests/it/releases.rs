//! Databases as earlier releases wrote them open in this one, with everything in them, and go on working.

mod recipe;

use crate::place::{Place, is_postgres};
use crate::world;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use flate2::read::GzDecoder;
use jiff::Timestamp;
use muster_domain::cluster::{self, Cluster};
use muster_domain::host::{Host, Phase, Report};
use muster_domain::{ClusterId, HostKey};
use muster_hub::{Clock, Hub, http, worker};
use muster_store::Store;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use tower::ServiceExt;
use uuid::Uuid;
use world::{V1, V2};

/// Written beside the databases, by the hub that wrote them.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Expected {
    release: String,
    /// When it was left.
    now: Timestamp,
    hosts: Vec<StoredHost>,
    clusters: Vec<StoredCluster>,
    orders: usize,
    tombstones: usize,
    events: i64,
    /// What a hub that starts on it shows, which looks at what changed last.
    infra_envs: BTreeMap<Uuid, Value>,
    shown_clusters: BTreeMap<Uuid, Value>,
    shown_hosts: BTreeMap<String, Value>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct StoredHost {
    key: HostKey,
    phase: Phase,
    cluster: Option<ClusterId>,
    moving_to: Option<ClusterId>,
    revision: i64,
    reports: BTreeMap<Report, usize>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct StoredCluster {
    id: ClusterId,
    name: String,
    phase: cluster::Phase,
    revision: i64,
    files: BTreeMap<String, u64>,
}

async fn stored_host(store: &Store, host: &Host) -> StoredHost {
    let reports = store.host_reports(host.key()).await.unwrap();
    StoredHost {
        key: host.key(),
        phase: host.phase,
        cluster: host.cluster,
        moving_to: host.moving_to,
        revision: host.revision,
        reports: reports
            .into_iter()
            .map(|(report, text)| (report, text.len()))
            .collect(),
    }
}

async fn stored_cluster(store: &Store, cluster: &Cluster) -> StoredCluster {
    let files = store.file_list(cluster.id, "").await.unwrap();
    StoredCluster {
        id: cluster.id,
        name: cluster.name.clone(),
        phase: cluster.phase,
        revision: cluster.revision,
        files: files.into_iter().map(|file| (file.path, file.size)).collect(),
    }
}

/// These fields as they are; others may be added in later releases.
fn fields(of: &Value, names: &[&str]) -> Value {
    let kept = names.iter().map(|name| ((*name).to_owned(), of[*name].clone()));
    Value::Object(kept.collect())
}

fn shown_host(host: &Value) -> Value {
    let names = [
        "kind",
        "status",
        "status_info",
        "role",
        "cluster_id",
        "requested_hostname",
    ];
    fields(host, &names)
}

fn shown_cluster(cluster: &Value) -> Value {
    let names = [
        "kind",
        "name",
        "status",
        "status_info",
        "openshift_version",
        "api_vips",
        "progress",
    ];
    fields(cluster, &names)
}

/// As an earlier release said it, and as it is said now.
const REWORDED: [(&str, &str); 1] = [(
    "More about the cluster must be said.",
    "The cluster needs more settings.",
)];

fn reworded(mut cluster: Value) -> Value {
    if let Some(Value::String(info)) = cluster.get_mut("status_info") {
        for (earlier, now) in REWORDED {
            *info = info.replace(earlier, now);
        }
    }
    cluster
}

/// Without its links, which are signed anew.
fn shown_infra_env(infra_env: &Value) -> Value {
    let names = [
        "name",
        "type",
        "cluster_id",
        "openshift_version",
        "cpu_architecture",
        "ssh_authorized_key",
        "proxy",
        "additional_ntp_sources",
        "kernel_arguments",
        "static_network_config",
        "ignition_config_override",
    ];
    fields(infra_env, &names)
}

/// Phases in which nobody is, though a hub can bring somebody there.
fn missing_phases(expected: &Expected) -> Vec<String> {
    let hosts: BTreeSet<_> = expected.hosts.iter().map(|host| host.phase).collect();
    let clusters: BTreeSet<_> = expected.clusters.iter().map(|cluster| cluster.phase).collect();
    // Nothing leads to these two: see the diagrams of both.
    let hosts = Phase::ALL
        .into_iter()
        .filter(|phase| *phase != Phase::Resetting && !hosts.contains(phase));
    let entered = |phase: &cluster::Phase| *phase != cluster::Phase::Unmonitored;
    let clusters = cluster::Phase::ALL
        .into_iter()
        .filter(|phase| entered(phase) && !clusters.contains(phase));
    let hosts = hosts.map(|phase| format!("a host in {phase:?}"));
    hosts
        .chain(clusters.map(|phase| format!("a cluster in {phase:?}")))
        .collect()
}

/// Each is kept for ever.
const RELEASES: [&str; 1] = ["0.1.0"];

fn directory(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/databases")
        .join(release)
}

fn unpacked(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let packed = std::fs::File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn expected(release: &str, database: &str) -> Expected {
    let file = directory(release).join(format!("{database}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap()
}

/// A hub of this release on the database of another, at the moment at which that one was left.
struct Later {
    expected: Expected,
    hub: Hub,
    router: Router,
    // Dropped last, when nobody uses its database any more.
    _place: Place,
}

impl Later {
    async fn open(release: &str) -> Self {
        let directory = directory(release);
        let statements = String::from_utf8(unpacked(&directory.join("postgres.sql.gz"))).unwrap();
        let place = Place::holding(&unpacked(&directory.join("sqlite.db.gz")), &statements).await;
        let expected = expected(release, if is_postgres() { "postgres" } else { "sqlite" });
        let mut settings = world::settings(&place);
        settings.was_here_before = true;
        let hub = Hub::open(place.open().await, settings, Clock::manual(expected.now))
            .await
            .unwrap();
        Self {
            router: http::router(hub.clone()),
            expected,
            hub,
            _place: place,
        }
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let response = self
            .router
            .clone()
            .oneshot(request.body(body).unwrap())
            .await
            .unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn orders(&self) -> usize {
        let soon = self.expected.now + jiff::SignedDuration::from_hours(1);
        self.hub.store.outbox_due(soon, 1000).await.unwrap().len()
    }
}

#[test]
fn every_phase_is_in_the_databases_of_every_release() {
    for release in RELEASES {
        for database in ["sqlite", "postgres"] {
            let expected = expected(release, database);
            assert_eq!(expected.release, release);
            assert_eq!(
                missing_phases(&expected),
                Vec::<String>::new(),
                "{release} {database}"
            );
        }
    }
}

#[test]
fn a_phase_that_is_in_no_database_is_noticed() {
    let mut expected = expected(RELEASES[0], "sqlite");
    expected.hosts.retain(|host| host.phase != Phase::Reclaiming);
    expected
        .clusters
        .retain(|cluster| cluster.phase != cluster::Phase::Finalizing);
    assert_eq!(
        missing_phases(&expected),
        ["a host in Reclaiming", "a cluster in Finalizing"]
    );
}

#[tokio::test]
async fn every_row_of_a_database_of_an_earlier_release_is_read() {
    for release in RELEASES {
        let later = Later::open(release).await;
        let (store, expected) = (&later.hub.store, &later.expected);
        let mut hosts = Vec::new();
        for host in store.load::<Host>(None, 1000).await.unwrap() {
            hosts.push(stored_host(store, &host).await);
        }
        let mut clusters = Vec::new();
        for cluster in store.list::<Cluster>().await.unwrap() {
            clusters.push(stored_cluster(store, &cluster).await);
        }
        assert_eq!(
            (&hosts, &clusters),
            (&expected.hosts, &expected.clusters),
            "{release}"
        );
        let tombstones = store.tombstones_load().await.unwrap().len();
        let events = store.counts().await.unwrap().events;
        assert_eq!(
            (later.orders().await, tombstones, events),
            (expected.orders, expected.tombstones, expected.events),
            "{release}"
        );
        assert_eq!(store.unreadable(), [], "{release}");
    }
}

#[tokio::test]
async fn a_hub_shows_the_lists_that_a_hub_of_the_earlier_release_showed() {
    for release in RELEASES {
        let later = Later::open(release).await;
        let (mut clusters, mut pools, mut hosts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for cluster in later.get(&format!("{V2}/clusters")).await.as_array().unwrap() {
            clusters.insert(world::id(cluster), shown_cluster(cluster));
        }
        for pool in later.get(&format!("{V2}/infra-envs")).await.as_array().unwrap() {
            let id = world::id(pool);
            pools.insert(id, shown_infra_env(pool));
            let list = later.get(&format!("{V2}/infra-envs/{id}/hosts")).await;
            for host in list.as_array().unwrap() {
                hosts.insert(format!("{id}/{}", world::id(host)), shown_host(host));
            }
        }
        assert_eq!(pools, later.expected.infra_envs, "{release}");
        let before = later.expected.shown_clusters.into_iter();
        let before: BTreeMap<_, _> = before.map(|(id, cluster)| (id, reworded(cluster))).collect();
        assert_eq!(clusters, before, "{release}");
        assert_eq!(hosts, later.expected.shown_hosts, "{release}");
    }
}

#[tokio::test]
async fn a_hub_goes_on_where_an_earlier_release_stopped() {
    for release in RELEASES {
        let later = Later::open(release).await;
        let is_free = |host: &&StoredHost| {
            host.phase == Phase::Discovery && host.cluster.is_none() && host.moving_to.is_none()
        };
        let names = later.expected.hosts.iter().filter(is_free).map(|host| host.key);
        let free = names
            .into_iter()
            .find(|key| later.expected.shown_hosts[&key.to_string()]["status"] == "known-unbound")
            .expect("a free host");
        let cluster = later
            .expected
            .clusters
            .iter()
            .find(|cluster| cluster.name == "draft");
        let cluster = cluster.expect("a cluster that takes hosts").id;
        let path = format!("{V2}/infra-envs/{}/hosts/{}", free.infra_env, free.host);
        let status = async || later.get(&path).await["status"].clone();
        let bind = json!({ "cluster_id": cluster });
        let (code, body) = later
            .ask("POST", &format!("{path}/actions/bind"), Some(bind))
            .await;
        assert_eq!(
            (code, status().await),
            (200, json!("binding")),
            "{release}: {body}"
        );
        let (code, body) = later.ask("POST", &format!("{path}/actions/unbind"), None).await;
        assert_eq!(
            (code, status().await),
            (200, json!("unbinding")),
            "{release}: {body}"
        );
        worker::run_until_idle(&later.hub).await.unwrap();
        assert_eq!(later.orders().await, 0, "{release}: what was ordered is done");
        for host in &later.expected.hosts {
            let HostKey { infra_env, host } = host.key;
            let told = later
                .get(&format!("{V1}/infra-envs/{infra_env}/hosts/{host}/explain"))
                .await;
            assert_ne!(told["why"], "", "{release}: {told}");
        }
        let health = later.get("/health").await;
        assert_eq!(health["status"], "ok", "{release}: {health}");
    }
}
