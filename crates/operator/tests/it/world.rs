//! A test's own world: namespaces on the shared API server, a hub in this process, simulated hosts, an operator.

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use muster_contract::HubClient;
use muster_hub::Config;
use muster_operator::crd::InfraEnv;
use muster_operator::crd::reference::LocalRef;
use muster_operator::runtime::metrics::Requests;
use muster_operator::{Connection, Election, Options};
use muster_simfleet::{Fleet, FleetConfig, Remote};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

const ADMIN: &str = "MUSTER_TEST_KUBECONFIG";
const OPERATOR: &str = "MUSTER_TEST_KUBECONFIG_OPERATOR";
pub const PULL_SECRET: &str = r#"{"auths":{"registry.example.com":{"auth":"c2ltOnNpbQ=="}}}"#;
/// Much longer than anything takes; only a failure waits for it.
const DEADLINE: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub struct World {
    /// May do everything.
    pub kube: kube::Client,
    /// Where InfraEnvs and Agents are.
    pub pool: String,
    /// Where ClusterDeployments are.
    pub clusters: String,
    pub hub: HubClient,
    hub_url: String,
    operator: Option<Running>,
    hub_stop: watch::Sender<bool>,
    fleets: Vec<(watch::Sender<bool>, JoinHandle<()>)>,
    #[expect(dead_code, reason = "kept for its drop")]
    home: TempDir,
}

/// An operator in this process.
pub struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    pub requests: Arc<Requests>,
    metrics: SocketAddr,
}

fn kubeconfig(name: &str) -> PathBuf {
    let path = std::env::var_os(name);
    path.unwrap_or_else(|| panic!("{name} is not set; run these tests with `cargo xtask test --only kube`"))
        .into()
}

impl World {
    /// Everything, with an operator that sees the two namespaces.
    pub async fn start() -> Self {
        let mut world = Self::without_operator().await;
        world.start_operator().await;
        world
    }

    pub async fn without_operator() -> Self {
        let kube = Connection::open(Some(&kubeconfig(ADMIN))).await.unwrap().kube;
        let tag = Uuid::new_v4().simple().to_string();
        let (pool, clusters) = (format!("pool-{tag}"), format!("clusters-{tag}"));
        for name in [&pool, &clusters] {
            let namespace = Namespace {
                metadata: named(name),
                ..Namespace::default()
            };
            Api::all(kube.clone())
                .create(&PostParams::default(), &namespace)
                .await
                .unwrap();
        }
        let home = tempfile::tempdir().unwrap();
        let (hub_stop, stopped) = watch::channel(false);
        let hub_url = start_hub(home.path().into(), stopped).await;
        Self {
            hub: HubClient::new(&hub_url).unwrap(),
            kube,
            pool,
            clusters,
            hub_url,
            operator: None,
            hub_stop,
            fleets: Vec::new(),
            home,
        }
    }

    pub fn options(&self) -> Options {
        Options {
            hub_url: self.hub_url.clone(),
            namespaces: vec![self.pool.clone(), self.clusters.clone()],
            election: Election::Off,
            retry: Duration::from_secs(1),
            ..Options::default()
        }
    }

    pub async fn start_operator(&mut self) -> &Running {
        let running = run(self.options()).await;
        self.operator.insert(running)
    }

    /// Waits until it has ended by itself.
    pub async fn stop_operator(&mut self) {
        let running = self.operator.take().unwrap();
        running.stop.send_replace(true);
        running.task.await.unwrap();
    }

