//! What the controller inside a cluster reports: its operators, its stage, its end.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::http::body::{AgentJson, Json};
use crate::http::extract::Ids;
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use crate::http::v2::clusters::{find, members};
use crate::http::view::cluster::{Shown, full, operators};
use crate::usecase::operator_report::{Report, finalizing_stage, installation_ended, operator_report};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post, put};
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::install::{CompleteInstallation, ReportClusterProgress};
use muster_contract::v2::operator::{MonitoredOperatorView, OperatorsQuery, ReportOperator};
use muster_domain::ClusterId;
use muster_domain::cluster::OperatorStatus;
use muster_domain::input::Invalid;
use uuid::Uuid;

/// Under which controllers send what their operators say.
const OPERATORS_REPORT: &str = "CLUSTER_OPERATORS_REPORT";

pub fn routes() -> Router<Hub> {
    let cluster = "/clusters/{cluster_id}";
    Router::new()
        .route(&format!("{cluster}/monitored-operators"), get(list).put(report))
        .route(&format!("{cluster}/progress"), put(report_progress))
        .route(
            &format!("{cluster}/actions/complete-installation"),
            post(complete_installation),
        )
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list, report, report_progress, complete_installation))]
pub struct Doc;

/// List the operators that the installation of a cluster waits for
///
/// An unknown cluster has none.
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/monitored-operators",
    operation_id = "V2ListOfClusterOperators", tag = "operator", params(("cluster_id" = Uuid, Path), OperatorsQuery),
    responses((status = 200, description = "The operators", body = Vec<MonitoredOperatorView>),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such operator in it", body = ErrorBody)))]
async fn list(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<OperatorsQuery>,
) -> Result<Response, Problem> {
    let mut list = hub
        .index
        .cluster(ClusterId(id))
        .map(|cluster| operators(&cluster))
        .unwrap_or_default();
    if let Some(wanted) = query.operator_name {
        list.retain(|operator| operator.name == wanted);
        if list.is_empty() {
            return Err(Error::missing("operator", wanted).into());
        }
    }
    Ok(json(StatusCode::OK, &list))
}

/// Report the state of an operator
#[utoipa::path(put, path = "/api/assisted-install/v2/clusters/{cluster_id}/monitored-operators",
    operation_id = "v2ReportMonitoredOperatorStatus", tag = "operator", params(("cluster_id" = Uuid, Path)),
    request_body = ReportOperator,
    responses((status = 200, description = "The hub stored it"),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster or operator", body = ErrorBody)))]
async fn report(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    AgentJson(body): AgentJson<ReportOperator>,
) -> Result<StatusCode, Problem> {
    let cluster = find(&hub, id)?;
    let report = Report {
        name: body.name.as_deref().unwrap_or_default(),
        status: body.status.map(OperatorStatus::from),
        version: body.version.as_deref(),
        info: body.status_info.as_deref(),
    };
    operator_report(&hub, cluster.id, &report, &opctx).await?;
    Ok(StatusCode::OK)
}

/// Report a finalizing stage
#[utoipa::path(put, path = "/api/assisted-install/v2/clusters/{cluster_id}/progress",
    operation_id = "v2UpdateClusterFinalizingProgress", tag = "installation", params(("cluster_id" = Uuid, Path)),
    request_body = ReportClusterProgress,
    responses((status = 200, description = "The hub stored it"),
        (status = 400, description = "It is not being installed", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn report_progress(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    Json(body): Json<ReportClusterProgress>,
) -> Result<StatusCode, Problem> {
    let cluster = find(&hub, id)?;
    let stage = body
        .finalizing_stage
        .ok_or_else(|| Invalid::schema("finalizing_stage", "is missing", "name the stage"))?;
    finalizing_stage(&hub, cluster.id, stage, &opctx).await?;
    Ok(StatusCode::OK)
}

/// Report the end of an installation
///
/// For compatibility with controllers: the cluster itself reports when it is done, so the call changes nothing. What
/// operators said about a failure becomes an event.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/complete-installation",
    operation_id = "v2CompleteInstallation", tag = "installation", params(("cluster_id" = Uuid, Path)),
    request_body = CompleteInstallation,
    responses((status = 202, description = "The cluster", body = ClusterView),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn complete_installation(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    AgentJson(body): AgentJson<CompleteInstallation>,
) -> Result<Response, Problem> {
    let report = body.data.as_ref().and_then(|data| data.get(OPERATORS_REPORT));
    let report = report.map(|report| report.as_str().map_or_else(|| report.to_string(), str::to_owned));
    let cluster = installation_ended(&hub, ClusterId(id), body.is_success, report.as_deref(), &opctx).await?;
    let members = members(&hub, cluster.id).await?;
    Ok(json(
        StatusCode::ACCEPTED,
        &full(&hub, &cluster, Shown::Listed(&members)),
    ))
}
