//! InfraEnvs: create, show, change, delete.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::http::body::Json;
use crate::http::extract::Ids;
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use crate::http::view;
use crate::usecase::infra_env_create::infra_env_create;
use crate::usecase::infra_env_delete::infra_env_delete;
use crate::usecase::infra_env_update::{infra_env_new_key, infra_env_update};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::infra_env::{CreateInfraEnv, InfraEnvView, InfraEnvsQuery, UpdateInfraEnv};
use muster_domain::InfraEnvId;
use muster_domain::infra_env::InfraEnv;
use std::sync::Arc;
use uuid::Uuid;

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/infra-envs", get(list).post(create))
        .route(
            "/infra-envs/{infra_env_id}",
            get(show).patch(update).delete(delete),
        )
        .route("/infra-envs/{infra_env_id}/regenerate-signing-key", post(new_key))
}

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(create, list, show, update, delete, new_key),
    components(schemas(ErrorBody, InfraErrorBody))
)]
pub struct Doc;

pub fn find(hub: &Hub, id: Uuid) -> Result<Arc<InfraEnv>, Error> {
    hub.index
        .infra_env(InfraEnvId(id))
        .ok_or_else(|| Error::missing("infra-env", id))
}

/// Create an InfraEnv
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs", operation_id = "RegisterInfraEnv", tag = "infra-env",
    request_body = CreateInfraEnv,
    responses((status = 201, description = "The new InfraEnv", body = InfraEnvView),
        (status = 400, description = "Something in the request is wrong", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn create(
    State(hub): State<Hub>,
    opctx: OpContext,
    Json(wish): Json<CreateInfraEnv>,
) -> Result<Response, Problem> {
    let infra_env = infra_env_create(&hub, &wish, &opctx).await?;
    Ok(json(
        StatusCode::CREATED,
        &view::infra_env::full(&hub, &infra_env),
    ))
}

/// List InfraEnvs
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs", operation_id = "ListInfraEnvs", tag = "infra-env",
    params(InfraEnvsQuery),
    responses((status = 200, description = "Ordered by creation", body = Vec<InfraEnvView>),
        (status = 400, description = "The query is wrong", body = InfraErrorBody)))]
async fn list(State(hub): State<Hub>, Args(query): Args<InfraEnvsQuery>) -> Response {
    let wanted = |infra_env: &&Arc<InfraEnv>| {
        query
            .cluster_id
            .is_none_or(|id| infra_env.cluster.is_some_and(|cluster| cluster.0 == id))
            && query.owner.as_ref().is_none_or(|owner| *owner == infra_env.user)
    };
    let all = hub.index.infra_envs();
    let views: Vec<_> = all
        .iter()
        .filter(wanted)
        .map(|infra_env| view::infra_env::full(&hub, infra_env))
        .collect();
    json(StatusCode::OK, &views)
}

/// Show an InfraEnv
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}", operation_id = "GetInfraEnv",
    tag = "infra-env", params(("infra_env_id" = Uuid, Path)),
    responses((status = 200, description = "The InfraEnv", body = InfraEnvView),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such InfraEnv", body = ErrorBody)))]
async fn show(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let infra_env = hub.newest(InfraEnvId(id)).await?;
    Ok(json(StatusCode::OK, &view::infra_env::full(&hub, &infra_env)))
}

/// Change an InfraEnv
///
/// Fields that are absent or null stay as they are.
#[utoipa::path(patch, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}", operation_id = "UpdateInfraEnv",
    tag = "infra-env", params(("infra_env_id" = Uuid, Path)), request_body = UpdateInfraEnv,
    responses((status = 201, description = "The changed InfraEnv", body = InfraEnvView),
        (status = 400, description = "Something in the request is wrong", body = ErrorBody),
        (status = 404, description = "No such InfraEnv", body = ErrorBody)))]
async fn update(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    Json(wish): Json<UpdateInfraEnv>,
) -> Result<Response, Problem> {
    let infra_env = infra_env_update(&hub, InfraEnvId(id), &wish, &opctx).await?;
    Ok(json(
        StatusCode::CREATED,
        &view::infra_env::full(&hub, &infra_env),
    ))
}

/// Delete an InfraEnv
///
/// Only one without hosts can be deleted.
#[utoipa::path(delete, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}", operation_id = "DeregisterInfraEnv",
    tag = "infra-env", params(("infra_env_id" = Uuid, Path)),
    responses((status = 204, description = "It is gone"),
        (status = 400, description = "It still has hosts", body = ErrorBody),
        (status = 404, description = "No such InfraEnv", body = ErrorBody)))]
async fn delete(State(hub): State<Hub>, Ids(id): Ids<Uuid>, opctx: OpContext) -> Result<StatusCode, Problem> {
    infra_env_delete(&hub, InfraEnvId(id), &opctx).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Replace the key that signs image links
///
/// Links signed with the old key stop working.
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/regenerate-signing-key",
    operation_id = "RegenerateInfraEnvSigningKey", tag = "infra-env", params(("infra_env_id" = Uuid, Path)),
    responses((status = 204, description = "The hub has a new key"),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such InfraEnv", body = ErrorBody)))]
async fn new_key(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
) -> Result<StatusCode, Problem> {
    infra_env_new_key(&hub, InfraEnvId(id), &opctx).await?;
    Ok(StatusCode::NO_CONTENT)
}
