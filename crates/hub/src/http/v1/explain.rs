//! Explanations of hosts, clusters and InfraEnvs.

use super::input::V1;
use crate::Hub;
use crate::change::OpContext;
use crate::http::extract::{HostPath, Ids};
use crate::http::problem::{ProblemV1, json};
use crate::http::query::Args;
use crate::usecase::explain;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use muster_contract::v1::explain::{ExplainView, RoleVerdict};
use muster_contract::v1::problem::Problem;
use muster_domain::{ClusterId, InfraEnvId};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

#[derive(utoipa::OpenApi)]
#[openapi(paths(host, verdicts, cluster, infra_env))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    let host_path = "/infra-envs/{infra_env_id}/hosts/{host_id}";
    Router::new()
        .route(&format!("{host_path}/explain"), get(host))
        .route(&format!("{host_path}/verdicts"), get(verdicts))
        .route("/clusters/{cluster_id}/explain", get(cluster))
        .route("/infra-envs/{infra_env_id}/explain", get(infra_env))
}

/// The cluster one has in mind.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct InMind {
    /// Explain with regard to this cluster: roles of its release, and what binding or moving there would do.
    cluster_id: Option<Uuid>,
}

impl InMind {
    fn cluster(&self) -> Option<ClusterId> {
        self.cluster_id.map(ClusterId)
    }
}

/// Explain a host
#[utoipa::path(get, path = "/api/muster/v1/infra-envs/{infra_env_id}/hosts/{host_id}/explain",
    operation_id = "explainHost", tag = "muster",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path), InMind),
    responses((status = 200, description = "Why it is so, and what to do next", body = ExplainView),
        (status = 400, description = "Something in the request is wrong", body = Problem),
        (status = 404, description = "No such host or cluster", body = Problem)))]
async fn host(
    State(hub): State<Hub>,
    opctx: OpContext,
    V1(HostPath(key)): V1<HostPath>,
    V1(Args(mind)): V1<Args<InMind>>,
) -> Result<Response, ProblemV1> {
    Ok(json(
        StatusCode::OK,
        &explain::host(&hub, key, mind.cluster(), &opctx).await?,
    ))
}

/// Show which roles a host fits
#[utoipa::path(get, path = "/api/muster/v1/infra-envs/{infra_env_id}/hosts/{host_id}/verdicts",
    operation_id = "hostVerdicts", tag = "muster",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path), InMind),
    responses((status = 200, description = "One verdict per role", body = Vec<RoleVerdict>),
        (status = 400, description = "Something in the request is wrong", body = Problem),
        (status = 404, description = "No such host or cluster", body = Problem)))]
async fn verdicts(
    State(hub): State<Hub>,
    V1(HostPath(key)): V1<HostPath>,
    V1(Args(mind)): V1<Args<InMind>>,
) -> Result<Response, ProblemV1> {
    Ok(json(
        StatusCode::OK,
        &explain::host_verdicts(&hub, key, mind.cluster()).await?,
    ))
}

/// Explain a cluster
#[utoipa::path(get, path = "/api/muster/v1/clusters/{cluster_id}/explain", operation_id = "explainCluster",
    tag = "muster", params(("cluster_id" = Uuid, Path)),
    responses((status = 200, description = "Why it is so, and what to do next", body = ExplainView),
        (status = 400, description = "The id is not a UUID", body = Problem),
        (status = 404, description = "No such cluster", body = Problem)))]
async fn cluster(
    State(hub): State<Hub>,
    opctx: OpContext,
    V1(Ids(id)): V1<Ids<Uuid>>,
) -> Result<Response, ProblemV1> {
    Ok(json(
        StatusCode::OK,
        &explain::cluster(&hub, ClusterId(id), &opctx).await?,
    ))
}

/// Explain an InfraEnv
#[utoipa::path(get, path = "/api/muster/v1/infra-envs/{infra_env_id}/explain", operation_id = "explainInfraEnv",
    tag = "muster", params(("infra_env_id" = Uuid, Path)),
    responses((status = 200, description = "The state of its hosts, and what to do next", body = ExplainView),
        (status = 400, description = "The id is not a UUID", body = Problem),
        (status = 404, description = "No such InfraEnv", body = Problem)))]
async fn infra_env(State(hub): State<Hub>, V1(Ids(id)): V1<Ids<Uuid>>) -> Result<Response, ProblemV1> {
    Ok(json(
        StatusCode::OK,
        &explain::infra_env(&hub, InfraEnvId(id)).await?,
    ))
}
