//! The state of the hub itself.

use crate::Hub;
use crate::http::{health, problem};
use crate::tls::Tls;
use crate::worker::feed;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use muster_contract::v1::status::{HubStatus, TlsStatus, WorkerStatus};

#[derive(utoipa::OpenApi)]
#[openapi(paths(status))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new().route("/status", get(status))
}

/// Show the hub's state
#[utoipa::path(get, path = "/api/muster/v1/status", operation_id = "hubStatus", tag = "muster",
    responses((status = 200, description = "Counts of everything, and the state of the workers", body = HubStatus)))]
async fn status(State(hub): State<Hub>) -> Response {
    // Whoever follows the feed from there must not miss what lists do not show yet. Without a database: from further back.
    let newest_change = feed::catch_up(&hub).await.unwrap_or_else(|_| hub.followed_to());
    let trouble = health::writes(&hub).await;
    let (hosts, clusters, infra_envs) = hub.index.counts();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let workers = hub.workers.read().into_iter().map(|(name, worker)| WorkerStatus {
        name: name.into(),
        runs: worker.runs,
        failures: worker.failures,
        last_run_at: worker.last_run_at,
        last_error: worker.last_error,
    });
    let (set_aside_count, set_aside) = hub.set_aside();
    let view = HubStatus {
        version: env!("CARGO_PKG_VERSION").into(),
        database: hub.settings.database.into(),
        hosts: count(hosts),
        clusters: count(clusters),
        infra_envs: count(infra_envs),
        uptime_seconds: u64::try_from(hub.now().duration_since(hub.started_at).as_secs()).unwrap_or(0),
        trouble: trouble.map(|trouble| trouble.cause),
        newest_change,
        set_aside_count,
        set_aside,
        tls: hub.tls().map(of_tls),
        workers: workers.collect(),
    };
    problem::json(StatusCode::OK, &view)
}

fn of_tls(tls: &Tls) -> TlsStatus {
    let state = tls.state();
    TlsStatus {
        fingerprint: state.facts.fingerprint,
        names: state.facts.names,
        expires_at: state.facts.not_after,
        loaded_at: state.loaded_at,
        self_signed: state.is_self_signed,
        reloads: state.reloads,
        trouble: state.trouble,
    }
}
