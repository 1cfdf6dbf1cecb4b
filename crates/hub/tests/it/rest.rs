//! A hub in this process, asked as over the network.

use crate::place::Place;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use jiff::Timestamp;
use muster_hub::{Clock, Hub, Settings, http, worker};
use serde_json::Value;
use tower::ServiceExt;

pub const PULL_SECRET: &str = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
pub const UNKNOWN: &str = "11111111-2222-3333-4444-555555555555";

pub struct Door {
    pub hub: Hub,
    router: Router,
    // Dropped last, when nobody uses its database any more.
    _place: Place,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Door {
    pub async fn open() -> Self {
        Self::with(|_| ()).await
    }

    pub async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let place = Place::new().await;
        let clock = Clock::manual(Timestamp::from_second(1_794_776_575).unwrap());
        let mut settings = place.settings();
        change(&mut settings);
        let hub = Hub::open(place.open().await, settings, clock).await.unwrap();
        Self {
            router: http::router(hub.clone()),
            hub,
            _place: place,
        }
    }

    /// `path` begins after the base path. Work that a request leaves behind is done before this returns.
    pub async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let mut request = Request::builder()
            .method(method.parse::<Method>().unwrap())
            .uri(format!("{}{path}", muster_contract::v2::BASE));
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let response = self
            .router
            .clone()
            .oneshot(request.body(body).unwrap())
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        worker::reconcile::once(&self.hub).await.unwrap();
        Reply {
            status: parts.status,
            headers: parts.headers,
            bytes,
        }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, None).await
    }

    /// Creates and returns the new object.
    pub async fn create(&self, path: &str, body: Value) -> Value {
        let reply = self.ask("POST", path, Some(&body)).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
        reply.json()
    }

    pub async fn infra_env(&self, mut more: Value) -> Value {
        let object = more.as_object_mut().unwrap();
        object.entry("name").or_insert("pool".into());
        object.entry("pull_secret").or_insert(PULL_SECRET.into());
        self.create("/infra-envs", more).await
    }

    pub async fn cluster(&self, mut more: Value) -> Value {
        let object = more.as_object_mut().unwrap();
        object.entry("name").or_insert("prod".into());
        object.entry("openshift_version").or_insert("4.20".into());
        object.entry("pull_secret").or_insert(PULL_SECRET.into());
        self.create("/clusters", more).await
    }
}

pub fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}
