//! Images through axum: inside the hub, behind TLS, or alone.

use super::body::body;
use super::path::PREFIXES;
use super::{Asked, Images};
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use http::{StatusCode, header};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The address of the other end of the connection; whoever accepts connections puts it into the request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Everything under the paths of images; for merging into a larger router.
pub fn routes<S: Clone + Send + Sync + 'static>(images: &Images) -> Router<S> {
    PREFIXES
        .iter()
        .fold(Router::new(), |router, prefix| {
            router.route(&format!("{prefix}{{*rest}}"), any(serve))
        })
        .with_state(images.clone())
}

/// A service of its own, with what those who watch it need.
pub fn alone(images: &Images) -> Router {
    let own = Router::new()
        .route("/live", get(async || StatusCode::OK))
        .route("/health", get(async || StatusCode::OK))
        .route("/progress", get(progress))
        .route("/base-images", get(base_images))
        .route("/metrics", get(metrics))
        .with_state(images.clone());
    own.merge(routes(images))
}

async fn serve(State(images): State<Images>, request: Request) -> Response {
    let peer = request
        .extensions()
        .get::<Peer>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let answer = images
        .answer(&Asked {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            client: peer,
        })
        .await;
    let mut response = body(answer.reply.body, answer.meter).into_response();
    *response.status_mut() = answer.reply.status;
    *response.headers_mut() = answer.reply.headers;
    response
}

async fn progress(State(images): State<Images>, Query(query): Query<HashMap<String, String>>) -> Response {
    Json(images.progress(query.get("image").map(String::as_str))).into_response()
}

async fn metrics(State(images): State<Images>) -> Response {
    let mut text = String::new();
    super::metrics::write(&mut text, &images);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

async fn base_images(State(images): State<Images>) -> Response {
    Json(images.depot().list()).into_response()
}
