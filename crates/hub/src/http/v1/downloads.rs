//! How far machines have read the images of an InfraEnv.

use super::input::V1;
use crate::Hub;
use crate::error::Error;
use crate::http::extract::Ids;
use crate::http::problem::{ProblemV1, json};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use muster_contract::v1::download::{BaseImageView, DownloadView, DownloadsView};
use muster_contract::v1::problem::Problem;
use muster_domain::catalog::OsImage;
use muster_domain::infra_env::InfraEnv;
use muster_domain::{HostId, InfraEnvId};
use muster_image::beside::{self, Report};
use muster_image::depot::Status;
use muster_image::serve::progress::Progress;
use muster_vocabulary::BaseImageState;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use uuid::Uuid;

#[derive(utoipa::OpenApi)]
#[openapi(paths(downloads))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new().route("/infra-envs/{infra_env_id}/downloads", get(downloads))
}

/// Show how much machines have downloaded of the images of an InfraEnv
///
/// One entry for each client and file, as this hub and the image service beside it have sent them since they started,
/// and the base image they are made of. With several hubs each reports its own clients.
#[utoipa::path(get, path = "/api/muster/v1/infra-envs/{infra_env_id}/downloads", operation_id = "listDownloads",
    tag = "muster", params(("infra_env_id" = Uuid, Path)),
    responses((status = 200, description = "What each client has read", body = DownloadsView),
        (status = 400, description = "The id is not a UUID", body = Problem),
        (status = 404, description = "No such InfraEnv", body = Problem)))]
async fn downloads(State(hub): State<Hub>, V1(Ids(id)): V1<Ids<Uuid>>) -> Result<Response, ProblemV1> {
    let id = InfraEnvId(id);
    let infra_env = hub
        .index
        .infra_env(id)
        .ok_or_else(|| Error::missing("InfraEnv", id))?;
    let report = report_of_all(&hub).await;
    Ok(json(StatusCode::OK, &view(&hub, &report, &infra_env)))
}

/// This hub's own clients, and those of an image service beside it.
async fn report_of_all(hub: &Hub) -> Report {
    let own = hub.images().map(|images| Report {
        progress: images.progress(None),
        base_images: images.depot().list(),
    });
    let mut all = own.unwrap_or_default();
    if hub.settings.serves_images() {
        return all;
    }
    let url = hub.settings.image_service_url.clone();
    let beside = tokio::task::spawn_blocking(move || beside::fetch(&url)).await;
    let beside = beside.unwrap_or_default();
    all.progress.extend(beside.progress);
    // Machines are sent there, so what it has counts first.
    all.base_images.splice(..0, beside.base_images);
    all
}

fn view(hub: &Hub, report: &Report, infra_env: &InfraEnv) -> DownloadsView {
    let os = hub
        .settings
        .catalog
        .os_image(Some(&infra_env.openshift_version), &infra_env.cpu_architecture)
        .ok();
    let hosts = hosts_by_address(hub, infra_env);
    let list = read(&report.progress, infra_env, os);
    DownloadsView {
        downloads: list.into_iter().map(|one| shown(one, &hosts)).collect(),
        base_image: os.map(|os| base(&report.base_images, os)),
    }
}

/// Images of this InfraEnv, and what its machines fetched beside them: a root file system is the same for everybody, so
/// only the client tells for whom it was.
fn read(all: &[Progress], infra_env: &InfraEnv, os: Option<&OsImage>) -> Vec<Progress> {
    let of = |image: String| all.iter().filter(move |one| one.reader.image == image).cloned();
    let mut list: Vec<Progress> = of(infra_env.id.to_string()).collect();
    let clients: HashSet<IpAddr> = list.iter().map(|one| one.reader.client).collect();
    if let Some(os) = os {
        let shared = of(format!("{}/{}", os.version, os.cpu_architecture));
        let theirs = shared.filter(|one| clients.contains(&one.reader.client));
        list.extend(theirs);
    }
    list.sort_by_key(|one| one.idle_seconds);
    list
}

fn hosts_by_address(hub: &Hub, infra_env: &InfraEnv) -> HashMap<IpAddr, (HostId, String)> {
    let mut found = HashMap::new();
    let keys = hub.index.hosts_of_infra_env(infra_env.id);
    for slot in keys.into_iter().filter_map(|key| hub.index.slot(key)) {
        let host = slot.row();
        let addresses = host.digest.nics.iter().flat_map(|nic| &nic.addresses);
        let of_cards = addresses.filter_map(|address| address.split('/').next()?.parse().ok());
        // Virtual media is read by the management controller, not by the machine.
        for address in of_cards.chain(host.digest.bmc.iter().copied()) {
            found.insert(address, (host.id, host.name()));
        }
    }
    found
}

fn shown(progress: Progress, hosts: &HashMap<IpAddr, (HostId, String)>) -> DownloadView {
    let Progress {
        reader,
        total_bytes,
        read_bytes,
        sent_bytes,
        percent,
        streams,
        idle_seconds,
    } = progress;
    // Clients of version 4 on a socket of version 6 are the same machines.
    let host = hosts.get(&reader.client.to_canonical());
    DownloadView {
        client: reader.client.to_canonical().to_string(),
        file: reader.artifact.into(),
        host_id: host.map(|(id, _)| id.0),
        host_name: host.map(|(_, name)| name.clone()),
        total_bytes,
        read_bytes,
        sent_bytes,
        percent,
        streams,
        idle_seconds,
    }
}

fn base(list: &[Status], os: &OsImage) -> BaseImageView {
    let known = list
        .iter()
        .find(|status| status.version == os.version && status.architecture == os.cpu_architecture);
    let Some(known) = known else {
        return BaseImageView {
            version: os.version.clone(),
            cpu_architecture: os.cpu_architecture.clone(),
            state: BaseImageState::Absent.into(),
            ..BaseImageView::default()
        };
    };
    BaseImageView {
        version: known.version.clone(),
        cpu_architecture: known.architecture.clone(),
        state: known.state.clone(),
        done_bytes: known.done_bytes,
        total_bytes: known.total_bytes,
        why: known.why.clone(),
    }
}
