//! A new InfraEnv: the settings of a discovery image, and with them a pool for the hosts booted from it.

use crate::Hub;
use crate::change::{Decision, New, OpContext};
use crate::error::Error;
use crate::usecase::cluster_update;
use crate::usecase::infra_env_edition::edition_name;
use crate::usecase::infra_env_network::{fits_the_image_type, network_text, networks_of};
use flate2::{Compression, write::GzEncoder};
use muster_contract::v2::infra_env::{self as wire, CreateInfraEnv};
use muster_domain::infra_env::{Edition, ImageType, InfraEnv, Proxy};
use muster_domain::input::kernel_arguments::{KernelArgument, kernel_arguments};
use muster_domain::input::{
    Invalid, Shape, ignition, image, name, ntp, proxy, pull_secret, ssh_key, trust_bundle,
};
use muster_domain::render::ignition::{AGENT_START_TIMEOUT_SECONDS, Discovery, EMBED_AREA_BYTES, discovery};
use muster_domain::render::initrd::{Kind, MinimalInitrd, minimal_initrd};
use muster_domain::{ClusterId, Entry, InfraEnvId, Severity};
use muster_image::cpio;
use std::io::Write;
use std::sync::Arc;
use uuid::Uuid;

pub async fn infra_env_create(
    hub: &Hub,
    wish: &CreateInfraEnv,
    opctx: &OpContext,
) -> Result<Arc<InfraEnv>, Error> {
    infra_env_create_as(hub, InfraEnvId(Uuid::new_v4()), wish, opctx).await
}

/// Under an id that the caller chose; stale if it is taken.
pub async fn infra_env_create_as(
    hub: &Hub,
    id: InfraEnvId,
    wish: &CreateInfraEnv,
    opctx: &OpContext,
) -> Result<Arc<InfraEnv>, Error> {
    let (there, wanted, its_opctx) = (hub.clone(), wish.clone(), opctx.clone());
    let made = hub.image_threads.run(move || {
        let infra_env = new_infra_env(&there, id, &wanted, &its_opctx)?;
        fits_the_image(&there, &infra_env)?;
        Ok::<_, Error>(infra_env)
    });
    let infra_env = match made.await {
        Ok(infra_env) => infra_env,
        Err(error) => {
            tell_failure(hub, id, wish, &error, opctx).await?;
            return Err(error);
        }
    };
    let text = format!("InfraEnv {} was created.", infra_env.name);
    let entry = Entry::new("infra_env_registered", Severity::Info, text).of_infra_env(infra_env.id);
    let journal = vec![entry, image_news(&infra_env)];
    let scope = New(id.into());
    let done = hub.change(&scope, opctx, |()| {
        let mut new = Decision::because("a person wants it");
        new.put(infra_env.clone());
        new.journal.clone_from(&journal);
        Ok(new)
    });
    let done = done.await?;
    done.row().ok_or_else(|| Error::missing("infra-env", id))
}

/// A refusal is history too: people look there when automation did not do what they expected.
async fn tell_failure(
    hub: &Hub,
    id: InfraEnvId,
    wish: &CreateInfraEnv,
    error: &Error,
    opctx: &OpContext,
) -> Result<(), Error> {
    // What cannot be read at all is between the caller and the door.
    if matches!(error, Error::Invalid(invalid) if invalid.shape == Shape::Schema) {
        return Ok(());
    }
    let text = format!("InfraEnv {} was not created: {error}", wish.name);
    let mut entry = Entry::new("infra_env_registration_failed", Severity::Error, text).of_infra_env(id);
    entry.cluster = wish
        .cluster_id
        .map(ClusterId)
        .filter(|id| hub.index.cluster(*id).is_some());
    hub.tell(entry, opctx).await
}

/// Hosts booted from now on get another image.
pub fn image_news(infra_env: &InfraEnv) -> Entry {
    let text = format!(
        "InfraEnv {}: its image has the current settings now.",
        infra_env.name
    );
    let mut entry = Entry::new("image_info_updated", Severity::Info, text).of_infra_env(infra_env.id);
    entry.cluster = infra_env.cluster;
    entry
}

