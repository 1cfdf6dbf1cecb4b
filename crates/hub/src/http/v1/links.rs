//! Where the things of an InfraEnv or a cluster can be fetched.

use super::input::V1;
use crate::Hub;
use crate::http::extract::Ids;
use crate::http::problem::{ProblemV1, json};
use crate::http::v2::clusters;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use muster_contract::v1::link::{ClusterLinks, InfraEnvLinks};
use muster_contract::v1::problem::Problem;
use muster_domain::InfraEnvId;
use uuid::Uuid;

#[derive(utoipa::OpenApi)]
#[openapi(paths(links, cluster))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/infra-envs/{infra_env_id}/links", get(links))
        .route("/clusters/{cluster_id}/links", get(cluster))
}

/// Show where to fetch the files of an InfraEnv
///
/// The image, what is needed to boot over the network, and more, under the addresses by which hosts and people reach
/// this hub. Those of the image and of the initrd change whenever their content does; older ones lead to the current
/// content.
#[utoipa::path(get, path = "/api/muster/v1/infra-envs/{infra_env_id}/links", operation_id = "infraEnvLinks", tag = "muster",
    params(("infra_env_id" = Uuid, Path)),
    responses((status = 200, description = "The addresses", body = InfraEnvLinks),
        (status = 400, description = "The id is not a UUID", body = Problem),
        (status = 404, description = "No such InfraEnv", body = Problem)))]
async fn links(State(hub): State<Hub>, V1(Ids(id)): V1<Ids<Uuid>>) -> Result<Response, ProblemV1> {
    let infra_env = hub.newest(InfraEnvId(id)).await?;
    let boot = hub.settings.boot_links(&infra_env);
    let edition = hub.settings.edition_links(&infra_env);
    let v2 = format!("{}{}", hub.settings.base_url, muster_contract::v2::BASE);
    let path = format!(
        "{}/infra-envs/{id}/downloads/files?file_name=",
        muster_contract::v2::BASE
    );
    let file = |name: &str| format!("{}{path}{name}", hub.settings.base_url);
    let script = format!("{}{path}ipxe-script", hub.settings.boot_url());
    let links = InfraEnvLinks {
        iso: edition.iso,
        image_changed_at: infra_env.image_changed_at().into(),
        kernel: boot.kernel,
        initrd: edition.initrd,
        rootfs: boot.rootfs,
        ipxe_boot_order_script: format!("{script}&ipxe_script_type=boot-order-control"),
        ipxe_script: script,
        discovery_ignition: file("discovery.ign"),
        static_network: file("static-network-config"),
        events: format!("{v2}/events?infra_env_id={id}"),
    };
    Ok(json(StatusCode::OK, &links))
}

/// Show where to fetch the files of a cluster
///
/// Under the addresses by which people reach this hub.
#[utoipa::path(get, path = "/api/muster/v1/clusters/{cluster_id}/links", operation_id = "clusterLinks", tag = "muster",
    params(("cluster_id" = Uuid, Path)),
    responses((status = 200, description = "The addresses", body = ClusterLinks),
        (status = 400, description = "The id is not a UUID", body = Problem),
        (status = 404, description = "No such cluster", body = Problem)))]
async fn cluster(State(hub): State<Hub>, V1(Ids(id)): V1<Ids<Uuid>>) -> Result<Response, ProblemV1> {
    clusters::find(&hub, id)?;
    let v2 = format!("{}{}", hub.settings.base_url, muster_contract::v2::BASE);
    let links = ClusterLinks {
        events: format!("{v2}/events?cluster_id={id}"),
        logs: format!("{v2}/clusters/{id}/logs"),
    };
    Ok(json(StatusCode::OK, &links))
}
