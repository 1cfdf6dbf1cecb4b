//! Operations around an installation: the door is there and judges what it can, the work behind it comes later.

use crate::Hub;
use crate::error::Error;
use crate::http::ask::{HostPath, Ids};
use crate::http::body::{Args, Json};
use crate::http::problem::{Problem, json};
use crate::http::v2::clusters::{find, members};
use crate::http::v2::downloads::attachment;
use crate::http::view::cluster::{Shown, full};
use crate::turn::Ask;
use crate::usecase::cluster_look::cluster_look;
use crate::usecase::cluster_update::cluster_install_config;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, patch, post, put};
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::cluster_request::{
    ClusterFile, ClusterFilesQuery, CredentialFile, CredentialFilesQuery,
};
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::install::{
    CompleteInstallation, IngressCert, InstallConfigOverrides, LogsQuery, LogsType, ReportClusterProgress,
    ReportLogsProgress,
};
use muster_contract::v2::manifest::CreateManifest;
use muster_contract::v2::operator::ReportOperator;
use muster_domain::cluster::{Cluster, lifecycle};
use muster_domain::host::{Host, Status};
use muster_domain::input::manifest;
use muster_domain::refusal::{Class, Refused};
use muster_domain::{ClusterId, HostKey, checks};
use uuid::Uuid;

/// The end of every archive: two empty blocks. All of an archive in which there is nothing.
const EMPTY_ARCHIVE: [u8; 1024] = [0; 1024];

pub fn routes() -> Router<Hub> {
    let cluster = |rest: &str| format!("/clusters/{{cluster_id}}/{rest}");
    let host = |rest: &str| format!("/infra-envs/{{infra_env_id}}/hosts/{{host_id}}/{rest}");
    Router::new()
        .route(&cluster("actions/install"), post(install))
        .route(&cluster("actions/cancel"), post(cancel))
        .route(&cluster("actions/reset"), post(reset))
        .route(
            &cluster("actions/complete-installation"),
            post(complete_installation),
        )
        .route(&cluster("progress"), put(report_progress))
        .route(&cluster("logs-progress"), put(report_logs_progress))
        .route(&cluster("logs"), get(download_logs).post(upload_logs))
        .route(&cluster("uploads/ingress-cert"), post(upload_ingress_cert))
        .route(&cluster("downloads/files"), get(download_files))
        .route(&cluster("downloads/credentials"), get(download_credentials))
        .route(&cluster("downloads/files-presigned"), get(presigned_files))
        .route(
            &cluster("downloads/credentials-presigned"),
            get(presigned_credentials),
        )
        .route(&cluster("credentials"), get(credentials))
        .route(
            &cluster("install-config"),
            get(install_config).patch(override_install_config),
        )
        .route(
            &cluster("manifests"),
            get(list_manifests)
                .post(create_manifest)
                .patch(update_manifest)
                .delete(delete_manifest),
        )
        .route(&cluster("manifests/files"), get(download_manifest))
        .route(&cluster("supported-platforms"), get(supported_platforms))
        .route(&cluster("ui-settings"), get(ui_settings).put(change_ui_settings))
        .route("/clusters/disconnected", post(disconnected_cluster))
        .route("/domains", get(domains))
        .route("/operators/bundles", get(bundles))
        .route("/operators/bundles/{id}", get(bundle))
        .route("/release-sources", get(release_sources))
        .route("/support-levels/features/detailed", get(detailed_features))
        .route(&host("actions/install"), post(install_host))
        .route(&host("actions/reset"), post(reset_host))
        .route(
            &host("actions/reset-validation/{validation_id}"),
            patch(reset_validation),
        )
        // Singular, as installers spell it.
        .route(
            "/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition",
            get(download_host_ignition),
        )
}

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(
        install,
        cancel,
        reset,
        complete_installation,
        report_progress,
        report_logs_progress,
        report_operator,
        download_logs,
        upload_logs,
        upload_ingress_cert,
        download_files,
        download_credentials,
        presigned_files,
        presigned_credentials,
        credentials,
        install_config,
        override_install_config,
        list_manifests,
        create_manifest,
        update_manifest,
        delete_manifest,
        download_manifest,
        supported_platforms,
        ui_settings,
        change_ui_settings,
        install_host,
        reset_host,
        reset_validation,
        host_ignition,
        download_host_ignition
    ),
    components(schemas(ClusterFile, CredentialFile, LogsType))
)]
pub struct Doc;

