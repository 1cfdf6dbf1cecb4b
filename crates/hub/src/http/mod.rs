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
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
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
        .layer(middleware::from_fn(crate::carry::changes))
        .layer(middleware::from_fn_with_state(
            hub.clone(),
            crate::caught_up::first,
        ))
        .layer(middleware::from_fn_with_state(hub.clone(), crate::aside::told))
        .layer(middleware::from_fn_with_state(
            hub.clone(),
            crate::replica::load_what_is_named,
        ))
        .layer(middleware::from_fn_with_state(hub.clone(), metrics::measure))
        .layer(middleware::from_fn_with_state(
            heavy::Lanes::default(),
            heavy::apart,
        ))
        .layer(middleware::from_fn(acceptable))
        .layer(middleware::from_fn(without_zeros))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(CatchPanicLayer::custom(broken))
        .layer(CompressionLayer::new().gzip(true).compress_when(shrink))
        .with_state(hub)
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
        "the hub made a mistake; its log says more",
    )
}

fn stopping() -> Response {
    problem::framework(StatusCode::SERVICE_UNAVAILABLE, "the hub is stopping")
}

/// Ids and names in paths are decoded in many places; what none of them can use goes no further than this.
async fn without_zeros(request: Request, next: Next) -> Response {
    match query::no_zero("path", request.uri().path()) {
        Ok(()) => next.run(request).await,
        Err(invalid) => {
            let refusal = problem::framework(StatusCode::BAD_REQUEST, invalid.to_string());
            v1::input::shaped(request.uri().path(), refusal).await
        }
    }
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
        format!("{method} is not offered on {path}"),
    )
}

/// REST v2 speaks JSON only, and says so before anything is done.
async fn acceptable(request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with(muster_contract::v2::BASE) {
        return next.run(request).await;
    }
    if let Some(refusal) = unacceptable(&request) {
        return refusal;
    }
    next.run(request).await
}

fn unacceptable(request: &Request) -> Option<Response> {
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
        let message = "the Content-Type is not understood here: send application/json";
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
            "the Accept header asks for a form that is not offered: use application/json",
        )
    })
}
