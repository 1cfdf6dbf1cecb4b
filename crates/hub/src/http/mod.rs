//! The door: parse, hand over to a use case, reply. No decisions here.

pub mod body;
pub mod crowd;
pub mod docs;
pub mod extract;
pub mod firmware;
pub mod guard;
pub mod health;
pub mod heavy;
pub mod hello;
pub mod images;
pub mod metrics;
pub mod openapi;
pub mod problem;
pub mod query;
pub mod server;
pub mod v1;
pub mod v2;
pub mod view;
pub mod watched;

use crate::Hub;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

/// Large enough for the reports of big hosts, small enough that nobody can fill our memory with one request.
pub(crate) const BODY_LIMIT: usize = 16 * 1024 * 1024;
/// Below this, compressing costs more than it saves.
const WORTH_COMPRESSING: u64 = 4096;

pub fn router(hub: Hub) -> Router {
    let shrink = SizeAbove::new(WORTH_COMPRESSING).and(NotForContentType::SSE);
    Router::new()
        .merge(health::routes())
        .route("/metrics", get(metrics::page))
        .merge(docs::routes())
        .nest(muster_contract::v2::BASE, v2::routes())
        .nest(muster_contract::v1::BASE, v1::routes())
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Door::new(&hub), enter))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(CatchPanicLayer::custom(broken))
        .layer(CompressionLayer::new().gzip(true).compress_when(shrink))
        .with_state(hub)
}

/// What every request passes on its way to its operation.
#[derive(Clone)]
struct Door {
    hub: Hub,
    lanes: heavy::Lanes,
}

impl Door {
    fn new(hub: &Hub) -> Self {
        Self {
            hub: hub.clone(),
            lanes: heavy::Lanes::default(),
        }
    }
}

/// One layer for all of it: for every request the router copies each layer together with all that are below it.
async fn enter(State(door): State<Door>, request: Request, next: Next) -> Response {
    let Door { hub, lanes } = door;
    // Ids and names in paths are decoded in many places; what none of them can use goes no further than this.
    if let Err(invalid) = query::no_zero("path", request.uri().path()) {
        let refusal = problem::framework(StatusCode::BAD_REQUEST, invalid.to_string());
        return v1::input::shaped(request.uri().path(), refusal).await;
    }
    if let Some(refusal) = unacceptable(&request) {
        return refusal;
    }
    heavy::apart(lanes, request, |request| inside(hub, request, next)).await
}

async fn inside(hub: Hub, request: Request, next: Next) -> Response {
    let timing = metrics::Timing::begin(&request);
    let response = match prepared(&hub, request.method(), request.uri()).await {
        Ok(()) => crate::carry::changes(request, next).await,
        Err(refusal) => refusal,
    };
    timing.end(&hub.metrics, response.status());
    response
}

/// What an operation may rely on: memory has what the path names, its rows can be read, and clusters are as new as the
/// changes to them.
async fn prepared(hub: &Hub, method: &Method, uri: &Uri) -> Result<(), Response> {
    let path = uri.path();
    let ready = match crate::replica::load_what_is_named(hub, path).await {
        Ok(()) => crate::aside::readable_named(hub, path),
        Err(error) => Err(error),
    };
    ready.map_err(|error| problem::shaped_as_asked(path, error))?;
    crate::caught_up::first(hub, method, uri).await;
    Ok(())
}

/// A mistake of ours: the caller hears of it, and others are not cut off.
fn broken(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied());
    tracing::error!(
        panic = text.unwrap_or("unknown"),
        "a request failed inside the hub"
    );
    problem::framework(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal error; the hub's log has the details",
    )
}

fn stopping() -> Response {
    problem::framework(StatusCode::SERVICE_UNAVAILABLE, "the hub is stopping")
}

async fn no_route(request: Request) -> Response {
    problem::framework(
        StatusCode::NOT_FOUND,
        format!("there is no path {}", request.uri().path()),
    )
}

async fn wrong_method(request: Request) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    problem::framework(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{path} does not offer {method}"),
    )
}

/// REST v2 speaks JSON only, and says so before anything is done.
fn unacceptable(request: &Request) -> Option<Response> {
    if !request.uri().path().starts_with(muster_contract::v2::BASE) {
        return None;
    }
    let text = |name| request.headers().get(name).map(HeaderValue::to_str)?.ok();
    let has_body = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    let sent = text(header::CONTENT_TYPE)
        .filter(|_| has_body)
        .map(str::trim)
        .filter(|sent| !sent.is_empty());
    let known = [
        "application/json",
        "multipart/form-data",
        "application/octet-stream",
    ];
    if sent.is_some_and(|sent| !known.iter().any(|known| sent.starts_with(known))) {
        let message = "the hub does not understand this Content-Type: send application/json";
        return Some(problem::framework(StatusCode::BAD_REQUEST, message));
    }
    let wanted = text(header::ACCEPT).filter(|wanted| !wanted.trim().is_empty())?;
    let offered = [
        "*/*",
        "application/*",
        "application/json",
        "application/octet-stream",
        "text/event-stream",
    ];
    let fits = wanted
        .split(',')
        .any(|one| offered.contains(&one.split(';').next().unwrap_or_default().trim()));
    (!fits).then(|| {
        problem::framework(
            StatusCode::BAD_REQUEST,
            "the hub does not offer what the Accept header asks for: use application/json",
        )
    })
}