/// Operations of a cluster that are not offered; a wrong id is still told apart from that.
macro_rules! of_cluster {
    ($($name:ident $method:ident $path:literal $operation:literal $what:literal;)*) => {$(
        #[doc = concat!("Not offered: ", $what)]
        #[utoipa::path($method, path = $path, operation_id = $operation, tag = "later",
            params(("cluster_id" = Uuid, Path)),
            responses((status = 400, description = "The id is no UUID", body = InfraErrorBody),
                (status = 404, description = "No such cluster", body = ErrorBody),
                (status = 501, description = "Not offered", body = ErrorBody)))]
        async fn $name(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
            find(&hub, id)?;
            Err(Error::NotOffered($what).into())
        }
    )*};
}

/// Operations that are not offered at all. Clients that ask are told so; the document does not speak of them.
macro_rules! of_nothing {
    ($($name:ident $what:literal;)*) => {$(
        async fn $name() -> Problem {
            Error::NotOffered($what).into()
        }
    )*};
}

of_cluster! {
    upload_logs post "/api/assisted-install/v2/clusters/{cluster_id}/logs" "V2UploadLogs" "Uploading logs";
    presigned_files get "/api/assisted-install/v2/clusters/{cluster_id}/downloads/files-presigned"
        "V2GetPresignedForClusterFiles" "A signed link to a file of a cluster";
    presigned_credentials get "/api/assisted-install/v2/clusters/{cluster_id}/downloads/credentials-presigned"
        "V2GetPresignedForClusterCredentials" "A signed link to the credentials of a cluster";
    install_config get "/api/assisted-install/v2/clusters/{cluster_id}/install-config"
        "v2GetClusterInstallConfig" "Showing the install config";
    list_manifests get "/api/assisted-install/v2/clusters/{cluster_id}/manifests"
        "V2ListClusterManifests" "Listing manifests";
    update_manifest patch "/api/assisted-install/v2/clusters/{cluster_id}/manifests"
        "V2UpdateClusterManifest" "Changing manifests";
    delete_manifest delete "/api/assisted-install/v2/clusters/{cluster_id}/manifests"
        "V2DeleteClusterManifest" "Deleting manifests";
    download_manifest get "/api/assisted-install/v2/clusters/{cluster_id}/manifests/files"
        "v2DownloadClusterManifest" "Downloading manifests";
    supported_platforms get "/api/assisted-install/v2/clusters/{cluster_id}/supported-platforms"
        "GetClusterSupportedPlatforms" "Listing platforms that fit a cluster's hosts";
    ui_settings get "/api/assisted-install/v2/clusters/{cluster_id}/ui-settings"
        "V2GetClusterUISettings" "Settings of a web console";
    change_ui_settings put "/api/assisted-install/v2/clusters/{cluster_id}/ui-settings"
        "V2UpdateClusterUISettings" "Changing settings of a web console";
}

of_nothing! {
    disconnected_cluster "A placeholder for a disconnected installation";
    domains "Listing managed domains";
    bundles "Listing bundles of operators";
    bundle "Showing a bundle of operators";
    release_sources "Listing sources of releases";
    detailed_features "Telling why a feature is not supported";
}

/// A "no" because of the state the cluster is in.
fn not_now(cluster: &Cluster, code: &str, what: &str, next: &str) -> Refused {
    let text = format!(
        "Cluster {} is {}: {what}.",
        cluster.name,
        lifecycle::status(cluster)
    );
    Refused::conflict(code, text, next)
}

/// The same, where clients expect it to be their mistake.
fn wrong_now(cluster: &Cluster, code: &str, what: &str) -> Refused {
    Refused {
        class: Class::Invalid,
        ..not_now(cluster, code, what, "")
    }
}

/// Install a cluster
///
/// Installing is not offered yet; a cluster that is not ready is told so.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/install",
    operation_id = "v2InstallCluster", tag = "later", params(("cluster_id" = Uuid, Path)),
    responses((status = 400, description = "The id is no UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "It is not ready", body = ErrorBody),
        (status = 501, description = "Not offered yet", body = ErrorBody)))]
