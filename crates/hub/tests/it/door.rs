//! A hub in this process, asked through its real router, and hosts that report to it.

use crate::place::Place;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use muster_hub::{Clock, Hub, Settings, http, worker};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;
use uuid::Uuid;

pub const V1: &str = muster_contract::v1::BASE;
pub const V2: &str = muster_contract::v2::BASE;
pub const PULL_SECRET: &str = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;

pub struct Door {
    pub hub: Hub,
    pub router: Router,
    // Dropped last, when nobody uses its database any more.
    place: Arc<Place>,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Null when the answer is not JSON.
    pub body: Value,
    pub text: String,
    pub bytes: Vec<u8>,
}

impl Door {
    pub async fn open() -> Self {
        Self::at(Place::new().await, Clock::System).await
    }

    pub async fn at(place: Place, clock: Clock) -> Self {
        Self::with(place, clock, |_| ()).await
    }

    /// With other settings than usual.
    pub async fn with(place: Place, clock: Clock, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = place.settings();
        change(&mut settings);
        let hub = Hub::open(place.open().await, settings, clock).await.unwrap();
        Self {
            router: http::router(hub.clone()),
            hub,
            place: Arc::new(place),
        }
    }

    /// The hub is stopped and started again.
    pub async fn restarted(self) -> Self {
        let Self { hub, router, place } = self;
        drop(router);
        hub.store.close().await;
        let mut settings = hub.settings.clone();
        settings.was_here_before = true;
        let hub = Hub::open(place.open().await, settings, hub.clock.clone())
            .await
            .unwrap();
        Self {
            router: http::router(hub.clone()),
            hub,
            place,
        }
    }

    /// Another hub on the same store. It does not follow the feed: what it learns, it learns by being asked.
    pub async fn beside(&self) -> Self {
        self.second("postgresql").await
    }

    /// Another hub on the same store that believes to be alone, and whose memory is therefore always a bit old.
    pub async fn blind(&self) -> Self {
        self.second("sqlite").await
    }

    async fn second(&self, database: &'static str) -> Self {
        let mut settings = self.place.settings();
        settings.database = database;
        let hub = Hub::open(self.hub.store.clone(), settings, self.hub.clock.clone())
            .await
            .unwrap();
        self.replaced_by(hub)
    }

