//! Logs of hosts and of the cluster's controller: taken in as they come, given out as archives.

use crate::Hub;
use crate::archive::Part;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{HostChange, Need};
use crate::ignition::LOGS;
use crate::usecase::cluster_files::find;
use muster_domain::checks::facts::effective_role;
use muster_domain::cluster::{Cluster, Event, lifecycle};
use muster_domain::host::{self, Host};
use muster_domain::refusal::Refused;
use muster_domain::{ClusterId, HostId, HostKey, Severity};
use muster_store::{FileStat, Upload};
use muster_vocabulary::InstallRole;
use std::sync::Arc;
use uuid::Uuid;

/// The largest file of logs that is taken.
pub const LARGEST: u64 = 262_144_000;

const CONTROLLER: &str = "controller";
const FILE: &str = "logs.tar.gz";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Host(HostKey),
    Controller,
}

impl Whose {
    fn path(self) -> String {
        match self {
            Self::Host(key) => path(&key.host.to_string()),
            Self::Controller => path(CONTROLLER),
        }
    }
}

fn path(folder: &str) -> String {
    format!("{LOGS}{folder}/{FILE}")
}

/// The cluster's host with this id; a machine may be in several pools, but only one of them lent it to this cluster.
pub fn host_in(hub: &Hub, cluster: ClusterId, host: Uuid) -> Result<HostKey, Error> {
    let hosts = hub.index.hosts_of_cluster(cluster);
    let mut keys = hosts.iter().map(|slot| slot.row().key());
    keys.find(|key| key.host == HostId(host))
        .ok_or_else(|| Error::missing("host", host))
}

/// Takes over what was uploaded; what was there before is replaced.
pub async fn logs_keep(
    hub: &Hub,
    id: ClusterId,
    whose: Whose,
    upload: &mut Upload,
    opctx: &OpContext,
) -> Result<(), Error> {
    let now = hub.now();
    let file = upload.file(id, &whose.path(), now).await?;
    match whose {
        Whose::Host(key) => {
            let host = hub
                .index
                .host(key)
                .ok_or_else(|| Error::missing("host", key.host))?;
            let text = format!("Host {}: its logs were uploaded.", host.name());
            let entry = host.entry("host_logs_uploaded", Severity::Info, text);
            hub.change_host(key, Need::Row, opctx, |snapshot| {
                let mut host = snapshot.host.clone();
                host.logs.collected_at = Some(now);
                let decision = host::Decision {
                    host,
                    journal: vec![entry.clone()],
                    effects: Vec::new(),
                    forget: Vec::new(),
                    why: "its logs arrived",
                };
                Ok(HostChange {
                    files: vec![file.clone()],
                    ..snapshot.plain(decision)
                })
            })
            .await?;
        }
        Whose::Controller => {
            hub.change_cluster(id, opctx, |cluster| {
                let decision = lifecycle::next(cluster, &Event::LogsUploaded, hub.cluster_around())?;
                Ok((decision, vec![file.clone()]))
            })
            .await?;
        }
    }
    Ok(())
}

/// An archive with its name.
pub struct Archive {
    pub name: String,
    pub parts: Vec<Part>,
}

/// The logs of one, as an archive with one file.
pub async fn logs_of(hub: &Hub, id: ClusterId, whose: Whose) -> Result<Archive, Error> {
    let cluster = find(hub, id)?;
    let name = match whose {
        Whose::Host(key) => {
            let host = hub
                .index
                .host(key)
                .ok_or_else(|| Error::missing("host", key.host))?;
            host_file(&cluster, &host)
        }
        Whose::Controller => controller_file(&cluster),
    };
    let Some(reader) = hub.store.file_open(id, &whose.path()).await? else {
        return Err(Refused::conflict(
            "logs-not-collected",
            format!("Cluster {}: the hub does not have these logs yet.", cluster.name),
            "The hub collects them when the installation ends or fails.",
        )
        .into());
    };
    let parts = vec![Part::file(name.clone(), reader)];
    Ok(Archive { name, parts })
}

/// Everything that was collected, beside what the hub itself knows.
pub async fn logs_all(hub: &Hub, id: ClusterId, known: Vec<(String, Vec<u8>)>) -> Result<Archive, Error> {
    let cluster = find(hub, id)?;
    let now = hub.now();
    let mut parts: Vec<Part> = known
        .into_iter()
        .map(|(name, content)| Part::bytes(name, content, now))
        .collect();
    for file in hub.store.file_list(id, LOGS).await? {
        let name = shown_name(hub, &cluster, &file);
        if let Some(reader) = hub.store.file_open(id, &file.path).await? {
            parts.push(Part::file(name, reader));
        }
    }
    Ok(Archive {
        name: format!("{}_{}.tar", cluster.name, cluster.id),
        parts,
    })
}

/// Hosts that left the cluster are called by their id.
fn shown_name(hub: &Hub, cluster: &Arc<Cluster>, file: &FileStat) -> String {
    let folder = file
        .path
        .strip_prefix(LOGS)
        .and_then(|rest| rest.split_once('/'))
        .map_or(file.path.as_str(), |(folder, _)| folder);
    if folder == CONTROLLER {
        return controller_file(cluster);
    }
    let host = folder
        .parse::<Uuid>()
        .ok()
        .and_then(|host| host_in(hub, cluster.id, host).ok())
        .and_then(|key| hub.index.host(key));
    match host {
        Some(host) => host_file(cluster, &host),
        None => format!("{}_{folder}.tar.gz", cluster.name),
    }
}

fn host_file(cluster: &Cluster, host: &Host) -> String {
    let role = match host.bootstrap {
        true => InstallRole::Bootstrap.word(),
        false => effective_role(host.role, host.suggested_role).word(),
    };
    format!("{}_{role}_{}.tar.gz", cluster.name, host.name())
}

fn controller_file(cluster: &Cluster) -> String {
    format!("{}_controller_logs.tar.gz", cluster.name)
}