async fn install(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    // The last report may not have been looked at yet.
    let cluster = cluster_look(&hub, cluster.id).await?.unwrap_or(cluster);
    if lifecycle::status(&cluster) != "ready" {
        let next = "Look at its validations and put right what fails.";
        return Err(not_now(&cluster, "cluster-not-ready", "it cannot be installed", next).into());
    }
    Err(Error::NotOffered("Installing a cluster").into())
}

/// Cancel an installation
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/cancel",
    operation_id = "V2CancelInstallation", tag = "later", params(("cluster_id" = Uuid, Path)),
    responses((status = 400, description = "The id is no UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "It is not being installed", body = ErrorBody)))]
async fn cancel(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    Err(not_now(
        &cluster,
        "nothing-to-cancel",
        "there is no installation to cancel",
        "",
    )
    .into())
}

/// Reset a cluster
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/reset",
    operation_id = "v2ResetCluster", tag = "later", params(("cluster_id" = Uuid, Path)),
    responses((status = 400, description = "The id is no UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "There is nothing to reset", body = ErrorBody)))]
async fn reset(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    Err(not_now(
        &cluster,
        "nothing-to-reset",
        "there is no installation to undo",
        "",
    )
    .into())
}

/// Report the end of an installation
///
/// Kept for controllers; the cluster itself tells when it is done, so nothing follows from it.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/complete-installation",
    operation_id = "v2CompleteInstallation", tag = "later", params(("cluster_id" = Uuid, Path)),
    request_body = CompleteInstallation,
    responses((status = 202, description = "The cluster", body = ClusterView),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn complete_installation(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Json(_): Json<CompleteInstallation>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    let members = members(&hub, cluster.id).await?;
    Ok(json(
        StatusCode::ACCEPTED,
        &full(&hub, &cluster, Shown::Listed(&members)),
    ))
}

/// Report a finalizing stage
#[utoipa::path(put, path = "/api/assisted-install/v2/clusters/{cluster_id}/progress",
    operation_id = "v2UpdateClusterFinalizingProgress", tag = "later", params(("cluster_id" = Uuid, Path)),
    request_body = ReportClusterProgress,
    responses((status = 400, description = "It is not being installed", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn report_progress(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Json(_): Json<ReportClusterProgress>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    Err(wrong_now(
        &cluster,
        "not-installing",
        "it has no installation that could progress",
    )
    .into())
}

/// Report the collection of a cluster's logs
#[utoipa::path(put, path = "/api/assisted-install/v2/clusters/{cluster_id}/logs-progress",
    operation_id = "v2UpdateClusterLogsProgress", tag = "later", params(("cluster_id" = Uuid, Path)),
    request_body = ReportLogsProgress,
    responses((status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 501, description = "Not offered yet", body = ErrorBody)))]
async fn report_logs_progress(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Json(_): Json<ReportLogsProgress>,
) -> Result<Response, Problem> {
    find(&hub, id)?;
    Err(Error::NotOffered("Collecting a cluster's logs").into())
}

/// Report how an operator is doing
#[utoipa::path(put, path = "/api/assisted-install/v2/clusters/{cluster_id}/monitored-operators",
    operation_id = "v2ReportMonitoredOperatorStatus", tag = "later", params(("cluster_id" = Uuid, Path)),
    request_body = ReportOperator,
    responses((status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster or operator", body = ErrorBody),
        (status = 501, description = "Not offered yet", body = ErrorBody)))]
pub async fn report_operator(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Json(report): Json<ReportOperator>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    let name = report.name.unwrap_or_default();
    if !cluster.operators.iter().any(|operator| operator.name == name) {
        return Err(Error::missing("operator", name).into());
    }
    Err(Error::NotOffered("Watching operators").into())
}

/// Download logs
///
/// An archive of what was collected, which before an installation is nothing.
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/logs", operation_id = "V2DownloadClusterLogs",
    tag = "later", params(("cluster_id" = Uuid, Path), LogsQuery),
    responses((status = 200, description = "An archive", body = [u8], content_type = "application/octet-stream"),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster or host", body = ErrorBody)))]
async fn download_logs(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<LogsQuery>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    if let Some(host) = query.host_id
        && !hub
            .index
            .hosts_of_cluster(cluster.id)
            .iter()
            .any(|slot| slot.row().id.0 == host)
    {
        return Err(Error::missing("host", host).into());
    }
    let name = format!("{}_{}.tar", cluster.name, cluster.id);
    Ok(attachment(&name, EMPTY_ARCHIVE.to_vec(), cluster.updated_at))
}

/// Upload the ingress certificate of an installed cluster
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/uploads/ingress-cert",
    operation_id = "v2UploadClusterIngressCert", tag = "later", params(("cluster_id" = Uuid, Path)),
    request_body = IngressCert,
    responses((status = 400, description = "It is not installed", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn upload_ingress_cert(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Json(_): Json<IngressCert>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    Err(wrong_now(&cluster, "not-installed", "it has no ingress yet").into())
}

/// Download a file made for the installation
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/downloads/files",
    operation_id = "V2DownloadClusterFiles", tag = "later", params(("cluster_id" = Uuid, Path), ClusterFilesQuery),
    responses((status = 400, description = "No such file name", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "It is not made yet", body = ErrorBody)))]
async fn download_files(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<ClusterFilesQuery>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    let what = format!("{} is made when it is installed", query.file_name);
    Err(not_now(&cluster, "file-not-made", &what, "").into())
}

/// Download credentials
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/downloads/credentials",
    operation_id = "V2DownloadClusterCredentials", tag = "later",
    params(("cluster_id" = Uuid, Path), CredentialFilesQuery),
    responses((status = 400, description = "No such file name", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "They are not made yet", body = ErrorBody)))]
async fn download_credentials(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<CredentialFilesQuery>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    let what = format!("{} is made when it is installed", query.file_name);
    Err(not_now(&cluster, "file-not-made", &what, "").into())
}

/// Show how to log in to an installed cluster
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/credentials",
    operation_id = "V2GetCredentials", tag = "later", params(("cluster_id" = Uuid, Path)),
    responses((status = 400, description = "The id is no UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "It is not installed", body = ErrorBody)))]
async fn credentials(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    Err(not_now(&cluster, "not-installed", "nobody can log in to it yet", "").into())
}

/// Change parts of the install config
///
/// A JSON object in a text; it is kept for the installation.
#[utoipa::path(patch, path = "/api/assisted-install/v2/clusters/{cluster_id}/install-config",
    operation_id = "v2UpdateClusterInstallConfig", tag = "later", params(("cluster_id" = Uuid, Path)),
    request_body = InstallConfigOverrides,
    responses((status = 201, description = "It is kept"),
        (status = 400, description = "It is not a JSON object", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn override_install_config(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    ask: Ask,
    Json(overrides): Json<InstallConfigOverrides>,
) -> Result<StatusCode, Problem> {
    cluster_install_config(&hub, ClusterId(id), &overrides.0, &ask).await?;
    Ok(StatusCode::CREATED)
}

/// Add a manifest
///
/// Keeping manifests is not offered yet.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/manifests",
    operation_id = "V2CreateClusterManifest", tag = "later", params(("cluster_id" = Uuid, Path)),
    request_body = CreateManifest,
    responses((status = 400, description = "Something in the request is wrong", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 501, description = "Not offered yet", body = ErrorBody)))]
async fn create_manifest(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Json(wish): Json<CreateManifest>,
) -> Result<Response, Problem> {
    manifest::manifest_file_name(&wish.file_name)?;
    find(&hub, id)?;
    manifest::manifest_content(&wish.content)?;
    Err(Error::NotOffered("Adding manifests").into())
}

fn host(hub: &Hub, key: HostKey) -> Result<Host, Error> {
    hub.index
        .host(key)
        .ok_or_else(|| Error::missing("host", key.host))
}

fn of_no_cluster(host: &Host) -> Refused {
    let text = format!("Host {} is free: nothing is made for it.", host.name());
    Refused::new(
        Class::Missing,
        "host-is-free",
        text,
        "Bind it to a cluster first.",
    )
}

/// Install a host that was added to a running cluster
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/install",
    operation_id = "v2InstallHost", tag = "later", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 400, description = "An id is no UUID", body = InfraErrorBody),
        (status = 404, description = "No such host, or it has no cluster", body = ErrorBody),
        (status = 409, description = "It cannot be installed now", body = ErrorBody),
        (status = 501, description = "Not offered yet", body = ErrorBody)))]
async fn install_host(State(hub): State<Hub>, HostPath(key): HostPath) -> Result<Response, Problem> {
    let host = host(&hub, key)?;
    let cluster = host
        .cluster
        .and_then(|id| hub.index.cluster(id))
        .ok_or_else(|| of_no_cluster(&host))?;
    if !cluster.adds_hosts() || host.status() != Status::Known {
        let text = format!(
            "Host {} is {} in cluster {}.",
            host.name(),
            host.status().word(),
            cluster.name
        );
        let next = "Only hosts that are known in a running cluster are installed one by one.";
        return Err(Refused::conflict("host-not-installable", text, next).into());
    }
    Err(Error::NotOffered("Installing a host").into())
}

/// Reset a host
#[utoipa::path(post, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset",
    operation_id = "v2ResetHost", tag = "later", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 400, description = "An id is no UUID", body = InfraErrorBody),
        (status = 404, description = "No such host", body = ErrorBody),
        (status = 409, description = "There is nothing to reset", body = ErrorBody)))]
