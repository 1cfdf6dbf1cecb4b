//! Where the files of an installation come from: made by `openshift-install`, brought by people, or served elsewhere.

pub mod endpoint;
pub mod installer;
mod patch;
mod program;
mod redact;
pub mod uploaded;
mod workplace;

use crate::Hub;
use crate::error::Error;
use muster_domain::cluster::{Cluster, IgnitionSource};
use muster_domain::host::{Host, Role};
use muster_domain::refusal::Refused;
use muster_domain::render::host_ignition::{self as render, Reporting};
use muster_store::{FileChange, FileWrite};
use serde_json::Value;
use uuid::Uuid;

/// Everything made for an installation is below this path, and goes with a reset.
pub const GENERATED: &str = "generated/";
/// Ignition that people brought, one file per role.
pub const UPLOADED: &str = "uploaded/";
/// Manifests that people added, in the two folders of the installer.
pub const MANIFESTS: &str = "manifests/";
pub const LOGS: &str = "logs/";

/// Files by name, before they are somebody's.
pub(crate) type Made = Vec<(String, Vec<u8>)>;

pub fn generated(name: &str) -> String {
    format!("{GENERATED}{name}")
}

/// Makes the files of an attempt, to be written in one commit together with the news that they are made. `Err` is a text
/// for people: what went wrong and what to do, never with a secret in it.
pub async fn make_files(hub: &Hub, cluster: &Cluster, attempt: u32) -> Result<Vec<FileWrite>, String> {
    tracing::info!(cluster = %cluster.id, attempt, source = cluster.ignition_source.word(), "making files");
    let made = match cluster.ignition_source {
        IgnitionSource::Installer => installer::make(hub, cluster).await?,
        IgnitionSource::Uploaded => uploaded::make(hub, cluster).await?,
        IgnitionSource::Endpoint => endpoint::make(hub, cluster)?,
    };
    let mut writes = vec![FileWrite::delete_prefix(cluster.id, GENERATED)];
    writes.extend(
        made.into_iter()
            .map(|(name, content)| FileWrite::put(cluster.id, generated(&name), content)),
    );
    Ok(writes)
}

/// The id under which the new cluster knows itself, when its files tell.
pub fn openshift_cluster_id(files: &[FileWrite]) -> Option<Uuid> {
    let path = generated("metadata.json");
    let content = files.iter().find_map(|file| match &file.what {
        FileChange::Put(content) if file.path == path => Some(content),
        _ => None,
    })?;
    let metadata: Value = serde_json::from_slice(content).ok()?;
    metadata["clusterID"].as_str()?.parse().ok()
}

/// What a host is installed with: its role's config, with what belongs to this host merged over it.
pub async fn host_ignition(hub: &Hub, host: &Host, cluster: &Cluster) -> Result<String, Error> {
    let base = match cluster.ignition_source {
        // Hosts that join a running cluster get a pointer to it, whatever it was installed from.
        _ if cluster.adds_hosts() => None,
        IgnitionSource::Endpoint => None,
        IgnitionSource::Installer | IgnitionSource::Uploaded => Some(role_config(hub, host, cluster).await?),
    };
    let reporting = Reporting {
        service_url: &hub.settings.base_url,
        agent_token: "",
        service_ca: &hub.settings.trust.service_ca,
        insecure: hub.settings.trust.insecure,
    };
    Ok(render::host_ignition(base.as_deref(), host, cluster, reporting)?)
}

async fn role_config(hub: &Hub, host: &Host, cluster: &Cluster) -> Result<String, Error> {
    let name = role_file(host.role);
    let content = hub.store.file_read(cluster.id, &generated(&name)).await?;
    let text = content.and_then(|content| String::from_utf8(content).ok());
    text.ok_or_else(|| {
        let reason = format!(
            "Cluster {} is {}: the hub has not made {name} yet.",
            cluster.name,
            cluster.status()
        );
        Refused::conflict(
            "file-not-made",
            reason,
            "The hub makes it when it installs the cluster.",
        )
        .into()
    })
}

/// The bootstrap host becomes a master, and is installed like one.
pub(crate) fn role_file(role: Role) -> String {
    format!("{}.ign", role.installed_as())
}

/// The roles of a cluster's hosts, each once.
pub(crate) fn roles(hub: &Hub, cluster: &Cluster) -> Vec<Role> {
    let hosts = hub.index.hosts_of_cluster(cluster.id);
    let roles: Vec<Role> = hosts.iter().map(|slot| slot.row().role).collect();
    let wanted = [Role::Master, Role::Arbiter, Role::Worker];
    wanted.into_iter().filter(|role| roles.contains(role)).collect()
}
