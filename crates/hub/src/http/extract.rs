//! Who asks, and the ids in the path.

use crate::change::OpContext;
use crate::http::problem;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use muster_domain::{Caller, HostId, HostKey, InfraEnvId};
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use uuid::Uuid;

const REQUEST_ID: &str = "x-request-id";

impl<S: Send + Sync> FromRequestParts<S> for OpContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let given = parts
            .headers
            .get(REQUEST_ID)
            .and_then(|value| value.to_str().ok());
        let request_id = given
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(Uuid::new_v4);
        Ok(Self {
            caller: Caller::admin(),
            request_id: Some(request_id),
            from_reconcile: false,
        })
    }
}

/// Ids from the path; one that is no UUID is the caller's mistake, not a missing object.
pub struct Ids<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Ids<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let path = parts.uri.path().to_owned();
        Path::<T>::from_request_parts(parts, state)
            .await
            .map(|Path(ids)| Self(ids))
            .map_err(|_| {
                let message = format!("an id in {path} is not a UUID");
                problem::framework(StatusCode::BAD_REQUEST, message)
            })
    }
}

/// The host a path names.
pub struct HostPath(pub HostKey);

impl<S: Send + Sync> FromRequestParts<S> for HostPath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        #[derive(serde::Deserialize)]
        struct Pair {
            infra_env_id: Uuid,
            host_id: Uuid,
        }
        let Ids(pair) = Ids::<Pair>::from_request_parts(parts, state).await?;
        Ok(Self(HostKey {
            infra_env: InfraEnvId(pair.infra_env_id),
            host: HostId(pair.host_id),
        }))
    }
}
