//! The simulated world: a hub on a store that outlives it, a few machines, two clusters, and a hand on the clock.

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use muster_domain::{HostId, HostKey, InfraEnvId};
use muster_hub::{Clock, Hub, Settings, http, worker};
use muster_simfleet::{Next, Outcome, Setup, SimHost};
use muster_store::{Database, Store};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt;
use uuid::Uuid;

const V2: &str = "/api/assisted-install/v2";
const V1: &str = "/api/muster/v1";
pub const MACHINES: u32 = 3;
const PULL_SECRET: &str = r#"{"auths":{"registry.example.com":{"auth":"c2ltOnNpbQ=="}}}"#;

pub struct World {
    pub rng: StdRng,
    pub store: Store,
    pub clock: Clock,
    pub hub: Hub,
    router: Router,
    pub machines: Vec<SimHost>,
    powered: Vec<bool>,
    pub infra_env: Uuid,
    pub clusters: Vec<Uuid>,
    pub faults: bool,
    pub last_seq: i64,
    /// What was acknowledged last about a machine's cluster, until something else may have changed it.
    pub promised: Vec<Option<Option<Uuid>>>,
}

fn settings(was_here_before: bool) -> Settings {
    let mut settings = Settings::plain().expect("default settings");
    settings.was_here_before = was_here_before;
    settings.checks.wanted_agent = None;
    settings
}

