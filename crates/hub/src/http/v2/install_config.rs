//! The install config of a cluster: as it would be used, and what people change about it.

use crate::Hub;
use crate::change::OpContext;
use crate::http::body::Json;
use crate::http::extract::Ids;
use crate::http::problem::{Problem, json};
use crate::http::v2::clusters::find;
use crate::usecase::cluster_files::install_config;
use crate::usecase::cluster_update::cluster_install_config;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::install::InstallConfigOverrides;
use muster_domain::ClusterId;
use uuid::Uuid;

pub fn routes() -> Router<Hub> {
    Router::new().route("/clusters/{cluster_id}/install-config", get(show).patch(change))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(show, change))]
pub struct Doc;

/// Show the install config
///
/// As the installer would get it now, changes included: YAML in a JSON text. It holds the cluster's pull secret.
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/install-config",
    operation_id = "v2GetClusterInstallConfig", tag = "installation", params(("cluster_id" = Uuid, Path)),
    responses((status = 200, description = "The install config", body = String),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn show(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    Ok(json(StatusCode::OK, &install_config(&hub, &cluster)?))
}

/// Change parts of the install config
///
/// A JSON object in a text; the hub keeps it for the installation.
#[utoipa::path(patch, path = "/api/assisted-install/v2/clusters/{cluster_id}/install-config",
    operation_id = "v2UpdateClusterInstallConfig", tag = "installation", params(("cluster_id" = Uuid, Path)),
    request_body = InstallConfigOverrides,
    responses((status = 201, description = "The hub stored it"),
        (status = 400, description = "It is not a JSON object", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn change(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    Json(overrides): Json<InstallConfigOverrides>,
) -> Result<StatusCode, Problem> {
    cluster_install_config(&hub, ClusterId(id), &overrides.0, &opctx).await?;
    Ok(StatusCode::CREATED)
}
