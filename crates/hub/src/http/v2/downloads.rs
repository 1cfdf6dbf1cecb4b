//! What a machine needs to boot into discovery: configs, scripts, links.

use crate::Hub;
use crate::error::Error;
use crate::http::extract::Ids;
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use crate::http::v2::infra_envs::find;
use crate::usecase::infra_env_create::{ignition_of, image_type, initrd_of};
use crate::usecase::infra_env_network::networks_of;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use muster_contract::time::DateMs;
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::infra_env::{
    ImageType, InfraEnvFile, InfraEnvFilesQuery, IpxeScriptType, PresignedUrlView,
};
use muster_domain::host::{Host, Phase, Stage};
use muster_domain::infra_env::InfraEnv;
use muster_domain::input::{address, image};
use muster_domain::refusal::{Class, Refused};
use muster_domain::render::{ipxe, static_network};
use uuid::Uuid;

pub fn routes() -> Router<Hub> {
    let downloads = "/infra-envs/{infra_env_id}/downloads";
    Router::new()
        .route(&format!("{downloads}/files"), get(files))
        .route(&format!("{downloads}/files-presigned"), get(presigned))
        .route(&format!("{downloads}/image-url"), get(image_url))
        .route(&format!("{downloads}/minimal-initrd"), get(initrd))
}

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(files, presigned, image_url, initrd),
    components(schemas(ImageType, InfraEnvFile, IpxeScriptType))
)]
pub struct Doc;

/// Download a file of an InfraEnv
///
/// The discovery config, the iPXE script, or the static network settings. With `mac`, the iPXE script is refused for a
/// machine that is installed or boots its own disk.
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/downloads/files",
    operation_id = "v2DownloadInfraEnvFiles", tag = "infra-env",
    params(("infra_env_id" = Uuid, Path), InfraEnvFilesQuery),
    responses((status = 200, description = "The file", body = [u8], content_type = "application/octet-stream"),
        (status = 400, description = "No such file name", body = InfraErrorBody),
        (status = 404, description = "No such InfraEnv, or nothing for this machine", body = ErrorBody)))]
async fn files(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<InfraEnvFilesQuery>,
) -> Result<Response, Problem> {
    image::download(
        Some(query.file_name.word()),
        query.ipxe_script_type.map(IpxeScriptType::word),
    )?;
    let infra_env = find(&hub, id)?;
    let kind = query.discovery_iso_type.map_or(infra_env.image_type, image_type);
    let (name, content) = match query.file_name {
        InfraEnvFile::DiscoveryIgn => {
            let (there, of) = (hub.clone(), infra_env.clone());
            let config = hub.image_threads.run(move || ignition_of(&there, &of, kind));
            ("discovery.ign".to_owned(), config.await?)
        }
        InfraEnvFile::IpxeScript => (format!("{id}-ipxe-script"), script(&hub, &infra_env, &query)?),
        InfraEnvFile::StaticNetworkConfig => {
            let of = infra_env.clone();
            let listing = hub
                .image_threads
                .run(move || static_network::listing(&networks_of(&of)));
            (format!("{id}-static-network-config"), listing.await)
        }
    };
    Ok(attachment(&name, content.into_bytes(), infra_env.updated_at))
}

fn script(hub: &Hub, infra_env: &InfraEnv, query: &InfraEnvFilesQuery) -> Result<String, Error> {
    let mac = query.mac.as_deref().filter(|mac| !mac.is_empty());
    if let Some(mac) = mac {
        let mac = address::mac("mac", mac)?;
        if let Some(host) = host_with(hub, infra_env, &mac).filter(boots_its_own_disk) {
            return Err(Refused::new(
                Class::Missing,
                "host-boots-its-disk",
                format!("Host {} is to boot from its own disk.", host.name()),
                "Unbind it first to discover it again.",
            )
            .into());
        }
    } else if query.ipxe_script_type == Some(IpxeScriptType::BootOrderControl) {
        let url = format!(
            "{}{}/infra-envs/{}/downloads/files?file_name=ipxe-script&ipxe_script_type=boot-order-control",
            hub.settings.boot_url(),
            muster_contract::v2::BASE,
            infra_env.id
        );
        return Ok(ipxe::chain_script(&url));
    }
    Ok(boot_script(hub, infra_env))
}

