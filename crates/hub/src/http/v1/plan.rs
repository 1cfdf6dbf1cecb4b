//! What a verb would do, without doing it.

use super::input::V1;
use crate::Hub;
use crate::change::OpContext;
use crate::http::body::Json;
use crate::http::problem::{ProblemV1, json};
use crate::usecase;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use muster_contract::v1::plan::{PlanRequest, PlanView};
use muster_contract::v1::problem::Problem;

#[derive(utoipa::OpenApi)]
#[openapi(paths(plan))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new().route("/plan", post(plan))
}

/// Plan a verb
///
/// The code of the verb itself decides, and the hub does not carry it out: what would happen step by step, what would
/// be lost for good, and everything that blocks it, each with what to do about it.
#[utoipa::path(post, path = "/api/muster/v1/plan", operation_id = "plan", tag = "muster",
    request_body = PlanRequest,
    responses((status = 200, description = "What would happen", body = PlanView),
        (status = 400, description = "Something in the request is wrong", body = Problem),
        (status = 404, description = "No such host, cluster or InfraEnv", body = Problem)))]
async fn plan(
    State(hub): State<Hub>,
    opctx: OpContext,
    V1(Json(request)): V1<Json<PlanRequest>>,
) -> Result<Response, ProblemV1> {
    Ok(json(
        StatusCode::OK,
        &usecase::plan::plan(&hub, &request, &opctx).await?,
    ))
}
