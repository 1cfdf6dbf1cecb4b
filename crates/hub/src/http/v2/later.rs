//! Operations around an installation: the door is there and judges what it can, the work behind it comes later.

use crate::Hub;
use crate::error::Error;
use crate::http::ask::{HostPath, Ids};
use crate::http::problem::Problem;
use crate::http::v2::clusters::find;
use crate::usecase::cluster_look::cluster_look;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, patch, post};
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_domain::cluster::{Cluster, lifecycle};
use muster_domain::host::{Host, Status};
use muster_domain::refusal::{Class, Refused};
use muster_domain::{HostKey, checks};
use uuid::Uuid;

pub fn routes() -> Router<Hub> {
    let cluster = |rest: &str| format!("/clusters/{{cluster_id}}/{rest}");
    let host = |rest: &str| format!("/infra-envs/{{infra_env_id}}/hosts/{{host_id}}/{rest}");
    Router::new()
        .route(&cluster("actions/install"), post(install))
        .route(&cluster("actions/cancel"), post(cancel))
        .route(&cluster("actions/reset"), post(reset))
        .route(&cluster("downloads/files-presigned"), get(presigned_files))
        .route(
            &cluster("downloads/credentials-presigned"),
            get(presigned_credentials),
        )
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
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(
    install,
    cancel,
    reset,
    presigned_files,
    presigned_credentials,
    supported_platforms,
    ui_settings,
    change_ui_settings,
    install_host,
    reset_host,
    reset_validation
))]
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
    presigned_files get "/api/assisted-install/v2/clusters/{cluster_id}/downloads/files-presigned"
        "V2GetPresignedForClusterFiles" "A signed link to a file of a cluster";
    presigned_credentials get "/api/assisted-install/v2/clusters/{cluster_id}/downloads/credentials-presigned"
        "V2GetPresignedForClusterCredentials" "A signed link to the credentials of a cluster";
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
