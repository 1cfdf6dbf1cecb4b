//! Installations are started, cancelled and reset, of a whole cluster or of a host that joins a running one.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::http::extract::{HostPath, Ids};
use crate::http::problem::{Problem, json};
use crate::http::v2::clusters::{find, members};
use crate::http::v2::hosts::answer;
use crate::http::view::cluster::{Shown, full};
use crate::http::view::host::Style;
use crate::usecase::cluster_install::cluster_install;
use crate::usecase::cluster_reconcile::cluster_reconcile;
use crate::usecase::cluster_stop::{Stop, cluster_stop};
use crate::usecase::host_install::{host_install, host_reset, host_retest};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{patch, post};
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::host::HostView;
use muster_domain::cluster::Cluster;
use std::sync::Arc;
use uuid::Uuid;

pub fn routes() -> Router<Hub> {
    let cluster = |rest: &str| format!("/clusters/{{cluster_id}}/actions/{rest}");
    let host = |rest: &str| format!("/infra-envs/{{infra_env_id}}/hosts/{{host_id}}/actions/{rest}");
    Router::new()
        .route(&cluster("install"), post(install))
        .route(&cluster("cancel"), post(cancel))
        .route(&cluster("reset"), post(reset))
        .route(&host("install"), post(install_host))
        .route(&host("reset"), post(reset_host))
        .route(&host("reset-validation/{validation_id}"), patch(reset_validation))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(install, cancel, reset, install_host, reset_host, reset_validation))]
pub struct Doc;

async fn accepted(hub: &Hub, cluster: &Arc<Cluster>) -> Result<Response, Problem> {
    let members = members(hub, cluster.id).await?;
    Ok(json(
        StatusCode::ACCEPTED,
        &full(hub, cluster, Shown::Whole(&members)),
    ))
}

/// Install a cluster
///
/// Every host gets its role, one master starts the control plane, and the hub makes the files of the installation.
/// Nobody writes to a disk before all of that succeeded.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/install",
    operation_id = "v2InstallCluster", tag = "cluster", params(("cluster_id" = Uuid, Path)),
    responses((status = 202, description = "It is being prepared", body = ClusterView),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "It is not ready", body = ErrorBody)))]
async fn install(State(hub): State<Hub>, Ids(id): Ids<Uuid>, opctx: OpContext) -> Result<Response, Problem> {
    let id = find(&hub, id)?.id;
    // The last report may not have been evaluated yet.
    cluster_reconcile(&hub, id)
        .await?
        .ok_or_else(|| Error::missing("cluster", id))?;
    accepted(&hub, &cluster_install(&hub, id, &opctx).await?).await
}

/// Cancel an installation
///
/// The hub tells hosts whose disks are being written to stop. A cluster that was only being prepared is ready again.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/cancel",
    operation_id = "V2CancelInstallation", tag = "cluster", params(("cluster_id" = Uuid, Path)),
    responses((status = 202, description = "Cancelled", body = ClusterView),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "It is not being installed", body = ErrorBody)))]
async fn cancel(State(hub): State<Hub>, Ids(id): Ids<Uuid>, opctx: OpContext) -> Result<Response, Problem> {
    let id = find(&hub, id)?.id;
    accepted(&hub, &cluster_stop(&hub, id, Stop::Cancel, &opctx).await?).await
}

/// Reset a cluster
///
/// Back to before its installation: the hub deletes what it made for it, and discovers its hosts again.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/reset",
    operation_id = "v2ResetCluster", tag = "cluster", params(("cluster_id" = Uuid, Path)),
    responses((status = 202, description = "Reset", body = ClusterView),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "There is nothing to reset", body = ErrorBody)))]
async fn reset(State(hub): State<Hub>, Ids(id): Ids<Uuid>, opctx: OpContext) -> Result<Response, Problem> {
    let id = find(&hub, id)?.id;
    accepted(&hub, &cluster_stop(&hub, id, Stop::Reset, &opctx).await?).await
}

/// Install a host that was added to a running cluster
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/install",
    operation_id = "v2InstallHost", tag = "host", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 202, description = "It is being installed", body = HostView),
        (status = 400, description = "An id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such host, or it has no cluster", body = ErrorBody),
        (status = 409, description = "It cannot be installed now", body = ErrorBody)))]
async fn install_host(
    State(hub): State<Hub>,
    HostPath(key): HostPath,
    opctx: OpContext,
) -> Result<Response, Problem> {
    let host = host_install(&hub, key, &opctx).await?;
    answer(&hub, StatusCode::ACCEPTED, &host, Style::Get).await
}

/// Reset a host that was added to a running cluster
///
/// It stays bound; the hub discovers it again when it boots the discovery image.
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset",
    operation_id = "v2ResetHost", tag = "host", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 200, description = "Reset", body = HostView),
        (status = 400, description = "An id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such host", body = ErrorBody),
        (status = 409, description = "There is nothing to reset", body = ErrorBody)))]
async fn reset_host(
    State(hub): State<Hub>,
    HostPath(key): HostPath,
    opctx: OpContext,
) -> Result<Response, Problem> {
    let host = host_reset(&hub, key, &opctx).await?;
    answer(&hub, StatusCode::OK, &host, Style::Get).await
}

/// Run a check of a host again
///
/// Only for tests that agents run while an installation is prepared.
#[utoipa::path(patch, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset-validation/{validation_id}",
    operation_id = "v2ResetHostValidation", tag = "host",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path), ("validation_id" = String, Path)),
    responses((status = 200, description = "The hub forgets its earlier result"),
        (status = 400, description = "No such check", body = ErrorBody),
        (status = 404, description = "No such host, or it has no cluster", body = ErrorBody)))]
async fn reset_validation(
    State(hub): State<Hub>,
    HostPath(key): HostPath,
    Ids(path): Ids<ValidationPath>,
    opctx: OpContext,
) -> Result<StatusCode, Problem> {
    host_retest(&hub, key, &path.validation_id, &opctx).await?;
    Ok(StatusCode::OK)
}

#[derive(serde::Deserialize)]
struct ValidationPath {
    validation_id: String,
}
