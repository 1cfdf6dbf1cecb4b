//! Changes of an InfraEnv that REST v2 has no words for.

use super::input::V1;
use crate::Hub;
use crate::change::OpContext;
use crate::http::body::Json;
use crate::http::extract::Ids;
use crate::http::problem::{ProblemV1, json};
use crate::http::query::Args;
use crate::http::view;
use crate::usecase::infra_env_delete_hosts::{MOST_AT_A_TIME, infra_env_delete_hosts};
use crate::usecase::infra_env_update::infra_env_change;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{delete, patch};
use muster_contract::v1::infra_env::{ChangeInfraEnv, DeleteWithHostsQuery, DeletionView};
use muster_contract::v1::problem::Problem;
use muster_contract::v2::infra_env::InfraEnvView;
use muster_domain::InfraEnvId;
use uuid::Uuid;

#[derive(utoipa::OpenApi)]
#[openapi(paths(change, delete_with_hosts))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/infra-envs/{infra_env_id}", patch(change))
        .route("/infra-envs/{infra_env_id}/with-hosts", delete(delete_with_hosts))
}

/// Remove settings of an InfraEnv, or give it another cluster
///
/// Hosts that boot its image from then on lack the settings, and belong to that cluster. The cluster it had must no
/// longer exist.
#[utoipa::path(patch, path = "/api/muster/v1/infra-envs/{infra_env_id}", operation_id = "changeInfraEnv", tag = "muster",
    params(("infra_env_id" = Uuid, Path)), request_body = ChangeInfraEnv,
    responses((status = 200, description = "The InfraEnv as it is now", body = InfraEnvView),
        (status = 400, description = "Something in the request is wrong", body = Problem),
        (status = 404, description = "No such InfraEnv or cluster", body = Problem),
        (status = 409, description = "Its cluster exists", body = Problem)))]
async fn change(
    State(hub): State<Hub>,
    V1(Ids(id)): V1<Ids<Uuid>>,
    opctx: OpContext,
    V1(Json(body)): V1<Json<ChangeInfraEnv>>,
) -> Result<Response, ProblemV1> {
    let row = infra_env_change(&hub, InfraEnvId(id), &body, &opctx).await?;
    Ok(json(StatusCode::OK, &view::infra_env::full(&hub, &row)))
}

/// Delete an InfraEnv with its hosts
///
/// Only when none of them was ever lent. Each request deletes some of the hosts in one commit, and the InfraEnv with
/// the last of them: ask again until `done` is true, also after an interruption.
#[utoipa::path(delete, path = "/api/muster/v1/infra-envs/{infra_env_id}/with-hosts",
    operation_id = "deleteInfraEnvWithHosts", tag = "muster", params(("infra_env_id" = Uuid, Path), DeleteWithHostsQuery),
    responses((status = 200, description = "The progress so far", body = DeletionView),
        (status = 400, description = "Something in the request is wrong", body = Problem),
        (status = 404, description = "No such InfraEnv", body = Problem),
        (status = 409, description = "Clusters have or had some of its hosts", body = Problem)))]
async fn delete_with_hosts(
    State(hub): State<Hub>,
    V1(Ids(id)): V1<Ids<Uuid>>,
    V1(Args(query)): V1<Args<DeleteWithHostsQuery>>,
    opctx: OpContext,
) -> Result<Response, ProblemV1> {
    let most = query.limit.map_or(MOST_AT_A_TIME, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let far = infra_env_delete_hosts(&hub, InfraEnvId(id), most, &opctx).await?;
    let view = DeletionView {
        deleted: far.deleted as u64,
        left: far.left as u64,
        done: far.done,
    };
    Ok(json(StatusCode::OK, &view))
}
