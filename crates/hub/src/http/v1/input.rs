//! What a request brings, refused in the shape of this API.

use crate::http::problem::{self, ProblemV1};
use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use muster_contract::v1::problem::Problem;
use muster_contract::v2::error::InfraErrorBody;

/// An extractor of REST v2 whose refusals become problem details.
pub struct V1<E>(pub E);

/// More than any refusal of an extractor says.
const LONGEST_REFUSAL: usize = 64 * 1024;

impl<E: FromRequestParts<S, Rejection = Response> + Send, S: Send + Sync> FromRequestParts<S> for V1<E> {
    type Rejection = ProblemV1;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemV1> {
        match E::from_request_parts(parts, state).await {
            Ok(value) => Ok(Self(value)),
            Err(refusal) => Err(retold(refusal).await),
        }
    }
}

impl<E: FromRequest<S, Rejection = Response> + Send, S: Send + Sync> FromRequest<S> for V1<E> {
    type Rejection = ProblemV1;

    async fn from_request(request: Request, state: &S) -> Result<Self, ProblemV1> {
        match E::from_request(request, state).await {
            Ok(value) => Ok(Self(value)),
            Err(refusal) => Err(retold(refusal).await),
        }
    }
}

/// What a layer before all operations refuses, in the shape of the API that was asked.
pub async fn shaped(path: &str, refusal: Response) -> Response {
    if path.starts_with(muster_contract::v1::BASE) {
        return retold(refusal).await.into_response();
    }
    refusal
}

async fn retold(refusal: Response) -> ProblemV1 {
    let status = refusal.status();
    let bytes = to_bytes(refusal.into_body(), LONGEST_REFUSAL)
        .await
        .unwrap_or_default();
    let said = serde_json::from_slice::<InfraErrorBody>(&bytes)
        .map(|body| body.message)
        .unwrap_or_default();
    problem(
        status,
        "invalid",
        said,
        "Correct the request; /docs describes it.",
    )
}

pub fn problem(status: StatusCode, code: &'static str, detail: String, next_action: &str) -> ProblemV1 {
    let body = Problem {
        r#type: format!("about:blank#{code}").into(),
        title: status.canonical_reason().unwrap_or("Error").into(),
        status: status.as_u16(),
        code: code.into(),
        detail,
        next_action: Some(next_action.to_owned()).filter(|next| !next.is_empty()),
        request_id: None,
    };
    let mut response = problem::json(status, &body);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    response.into()
}
