//! Request bodies, decoded strictly: an unknown field is an error that names it, and so is one that is too large.

use crate::http::{BODY_LIMIT, problem};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use muster_contract::body;
use muster_domain::input::bounds;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// Enough for the largest body over a slow line; a connection must not be held for ever by a body that never ends.
pub const BODY_TIME: Duration = Duration::from_secs(120);

/// On requests whose body has another time.
#[derive(Debug, Clone, Copy)]
pub struct BodyTime(pub Duration);

/// A JSON body, with all its lists and texts within their bounds.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        decode(&whole(request, state).await?).map(Self)
    }
}

/// The same from an agent, which passes on what programs and firmware say: zeros in it are dropped, not refused.
pub struct AgentJson<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for AgentJson<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let mut value = parse(&whole(request, state).await?)?;
        bounds::drop_zeros(&mut value);
        typed(value).map(Self)
    }
}

/// A body as it was sent.
pub struct Whole(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Whole {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        whole(request, state).await.map(Self)
    }
}

pub async fn whole<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Response> {
    // What is announced to be too large is not waited for.
    if announced(request.headers()).is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(too_large());
    }
    let time = request
        .extensions()
        .get()
        .map_or(BODY_TIME, |BodyTime(time)| *time);
    let bytes = tokio::time::timeout(time, Bytes::from_request(request, state)).await;
    bytes.map_err(|_| too_slow(time))?.map_err(unreadable)
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Response> {
    typed(parse(bytes)?)
}

fn parse(bytes: &[u8]) -> Result<Value, Response> {
    let blank = bytes.trim_ascii();
    if blank.is_empty() || blank == b"null" {
        return Err(unusable("the request needs a JSON body"));
    }
    body::parse(bytes).map_err(|error| unusable(error.to_string()))
}

/// Bounds come first: what is made of a value may cost more than the value.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Response> {
    bounds::request(&value).map_err(|invalid| unusable(invalid.to_string()))?;
    body::typed(value).map_err(|error| unusable(error.to_string()))
}

fn unusable(message: impl Into<String>) -> Response {
    problem::framework(StatusCode::BAD_REQUEST, message)
}

pub fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large() -> Response {
    let message = format!("the body is larger than {} MiB", BODY_LIMIT / (1 << 20));
    problem::framework(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn too_slow(time: Duration) -> Response {
    let message = format!("the body did not arrive within {} seconds", time.as_secs());
    problem::framework(StatusCode::REQUEST_TIMEOUT, message)
}

fn unreadable(rejection: BytesRejection) -> Response {
    let text = rejection.body_text();
    let status = rejection.into_response().status();
    problem::framework(status, format!("the hub cannot read the body: {text}"))
}