impl World {
    pub async fn new(seed: u64) -> Self {
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).expect("a valid time"));
        let store = Store::open(&Database::Memory).await.expect("an empty database");
        let hub = Hub::open(store.clone(), settings(false), clock.clone())
            .await
            .expect("a hub");
        let mut world = Self {
            rng: StdRng::seed_from_u64(seed),
            store,
            clock,
            router: http::router(hub.clone()),
            hub,
            machines: Vec::new(),
            powered: vec![true; MACHINES as usize],
            infra_env: Uuid::nil(),
            clusters: Vec::new(),
            faults: true,
            last_seq: 0,
            promised: vec![None; MACHINES as usize],
        };
        let pool = json!({ "name": "sim", "pull_secret": PULL_SECRET });
        let (status, body) = world.call("POST", &format!("{V2}/infra-envs"), Some(pool)).await;
        assert_eq!(status, 201, "{body}");
        world.infra_env = id(&body);
        for name in ["alpha", "beta"] {
            let cluster = world.create_cluster(name).await;
            world.clusters.push(cluster);
        }
        let setup = Arc::new(Setup {
            infra_env_id: world.infra_env,
            seed,
            ..Setup::default()
        });
        let now = world.now_ms();
        world.machines = (0..MACHINES)
            .map(|index| SimHost::new(setup.clone(), index, now))
            .collect();
        world
    }

    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millisecond()).expect("after 1970")
    }

    async fn create_cluster(&mut self, name: &str) -> Uuid {
        let body = json!({ "name": name, "openshift_version": "4.21", "pull_secret": PULL_SECRET,
            "base_dns_domain": "example.com" });
        let (status, body) = self.call("POST", &format!("{V2}/clusters"), Some(body)).await;
        assert_eq!(status, 201, "{body}");
        id(&body)
    }

    /// One request through the real router, without a socket.
    pub async fn call(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = axum::http::Request::builder().method(method).uri(path);
        let request = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        let (status, bytes) = self.send(request.expect("a valid request")).await;
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn send(&mut self, request: axum::http::Request<Body>) -> (u16, Vec<u8>) {
        let response = self
            .router
            .clone()
            .oneshot(request)
            .await
            .expect("the router answers");
        let status = response.status().as_u16();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a whole body")
            .to_bytes();
        assert!(
            status < 500 || status == 501 || status == 503,
            "{}",
            String::from_utf8_lossy(&bytes)
        );
        (status, bytes.to_vec())
    }

    /// The hub loses its memory; what it had acknowledged must still be there.
    pub async fn crash(&mut self) {
        self.hub = Hub::open(self.store.clone(), settings(true), self.clock.clone())
            .await
            .expect("a restart");
        self.router = http::router(self.hub.clone());
    }

    pub fn power_off(&mut self, machine: usize) {
        self.powered[machine] = false;
    }

    pub fn power_on(&mut self, machine: usize) {
        self.powered[machine] = true;
        let now = self.now_ms();
        self.machines[machine].reboot(now);
    }

    /// Lets every machine do what it wants to do at this moment.
    async fn machines_act(&mut self) {
        for index in 0..self.machines.len() {
            if !self.powered[index] {
                continue;
            }
            // A machine that asks more often than this in one moment is in a hot loop.
            let mut budget = 40;
            let now = self.now_ms();
            while let Next::Send(request) = self.machines[index].poll(now) {
                budget -= 1;
                assert!(budget > 0, "machine {index} asks without end");
                self.deliver(index, request).await;
            }
        }
    }

    async fn deliver(&mut self, index: usize, request: muster_simfleet::Request) {
        let (request, tag) = request.into_http("").expect("a valid request");
        let fate = if self.faults {
            self.rng.random_range(0..20)
        } else {
            9
        };
        let twice = fate == 2;
        let (parts, bytes) = request.into_parts();
        let copy = || {
            let mut again = axum::http::Request::builder()
                .method(parts.method.clone())
                .uri(parts.uri.clone());
            for (name, value) in &parts.headers {
                again = again.header(name, value);
            }
            again.body(Body::from(bytes.clone())).expect("a valid request")
        };
        let outcome = match fate {
            // Lost on the way.
            0 => Outcome::Lost,
            _ => {
                let (status, body) = self.send(copy()).await;
                if twice {
                    self.send(copy()).await;
                }
                // Fate 1: the hub did it, and the answer was lost.
                if fate == 1 {
                    Outcome::Lost
                } else {
                    Outcome::Response { status, body }
                }
            }
        };
        let now = self.now_ms();
        self.machines[index].receive(now, tag, outcome);
    }

    pub async fn settle(&self) {
        worker::settle(&self.hub).await.expect("workers work");
    }

    /// Time passes in small pieces; machines and workers act after each.
    pub async fn run_for(&mut self, time: SignedDuration) {
        let piece = SignedDuration::from_secs(10);
        let mut left = time;
        while left > SignedDuration::ZERO {
            let step = left.min(piece);
            self.clock.advance(step);
            left -= step;
            self.machines_act().await;
            self.settle().await;
        }
    }

    pub async fn random_step(&mut self) {
        match self.rng.random_range(0..20) {
            0..9 => self.pass_time().await,
            9 => self.crash().await,
            10 => {
                let machine = self.any_machine();
                if self.powered[machine] {
                    self.power_off(machine)
                } else {
                    self.power_on(machine)
                }
            }
            11 => {
                worker::flush::once(&self.hub)
                    .await
                    .expect("signs of life are written");
            }
            _ => self.person_asks().await,
        }
    }

    async fn pass_time(&mut self) {
        let seconds = [1, 5, 30, 60, 61, 200, 1000][self.rng.random_range(0..7)];
        self.clock.advance(SignedDuration::from_secs(seconds));
        self.machines_act().await;
        // Workers are sometimes late.
        if self.rng.random_range(0..4) > 0 {
            self.settle().await;
        }
    }

    pub fn any_machine(&mut self) -> usize {
        self.rng.random_range(0..MACHINES) as usize
    }

    pub fn host_path(&self, machine: usize) -> String {
        format!(
            "{V2}/infra-envs/{}/hosts/{}",
            self.infra_env,
            self.machines[machine].id()
        )
    }

    pub fn key(&self, machine: usize) -> HostKey {
        HostKey {
            infra_env: InfraEnvId(self.infra_env),
            host: HostId(self.machines[machine].id()),
        }
    }

    async fn person_asks(&mut self) {
        let (machine, cluster) = (self.any_machine(), self.rng.random_range(0..self.clusters.len()));
        match self.rng.random_range(0..12) {
            0..4 => drop(self.bind(machine, cluster).await),
            4..6 => drop(self.unbind(machine).await),
            6..8 => drop(self.move_host(machine, cluster).await),
            8 => {
                let path = self.host_path(machine);
                let (status, _) = self.call("DELETE", &path, None).await;
                if status == 204 {
                    self.promised[machine] = None;
                }
            }
            9 => self.replace_cluster(cluster).await,
            _ => self.plant_secrets(machine).await,
        }
    }

    pub async fn bind(&mut self, machine: usize, cluster: usize) -> u16 {
        let (path, id) = (self.host_path(machine), self.clusters[cluster]);
        let (status, _) = self
            .call(
                "POST",
                &format!("{path}/actions/bind"),
                Some(json!({ "cluster_id": id })),
            )
            .await;
        if status == 200 {
            self.promised[machine] = Some(Some(id));
        }
        status
    }

    pub async fn unbind(&mut self, machine: usize) -> u16 {
        let path = self.host_path(machine);
        let (status, _) = self.call("POST", &format!("{path}/actions/unbind"), None).await;
        if status == 200 {
            self.promised[machine] = Some(None);
        }
        status
    }

    pub async fn move_host(&mut self, machine: usize, cluster: usize) -> u16 {
        let id = self.clusters[cluster];
        let path = format!(
            "{V1}/infra-envs/{}/hosts/{}/move",
            self.infra_env,
            self.machines[machine].id()
        );
        let (status, _) = self.call("POST", &path, Some(json!({ "cluster_id": id }))).await;
        if status == 202 {
            // It may be on its way for a while.
            self.promised[machine] = None;
        }
        status
    }

    /// A cluster goes and another comes.
    async fn replace_cluster(&mut self, cluster: usize) {
        let old = self.clusters[cluster];
        let (status, body) = self.call("DELETE", &format!("{V2}/clusters/{old}"), None).await;
        assert_eq!(status, 204, "{body}");
        for promise in &mut self.promised {
            if *promise == Some(Some(old)) {
                *promise = Some(None);
            }
        }
        let name = format!("gamma{}", self.rng.random_range(0..1000));
        self.clusters[cluster] = self.create_cluster(&name).await;
    }

    /// Fills every secret a borrower can set with something to look for later.
    async fn plant_secrets(&mut self, machine: usize) {
        let path = self.host_path(machine);
        if self.cluster_of(machine).await.is_none() {
            return;
        }
        let change = json!({ "host_name": "canary-name", "ignition_endpoint_token": "canary-token",
            "ignition_endpoint_http_headers": [{ "key": "X-Canary", "value": "canary-header" }],
            "node_labels": [{ "key": "canary", "value": "canary-label" }],
            "machine_config_pool_name": "canary-pool" });
        self.call("PATCH", &path, Some(change)).await;
        let args = json!({ "args": ["--append-karg", "canary=1"] });
        self.call("PATCH", &format!("{path}/installer-args"), Some(args))
            .await;
        let config = json!({ "config": r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/canary"}]}}"# });
        self.call("PATCH", &format!("{path}/ignition"), Some(config))
            .await;
    }

    pub async fn cluster_of(&self, machine: usize) -> Option<Uuid> {
        let host = self.store.host_find(self.key(machine)).await.expect("readable");
        host.and_then(|host| host.cluster).map(|cluster| cluster.0)
    }

    pub async fn status(&mut self, machine: usize) -> String {
        let path = self.host_path(machine);
        let (_, body) = self.call("GET", &path, None).await;
        body["status"].as_str().unwrap_or_default().to_owned()
    }

    /// No more faults: everything is powered, and there is time.
    pub async fn calm_down(&mut self) {
        self.faults = false;
        for machine in 0..self.machines.len() {
            self.power_on(machine);
        }
        self.run_for(SignedDuration::from_mins(6)).await;
    }
}

fn id(body: &Value) -> Uuid {
    body["id"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("an id in the answer")
}
