//! A test's own world: namespaces on the shared API server, a hub in this process, simulated hosts, an operator.

use crate::log;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::wait::await_condition;
use kube::{Resource, ResourceExt};
use muster_contract::client::http;
use muster_contract::v2::cluster_request::ClustersQuery;
use muster_contract::v2::event::EventsQuery;
use muster_contract::v2::host::ClusterHostsQuery;
use muster_contract::{HubClient, Trust};
use muster_hub::Config;
use muster_operator::crd::InfraEnv;
use muster_operator::crd::reference::LocalRef;
use muster_operator::runtime::metrics::Requests;
use muster_operator::{Connection, Election, Options};
use muster_simfleet::{Fleet, FleetConfig, Remote};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, oneshot, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

const ADMIN: &str = "MUSTER_TEST_KUBECONFIG";
const OPERATOR: &str = "MUSTER_TEST_KUBECONFIG_OPERATOR";
pub const PULL_SECRET: &str = r#"{"auths":{"registry.example.com":{"auth":"c2ltOnNpbQ=="}}}"#;
/// Much longer than anything takes; only a failure waits for it.
const DEADLINE: Duration = Duration::from_secs(90);
const POLL_EVERY: Duration = Duration::from_millis(50);
/// Stands in for the program that makes a cluster's files.
const INSTALLER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../hub/tests/it/installation/openshift-install"
);

pub struct World {
    /// May do everything.
    pub kube: kube::Client,
    /// Where InfraEnvs and Agents are.
    pub pool: String,
    /// Where ClusterDeployments are.
    pub clusters: String,
    pub hub: HubClient,
    pub server: Server,
    pub house: Arc<House>,
    operator: Option<Running>,
    fleets: Vec<(watch::Sender<bool>, JoinHandle<()>)>,
}

/// An API server, by the kubeconfigs of those who use it.
#[derive(Debug, Clone)]
pub struct Server {
    /// May do everything.
    pub admin: PathBuf,
    /// Has the rights that the operator ships with.
    pub operator: PathBuf,
}

impl Server {
    /// The one that all tests share.
    pub fn shared() -> Self {
        Self {
            admin: kubeconfig(ADMIN),
            operator: kubeconfig(OPERATOR),
        }
    }

    /// As the operator.
    pub async fn connection(&self) -> Connection {
        Connection::open(Some(&self.operator)).await.unwrap()
    }
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
    /// Everything, with an operator that watches the two namespaces.
    pub async fn start() -> Self {
        let mut world = Self::without_operator().await;
        world.start_operator().await;
        world
    }

    pub async fn without_operator() -> Self {
        let tag = Uuid::new_v4().simple();
        let names = (format!("pool-{tag}"), format!("clusters-{tag}"));
        Self::at(Server::shared(), House::open().await, names).await
    }

    /// With the names of the two namespaces, which may be one.
    pub async fn at(server: Server, house: Arc<House>, (pool, clusters): (String, String)) -> Self {
        let kube = Connection::open(Some(&server.admin)).await.unwrap().kube;
        for name in BTreeSet::from([&pool, &clusters]) {
            let namespace = Namespace {
                metadata: named(name),
                ..Namespace::default()
            };
            Api::all(kube.clone())
                .create(&PostParams::default(), &namespace)
                .await
                .unwrap();
        }
        Self {
            hub: HubClient::new(&house.url).unwrap(),
            kube,
            pool,
            clusters,
            server,
            house,
            operator: None,
            fleets: Vec::new(),
        }
    }

    pub fn options(&self) -> Options {
        Options {
            hub_url: self.house.url.clone(),
            namespaces: BTreeSet::from([self.pool.clone(), self.clusters.clone()])
                .into_iter()
                .collect(),
            election: Election::Off,
            // Of these there is one per API server, which all tests share: it would be news to all of them at once.
            controllers: "-agent-service-config".parse().unwrap(),
            retry: Duration::from_secs(1),
            ..Options::default()
        }
    }

    pub async fn start_operator(&mut self) -> &Running {
        let running = run_over(self.options(), self.server.connection().await);
        self.operator.insert(running)
    }

