//! The simulated world: a hub on a store that outlives it, machines that boot and install, and a hand on the clock.

mod machines;
mod people;
mod sight;

use crate::place::Place;
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use muster_domain::{HostId, HostKey, InfraEnvId};
use muster_hub::{Clock, Hub, Settings, http, worker};
use muster_simfleet::{Setup, SimHost};
use muster_store::Store;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

pub use machines::Heard;

pub const V2: &str = "/api/assisted-install/v2";
pub const V1: &str = "/api/muster/v1";
pub const PULL_SECRET: &str = r#"{"auths":{"registry.example.com":{"auth":"c2ltOnNpbQ=="}}}"#;

/// The steps of time: limits are minutes.
const STEP_S: i64 = 4;

/// Stands in for `openshift-install`: a real program, which the hub really runs.
const INSTALLER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/installation/openshift-install"
);

/// What a person was told about a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// It belongs to that cluster, or to none.
    In(Option<Uuid>),
    /// It ends there, or history tells why it does not.
    Moving(Uuid),
}

pub struct World {
    pub rng: StdRng,
    pub seed: u64,
    pub store: Store,
    pub clock: Clock,
    pub hub: Hub,
    pub settings: Settings,
    router: Router,
    pub machines: Vec<SimHost>,
    /// Whose image each machine boots.
    pub pools: Vec<Uuid>,
    powered: Vec<bool>,
    pub infra_env: Uuid,
    pub clusters: Vec<Uuid>,
    /// Messages are lost and doubled by chance.
    pub faults: bool,
    /// Nobody reaches the hub, and it does nothing.
    pub hub_is_away: bool,
    pub last_seq: i64,
    /// What was acknowledged last about a machine's cluster, until something else may have changed it.
    pub promised: Vec<Option<Promise>>,
    /// Everything the hub told machines, while somebody listens.
    pub heard: Option<Vec<Heard>>,
    /// Requests that never arrive: of one machine or of all, by a part of their path.
    pub lost: Vec<(Option<usize>, &'static str)>,
    networks_given: u8,
    /// What workers did last: deadlines, limits, looks, effects.
    busy: std::cell::Cell<(usize, usize, usize, usize)>,
    // Dropped last, when nobody uses its database any more.
    pub place: Place,
}

/// A hub that installs with a program of the tests and leaves agents as they are.
pub fn settings(place: &Place) -> Settings {
    let mut settings = place.settings();
    settings.checks.wanted_agent = None;
    settings.installer.program = Some(INSTALLER.into());
    settings
}

impl World {
    /// A hub, and nothing else.
    pub async fn empty(seed: u64) -> Self {
        Self::with(seed, |_| ()).await
    }

    pub async fn with(seed: u64, change: impl FnOnce(&mut Settings)) -> Self {
        Self::on(Place::memory(), seed, change).await
    }

    /// The same in a database of the kind that this run of the tests is about.
    pub async fn on_either(seed: u64) -> Self {
        Self::on(Place::new().await, seed, |_| ()).await
    }

