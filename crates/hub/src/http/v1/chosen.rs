//! Objects under ids that the caller chose, so that a caller who is cut off can ask again and gets one, not two.

use super::input::V1;
use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::http::body::Json;
use crate::http::extract::Ids;
use crate::http::problem::{ProblemV1, json};
use crate::http::view;
use crate::http::view::cluster::Shown;
use crate::usecase::cluster_create::cluster_create_as;
use crate::usecase::cluster_import::cluster_import_as;
use crate::usecase::infra_env_create::infra_env_create_as;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::put;
use muster_contract::v1::problem::Problem;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::cluster_request::{CreateCluster, ImportCluster};
use muster_contract::v2::infra_env::{CreateInfraEnv, InfraEnvView};
use muster_domain::cluster::Cluster;
use muster_domain::infra_env::InfraEnv;
use muster_domain::{ClusterId, InfraEnvId};
use std::sync::Arc;
use uuid::Uuid;

#[derive(utoipa::OpenApi)]
#[openapi(paths(infra_env, cluster, import))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/infra-envs/{infra_env_id}", put(infra_env))
        .route("/clusters/{cluster_id}", put(cluster))
        .route("/clusters/{cluster_id}/import", put(import))
}

/// Create an InfraEnv with a chosen id
///
/// If it exists already, the hub answers with it as it is; change it with REST v2.
#[utoipa::path(put, path = "/api/muster/v1/infra-envs/{infra_env_id}", operation_id = "putInfraEnv", tag = "muster",
    params(("infra_env_id" = Uuid, Path)), request_body = CreateInfraEnv,
    responses((status = 200, description = "It existed already", body = InfraEnvView),
        (status = 201, description = "The new InfraEnv", body = InfraEnvView),
        (status = 400, description = "Something in the request is wrong", body = Problem),
        (status = 404, description = "No such cluster", body = Problem)))]
async fn infra_env(
    State(hub): State<Hub>,
    V1(Ids(id)): V1<Ids<Uuid>>,
    opctx: OpContext,
    V1(Json(wish)): V1<Json<CreateInfraEnv>>,
) -> Result<Response, ProblemV1> {
    let id = InfraEnvId(id);
    let show = |status, row: &InfraEnv| Ok(json(status, &view::infra_env::full(&hub, row)));
    if let Some(row) = hub.index.infra_env(id) {
        return show(StatusCode::OK, &row);
    }
    match infra_env_create_as(&hub, id, &wish, &opctx).await {
        Ok(row) => show(StatusCode::CREATED, &row),
        // Somebody else was faster, perhaps through another hub.
        Err(error) if error.is_stale() => {
            let row = hub.index.infra_env(id).ok_or(error)?;
            show(StatusCode::OK, &row)
        }
        Err(error) => Err(error.into()),
    }
}

/// Create a cluster with a chosen id
///
/// If it exists already, the hub answers with it as it is; change it with REST v2.
#[utoipa::path(put, path = "/api/muster/v1/clusters/{cluster_id}", operation_id = "putCluster", tag = "muster",
    params(("cluster_id" = Uuid, Path)), request_body = CreateCluster,
    responses((status = 200, description = "It existed already", body = ClusterView),
        (status = 201, description = "The new cluster", body = ClusterView),
        (status = 400, description = "Something in the request is wrong", body = Problem)))]
async fn cluster(
    State(hub): State<Hub>,
    V1(Ids(id)): V1<Ids<Uuid>>,
    opctx: OpContext,
    V1(Json(wish)): V1<Json<CreateCluster>>,
) -> Result<Response, ProblemV1> {
    let id = ClusterId(id);
    match hub.index.cluster(id) {
        Some(row) => Ok(show(&hub, StatusCode::OK, &row)),
        None => made(&hub, id, cluster_create_as(&hub, id, &wish, &opctx).await).await,
    }
}

/// Import a cluster with a chosen id
///
/// Records a cluster that was installed elsewhere, so that it can take on hosts.
#[utoipa::path(put, path = "/api/muster/v1/clusters/{cluster_id}/import", operation_id = "putImportedCluster",
    tag = "muster", params(("cluster_id" = Uuid, Path)), request_body = ImportCluster,
    responses((status = 200, description = "It existed already", body = ClusterView),
        (status = 201, description = "The imported cluster", body = ClusterView),
        (status = 400, description = "Something in the request is wrong", body = Problem)))]
async fn import(
    State(hub): State<Hub>,
    V1(Ids(id)): V1<Ids<Uuid>>,
    opctx: OpContext,
    V1(Json(wish)): V1<Json<ImportCluster>>,
) -> Result<Response, ProblemV1> {
    let id = ClusterId(id);
    match hub.index.cluster(id) {
        Some(row) => Ok(show(&hub, StatusCode::OK, &row)),
        None => made(&hub, id, cluster_import_as(&hub, id, &wish, &opctx).await).await,
    }
}

async fn made(hub: &Hub, id: ClusterId, done: Result<Arc<Cluster>, Error>) -> Result<Response, ProblemV1> {
    match done {
        Ok(row) => Ok(show(hub, StatusCode::CREATED, &row)),
        // Somebody else was faster, perhaps through another hub.
        Err(error) if error.is_stale() => match hub.store.find(id).await? {
            Some(row) => Ok(show(hub, StatusCode::OK, &row)),
            None => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn show(hub: &Hub, status: StatusCode, cluster: &Cluster) -> Response {
    let shown = if cluster.imported {
        Shown::Imported
    } else {
        Shown::Whole(&[])
    };
    json(status, &view::cluster::full(hub, cluster, shown))
}