fn new_infra_env(
    hub: &Hub,
    id: InfraEnvId,
    wish: &CreateInfraEnv,
    opctx: &OpContext,
) -> Result<InfraEnv, Error> {
    name::infra_env_name(&wish.name)?;
    let word = wish.cpu_architecture.map(wire::CpuArchitecture::word);
    let cpu_architecture = image::cpu_architecture(word, &image::IMAGE_ARCHITECTURES)?;
    let cluster = cluster_of(hub, wish.cluster_id.map(ClusterId), &cpu_architecture)?;
    pull_secret::pull_secret(&wish.pull_secret.0)?;
    let wanted = wish
        .openshift_version
        .as_deref()
        .filter(|version| !version.is_empty());
    let os_image = hub.settings.catalog.os_image(wanted, &cpu_architecture)?;
    let image_type = wish.image_type.map_or(ImageType::FullIso, image_type);
    let now = hub.now();
    let mut infra_env = InfraEnv {
        id,
        revision: 0,
        name: wish.name.clone(),
        pull_secret: wish.pull_secret.0.clone(),
        cluster,
        openshift_version: os_image.openshift_version.clone(),
        cpu_architecture,
        image_type,
        ssh_authorized_key: keys(wish.ssh_authorized_key.as_deref().unwrap_or_default())?,
        proxy: Proxy::default(),
        additional_ntp_sources: wish.additional_ntp_sources.clone().unwrap_or_default(),
        ntp_sources: wish.ntp_sources.clone().unwrap_or_default(),
        static_network_config: network_text(wish.static_network_config.as_deref().unwrap_or_default())?,
        kernel_arguments: kernel_text(wish.kernel_arguments.as_deref().unwrap_or_default())?,
        ignition_config_override: override_text(
            wish.ignition_config_override.as_deref().unwrap_or_default(),
        )?,
        additional_trust_bundle: trust_bundle::trust_bundle(
            wish.additional_trust_bundle.as_deref().unwrap_or_default(),
        )?,
        network_discovery_delay_seconds: wish.network_discovery_delay_seconds,
        rendezvous_ip: wish.rendezvous_ip.clone().filter(|ip| !ip.is_empty()),
        image_token_key: token_key(),
        edition: None,
        created_at: now,
        updated_at: now,
        user: opctx.caller.user.clone(),
        org: opctx.caller.org.clone(),
        email_domain: opctx.caller.email_domain.clone(),
    };
    if let Some(wanted) = &wish.proxy {
        put_proxy(&mut infra_env.proxy, wanted)?;
    }
    infra_env.fill_time_sources(&hub.settings.default_ntp);
    agrees(&infra_env)?;
    infra_env.edition = Some(Edition {
        name: edition_name(hub, &infra_env),
        since: now,
    });
    Ok(infra_env)
}

/// An InfraEnv may be made for one cluster, if that exists and takes machines of this architecture.
pub fn cluster_of(hub: &Hub, id: Option<ClusterId>, architecture: &str) -> Result<Option<ClusterId>, Error> {
    let Some(id) = id else { return Ok(None) };
    hub.readable_cluster(id)?;
    let cluster = hub
        .index
        .cluster(id)
        .ok_or_else(|| Error::missing("cluster", id))?;
    if !cluster.cpu_architecture.is_empty() {
        image::same_architecture(architecture, &cluster.cpu_architecture)?;
    }
    Ok(Some(id))
}

/// Rules over several fields, the same for a new InfraEnv and a changed one.
pub fn agrees(infra_env: &InfraEnv) -> Result<(), Error> {
    image::offered(infra_env.image_type)?;
    proxy::proxy("proxy.", &infra_env.proxy)?;
    ntp::ntp_sources("additional_ntp_sources", &infra_env.additional_ntp_sources)?;
    ntp::ntp_sources("ntp_sources", &infra_env.ntp_sources)?;
    ntp::not_both(
        ("additional_ntp_sources", &infra_env.additional_ntp_sources),
        ("ntp_sources", &infra_env.ntp_sources),
    )?;
    image::rendezvous_ip(
        infra_env.rendezvous_ip.as_deref().unwrap_or_default(),
        infra_env.image_type.word(),
    )?;
    infra_env
        .network_discovery_delay_seconds
        .map_or(Ok(()), image::network_discovery_delay)?;
    fits_the_image_type(infra_env)
}

pub fn image_type(word: wire::ImageType) -> ImageType {
    match word {
        wire::ImageType::FullIso => ImageType::FullIso,
        wire::ImageType::MinimalIso => ImageType::MinimalIso,
        wire::ImageType::DisconnectedIso => ImageType::DisconnectedIso,
    }
}

