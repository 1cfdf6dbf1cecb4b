//! An API server that restarts, and watches that have expired by the time it is back. Such a server is a test's own.

use crate::world::{House, Server, World, free_address, run_over};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use muster_operator::crd::infra_env::InfraEnv;
use muster_operator::crd::{Agent, NMStateConfig};
use muster_operator::runtime::lease::Terms;
use muster_operator::{Connection, Election, Options};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use uuid::Uuid;

/// Where the programs are.
const PROGRAMS: &str = "MUSTER_TEST_KUBE_BIN";
const START_LIMIT: Duration = Duration::from_secs(90);

/// etcd, and an API server that comes and goes.
struct Place {
    bin: PathBuf,
    etcd_url: String,
    #[expect(dead_code, reason = "kept for its drop")]
    etcd: Child,
    home: TempDir,
}

/// One API server; its address and its certificate outlast it.
struct Front {
    home: PathBuf,
    port: u16,
    running: Option<Child>,
}

impl Place {
    async fn open() -> Self {
        let bin = std::env::var_os(PROGRAMS).unwrap_or_else(|| panic!("{PROGRAMS} is not set"));
        let (bin, home) = (PathBuf::from(bin), tempfile::tempdir().unwrap());
        let key = home.path().join("accounts.key");
        run(Command::new("openssl")
            .args(["genrsa", "-out"])
            .arg(&key)
            .arg("2048"))
        .await;
        let tokens = "admin,admin,1,\"system:masters\"\n";
        std::fs::write(home.path().join("tokens.csv"), tokens).unwrap();
        let (etcd_url, peer) = (
            format!("http://{}", free_address()),
            format!("http://{}", free_address()),
        );
        let words = [
            format!("--data-dir={}", home.path().join("etcd").display()),
            format!("--listen-client-urls={etcd_url}"),
            format!("--advertise-client-urls={etcd_url}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--unsafe-no-fsync".into(),
            "--log-level=error".into(),
        ];
        let etcd = start(&bin.join("etcd"), home.path(), &words);
        Self {
            bin,
            etcd_url,
            etcd,
            home,
        }
    }

    /// An API server with our kinds.
    async fn front(&self, name: &str) -> Front {
        let home = self.home.path().join(name);
        std::fs::create_dir(&home).unwrap();
        let mut front = Front {
            home,
            port: free_address().port(),
            running: None,
        };
        front.start(self).await;
        front
    }

    async fn kubectl(&self, front: &Front, words: &[&str]) {
        let mut command = Command::new(self.bin.join("kubectl"));
        run(command.arg("--kubeconfig").arg(front.kubeconfig()).args(words)).await;
    }

    /// Our kinds and those of others.
    async fn define_kinds(&self, front: &Front) {
        let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");
        let hive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds-hive");
        let theirs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crds");
        let files = ["-f", ours, "-f", hive, "-f", theirs];
        self.kubectl(front, &[&["apply", "--server-side"], &files[..]].concat())
            .await;
        let wait = [
            "wait",
            "--for=condition=Established",
            "crd",
            "--all",
            "--timeout=60s",
        ];
        self.kubectl(front, &wait).await;
    }

    /// Deletes an object behind the back of every API server, and then forgets all history: whoever asks for what
    /// happened since a moment before now gets no answer.
    async fn delete_unseen(&self, key: &str) {
        let ask = async |path: &str, body: Value| -> Value {
            let url = format!("{}{path}", self.etcd_url);
            let answer = reqwest::Client::new().post(url).json(&body).send().await.unwrap();
            answer.error_for_status().unwrap().json().await.unwrap()
        };
        let done = ask(
            "/v3/kv/deleterange",
            json!({ "key": BASE64_STANDARD.encode(key) }),
        )
        .await;
        assert_eq!(done["deleted"], "1", "{done}");
        let revision = done["header"]["revision"].clone();
        ask(
            "/v3/kv/compaction",
            json!({ "revision": revision, "physical": true }),
        )
        .await;
    }
}

impl Front {
    fn kubeconfig(&self) -> PathBuf {
        self.home.join("kubeconfig")
    }

    fn server(&self) -> Server {
        Server {
            admin: self.kubeconfig(),
            operator: self.kubeconfig(),
        }
    }

    async fn start(&mut self, place: &Place) {
        let (home, shared) = (&self.home, place.home.path());
        let certificates = home.join("certificates");
        let words = [
            format!("--etcd-servers={}", place.etcd_url),
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=127.0.0.1".into(),
            format!("--secure-port={}", self.port),
            format!("--cert-dir={}", certificates.display()),
            format!("--service-account-issuer=https://127.0.0.1:{}", self.port),
            format!(
                "--service-account-key-file={}",
                shared.join("accounts.key").display()
            ),
            format!(
                "--service-account-signing-key-file={}",
                shared.join("accounts.key").display()
            ),
            format!("--token-auth-file={}", shared.join("tokens.csv").display()),
            "--authorization-mode=AlwaysAllow".into(),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
            "--endpoint-reconciler-type=none".into(),
            "--disable-admission-plugins=ServiceAccount".into(),
        ];
        self.running = Some(start(&place.bin.join("kube-apiserver"), home, &words));
        let authority = certificates.join("apiserver.crt");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{ "name": "test", "cluster": {
                "server": format!("https://127.0.0.1:{}", self.port), "certificate-authority": authority } }],
            "users": [{ "name": "admin", "user": { "token": "admin" } }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "admin" } }],
        });
        std::fs::write(self.kubeconfig(), text.to_string()).unwrap();
        let ready = async {
            while !self.is_ready().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let ready = tokio::time::timeout(START_LIMIT, ready).await;
        ready.expect("the API server never was ready");
    }

    async fn is_ready(&self) -> bool {
        let Ok(connection) = Connection::open(Some(&self.kubeconfig())).await else {
            return false;
        };
        let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
        connection.kube.request_text(request).await.is_ok()
    }

    /// As if it had been killed.
    async fn stop(&mut self) {
        self.running.take().unwrap().kill().await.unwrap();
    }
}