    /// The way to another hub on the same store.
    pub fn replaced_by(&self, hub: Hub) -> Self {
        Self {
            router: http::router(hub.clone()),
            hub,
            place: self.place.clone(),
        }
    }

    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.answer(request.body(body).unwrap()).await
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            bytes,
        }
    }

    /// A body as it is, whatever it is.
    pub async fn send(&self, method: Method, path: &str, kind: &str, body: impl Into<Body>) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, kind);
        self.answer(request.body(body.into()).unwrap()).await
    }

    /// Waits until the answer is one of these.
    pub async fn until(&self, path: &str, is_it: impl Fn(&Answer) -> bool) {
        let asked = async {
            while !is_it(&self.get(path).await) {
                tokio::task::yield_now().await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(60), asked).await;
        assert!(
            in_time.is_ok(),
            "{path} does not answer as it should: {}",
            self.get(path).await.text
        );
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask(Method::POST, path, Some(&body)).await
    }

    async fn create(&self, path: &str, body: Value) -> Uuid {
        let answer = self.post(path, body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        answer.body["id"].as_str().unwrap().parse().unwrap()
    }

    pub async fn infra_env(&self, name: &str) -> Uuid {
        self.create(
            &format!("{V2}/infra-envs"),
            json!({ "name": name, "pull_secret": PULL_SECRET }),
        )
        .await
    }

    pub async fn cluster(&self, name: &str) -> Uuid {
        let body = json!({ "name": name, "openshift_version": "4.20", "pull_secret": PULL_SECRET,
            "base_dns_domain": "example.com" });
        self.create(&format!("{V2}/clusters"), body).await
    }

    /// A free host that is large enough for a worker, not for a master.
    pub async fn worker(&self, infra_env: Uuid, number: u8) -> Uuid {
        let host = Uuid::from_u128(number.into());
        self.register(infra_env, host).await;
        self.report(infra_env, host, number).await;
        host
    }

    pub async fn register(&self, infra_env: Uuid, host: Uuid) {
        let agent = self.hub.settings.images.agent.clone();
        let body = json!({ "host_id": host, "discovery_agent_version": agent });
        let answer = self
            .post(&format!("{V2}/infra-envs/{infra_env}/hosts"), body)
            .await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    }

    /// Its inventory and its time sources.
    pub async fn report(&self, infra_env: Uuid, host: Uuid, number: u8) {
        let ntp =
            json!({ "ntp_sources": [{ "source_name": "clock.example.com", "source_state": "synced" }] });
        for (step, output) in [("inventory", inventory(number)), ("ntp-synchronizer", ntp)] {
            let body = json!({ "step_type": step, "step_id": format!("{step}-1"), "exit_code": 0,
                "output": output.to_string(), "error": "" });
            let answer = self
                .post(
                    &format!("{V2}/infra-envs/{infra_env}/hosts/{host}/instructions"),
                    body,
                )
                .await;
            assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text);
        }
    }

    pub async fn bind(&self, infra_env: Uuid, host: Uuid, cluster: Uuid) -> Answer {
        let path = format!("{V2}/infra-envs/{infra_env}/hosts/{host}/actions/bind");
        self.post(&path, json!({ "cluster_id": cluster })).await
    }

    pub async fn status(&self, infra_env: Uuid, host: Uuid) -> String {
        let answer = self
            .get(&format!("{V2}/infra-envs/{infra_env}/hosts/{host}"))
            .await;
        answer.body["status"].as_str().unwrap_or_default().to_owned()
    }

    /// The only value of the only row that it finds past the hub.
    pub async fn text(&self, text: &str) -> String {
        self.place.text(text).await
    }

    /// Runs the statement that the database understands, past the hub.
    pub async fn tamper(&self, sqlite: &str, postgres: &str) {
        self.place.tamper(sqlite, postgres).await;
    }

    /// From now on every commit fails; each counts its changes here.
    pub async fn break_writes(&self) {
        self.tamper(
            "create trigger fault before update on counters begin select raise(rollback, 'injected'); end",
            "create function fault() returns trigger language plpgsql as $$
             begin raise exception 'injected' using errcode = '53100'; end $$;
             create constraint trigger fault after update on counters deferrable initially deferred
             for each row execute function fault()",
        )
        .await;
    }

    pub async fn mend_writes(&self) {
        self.tamper("drop trigger fault", "drop trigger fault on counters")
            .await;
    }

    /// Does what the workers would do now.
    pub async fn settle(&self) {
        worker::run_until_idle(&self.hub).await.unwrap();
    }
}

const GIB: i64 = 1 << 30;

pub fn inventory(number: u8) -> Value {
    json!({
        "hostname": format!("worker-{number}"),
        "bmc_address": "0.0.0.0",
        "boot": { "current_boot_mode": "uefi" },
        "cpu": { "architecture": "x86_64", "count": 2, "model_name": "test", "flags": ["vmx"] },
        "memory": { "physical_bytes": 8 * GIB, "usable_bytes": 8 * GIB },
        "system_vendor": { "manufacturer": "Example", "product_name": "Box", "serial_number": format!("S{number}") },
        "disks": [{ "id": "/dev/disk/by-id/wwn-0x1", "by_id": "/dev/disk/by-id/wwn-0x1", "name": "sda",
            "path": "/dev/sda", "drive_type": "SSD", "size_bytes": 200 * GIB,
            "installation_eligibility": { "eligible": true } }],
        "interfaces": [{ "name": "eth0", "mac_address": format!("52:54:00:00:00:{number:02x}"), "has_carrier": true,
            "mtu": 1500, "type": "physical", "ipv4_addresses": [format!("192.168.7.{}/24", 20 + number)],
            "ipv6_addresses": [] }],
        "routes": [{ "destination": "0.0.0.0", "gateway": "192.168.7.1", "interface": "eth0", "family": 2 }],
    })
}