    /// With these controllers only.
    pub async fn start_operator_with(&mut self, controllers: &str) -> &Running {
        let options = Options {
            controllers: controllers.parse().unwrap(),
            ..self.options()
        };
        let running = run_over(options, self.server.connection().await);
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

    /// Asks for its deletion; it goes when its finalizers let it.
    pub async fn delete<K>(&self, namespace: &str, name: &str)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api = self.api::<K>(namespace);
        api.delete(name, &DeleteParams::default()).await.unwrap();
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
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
    {
        let api = self.api::<K>(namespace);
        let wanted = |object: Option<&K>| object.is_some_and(&holds);
        let waited = tokio::time::timeout(DEADLINE, await_condition(api.clone(), name, wanted)).await;
        match waited {
            Ok(found) => found.unwrap().unwrap(),
            Err(_) => {
                let last = api.get_opt(name).await.unwrap();
                let hub = self.hub_tells(&format!("{last:?}")).await;
                let did = match &self.operator {
                    Some(running) => running.state().await,
                    None => "it is not known here".into(),
                };
                let log = log::tail(&[self.pool.clone(), self.clusters.clone()]);
                panic!(
                    "{name} never was as it should be ({what}): {last:#?}\nthe hub tells: {hub}\nthe operator: {did}\n{log}"
                )
            }
        }
    }

    /// What the hub knows of the clusters whose ids are in the text, with their hosts and history.
    async fn hub_tells(&self, text: &str) -> String {
        let mut known = String::new();
        let Ok(clusters) = self.hub.clusters(&ClustersQuery::default()).await else {
            return "nothing; it cannot be asked".into();
        };
        for id in clusters.iter().map(|cluster| cluster.id) {
            if !text.contains(&id.to_string()) {
                continue;
            }
            let hosts = self.hub.cluster_hosts(id, &ClusterHostsQuery::default()).await;
            for host in hosts.iter().flatten() {
                let (status, info) = (&host.status, &host.status_info);
                known += &format!("\nhost {}: {status}: {info}: {:?}", host.id, host.images_status);
            }
            let query = EventsQuery {
                cluster_id: Some(id),
                ..EventsQuery::default()
            };
            for event in self.hub.events(&query).await.iter().flatten() {
                known += &format!("\n{:?} {}: {}", event.event_time, event.name, event.message);
            }
        }
        known
    }

    /// Waits until something comes true.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while !holds().await {
            assert!(
                tokio::time::Instant::now() < deadline,
                "this never came true: {what}"
            );
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    /// Waits until the object is gone.
    pub async fn gone<K>(&self, namespace: &str, name: &str)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
    {
        let gone = |object: Option<&K>| object.is_none();
        let waited = await_condition(self.api::<K>(namespace), name, gone);
        let waited = tokio::time::timeout(DEADLINE, waited).await;
        waited.unwrap_or_else(|_| panic!("{name} never went")).unwrap();
    }

    /// Simulated hosts that boot the image of an InfraEnv; they go with the world.
    pub fn fleet(&mut self, infra_env_id: Uuid, hosts: u32, change: impl FnOnce(&mut FleetConfig)) -> Remote {
        let first_index = self.fleets.len() as u32 * 1000;
        let mut config = FleetConfig {
            hub_url: self.house.url.clone(),
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

    /// A fresh operator reconciles everything: if all is as it should be, it writes nothing. Hosts live on meanwhile,
    /// so only a moment counts in which the hub had no new change.
    pub async fn assert_converged(&mut self) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        loop {
            let before = self.newest_change().await;
            if let Some(running) = &self.operator {
                running.idle().await;
            }
            self.stop_operator().await;
            let running = self.start_operator().await;
            running.idle().await;
            let (writes, requests) = (running.requests.writes(), running.requests.snapshot());
            if self.newest_change().await == before {
                return assert_eq!(writes, 0, "{requests:?}");
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "the hub never comes to rest"
            );
        }
    }

    async fn newest_change(&self) -> i64 {
        self.hub.hub_status().await.unwrap().newest_change
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
    }
}

impl Running {
    /// Waits until no key is due. The caches are full by then.
    pub async fn idle(&self) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        let mut calm = 0;
        while calm < 5 {
            if tokio::time::Instant::now() >= deadline {
                panic!("the operator is always busy:\n{}", self.state().await);
            }
            calm = if self.is_calm().await { calm + 1 } else { 0 };
            tokio::time::sleep(POLL_EVERY).await;
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

    /// How often something happened in a controller, by its metric.
    pub async fn counted(&self, what: &str, controller: &str) -> u64 {
        let text = self.metrics().await.unwrap_or_default();
        let start = format!("muster_operator_{what}_total{{controller=\"{controller}\"");
        let line = text.lines().find(|line| line.starts_with(&start));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or_default()
    }

    /// Waits for two more reconciles of the controller, so that one began after this. For what is polled, which never
    /// is idle.
    pub async fn reconciles_again(&self, controller: &str) {
        let enough = self.counted("reconciles", controller).await + 2;
        let waited = tokio::time::timeout(DEADLINE, async {
            while self.counted("reconciles", controller).await < enough {
                tokio::time::sleep(POLL_EVERY).await;
            }
        });
        assert!(waited.await.is_ok(), "{controller} does not reconcile again");
    }

    /// The status with which a path beside the metrics is answered.
    pub async fn probe(&self, path: &str) -> Option<u16> {
        let answer = web_client()
            .get(format!("http://{}{path}", self.metrics))
            .send()
            .await
            .ok()?;
        Some(answer.status().as_u16())
    }

    pub async fn metrics(&self) -> Option<String> {
        self.page("/metrics").await
    }

    /// What it counted, what it reconciles and what waits, for whoever wonders why nothing happens.
    pub async fn state(&self) -> String {
        let (metrics, queues) = (self.metrics().await, self.page("/queues").await);
        let text = |page: Option<String>| page.unwrap_or("it does not answer".into());
        format!("{}\nits queues:\n{}", text(metrics), text(queues))
    }

    async fn page(&self, path: &str) -> Option<String> {
        let answer = web_client()
            .get(format!("http://{}{path}", self.metrics))
            .send()
            .await
            .ok()?;
        answer.text().await.ok()
    }
}

/// An operator on the shared server, with the rights it ships with.
pub async fn run(options: Options) -> Running {
    run_over(options, Server::shared().connection().await)
}

pub fn run_over(options: Options, connection: Connection) -> Running {
    log::keep();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let metrics = listener.local_addr().unwrap();
    let requests = connection.requests.clone();
    let (stop, mut stopped) = watch::channel(false);
    let task = tokio::spawn(async move {
        let until = async move { drop(stopped.wait_for(|stop| *stop).await) };
        let listener = TcpListener::from_std(listener).unwrap();
        muster_operator::run(options, connection, Some(listener), until)
            .await
            .unwrap();
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

    /// Never returns: an operator that nobody stopped does not end.
    pub async fn ended(&self) {
        while !self.task.is_finished() {
            tokio::time::sleep(POLL_EVERY).await;
        }
        panic!("the operator ended by itself");
    }
}

/// A hub in this process, on the same address and with the same records whenever it runs.
pub struct House {
    pub url: String,
    home: TempDir,
    running: Mutex<Option<(watch::Sender<bool>, JoinHandle<()>)>>,
}

impl House {
    pub async fn open() -> Arc<Self> {
        let home = tempfile::tempdir().unwrap();
        let (address, running) = serve(home.path().into(), free_address(), |_| ()).await;
        Arc::new(Self {
            url: format!("http://{address}"),
            home,
            running: Mutex::new(Some(running)),
        })
    }

    /// Returns when the hub has drained and closed its records.
    pub async fn close(&self) {
        let (stop, task) = self.running.lock().await.take().unwrap();
        stop.send_replace(true);
        task.await.unwrap();
    }

    /// While it is closed: all its records are lost.
    pub fn forget(&self) {
        std::fs::remove_dir_all(self.home.path()).unwrap();
        std::fs::create_dir(self.home.path()).unwrap();
    }

    pub async fn reopen(&self) {
        self.reopen_with(|_| ()).await;
    }

    /// With other settings.
    pub async fn reopen_with(&self, change: impl FnOnce(&mut Config)) {
        let address = self.url.strip_prefix("http://").unwrap().parse().unwrap();
        let (_, running) = serve(self.home.path().into(), address, change).await;
        *self.running.lock().await = Some(running);
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some((stop, _)) = self.running.get_mut() {
            stop.send_replace(true);
        }
    }
}

async fn serve(
    data_dir: PathBuf,
    listen: SocketAddr,
    change: impl FnOnce(&mut Config),
) -> (SocketAddr, (watch::Sender<bool>, JoinHandle<()>)) {
    let mut config = Config {
        listen,
        data_dir,
        openshift_install: Some(INSTALLER.into()),
        ..Config::default()
    };
    change(&mut config);
    let (stop, mut stopped) = watch::channel(false);
    let (ready, address) = oneshot::channel();
    let task = tokio::spawn(async move {
        let until = async move {
            stopped.wait_for(|stop| *stop).await.map(drop).ok();
        };
        let told = |now: muster_hub::serve::Ready| {
            ready.send(now.address).ok();
        };
        muster_hub::serve::run(config, until, told).await.unwrap();
    });
    (address.await.unwrap(), (stop, task))
}

/// For requests without TLS that the client of the hub has no method for.
pub fn web_client() -> reqwest::Client {
    http(&Trust::default(), Duration::from_secs(600)).unwrap()
}

/// For a server that is told its address before it starts, or that comes back to it. Systems give ports from 32768 on
/// to whoever asks for any: one of those could be somebody else's by then. Each of these is given out once.
pub fn free_address() -> SocketAddr {
    const PORTS: u32 = 12_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Other runs at the same time begin elsewhere.
    let first = std::process::id().wrapping_mul(97);
    let next = || first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % PORTS;
    let port = || 20_000 + u16::try_from(next()).unwrap();
    let mut addresses = (0..PORTS).map(|_| SocketAddr::from(([127, 0, 0, 1], port())));
    let is_free = |address: &SocketAddr| std::net::TcpListener::bind(address).is_ok();
    addresses.find(is_free).expect("a free port")
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