    pub fn operator(&self) -> &Running {
        self.operator.as_ref().unwrap()
    }

    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.kube.clone(), namespace)
    }

    pub async fn create<K>(&self, namespace: &str, object: &K) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug
            + Serialize,
    {
        self.api(namespace)
            .create(&PostParams::default(), object)
            .await
            .unwrap()
    }

    pub async fn get<K>(&self, namespace: &str, name: &str) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        self.api(namespace).get(name).await.unwrap()
    }

    /// A merge patch, as `kubectl patch --type=merge` sends it.
    pub async fn patch<K>(&self, namespace: &str, name: &str, patch: Value) -> Result<K, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        self.api(namespace)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    /// Without the labels that say it is watched: as people make it.
    pub async fn pull_secret(&self, namespace: &str, name: &str, text: &str) {
        let secret = Secret {
            metadata: named(name),
            string_data: Some([(".dockerconfigjson".to_owned(), text.to_owned())].into()),
            type_: Some("kubernetes.io/dockerconfigjson".into()),
            ..Secret::default()
        };
        self.create(namespace, &secret).await;
    }

    /// An InfraEnv for hosts that are bound later, with a pull secret.
    pub async fn infra_env(&self, name: &str, change: impl FnOnce(&mut InfraEnv)) -> InfraEnv {
        self.pull_secret(&self.pool, &format!("{name}-pull"), PULL_SECRET)
            .await;
        let mut infra_env = InfraEnv::new(name, Default::default());
        infra_env.spec.pull_secret_ref = LocalRef {
            name: format!("{name}-pull"),
        };
        change(&mut infra_env);
        self.create(&self.pool, &infra_env).await
    }

    /// Waits until the object is as `holds` wants it; shows it when it never is.
    pub async fn when<K>(&self, namespace: &str, name: &str, what: &str, holds: impl Fn(&K) -> bool) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api = self.api::<K>(namespace);
        let mut last = None;
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while tokio::time::Instant::now() < deadline {
            last = api.get_opt(name).await.unwrap();
            if let Some(object) = last.take_if(|object| holds(object)) {
                return object;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        panic!("{name} never was as it should be ({what}): {last:#?}");
    }

    /// Waits until something comes true.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while !holds().await {
            assert!(
                tokio::time::Instant::now() < deadline,
                "this never came true: {what}"
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until the object is gone.
    pub async fn gone<K>(&self, namespace: &str, name: &str)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api = self.api::<K>(namespace);
        self.until(&format!("{name} is gone"), async || {
            api.get_opt(name).await.unwrap().is_none()
        })
        .await;
    }

    /// Simulated hosts that boot the image of an InfraEnv; they go with the world.
    pub fn fleet(&mut self, infra_env_id: Uuid, hosts: u32, change: impl FnOnce(&mut FleetConfig)) -> Remote {
        let first_index = self.fleets.len() as u32 * 1000;
        let mut config = FleetConfig {
            hub_url: self.hub_url.clone(),
            infra_env_id,
            hosts,
            first_index,
            seed: u64::from_le_bytes(infra_env_id.as_bytes()[..8].try_into().unwrap()),
            poll: Some(Duration::from_millis(300)),
            connections: hosts.min(8) as usize,
            profile: Some(muster_simfleet::Profile::Rack),
            ..FleetConfig::default()
        };
        change(&mut config);
        let fleet = Fleet::new(config).unwrap();
        let remote = fleet.remote();
        let (stop, stopped) = watch::channel(false);
        self.fleets.push((stop, tokio::spawn(fleet.run(stopped))));
        remote
    }

    /// A fresh operator looks at everything: if all is as it should be, it writes nothing.
    pub async fn assert_settled(&mut self) {
        self.stop_operator().await;
        let running = self.start_operator().await;
        running.idle().await;
        assert_eq!(running.requests.writes(), 0, "{:?}", running.requests.snapshot());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(running) = &self.operator {
            running.task.abort();
        }
        for (_, task) in &self.fleets {
            task.abort();
        }
        self.hub_stop.send_replace(true);
    }
}

impl Running {
    /// Waits until nothing is left to look at now. Mirrors are full by then.
    pub async fn idle(&self) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        let mut calm = 0;
        while calm < 5 {
            assert!(
                tokio::time::Instant::now() < deadline,
                "the operator is always busy"
            );
            calm = if self.is_calm().await { calm + 1 } else { 0 };
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn is_calm(&self) -> bool {
        let Some(text) = self.metrics().await else {
            return false;
        };
        let number = |line: &str| {
            line.rsplit(' ')
                .next()
                .and_then(|number| number.parse::<f64>().ok())
                .unwrap_or(1.0)
        };
        let waiting = text
            .lines()
            .filter(|line| line.starts_with("muster_operator_queue_length"))
            .map(number);
        let leads = text.lines().any(|line| line == "muster_operator_leads 1");
        leads && waiting.sum::<f64>() == 0.0
    }

    pub async fn metrics(&self) -> Option<String> {
        let answer = reqwest::get(format!("http://{}/metrics", self.metrics))
            .await
            .ok()?;
        answer.text().await.ok()
    }
}

/// An operator with the rights it ships with.
pub async fn run(mut options: Options) -> Running {
    let metrics = free_address();
    options.metrics = Some(metrics);
    let connection = Connection::open(Some(&kubeconfig(OPERATOR))).await.unwrap();
    let requests = connection.requests.clone();
    let (stop, mut stopped) = watch::channel(false);
    let task = tokio::spawn(async move {
        let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
        muster_operator::run(options, connection, until).await.unwrap();
    });
    Running {
        stop,
        task,
        requests,
        metrics,
    }
}

impl Running {
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap();
    }

    /// As if the process had been killed.
    pub fn kill(self) {
        self.task.abort();
    }
}

async fn start_hub(data_dir: PathBuf, mut stop: watch::Receiver<bool>) -> String {
    let config = Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data_dir,
        ..Config::default()
    };
    let (ready, address) = oneshot::channel();
    tokio::spawn(async move {
        let until = async move {
            stop.wait_for(|stop| *stop).await.map(drop).ok();
        };
        muster_hub::serve::run(config, until, |address| {
            ready.send(address).ok();
        })
        .await
    });
    format!("http://{}", address.await.unwrap())
}

fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

pub fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        ..ObjectMeta::default()
    }
}

/// Status, reason and message of a condition, or nothing.
pub fn condition<'a>(
    conditions: &'a [muster_operator::crd::condition::ServiceCondition],
    type_: &str,
) -> Option<(&'a str, &'a str, &'a str)> {
    let found = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((&found.status, &found.reason, &found.message))
}

/// The hub's id of an InfraEnv.
pub fn id_of(infra_env: &InfraEnv) -> Uuid {
    infra_env.annotations()["infraenv.agent-install.openshift.io/id"]
        .parse()
        .unwrap()
}
