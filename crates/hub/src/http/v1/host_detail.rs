//! A host with what REST v2 does not show, found by its id alone; and changes that REST v2 has no words for.

use super::input::V1;
use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::http::body::Json;
use crate::http::extract::{HostPath, Ids};
use crate::http::problem::{ProblemV1, json};
use crate::http::view::host::{Style, full};
use crate::usecase::host_change::host_change;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, patch};
use muster_contract::v1::host::{ChangeHost, HostDetail, HostRows};
use muster_contract::v1::problem::Problem;
use muster_domain::HostId;
use muster_domain::host::Host;
use uuid::Uuid;

#[derive(utoipa::OpenApi)]
#[openapi(paths(find, change))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/hosts/{host_id}", get(find))
        .route("/infra-envs/{infra_env_id}/hosts/{host_id}", patch(change))
}

/// Find a host by its id
///
/// In every InfraEnv that knows it: a machine that booted the images of two belongs to both.
#[utoipa::path(get, path = "/api/muster/v1/hosts/{host_id}", operation_id = "findHost", tag = "muster",
    params(("host_id" = Uuid, Path)),
    responses((status = 200, description = "The host, once per InfraEnv; possibly none", body = HostRows),
        (status = 400, description = "The id is not a UUID", body = Problem)))]
async fn find(State(hub): State<Hub>, V1(Ids(id)): V1<Ids<Uuid>>) -> Result<Response, ProblemV1> {
    let mut rows = HostRows::default();
    let mut hosts = hub.newest_hosts(HostId(id)).await?;
    let mut was_behind = false;
    for cluster in hosts.iter().filter_map(|host| host.cluster) {
        was_behind |= hub.caught_up(cluster).await;
    }
    if was_behind {
        hosts = hub.newest_hosts(HostId(id)).await?;
    }
    for host in hosts {
        rows.hosts.push(detail(&hub, &host).await?);
    }
    Ok(json(StatusCode::OK, &rows))
}

/// Approve a host, follow it, or remove settings
///
/// Approval is a note for those who choose hosts. A followed host that joins a running cluster is not done when it
/// reboots: whoever follows it reports what its node does then.
#[utoipa::path(patch, path = "/api/muster/v1/infra-envs/{infra_env_id}/hosts/{host_id}", operation_id = "changeHost",
    tag = "muster", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)), request_body = ChangeHost,
    responses((status = 200, description = "The host as it is now", body = HostDetail),
        (status = 400, description = "Something in the request is wrong", body = Problem),
        (status = 404, description = "No such host", body = Problem),
        (status = 409, description = "Not possible now", body = Problem)))]
async fn change(
    State(hub): State<Hub>,
    opctx: OpContext,
    V1(HostPath(key)): V1<HostPath>,
    V1(Json(body)): V1<Json<ChangeHost>>,
) -> Result<Response, ProblemV1> {
    let host = host_change(&hub, key, &body, &opctx).await?;
    Ok(json(StatusCode::OK, &detail(&hub, &host).await?))
}

async fn detail(hub: &Hub, host: &Host) -> Result<HostDetail, Error> {
    let stored = hub.store.host_reports(host.key()).await?;
    let v2 = format!("{}{}", hub.settings.base_url, muster_contract::v2::BASE);
    let logs = host.cluster.filter(|_| host.logs.collected_at.is_some());
    Ok(HostDetail {
        revision: host.revision,
        approved: host.approved,
        followed: host.followed,
        given_name: host.given_name().unwrap_or_default().to_owned(),
        disk_chosen: host.tenant.disk_chosen,
        moving_to: host.moving_to.map(|id| id.0),
        ignition_headers_set: !host.tenant.ignition_headers.is_empty(),
        events_url: format!("{v2}/events?host_id={}", host.id),
        logs_url: logs
            .map(|cluster| format!("{v2}/clusters/{cluster}/logs?host_id={}&logs_type=host", host.id))
            .unwrap_or_default(),
        host: full(hub, host, stored, Style::Get),
    })
}
