//! Logs of an installation: uploaded by those who install, downloaded by those who wonder.

use crate::change::OpContext;
use crate::error::Error;
use crate::http::body::Json;
use crate::http::extract::Ids;
use crate::http::problem::{Problem, framework};
use crate::http::query::Args;
use crate::http::v2::clusters::{find, members};
use crate::http::v2::events;
use crate::http::v2::files::named;
use crate::http::view::cluster::{Shown, full};
use crate::usecase::cluster_logs::{Archive, LARGEST, Whose, host_in, logs_all, logs_keep, logs_of};
use crate::usecase::operator_report::logs_progress;
use crate::{Hub, archive};
use axum::Router;
use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError, MultipartRejection};
use axum::extract::{DefaultBodyLimit, Multipart, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::install::{LogsQuery, LogsType, ReportLogsProgress};
use muster_domain::ClusterId;
use muster_domain::cluster::Cluster;
use muster_domain::host::LogsInfo;
use muster_domain::input::Invalid;
use muster_store::{EventQuery, Upload};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The part of the form that holds the file.
const FILE_PART: &str = "upfile";
/// What a form adds to its file.
const FORM: usize = 1024 * 1024;
/// A sender that is silent for this long is gone.
const PATIENCE: Duration = Duration::from_secs(60);
/// Slower lines than this one, on the whole, would take most of a day for the largest logs.
const LEAST_PER_SECOND: u64 = 4 * 1024;

pub fn routes() -> Router<Hub> {
    let cluster = "/clusters/{cluster_id}";
    let largest = usize::try_from(LARGEST)
        .unwrap_or(usize::MAX)
        .saturating_add(FORM);
    Router::new()
        .route(
            &format!("{cluster}/logs"),
            get(download).post(upload).layer(DefaultBodyLimit::max(largest)),
        )
        .route(&format!("{cluster}/logs-progress"), put(report_progress))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(download, upload, report_progress), components(schemas(LogsType)))]
pub struct Doc;

/// A file in a form.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "only described; the form is read piece by piece")]
struct LogsForm {
    #[schema(value_type = String, format = Binary)]
    upfile: Vec<u8>,
}

/// Upload logs
///
/// At most 262,144,000 bytes, in the part `upfile` of a form. They replace earlier logs of the same host or controller.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/logs", operation_id = "V2UploadLogs",
    tag = "installation", params(("cluster_id" = Uuid, Path), LogsQuery),
    request_body(content = LogsForm, content_type = "multipart/form-data"),
    responses((status = 204, description = "The hub stored them"),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster or host", body = ErrorBody),
        (status = 413, description = "They are too large", body = InfraErrorBody)))]
async fn upload(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<LogsQuery>,
    opctx: OpContext,
    form: Result<Multipart, MultipartRejection>,
) -> Result<StatusCode, Problem> {
    let cluster = find(&hub, id)?;
    let whose = uploaded_by(&hub, &cluster, &query)?;
    let mut form = form.map_err(|rejection| {
        let message = format!("the body is no form: {}", rejection.body_text());
        framework(StatusCode::BAD_REQUEST, message)
    })?;
    let mut pace = Pace::new();
    loop {
        let field = pace.wait(form.next_field()).await?;
        let Some(field) = field else {
            return Err(
                Invalid::schema(FILE_PART, "is missing", "send the file in this part of a form").into(),
            );
        };
        if field.name() == Some(FILE_PART) {
            let mut upload = hub.store.upload();
            receive(&hub, field, &mut upload, &mut pace).await?;
            logs_keep(&hub, cluster.id, whose, &mut upload, &opctx).await?;
            return Ok(StatusCode::NO_CONTENT);
        }
    }
}

fn uploaded_by(hub: &Hub, cluster: &Cluster, query: &LogsQuery) -> Result<Whose, Error> {
    match query.logs_type {
        Some(LogsType::Controller) => Ok(Whose::Controller),
        Some(LogsType::Host) => {
            let host = query
                .host_id
                .ok_or_else(|| Invalid::schema("host_id", "is missing", "name the host"))?;
            let key = host_in(hub, cluster.id, host)?;
            match query.infra_env_id {
                Some(other) if other != key.infra_env.0 => Err(Error::missing("host", host)),
                Some(_) | None => Ok(Whose::Host(key)),
            }
        }
        Some(LogsType::All | LogsType::Unset) | None => Err(Invalid::schema(
            "logs_type",
            "does not say whose logs these are",
            "use host or controller",
        )
        .into()),
    }
}

async fn receive(
    hub: &Hub,
    mut field: Field<'_>,
    upload: &mut Upload,
    pace: &mut Pace,
) -> Result<(), Problem> {
    while let Some(piece) = pace.wait(field.chunk()).await? {
        pace.received += piece.len() as u64;
        if upload.size() + piece.len() as u64 > LARGEST {
            let message = format!("the hub takes no logs of more than {LARGEST} bytes");
            return Err(framework(StatusCode::PAYLOAD_TOO_LARGE, message).into());
        }
        upload.write(&piece, hub.now()).await?;
    }
    Ok(())
}

/// How long a form may still take: a while for each piece, and for all of them no more than a slow line needs.
struct Pace {
    begun: Instant,
    /// Of the file; whatever else the form holds gets no time of its own.
    received: u64,
}

