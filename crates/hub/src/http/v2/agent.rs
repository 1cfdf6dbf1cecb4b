//! What agents call: register, ask for work, tell what came of it. The busiest door of the house.

use crate::Hub;
use crate::change::OpContext;
use crate::host_change::Stored;
use crate::http::body::{AgentJson, Json};
use crate::http::extract::{HostPath, Ids};
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use crate::http::view::host::{Style, full};
use crate::usecase::host_poll::host_poll;
use crate::usecase::host_progress::{host_logs_progress, host_progress};
use crate::usecase::host_register::host_register;
use crate::usecase::host_report::host_report;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, put};
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::host::{NextStepRunnerCommand, RegisterHost, RegisteredHostView};
use muster_contract::v2::install::{ReportHostProgress, ReportLogsProgress};
use muster_contract::v2::step::{NextStepRunnerArgs, NextStepsQuery, PostStepReply, StepsView};
use muster_domain::host::LogsInfo;
use muster_domain::{HostId, HostKey, InfraEnvId};
use utoipa::OpenApi;
use uuid::Uuid;

/// A header name with underscores, as agents send it.
const AGENT_VERSION: &str = "discovery_agent_version";
/// How long an agent waits before it registers again after its runner failed; without it, an hour.
const RETRY_SECONDS: i64 = 60;

#[derive(OpenApi)]
#[openapi(paths(register, next_steps, post_reply, progress, logs_progress))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    let host = "/infra-envs/{infra_env_id}/hosts/{host_id}";
    Router::new()
        .route(&format!("{host}/instructions"), get(next_steps).post(post_reply))
        .route(&format!("{host}/progress"), put(progress))
        .route(&format!("{host}/logs-progress"), put(logs_progress))
}

fn agent_version(headers: &HeaderMap) -> Option<&str> {
    headers.get(AGENT_VERSION).and_then(|value| value.to_str().ok())
}

/// Register a host
///
/// The discovery agent calls this when its machine has booted, and again whenever the hub tells it to.
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts", operation_id = "v2RegisterHost",
    tag = "agent", params(("infra_env_id" = Uuid, Path)), request_body = RegisterHost,
    responses((status = 201, body = RegisteredHostView), (status = 400, body = ErrorBody), (status = 503, body = ErrorBody)))]
pub async fn register(
    State(hub): State<Hub>,
    opctx: OpContext,
    Ids(infra_env): Ids<Uuid>,
    headers: HeaderMap,
    AgentJson(body): AgentJson<RegisterHost>,
) -> Result<Response, Problem> {
    let key = HostKey {
        infra_env: InfraEnvId(infra_env),
        host: HostId(body.host_id),
    };
    let version = body
        .discovery_agent_version
        .as_deref()
        .or_else(|| agent_version(&headers))
        .unwrap_or_default();
    hub.load_if_missing(key).await.map_err(Problem::to_agent)?;
    let host = host_register(&hub, key, version, &opctx)
        .await
        .map_err(Problem::to_agent)?;
    let runner = NextStepRunnerArgs {
        infra_env_id: key.infra_env.0,
        host_id: key.host.0,
        agent_version: hub.settings.images.agent.clone(),
    };
    let args = serde_json::to_string(&runner).unwrap_or_default();
    let view = RegisteredHostView {
        host: full(&hub, &host, Stored::new(), Style::Registered),
        next_step_runner_command: Some(NextStepRunnerCommand {
            command: String::new(),
            args: vec![args],
            retry_seconds: RETRY_SECONDS,
        }),
    };
    Ok(json(StatusCode::CREATED, &view))
}

/// Ask for the next steps
///
/// The agent's poll, and the only sign of life that counts.
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions",
    operation_id = "v2GetNextSteps", tag = "agent",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path), NextStepsQuery),
    responses((status = 200, body = StepsView), (status = 400, body = InfraErrorBody), (status = 503, body = ErrorBody)))]
async fn next_steps(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
    Args(query): Args<NextStepsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let steps = host_poll(&hub, key, query.timestamp, agent_version(&headers), &opctx)
        .await
        .map_err(Problem::to_poll)?;
    Ok(json(StatusCode::OK, &steps))
}

/// Report the result of a step
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions",
    operation_id = "v2PostStepReply", tag = "agent", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    request_body = PostStepReply,
    responses((status = 204), (status = 400, body = InfraErrorBody), (status = 404, body = ErrorBody)))]
async fn post_reply(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
    AgentJson(reply): AgentJson<PostStepReply>,
) -> Result<StatusCode, Problem> {
    host_report(&hub, key, &reply, &opctx)
        .await
        .map_err(Problem::to_step_reply)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Report installation progress
#[utoipa::path(put, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/progress",
    operation_id = "v2UpdateHostInstallProgress", tag = "agent",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)), request_body = ReportHostProgress,
    responses((status = 200), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn progress(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
    AgentJson(body): AgentJson<ReportHostProgress>,
) -> Result<StatusCode, Problem> {
    hub.index
        .slot(key)
        .ok_or_else(|| crate::Error::missing("host", key.host))?;
    let Some(stage) = body.current_stage else {
        return Ok(StatusCode::OK);
    };
    host_progress(
        &hub,
        key,
        stage,
        body.progress_info.as_deref().unwrap_or_default(),
        &opctx,
    )
    .await
    .map_err(Problem::to_reporter)?;
    Ok(StatusCode::OK)
}

/// Report how far the collection of logs is
#[utoipa::path(put, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/logs-progress",
    operation_id = "v2UpdateHostLogsProgress", tag = "agent",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)), request_body = ReportLogsProgress,
    responses((status = 204), (status = 400, body = InfraErrorBody), (status = 404, body = ErrorBody)))]
async fn logs_progress(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
    Json(body): Json<ReportLogsProgress>,
) -> Result<StatusCode, Problem> {
    let state = LogsInfo::from(body.logs_state);
    host_logs_progress(&hub, key, state, &opctx)
        .await
        .map_err(Problem::to_reporter)?;
    Ok(StatusCode::NO_CONTENT)
}
