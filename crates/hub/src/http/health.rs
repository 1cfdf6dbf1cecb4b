//! Three questions of those who watch the hub: does it live, does it do its work, and what is wrong with it.
//!
//! A hub lives as long as it answers: a restart mends no disk and no server. None of the answers waits for the database
//! longer than [`PATIENCE`].

use crate::Hub;
use crate::http::problem::{json, store_text};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use muster_contract::v1::status::{Health, HealthTrouble};
use muster_store::StoreError;
use std::time::{Duration, Instant};

/// Below what those who ask usually wait.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/livez", get(async || StatusCode::OK))
        .route("/ready", get(ready))
        .route("/readyz", get(ready))
        .route("/health", get(health))
}

/// Whether changes can be written now.
async fn ready(State(hub): State<Hub>) -> Response {
    match writes(&hub).await {
        None => StatusCode::OK.into_response(),
        Some(trouble) => failing(StatusCode::SERVICE_UNAVAILABLE, vec![trouble], &hub),
    }
}

/// The reference answers 200 or 500, too.
async fn health(State(hub): State<Hub>) -> Response {
    let (writes, reads) = tokio::join!(writes(&hub), reads(&hub));
    let worker = hub.workers.stuck(Instant::now()).map(stalled);
    let troubles: Vec<_> = writes.into_iter().chain(reads).chain(worker).collect();
    if troubles.is_empty() {
        return json(StatusCode::OK, &view("ok", troubles, &hub));
    }
    for trouble in &troubles {
        tracing::error!(what = %trouble.what, cause = trouble.cause, "the hub is not healthy");
    }
    failing(StatusCode::INTERNAL_SERVER_ERROR, troubles, &hub)
}

/// Why changes cannot be written, if they cannot.
pub async fn writes(hub: &Hub) -> Option<HealthTrouble> {
    let error = hub.store.writable(PATIENCE).await.err()?;
    Some(of_store("writes", &error))
}

async fn reads(hub: &Hub) -> Option<HealthTrouble> {
    let error = match tokio::time::timeout(PATIENCE, hub.store.ping()).await {
        Ok(answer) => answer.err()?,
        Err(_) => StoreError::slow(PATIENCE),
    };
    Some(of_store("reads", &error))
}

fn of_store(what: &'static str, error: &StoreError) -> HealthTrouble {
    HealthTrouble {
        what: what.into(),
        cause: store_text(error),
        next_action: error
            .fault()
            .map_or("Read the hub's log.", |trouble| trouble.fix())
            .into(),
    }
}

fn stalled(worker: &'static str) -> HealthTrouble {
    HealthTrouble {
        what: worker.into(),
        cause: "This worker has not begun a run for minutes.".into(),
        next_action: "If nothing else is wrong, restart the hub and report its log.".into(),
    }
}

fn failing(status: StatusCode, troubles: Vec<HealthTrouble>, hub: &Hub) -> Response {
    json(status, &view("failing", troubles, hub))
}

/// Rows that are set aside are reported and fail nothing: a restart mends none of them, and everybody else is served.
fn view(status: &'static str, troubles: Vec<HealthTrouble>, hub: &Hub) -> Health {
    let (set_aside_count, set_aside) = hub.set_aside();
    Health {
        status: status.into(),
        troubles,
        set_aside_count,
        set_aside,
    }
}
