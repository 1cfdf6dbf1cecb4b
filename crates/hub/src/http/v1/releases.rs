//! Which release an image is.

use super::input::V1;
use crate::Hub;
use crate::error::Error;
use crate::http::problem::{ProblemV1, json};
use crate::http::query::Args;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use muster_contract::v1::problem::Problem;
use muster_contract::v1::release::{ReleaseQuery, ReleaseView};

#[derive(utoipa::OpenApi)]
#[openapi(paths(release))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new().route("/releases", get(release))
}

/// Show which release an image is
///
/// By this hub's list of releases, else by the version in the image's tag.
#[utoipa::path(get, path = "/api/muster/v1/releases", operation_id = "releaseOfImage", tag = "muster",
    params(ReleaseQuery),
    responses((status = 200, description = "The release", body = ReleaseView),
        (status = 400, description = "Nothing names its version", body = Problem)))]
async fn release(
    State(hub): State<Hub>,
    V1(Args(query)): V1<Args<ReleaseQuery>>,
) -> Result<Response, ProblemV1> {
    let found = hub
        .settings
        .catalog
        .release_of_image(&query.image)
        .map_err(Error::from)?;
    let view = ReleaseView {
        version: found.version,
        cpu_architecture: found.cpu_architecture,
        image: found.url,
    };
    Ok(json(StatusCode::OK, &view))
}