async fn reset_host(State(hub): State<Hub>, HostPath(key): HostPath) -> Result<Response, Problem> {
    let host = host(&hub, key)?;
    let text = format!(
        "Host {} is {}: there is no installation to undo.",
        host.name(),
        host.status().word()
    );
    Err(Refused::conflict("nothing-to-reset", text, "").into())
}

/// Run a check of a host again
///
/// Only checks that agents perform during the preparation of an installation can be run again.
#[utoipa::path(patch, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset-validation/{validation_id}",
    operation_id = "v2ResetHostValidation", tag = "later",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path), ("validation_id" = String, Path)),
    responses((status = 400, description = "No such check", body = ErrorBody),
        (status = 404, description = "No such host, or it has no cluster", body = ErrorBody),
        (status = 501, description = "Not offered yet", body = ErrorBody)))]
async fn reset_validation(
    State(hub): State<Hub>,
    HostPath(key): HostPath,
    Ids(path): Ids<ValidationPath>,
) -> Result<Response, Problem> {
    let host = host(&hub, key)?;
    if checks::CheckId::parse(&path.validation_id).is_none() {
        let text = "There is no such check.";
        return Err(Refused::new(
            Class::Invalid,
            "check-not-found",
            text,
            "Look at the host's validations.",
        )
        .into());
    }
    if host.is_free() {
        return Err(of_no_cluster(&host).into());
    }
    Err(Error::NotOffered("Running a check again").into())
}

