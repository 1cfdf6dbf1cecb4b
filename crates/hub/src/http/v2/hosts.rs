//! Hosts as people see them: list, show, change, lend, take back, delete.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::Stored;
use crate::http::body::Json;
use crate::http::extract::{HostPath, Ids};
use crate::http::problem::{Problem, json};
use crate::http::view::host::{Style, full};
use crate::usecase::host_bind::{host_bind, host_unbind};
use crate::usecase::host_delete::host_delete;
use crate::usecase::host_update::{host_update, ignition_overrides, installer_args};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use futures_util::StreamExt;
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::host::{BindHost, HostView, SetHostIgnition, SetInstallerArgs, UpdateHost};
use muster_domain::host::{Host, Report};
use muster_domain::{ClusterId, HostKey, InfraEnvId};
use muster_store::HostFilter;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use utoipa::OpenApi;
use uuid::Uuid;

/// Hosts read and written at a time, so that a list of 100,000 costs no more memory than one of 100.
const PAGE: u32 = 100;

#[derive(OpenApi)]
#[openapi(paths(
    list,
    show,
    update,
    delete_host,
    bind,
    unbind,
    set_installer_args,
    set_ignition
))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    let host = "/infra-envs/{infra_env_id}/hosts/{host_id}";
    Router::new()
        .route(
            "/infra-envs/{infra_env_id}/hosts",
            get(list).post(super::agent::register),
        )
        .route(host, get(show).patch(update).delete(delete_host))
        .route(&format!("{host}/actions/bind"), post(bind))
        .route(&format!("{host}/actions/unbind"), post(unbind))
        .route(&format!("{host}/installer-args"), patch(set_installer_args))
        .route(
            &format!("{host}/ignition"),
            patch(set_ignition).get(super::files::host_ignition),
        )
}

/// List the hosts of an InfraEnv
///
/// Free and lent ones alike.
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts", operation_id = "v2ListHosts",
    tag = "host", params(("infra_env_id" = Uuid, Path)),
    responses((status = 200, body = Vec<HostView>), (status = 404, body = ErrorBody)))]
async fn list(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let infra_env = InfraEnvId(id);
    hub.index
        .infra_env(infra_env)
        .ok_or_else(|| Error::missing("infra-env", infra_env))?;
    let filter = HostFilter {
        infra_env: Some(infra_env),
        ..HostFilter::default()
    };
    // The first page here, so that a failure is an answer and not a torn body.
    let first = page(&hub, &filter, None).await?;
    let (pages, read) = tokio::sync::mpsc::channel(1);
    tokio::spawn(pages_after(hub, filter, first, pages));
    let stream = futures_util::stream::unfold((read, true), async |(mut read, opening)| {
        let written = match read.recv().await? {
            Ok((views, next)) => Ok(written(&views, opening, next.is_none())),
            Err(error) => Err(std::io::Error::other(error)),
        };
        Some((written, (read, false)))
    });
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    // Whoever compresses it asks once more after the end.
    Ok((kind, Body::from_stream(stream.fuse())).into_response())
}

type Page = (Vec<HostView>, Option<HostKey>);

/// Reads the next page while the one before is written; ends early when nobody reads any more.
async fn pages_after(hub: Hub, filter: HostFilter, first: Page, pages: Sender<Result<Page, Error>>) {
    let mut now = Ok(first);
    loop {
        let next = now.as_ref().ok().and_then(|(_, next)| *next);
        if pages.send(now).await.is_err() {
            return;
        }
        let Some(after) = next else { return };
        now = page(&hub, &filter, Some(after)).await;
    }
}

/// A piece of the list's text.
fn written(views: &[HostView], is_first: bool, is_last: bool) -> Bytes {
    let mut text = Vec::with_capacity(views.len() * 12 * 1024);
    text.extend_from_slice(if is_first { b"[" } else { b"" });
    for (position, view) in views.iter().enumerate() {
        if position > 0 || !is_first {
            text.push(b',');
        }
        // Writing to memory cannot fail, and views are plain data.
        serde_json::to_writer(&mut text, view).ok();
    }
    text.extend_from_slice(if is_last { b"]" } else { b"" });
    text.into()
}