    pub async fn on(place: Place, seed: u64, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings(&place);
        change(&mut settings);
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).expect("a valid time"));
        let store = place.open().await;
        let hub = Hub::open(store.clone(), settings.clone(), clock.clone())
            .await
            .expect("a hub");
        Self {
            rng: StdRng::seed_from_u64(seed),
            seed,
            store,
            clock,
            settings,
            router: http::router(hub.clone()),
            hub,
            machines: Vec::new(),
            pools: Vec::new(),
            powered: Vec::new(),
            infra_env: Uuid::nil(),
            clusters: Vec::new(),
            faults: false,
            hub_is_away: false,
            last_seq: 0,
            promised: Vec::new(),
            heard: None,
            lost: Vec::new(),
            networks_given: 0,
            busy: std::cell::Cell::default(),
            place,
        }
    }

    /// A pool of free machines, all alike and large, discovered and ready.
    pub async fn with_machines(seed: u64, count: u32, faults: &[&str]) -> Self {
        let mut world = Self::empty(seed).await;
        world.infra_env = world.pool("sim", None).await;
        world.boot(world.infra_env, count, faults);
        world.run_for(SignedDuration::from_mins(3)).await;
        world
    }

    /// A discovery image; with a cluster its hosts belong there from the start.
    pub async fn pool(&mut self, name: &str, cluster: Option<Uuid>) -> Uuid {
        let mut wish = json!({ "name": name, "pull_secret": PULL_SECRET });
        if let Some(cluster) = cluster {
            wish["cluster_id"] = json!(cluster);
        }
        let (status, body) = self.call("POST", &format!("{V2}/infra-envs"), Some(wish)).await;
        assert_eq!(status, 201, "{body}");
        id(&body)
    }

    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millisecond()).expect("after 1970")
    }

    /// One request through the real router, without a socket.
    pub async fn call(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let (status, bytes) = self.fetch(method, path, body).await;
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// The same for answers that are not JSON.
    pub async fn fetch(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Vec<u8>) {
        let request = axum::http::Request::builder().method(method).uri(path);
        let request = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        self.send(request.expect("a valid request")).await
    }

    async fn send(&mut self, request: axum::http::Request<Body>) -> (u16, Vec<u8>) {
        use tower::ServiceExt;
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
        self.settings.was_here_before = true;
        self.hub = Hub::open(self.store.clone(), self.settings.clone(), self.clock.clone())
            .await
            .expect("a restart");
        self.router = http::router(self.hub.clone());
    }

    pub async fn settle(&self) {
        if self.hub_is_away {
            return;
        }
        // Like `worker::run_until_idle`, but a hub that does not come to rest is caught.
        for _ in 0..200 {
            let hosts = worker::deadlines::once(&self.hub).await.expect("deadlines work");
            let clusters = worker::limits::once(&self.hub).await.expect("limits work");
            let looks = worker::reconcile::once(&self.hub).await.expect("looks work");
            let sent = worker::outbox::once(&self.hub).await.expect("the outbox works");
            if hosts + clusters + looks + sent == 0 {
                return;
            }
            self.busy.set((hosts, clusters, looks, sent));
        }
        panic!("the hub is always busy: {:?}\n{}", self.busy, self.describe());
    }

    /// Time passes from one thing that happens to the next; machines and workers act at each.
    pub async fn run_for(&mut self, time: SignedDuration) {
        let end = self.clock.now() + time;
        while self.clock.now() < end {
            self.step(end).await;
        }
    }

    /// Goes to the next moment at which somebody has something to do, at most to `end`.
    pub async fn step(&mut self, end: Timestamp) {
        // What somebody wants right now comes first.
        self.machines_act().await;
        let now = self.clock.now();
        let next = self.next_moment(now).min(end);
        self.clock.advance(next.duration_since(now));
        self.machines_act().await;
        self.settle().await;
    }

    /// In steps of a few seconds, so that what happens nearly together is one; a minute at most, for what is tried again.
    fn next_moment(&mut self, now: Timestamp) -> Timestamp {
        let agendas = [
            self.hub.agenda.next_micros(),
            self.hub.cluster_agenda.next_micros(),
        ];
        let agenda = agendas
            .into_iter()
            .flatten()
            .min()
            .map(|micros| micros / 1000 + 1);
        let machine = self.next_wake_ms().and_then(|ms| i64::try_from(ms).ok());
        let next_ms = agenda.into_iter().chain(machine).min().unwrap_or(i64::MAX);
        let next_s = next_ms
            .div_euclid(STEP_S * 1000)
            .saturating_add(1)
            .saturating_mul(STEP_S);
        let most = now.as_second() + 60;
        Timestamp::from_second(next_s.clamp(now.as_second() + 1, most)).expect("a valid time")
    }

    pub fn host_path(&self, machine: usize) -> String {
        format!(
            "{V2}/infra-envs/{}/hosts/{}",
            self.pools[machine],
            self.machines[machine].id()
        )
    }

    pub fn key(&self, machine: usize) -> HostKey {
        HostKey {
            infra_env: InfraEnvId(self.pools[machine]),
            host: HostId(self.machines[machine].id()),
        }
    }

    /// The usual setup of machines in this world.
    pub fn setup(&self, pool: Uuid, faults: &[&str]) -> Setup {
        Setup {
            infra_env_id: pool,
            seed: self.seed,
            first_index: u32::try_from(self.machines.len()).expect("few machines"),
            profile: Some(muster_simfleet::Profile::Rack),
            faults: faults
                .iter()
                .map(|text| text.parse().expect("a fault that exists"))
                .collect(),
            ..Setup::default()
        }
    }

    pub fn boot(&mut self, pool: Uuid, count: u32, faults: &[&str]) {
        let setup = self.setup(pool, faults);
        self.boot_as(setup, count);
    }

    pub fn boot_as(&mut self, setup: Setup, count: u32) {
        let (now, first, pool) = (self.now_ms(), setup.first_index, setup.infra_env_id);
        let setup = Arc::new(setup);
        for index in first..first + count {
            self.machines.push(SimHost::new(setup.clone(), index, now));
            self.pools.push(pool);
            self.powered.push(true);
            self.promised.push(None);
        }
    }
}

pub fn id(body: &Value) -> Uuid {
    body["id"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("an id in the answer")
}