impl Pace {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            received: 0,
        }
    }

    async fn wait<T>(&self, wait: impl Future<Output = Result<T, MultipartError>>) -> Result<T, Problem> {
        in_time(left(self.begun.elapsed(), self.received), wait).await
    }
}

fn left(elapsed: Duration, received: u64) -> Duration {
    let deserved = PATIENCE + Duration::from_secs(received / LEAST_PER_SECOND);
    deserved.saturating_sub(elapsed).min(PATIENCE)
}

async fn in_time<T>(
    patience: Duration,
    wait: impl Future<Output = Result<T, MultipartError>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(patience, wait).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            let message = format!("the hub cannot read the form: {}", error.body_text());
            // A line that breaks is no fault of ours.
            let status = match error.status() {
                status if status.is_client_error() => status,
                _ => StatusCode::BAD_REQUEST,
            };
            Err(framework(status, message).into())
        }
        Err(_) => {
            let message = format!(
                "the client sent the form more slowly than {LEAST_PER_SECOND} bytes a second, or sent \
                 nothing for {} seconds",
                PATIENCE.as_secs()
            );
            Err(framework(StatusCode::REQUEST_TIMEOUT, message).into())
        }
    }
}

/// Download logs
///
/// An archive of one host's or the controller's logs; without a type, of everything there is, with the cluster's events
/// and settings.
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/logs", operation_id = "V2DownloadClusterLogs",
    tag = "installation", params(("cluster_id" = Uuid, Path), LogsQuery),
    responses((status = 200, description = "An archive", body = [u8], content_type = "application/octet-stream"),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster or host", body = ErrorBody),
        (status = 409, description = "The hub has not collected them yet", body = ErrorBody)))]
async fn download(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<LogsQuery>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    let host = query
        .host_id
        .map(|host| host_in(&hub, cluster.id, host))
        .transpose()?;
    let archive = match (query.logs_type.unwrap_or_default(), host) {
        (LogsType::Host, None) => {
            return Err(Invalid::schema("host_id", "is missing", "name the host").into());
        }
        (LogsType::Host | LogsType::Unset, Some(host)) => {
            logs_of(&hub, cluster.id, Whose::Host(host)).await?
        }
        (LogsType::Controller, _) => logs_of(&hub, cluster.id, Whose::Controller).await?,
        (LogsType::All, _) | (LogsType::Unset, None) => {
            let known = known(&hub, &cluster).await?;
            logs_all(&hub, cluster.id, known).await?
        }
    };
    Ok(reply(archive))
}

/// What the hub itself can say about the installation.
async fn known(hub: &Hub, cluster: &Cluster) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let query = EventQuery {
        cluster: Some(cluster.id),
        // The newest, when there are more than fit.
        desc: true,
        ..EventQuery::default()
    };
    let events = hub.store.events_list(&query).await?.events;
    let events: Vec<_> = events.into_iter().rev().map(events::view).collect();
    let members = members(hub, cluster.id).await?;
    let view = without_overrides(full(hub, cluster, Shown::Listed(&members)));
    let pretty =
        |name: &str, text: Result<Vec<u8>, serde_json::Error>| (name.to_owned(), text.unwrap_or_default());
    Ok(vec![
        pretty("cluster_events.json", serde_json::to_vec_pretty(&events)),
        pretty("cluster_metadata.json", serde_json::to_vec_pretty(&view)),
    ])
}

/// People pass these archives on. What they override in configs may hold passwords; whoever may see it asks the hub.
fn without_overrides(mut view: ClusterView) -> ClusterView {
    const LEFT_OUT: &str = "left out";
    let hide = |text: &mut String| {
        if !text.is_empty() {
            *text = LEFT_OUT.into();
        }
    };
    hide(&mut view.install_config_overrides);
    for host in view.hosts.iter_mut().flatten() {
        hide(&mut host.ignition_config_overrides);
        hide(&mut host.installer_args);
        hide(&mut host.fencing_credentials);
    }
    view
}

fn reply(archive: Archive) -> Response {
    let Archive { name, parts } = archive;
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(archive::size(&parts)));
    headers.extend(named(&name));
    (StatusCode::OK, headers, Body::from_stream(archive::write(parts))).into_response()
}

/// Report the collection of a cluster's logs
#[utoipa::path(put, path = "/api/assisted-install/v2/clusters/{cluster_id}/logs-progress",
    operation_id = "v2UpdateClusterLogsProgress", tag = "installation", params(("cluster_id" = Uuid, Path)),
    request_body = ReportLogsProgress,
    responses((status = 204, description = "The hub stored it"),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn report_progress(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    Json(body): Json<ReportLogsProgress>,
) -> Result<StatusCode, Problem> {
    let state = LogsInfo::from(body.logs_state);
    logs_progress(&hub, ClusterId(id), state, &opctx).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_a_byte_now_and_then_is_not_waited_for() {
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(0), 0), PATIENCE);
        assert_eq!(left(seconds(59), 1), seconds(1));
        assert_eq!(left(seconds(61), 100), seconds(0));
        // A line that is slow, but a line.
        assert_eq!(left(seconds(3600), 8 * 1024 * 3600), PATIENCE);
        assert_eq!(left(seconds(3600), 4 * 1024 * 3550), seconds(10));
    }
}
