//! Files of an installation: for those who install, and for those who want to see what hosts are installed with.

use crate::Hub;
use crate::error::Error;
use crate::http::extract::{HostPath, Ids};
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use crate::ignition;
use crate::usecase::cluster_files::cluster_file;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use muster_contract::v2::cluster_request::{ClusterFile, ClusterFilesQuery};
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::host::HostIgnitionView;
use muster_domain::cluster::Cluster;
use muster_domain::host::Host;
use muster_domain::refusal::{Class, Refused};
use muster_domain::{ClusterId, HostKey};
use std::sync::Arc;
use uuid::Uuid;

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/clusters/{cluster_id}/downloads/files", get(download))
        // Singular, as installers spell it.
        .route(
            "/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition",
            get(download_host_ignition),
        )
}

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(download, host_ignition, download_host_ignition),
    components(schemas(ClusterFile))
)]
pub struct Doc;

/// A file that changes with the installation and not with time.
pub fn file(name: &str, content: Vec<u8>) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(content.len()));
    headers.extend(named(name));
    (StatusCode::OK, headers, content).into_response()
}

/// People choose names of files; one that could end the header's text early is changed.
pub fn named(name: &str) -> Option<(axum::http::HeaderName, HeaderValue)> {
    let name = name.replace(['"', '\\'], "_");
    let value = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")).ok()?;
    Some((header::CONTENT_DISPOSITION, value))
}

/// Download a file that the hub made for the installation
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/downloads/files",
    operation_id = "V2DownloadClusterFiles", tag = "installation", params(("cluster_id" = Uuid, Path), ClusterFilesQuery),
    responses((status = 200, description = "The file", body = [u8], content_type = "application/octet-stream"),
        (status = 400, description = "No such file name", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "The hub has not made it yet", body = ErrorBody)))]
async fn download(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<ClusterFilesQuery>,
) -> Result<Response, Problem> {
    let name = query.file_name.word();
    Ok(file(name, cluster_file(&hub, ClusterId(id), name).await?))
}

/// The host with the cluster that borrowed it.
async fn borrowed(hub: &Hub, key: HostKey) -> Result<(Host, Arc<Cluster>), Error> {
    let host = hub
        .index
        .host(key)
        .ok_or_else(|| Error::missing("host", key.host))?;
    if let Some(id) = host.cluster {
        hub.load_if_missing(id).await?;
    }
    let cluster = host.cluster.and_then(|id| hub.index.cluster(id)).ok_or_else(|| {
        let text = format!("Host {} is free: the hub makes no files for it.", host.name());
        Refused::new(
            Class::Missing,
            "host-is-free",
            text,
            "Bind it to a cluster first.",
        )
    })?;
    Ok((host, cluster))
}

/// Show the Ignition config that a host installs with
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition",
    operation_id = "v2GetHostIgnition", tag = "host", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 200, description = "The config", body = HostIgnitionView),
        (status = 400, description = "An id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such host, or the hub makes nothing for it", body = ErrorBody),
        (status = 409, description = "The hub has not made it yet", body = ErrorBody)))]
pub async fn host_ignition(State(hub): State<Hub>, HostPath(key): HostPath) -> Result<Response, Problem> {
    let (host, cluster) = borrowed(&hub, key).await?;
    let config = ignition::host_ignition(&hub, &host, &cluster).await?;
    Ok(json(StatusCode::OK, &HostIgnitionView { config }))
}

/// Download the Ignition config that a host installs with
///
/// The installer calls this, at a path of its own.
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition",
    operation_id = "v2DownloadHostIgnition", tag = "installation",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 200, description = "The config", body = [u8], content_type = "application/octet-stream"),
        (status = 400, description = "An id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such host, or the hub makes nothing for it", body = ErrorBody),
        (status = 409, description = "The hub has not made it yet", body = ErrorBody)))]
async fn download_host_ignition(
    State(hub): State<Hub>,
    HostPath(key): HostPath,
) -> Result<Response, Problem> {
    let (host, cluster) = borrowed(&hub, key).await?;
    let config = ignition::host_ignition(&hub, &host, &cluster).await?;
    let name = format!("{}-{}.ign", host.role.word(), host.id);
    Ok(file(&name, config.into_bytes()))
}
