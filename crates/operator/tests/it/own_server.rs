//! API servers of a test's own, which come and go, and whose kinds it chooses.

use crate::world::{House, Server, World, free_address, web_client};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use muster_operator::Connection;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use uuid::Uuid;

/// Where the programs are.
const PROGRAMS: &str = "MUSTER_TEST_KUBE_BIN";
/// Definitions of our kinds, and of those of others.
pub const OURS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");
pub const HIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds-hive");
pub const THEIRS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crds");
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/manifests");
/// The user with the rights that the operator ships with, and its token.
const OPERATOR: &str = "muster-operator";
const START_LIMIT: Duration = Duration::from_secs(90);

/// etcd, and an API server that comes and goes.
pub struct Place {
    bin: PathBuf,
    etcd_url: String,
    #[expect(dead_code, reason = "kept for its drop")]
    etcd: Child,
    home: TempDir,
}

/// One API server; its address and its certificate outlast it.
pub struct Front {
    home: PathBuf,
    port: u16,
    running: Option<Child>,
}

impl Place {
    pub async fn open() -> Self {
        let bin = std::env::var_os(PROGRAMS).unwrap_or_else(|| panic!("{PROGRAMS} is not set"));
        let (bin, home) = (PathBuf::from(bin), tempfile::tempdir().unwrap());
        let key = home.path().join("accounts.key");
        run(Command::new("openssl")
            .args(["genrsa", "-out"])
            .arg(&key)
            .arg("2048"))
        .await;
        let tokens = format!("admin,admin,1,\"system:masters\"\n{OPERATOR},{OPERATOR},2\n");
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
    pub async fn front(&self, name: &str) -> Front {
        let home = self.home.path().join(name);
        std::fs::create_dir(&home).unwrap();
        let mut front = Front {
            home,
            port: free_address().port(),
            running: None,
        };
        front.start(self).await;
        let rights = front.home.join("rights.json");
        std::fs::write(&rights, shipped_rights().to_string()).unwrap();
        self.kubectl(
            &front,
            &["apply", "--server-side", "-f", rights.to_str().unwrap()],
        )
        .await;
        front
    }

    pub async fn kubectl(&self, front: &Front, words: &[&str]) {
        let mut command = Command::new(self.bin.join("kubectl"));
        run(command.arg("--kubeconfig").arg(front.kubeconfig()).args(words)).await;
    }

    /// Our kinds and those of others.
    pub async fn define_kinds(&self, front: &Front) {
        self.define(front, &[OURS, HIVE, THEIRS].map(Path::new)).await;
    }

    /// What deletes objects whose owners are gone; it ends with what this gives.
    pub fn collector(&self, front: &Front) -> Child {
        let config = front.kubeconfig();
        let config = config.display();
        let words = [
            format!("--kubeconfig={config}"),
            format!("--authentication-kubeconfig={config}"),
            format!("--authorization-kubeconfig={config}"),
            "--secure-port=0".into(),
            "--leader-elect=false".into(),
            "--controllers=garbage-collector-controller".into(),
        ];
        start(
            &self.bin.join("kube-controller-manager"),
            self.home.path(),
            &words,
        )
    }

    /// The kinds in these files and folders.
    pub async fn define(&self, front: &Front, files: &[&Path]) {
        let mut words = vec!["apply", "--server-side"];
        for file in files {
            words.extend(["-f", file.to_str().unwrap()]);
        }
        self.kubectl(front, &words).await;
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
    pub async fn delete_unnoticed(&self, key: &str) {
        let ask = async |path: &str, body: Value| -> Value {
            let url = format!("{}{path}", self.etcd_url);
            let answer = web_client().post(url).json(&body).send().await.unwrap();
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
    /// May do everything.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig_of("admin")
    }

    fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.home.join(format!("{user}.kubeconfig"))
    }

    pub fn server(&self) -> Server {
        Server {
            admin: self.kubeconfig(),
            operator: self.kubeconfig_of(OPERATOR),
        }
    }

    pub async fn start(&mut self, place: &Place) {
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
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
            "--endpoint-reconciler-type=none".into(),
            "--disable-admission-plugins=ServiceAccount".into(),
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".into(),
        ];
        self.running = Some(start(&place.bin.join("kube-apiserver"), home, &words));
        let ready = async {
            while !self.is_ready(&certificates.join("apiserver.crt")).await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let ready = tokio::time::timeout(START_LIMIT, ready).await;
        ready.expect("the API server never was ready");
    }

    /// The certificate is made by the server when it first starts.
    async fn is_ready(&self, certificate: &Path) -> bool {
        let Ok(certificate) = std::fs::read(certificate) else {
            return false;
        };
        let certificate = BASE64_STANDARD.encode(certificate);
        for user in ["admin", OPERATOR] {
            let text = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "test",
                "clusters": [{ "name": "test", "cluster": {
                    "server": format!("https://127.0.0.1:{}", self.port),
                    "certificate-authority-data": certificate } }],
                "users": [{ "name": user, "user": { "token": user } }],
                "contexts": [{ "name": "test", "context": { "cluster": "test", "user": user } }],
            });
            std::fs::write(self.kubeconfig_of(user), text.to_string()).unwrap();
        }
        let Ok(connection) = Connection::open(Some(&self.kubeconfig())).await else {
            return false;
        };
        let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
        connection.kube.request_text(request).await.is_ok()
    }

    /// As if it had been killed.
    pub async fn stop(&mut self) {
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

/// The roles that ship with the operator, for its user here. The right to hold a Lease ships for one namespace; here it
/// holds in all.
fn shipped_rights() -> Value {
    let items = ["clusterrole.yaml", "role.yaml"].map(|file| {
        let text = std::fs::read_to_string(Path::new(MANIFESTS).join(file)).unwrap();
        let shipped: Value = serde_norway::from_str(&text).unwrap();
        let (api, group) = ("rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io");
        let name = format!("test-{file}");
        [
            json!({ "apiVersion": api, "kind": "ClusterRole", "metadata": { "name": name },
                "rules": shipped["rules"] }),
            json!({ "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": { "name": name },
                "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": name },
                "subjects": [{ "apiGroup": group, "kind": "User", "name": OPERATOR }] }),
        ]
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": items.concat() })
}

pub async fn world_at(front: &Front) -> World {
    let names = ("pool".to_owned(), "clusters".to_owned());
    World::at(front.server(), House::open().await, names).await
}