#[derive(serde::Deserialize)]
struct ValidationPath {
    validation_id: String,
}

/// Show the Ignition config a host is installed with
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition",
    operation_id = "v2GetHostIgnition", tag = "later", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 400, description = "An id is no UUID", body = InfraErrorBody),
        (status = 404, description = "No such host, or nothing is made for it", body = ErrorBody),
        (status = 409, description = "It is not made yet", body = ErrorBody)))]
pub async fn host_ignition(State(hub): State<Hub>, HostPath(key): HostPath) -> Result<Response, Problem> {
    let host = host(&hub, key)?;
    let cluster = host
        .cluster
        .and_then(|id| hub.index.cluster(id))
        .ok_or_else(|| of_no_cluster(&host))?;
    Err(not_now(
        &cluster,
        "file-not-made",
        "its hosts' configs are made when it is installed",
        "",
    )
    .into())
}

/// Download the Ignition config a host is installed with
///
/// Called by the installer, at a path of its own.
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition",
    operation_id = "v2DownloadHostIgnition", tag = "later",
    params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 400, description = "An id is no UUID", body = InfraErrorBody),
        (status = 404, description = "No such host, or nothing is made for it", body = ErrorBody),
        (status = 409, description = "It is not made yet", body = ErrorBody)))]
async fn download_host_ignition(hub: State<Hub>, key: HostPath) -> Result<Response, Problem> {
    host_ignition(hub, key).await
}