pub fn keys(text: &str) -> Result<String, Invalid> {
    ssh_key::ssh_keys("ssh_authorized_key", text)?;
    Ok(text.to_owned())
}

pub fn override_text(text: &str) -> Result<String, Invalid> {
    if !text.is_empty() {
        ignition::ignition("ignition_config_override", text)?;
    }
    Ok(text.to_owned())
}

/// Fields that are absent stay as they are.
pub fn put_proxy(proxy: &mut Proxy, wanted: &wire::Proxy) -> Result<(), Invalid> {
    cluster_update::put_proxy("proxy.http_proxy", &mut proxy.http, &wanted.http_proxy)?;
    cluster_update::put_proxy("proxy.https_proxy", &mut proxy.https, &wanted.https_proxy)?;
    if let Some(wanted) = &wanted.no_proxy {
        proxy.no.clone_from(wanted);
    }
    Ok(())
}

/// The stored JSON text; an empty list clears.
pub fn kernel_text(items: &[wire::KernelArgument]) -> Result<Option<String>, Invalid> {
    let plain: Vec<KernelArgument> = items
        .iter()
        .map(|item| KernelArgument {
            operation: item.operation.unwrap_or_default().word().to_owned(),
            value: item.value.clone().unwrap_or_default(),
        })
        .collect();
    kernel_arguments(&plain)?;
    Ok((!plain.is_empty()).then(|| serde_json::to_string(&plain).expect("plain texts always serialise")))
}

/// 32 random bytes in hex.
pub fn token_key() -> String {
    rand::random::<[u8; 32]>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The Ignition config hosts of this InfraEnv boot with.
pub fn ignition_of(hub: &Hub, infra_env: &InfraEnv, image_type: ImageType) -> Result<String, Error> {
    let networks = networks_of(infra_env);
    let input = Discovery {
        service_url: &hub.settings.base_url,
        infra_env: infra_env.id,
        agent_image: &hub.settings.images.agent,
        agent_token: "",
        insecure: hub.settings.trust.insecure,
        service_ca: &hub.settings.trust.service_ca,
        agent_start_timeout_seconds: AGENT_START_TIMEOUT_SECONDS,
        pull_secret: &infra_env.pull_secret,
        ssh_authorized_key: &infra_env.ssh_authorized_key,
        proxy: &infra_env.proxy,
        additional_ntp_sources: &infra_env.additional_ntp_sources,
        ntp_sources: &infra_env.ntp_sources,
        trust_bundle: &infra_env.additional_trust_bundle,
        mirror: None,
        static_network: &networks,
        image_type,
        ignition_override: &infra_env.ignition_config_override,
    };
    Ok(discovery(&input)?)
}

/// The archive for the initrd, or `None` when there is nothing to add.
pub fn initrd_of(infra_env: &InfraEnv) -> Option<Vec<u8>> {
    let networks = networks_of(infra_env);
    let delay = infra_env.network_discovery_delay_seconds.unwrap_or_default();
    let input = MinimalInitrd {
        static_network: &networks,
        proxy: &infra_env.proxy,
        network_discovery_delay_seconds: u32::try_from(delay).unwrap_or_default(),
    };
    let entries = minimal_initrd(&input)?;
    let mut archive = cpio::Archive::default();
    for entry in &entries {
        match entry.kind {
            Kind::File { mode } => archive.file_with(&entry.path, mode, &entry.content),
            Kind::Link => archive.link(&entry.path, &entry.content),
        }
    }
    Some(gzipped(&archive.finished()))
}

/// The config must fit the room that the ISO keeps for it.
pub fn fits_the_image(hub: &Hub, infra_env: &InfraEnv) -> Result<(), Error> {
    let config = ignition_of(hub, infra_env, infra_env.image_type)?;
    let size = gzipped(&cpio::archive("config.ign", config.as_bytes())).len();
    if size <= EMBED_AREA_BYTES {
        return Ok(());
    }
    Err(Invalid::rule(
        "ignition_config_override",
        format!("makes a config of {size} bytes compressed"),
        format!("bring override, trust bundle and static networks down to {EMBED_AREA_BYTES} together"),
    )
    .into())
}

pub fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}
