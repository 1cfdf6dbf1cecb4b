//! Request bodies and queries, decoded strictly: an unknown field is an error that names it.

use crate::http::{BODY_LIMIT, problem};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Enough for the largest body over a slow line; a connection must not be held for ever by a body that never ends.
const BODY_TIME: Duration = Duration::from_secs(120);

/// A JSON body.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        decode(&whole(request, state).await?).map(Self)
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

async fn whole<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Response> {
    // What is announced to be too large is not waited for.
    if announced(request.headers()).is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(too_large());
    }
    let bytes = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, state)).await;
    bytes.map_err(|_| too_slow())?.map_err(unreadable)
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Response> {
    let blank = bytes.trim_ascii();
    if blank.is_empty() || blank == b"null" {
        return Err(problem::framework(
            StatusCode::BAD_REQUEST,
            "the request needs a JSON body",
        ));
    }
    muster_contract::body::decode(bytes)
        .map_err(|error| problem::framework(StatusCode::BAD_REQUEST, error.to_string()))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large() -> Response {
    let message = format!("the body is larger than {} MiB", BODY_LIMIT / (1 << 20));
    problem::framework(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn too_slow() -> Response {
    let message = format!("the body did not arrive within {} seconds", BODY_TIME.as_secs());
    problem::framework(StatusCode::REQUEST_TIMEOUT, message)
}

fn unreadable(rejection: BytesRejection) -> Response {
    let text = rejection.body_text();
    let status = rejection.into_response().status();
    problem::framework(status, format!("the body cannot be read: {text}"))
}

/// Query parameters; lists may be given once with commas or as repeated keys.
pub struct Args<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Args<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let folded = fold(parts.uri.query().unwrap_or_default());
        serde_urlencoded::from_str(&folded).map(Self).map_err(|error| {
            problem::framework(
                StatusCode::BAD_REQUEST,
                format!("the query cannot be used: {error}"),
            )
        })
    }
}

/// Joins repeated keys with commas, the form in which lists are read.
fn fold(query: &str) -> String {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match pairs.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => {
                values.push_str("%2C");
                values.push_str(value);
            }
            None => pairs.push((key, value.to_owned())),
        }
    }
    pairs
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join("&")
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn repeated_keys_become_one_list() {
        assert_eq!(
            fold("severities=info&severities=error&limit=3"),
            "severities=info%2Cerror&limit=3"
        );
        assert_eq!(fold(""), "");
    }
}
