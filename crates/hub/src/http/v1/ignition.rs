//! Ignition that people bring for a cluster's roles.

use super::input::V1;
use crate::Hub;
use crate::change::OpContext;
use crate::http::body::Whole;
use crate::http::extract::Ids;
use crate::http::problem::{ProblemV1, json};
use crate::usecase::ignition_upload::{ignition_remove, ignition_upload, ignition_uploaded};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::put;
use muster_contract::v1::ignition::UploadedIgnitionView;
use muster_contract::v1::problem::Problem;
use muster_domain::ClusterId;
use muster_vocabulary::Word;
use uuid::Uuid;

#[derive(utoipa::OpenApi)]
#[openapi(paths(upload, show, remove))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new().route(
        "/clusters/{cluster_id}/ignition/{role}",
        put(upload).get(show).delete(remove),
    )
}

#[derive(serde::Deserialize)]
struct RolePath {
    cluster_id: Uuid,
    role: String,
}

/// Upload the Ignition config of a role
///
/// For clusters that no OpenShift installer makes: Fedora CoreOS, k3s, anything that Ignition configures. The body is
/// the config itself, JSON of spec version 3. Once every role of its hosts has one, the cluster installs with them;
/// without one for `bootstrap` no host is a bootstrap host.
#[utoipa::path(put, path = "/api/muster/v1/clusters/{cluster_id}/ignition/{role}", operation_id = "uploadIgnition",
    tag = "muster", params(("cluster_id" = Uuid, Path), ("role" = String, Path, description = "bootstrap, master, worker or arbiter")),
    request_body = Object,
    responses((status = 200, description = "The hub stored it", body = UploadedIgnitionView),
        (status = 400, description = "It is not an Ignition config of version 3, or the role is unknown", body = Problem),
        (status = 404, description = "No such cluster", body = Problem),
        (status = 409, description = "The installation has begun", body = Problem)))]
async fn upload(
    State(hub): State<Hub>,
    V1(Ids(path)): V1<Ids<RolePath>>,
    opctx: OpContext,
    V1(Whole(config)): V1<Whole>,
) -> Result<Response, ProblemV1> {
    let id = ClusterId(path.cluster_id);
    let kept = ignition_upload(&hub, id, &path.role, &config, &opctx).await?;
    let view = UploadedIgnitionView {
        cluster_id: path.cluster_id,
        role: Word::read(&path.role),
        size_bytes: kept.size,
        uploaded_at: kept.written_at,
    };
    Ok(json(StatusCode::OK, &view))
}

/// Show the uploaded Ignition config of a role
#[utoipa::path(get, path = "/api/muster/v1/clusters/{cluster_id}/ignition/{role}", operation_id = "uploadedIgnition",
    tag = "muster", params(("cluster_id" = Uuid, Path), ("role" = String, Path)),
    responses((status = 200, description = "The uploaded config", body = Object),
        (status = 400, description = "The role is unknown", body = Problem),
        (status = 404, description = "No such cluster, or nobody uploaded one", body = Problem)))]
async fn show(State(hub): State<Hub>, V1(Ids(path)): V1<Ids<RolePath>>) -> Result<Response, ProblemV1> {
    let config = ignition_uploaded(&hub, ClusterId(path.cluster_id), &path.role).await?;
    let json_type = HeaderValue::from_static("application/json");
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, json_type)], config).into_response())
}

/// Remove the uploaded Ignition config of a role
#[utoipa::path(delete, path = "/api/muster/v1/clusters/{cluster_id}/ignition/{role}", operation_id = "removeIgnition",
    tag = "muster", params(("cluster_id" = Uuid, Path), ("role" = String, Path)),
    responses((status = 204, description = "It is gone"),
        (status = 400, description = "The role is unknown", body = Problem),
        (status = 404, description = "No such cluster, or nobody uploaded one", body = Problem),
        (status = 409, description = "The installation has begun", body = Problem)))]
async fn remove(
    State(hub): State<Hub>,
    V1(Ids(path)): V1<Ids<RolePath>>,
    opctx: OpContext,
) -> Result<StatusCode, ProblemV1> {
    ignition_remove(&hub, ClusterId(path.cluster_id), &path.role, &opctx).await?;
    Ok(StatusCode::NO_CONTENT)
}