fn start(program: &Path, home: &Path, words: &[String]) -> Child {
    let log = std::fs::File::create(home.join(format!("{}.log", Uuid::new_v4()))).unwrap();
    let mut command = Command::new(program);
    command
        .args(words)
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .kill_on_drop(true);
    command.spawn().unwrap()
}

async fn run(command: &mut Command) {
    let done = command.stdin(Stdio::null()).output().await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

async fn world_at(front: &Front) -> World {
    let names = ("pool".to_owned(), "clusters".to_owned());
    World::at(front.server(), House::open().await, names).await
}

/// Whether the server can no longer tell what happened since a version.
async fn has_expired(networks: &Api<NMStateConfig>, version: &str) -> bool {
    let expired = |status: &Status| status.code == 410;
    let mut events = match networks.watch(&WatchParams::default(), version).await {
        Ok(events) => events.boxed(),
        Err(kube::Error::Api(status)) => return expired(&status),
        Err(error) => panic!("{error}"),
    };
    match events.try_next().await.unwrap() {
        Some(WatchEvent::Error(status)) => expired(&status),
        _ => false,
    }
}

/// Terms so short that a restart of the API server is longer.
fn electing(world: &World) -> Options {
    Options {
        election: Election::On {
            namespace: Some(world.pool.clone()),
            terms: Terms {
                duration: Duration::from_secs(3),
                deadline: Duration::from_secs(1),
                every: Duration::from_millis(200),
            },
        },
        ..world.options()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_restarts_finds_everything_as_the_hub_has_it() {
    let place = Place::open().await;
    let mut front = place.front("one").await;
    place.define_kinds(&front).await;
    let mut world = world_at(&front).await;
    let running = run_over(electing(&world), world.server.connection().await);
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_host(pool).await;
    let wish = json!({ "spec": { "hostname": "kept-by-people", "approved": true } });
    world.change_agent(&host, wish).await.unwrap();
    running.idle().await;
    front.stop().await;
    world
        .until("the operator knows that it cannot hold its lease", async || {
            let metrics = running.metrics().await.unwrap_or_default();
            metrics.contains("muster_operator_leads 0")
        })
        .await;
    // Meanwhile the hub gets a new host, and an old one changes.
    let late = Uuid::new_v4();
    world.register(pool, late).await;
    front.start(&place).await;
    world.agent_in(&late.to_string(), "discovering-unbound").await;
    let agent = world.agent_in(&host, "known-unbound").await;
    assert!(agent.spec.approved && agent.spec.hostname == "kept-by-people");
    running.idle().await;
    let agents: Vec<Agent> = world.agents().await;
    assert_eq!(agents.len(), 2);
    running.stop().await;
    let leases: Api<Lease> = world.api(&world.pool);
    let lease = leases.get("77190dcb.agent-install.openshift.io").await.unwrap();
    assert_eq!(
        lease.spec.unwrap().holder_identity.as_deref(),
        Some(""),
        "given back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_watch_has_expired_everything_is_read_anew() {
    let place = Place::open().await;
    let mut front = place.front("one").await;
    place.define_kinds(&front).await;
    let mut world = world_at(&front).await;
    world.start_operator().await;
    let network = json!({ "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "NMStateConfig",
        "metadata": { "name": "static", "labels": { "site": "north" } },
        "spec": { "interfaces": [{ "name": "eth0", "macAddress": "02:00:00:00:00:01" }],
            "config": { "interfaces": [{ "name": "eth0", "type": "ethernet", "state": "up" }] } } });
    let network: NMStateConfig = serde_json::from_value(network).unwrap();
    world.create(&world.pool, &network).await;
    let selector = json!({ "matchLabels": { "site": "north" } });
    let chooses = |infra_env: &mut InfraEnv| {
        infra_env.spec.nm_state_config_label_selector = serde_json::from_value(selector).unwrap();
    };
    let pool = world.pool_of("lab", chooses).await;
    let configs = async || world.hub.infra_env(pool).await.unwrap().static_network_config;
    world
        .until("the hub has the network", async || !configs().await.is_empty())
        .await;
    world.operator().idle().await;
    let networks: Api<NMStateConfig> = world.api(&world.pool);
    let version = networks
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();

    front.stop().await;
    let key = format!(
        "/registry/agent-install.openshift.io/nmstateconfigs/{}/static",
        world.pool
    );
    place.delete_unseen(&key).await;
    front.start(&place).await;
    assert!(has_expired(&networks, &version).await);

    world
        .until("the network is gone from the hub, too", async || {
            configs().await.is_empty()
        })
        .await;
    // And from then on it is watched as before.
    world.pool_of("late", |_| ()).await;
    world.operator().idle().await;
    world.assert_settled().await;
}