async fn page(hub: &Hub, filter: &HostFilter, after: Option<HostKey>) -> Result<Page, Error> {
    let rows = hub.hosts_page(filter, after, PAGE, &Report::ALL).await?;
    let next = rows
        .last()
        .filter(|_| rows.len() == PAGE as usize)
        .map(|(host, _)| host.key());
    let views = rows
        .into_iter()
        .map(|(host, stored)| full(hub, &host, stored, Style::List))
        .collect();
    Ok((views, next))
}

/// The row with signs of life that are in memory only.
fn newest(hub: &Hub, row: &Host) -> Host {
    hub.index
        .host(row.key())
        .filter(|known| known.revision == row.revision)
        .unwrap_or_else(|| row.clone())
}

async fn shown(hub: &Hub, host: &Host, style: Style) -> Result<HostView, Error> {
    let stored: Stored = hub.store.host_reports(host.key()).await?;
    Ok(full(hub, &newest(hub, host), stored, style))
}

pub async fn answer(
    hub: &Hub,
    status: StatusCode,
    host: &Arc<Host>,
    style: Style,
) -> Result<Response, Problem> {
    Ok(json(status, &shown(hub, host, style).await?))
}

/// Show a host
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}", operation_id = "v2GetHost",
    tag = "host", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 200, body = HostView), (status = 404, body = ErrorBody)))]
async fn show(State(hub): State<Hub>, HostPath(key): HostPath) -> Result<Response, Problem> {
    let host = hub
        .index
        .host(key)
        .ok_or_else(|| Error::missing("host", key.host))?;
    answer(&hub, StatusCode::OK, &Arc::new(host), Style::Get).await
}

/// Change a host
///
/// Absent and null leave a field as it is. A name given to a free host stays with it; one given to a lent host
/// goes when it is returned.
#[utoipa::path(patch, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}",
    operation_id = "v2UpdateHost", tag = "host", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    request_body = UpdateHost,
    responses((status = 201, body = HostView), (status = 400, body = InfraErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
async fn update(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
    Json(change): Json<UpdateHost>,
) -> Result<Response, Problem> {
    let host = host_update(&hub, key, &change, &opctx).await?;
    answer(&hub, StatusCode::CREATED, &host, Style::Get).await
}

/// Delete a host
///
/// If its agent still runs, the host registers again within a minute.
#[utoipa::path(delete, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}",
    operation_id = "v2DeregisterHost", tag = "host", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn delete_host(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
) -> Result<StatusCode, Problem> {
    host_delete(&hub, key, &opctx).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lend a free host to a cluster
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/bind",
    operation_id = "BindHost", tag = "host", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    request_body = BindHost,
    responses((status = 200, body = HostView), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
async fn bind(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
    Json(body): Json<BindHost>,
) -> Result<Response, Problem> {
    hub.load_if_missing(ClusterId(body.cluster_id)).await?;
    let host = host_bind(&hub, key, ClusterId(body.cluster_id), &opctx).await?;
    answer(&hub, StatusCode::OK, &host, Style::Raw).await
}

/// Take a host back from its cluster
///
/// The hub clears everything that the cluster's owner set on it.
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/unbind",
    operation_id = "UnbindHost", tag = "host", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 200, body = HostView), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn unbind(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
) -> Result<Response, Problem> {
    let host = host_unbind(&hub, key, &opctx).await?;
    answer(&hub, StatusCode::OK, &host, Style::Raw).await
}

/// Set extra installer arguments
#[utoipa::path(patch, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/installer-args",
    operation_id = "v2UpdateHostInstallerArgs", tag = "host",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)), request_body = SetInstallerArgs,
    responses((status = 201, body = HostView), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
async fn set_installer_args(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
    Json(body): Json<SetInstallerArgs>,
) -> Result<Response, Problem> {
    let host = installer_args(&hub, key, &body.args.unwrap_or_default(), &opctx).await?;
    answer(&hub, StatusCode::CREATED, &host, Style::Raw).await
}

/// Set ignition of the host's own
///
/// The hub merges it into what the host installs with; empty removes it.
#[utoipa::path(patch, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition",
    operation_id = "v2UpdateHostIgnition", tag = "host",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)), request_body = SetHostIgnition,
    responses((status = 201), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
async fn set_ignition(
    State(hub): State<Hub>,
    opctx: OpContext,
    HostPath(key): HostPath,
    Json(body): Json<SetHostIgnition>,
) -> Result<StatusCode, Problem> {
    ignition_overrides(&hub, key, &body.config.unwrap_or_default(), &opctx).await?;
    Ok(StatusCode::CREATED)
}