/// The iPXE script that boots discovery.
///
/// A machine follows it at once, so a base image that is not here is fetched from now on.
pub fn boot_script(hub: &Hub, infra_env: &InfraEnv) -> String {
    if hub.settings.serves_images()
        && let Some(images) = hub.images()
    {
        images.expect(&infra_env.openshift_version, &infra_env.cpu_architecture);
    }
    ipxe::boot_script(&ipxe::Boot {
        image_service_url: &hub.settings.image_service_url,
        infra_env: infra_env.id,
        version: &infra_env.openshift_version,
        architecture: &infra_env.cpu_architecture,
        kernel_arguments: infra_env.kernel_arguments.as_deref(),
        proof: None,
    })
}

fn host_with(hub: &Hub, infra_env: &InfraEnv, mac: &str) -> Option<Host> {
    let slots = hub
        .index
        .hosts_of_infra_env(infra_env.id)
        .into_iter()
        .filter_map(|key| hub.index.slot(key));
    let mut rows = slots.map(|slot| slot.row());
    let found = rows.find(|row| {
        row.digest
            .nics
            .iter()
            .any(|nic| nic.mac.eq_ignore_ascii_case(mac))
    });
    found.map(|row| Host::clone(&row))
}

/// Once its disk is written, a machine that boots from the network must not be discovered again.
fn boots_its_own_disk(host: &Host) -> bool {
    host.phase == Phase::Installed || host.progress.stage.is_some_and(Stage::agent_is_gone)
}

/// Get a link to a file of an InfraEnv
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/downloads/files-presigned",
    operation_id = "GetInfraEnvPresignedFileURL", tag = "infra-env",
    params(("infra_env_id" = Uuid, Path), InfraEnvFilesQuery),
    responses((status = 200, description = "The link", body = PresignedUrlView),
        (status = 400, description = "No such file name", body = InfraErrorBody),
        (status = 404, description = "No such InfraEnv", body = ErrorBody)))]
async fn presigned(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<InfraEnvFilesQuery>,
) -> Result<Response, Problem> {
    image::download(
        Some(query.file_name.word()),
        query.ipxe_script_type.map(IpxeScriptType::word),
    )?;
    let infra_env = find(&hub, id)?;
    let base = match query.file_name {
        InfraEnvFile::IpxeScript => hub.settings.boot_url(),
        InfraEnvFile::DiscoveryIgn | InfraEnvFile::StaticNetworkConfig => &hub.settings.base_url,
    };
    let query = serde_urlencoded::to_string(&query).unwrap_or_default();
    let url = format!(
        "{base}{}/infra-envs/{}/downloads/files?{query}",
        muster_contract::v2::BASE,
        infra_env.id
    );
    Ok(json(
        StatusCode::OK,
        &PresignedUrlView {
            url,
            expires_at: DateMs::default(),
        },
    ))
}

/// Get a link to the discovery image
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/downloads/image-url",
    operation_id = "GetInfraEnvDownloadURL", tag = "infra-env", params(("infra_env_id" = Uuid, Path)),
    responses((status = 200, description = "The link", body = PresignedUrlView),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such InfraEnv", body = ErrorBody)))]
async fn image_url(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let url = hub.settings.download_url(&*find(&hub, id)?);
    Ok(json(
        StatusCode::OK,
        &PresignedUrlView {
            url,
            expires_at: DateMs::default(),
        },
    ))
}

/// Download what a minimal image needs before it can fetch the rest
///
/// A compressed archive for its initrd; nothing (204) without static network and proxy.
#[utoipa::path(get, path = "/api/assisted-install/v2/infra-envs/{infra_env_id}/downloads/minimal-initrd",
    operation_id = "DownloadMinimalInitrd", tag = "infra-env", params(("infra_env_id" = Uuid, Path)),
    responses((status = 200, description = "A compressed cpio archive", body = [u8], content_type = "application/octet-stream"),
        (status = 204, description = "There is nothing to add"),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such InfraEnv", body = ErrorBody)))]
async fn initrd(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let infra_env = find(&hub, id)?;
    let of = infra_env.clone();
    let Some(archive) = hub.image_threads.run(move || initrd_of(&of)).await else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    Ok(attachment("minimal-initrd", archive, infra_env.updated_at))
}

/// A file to keep, with the time its content changed last.
pub fn attachment(name: &str, content: Vec<u8>, changed_at: Timestamp) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(content.len()));
    let name = format!("attachment; filename=\"{name}\"");
    let changed = DateTimePrinter::new().timestamp_to_rfc9110_string(&changed_at);
    for (key, value) in [
        (header::CONTENT_DISPOSITION, Some(name)),
        (header::LAST_MODIFIED, changed.ok()),
    ] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(key, value);
        }
    }
    (StatusCode::OK, headers, content).into_response()
}
