//! Somebody brings ignition of their own for a role of a cluster.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::ignition::uploaded::path;
use muster_domain::cluster::{Cluster, Event, lifecycle};
use muster_domain::input::{Invalid, ignition as rules};
use muster_domain::{ClusterId, Severity};
use muster_store::{FileStat, FileWrite};
use muster_vocabulary::InstallRole;
use std::sync::Arc;

/// The config as it was sent, once it was read as ignition.
pub async fn ignition_upload(
    hub: &Hub,
    id: ClusterId,
    role: &str,
    config: &[u8],
    opctx: &OpContext,
) -> Result<FileStat, Error> {
    let role = judge_role(role)?;
    find(hub, id)?;
    let text = std::str::from_utf8(config)
        .map_err(|_| Invalid::rule("config", "is not UTF-8", "give an Ignition config in JSON"))?;
    rules::ignition("config", text)?;
    hub.change_cluster(id, opctx, |cluster| {
        let mut decision = lifecycle::next(cluster, &Event::Update, hub.cluster_around())?;
        let text = format!(
            "Cluster {}: ignition for the role {role} was uploaded ({} bytes).",
            cluster.name,
            config.len()
        );
        let entry = cluster.entry("cluster_ignition_uploaded", Severity::Info, text);
        decision.journal.push(entry);
        Ok((decision, vec![FileWrite::put(id, path(role), config)]))
    })
    .await?;
    let kept = hub.store.file_stat(id, &path(role)).await?;
    kept.ok_or_else(|| missing(role))
}

pub async fn ignition_uploaded(hub: &Hub, id: ClusterId, role: &str) -> Result<Vec<u8>, Error> {
    let role = judge_role(role)?;
    find(hub, id)?;
    let content = hub.store.file_read(id, &path(role)).await?;
    content.ok_or_else(|| missing(role))
}

pub async fn ignition_remove(hub: &Hub, id: ClusterId, role: &str, opctx: &OpContext) -> Result<(), Error> {
    let role = judge_role(role)?;
    find(hub, id)?;
    let path = path(role);
    hub.change_cluster_by_files(id, &path, opctx, |cluster, files| {
        let mut decision = lifecycle::next(cluster, &Event::Update, hub.cluster_around())?;
        if files.is_empty() {
            return Err(missing(role));
        }
        let text = format!(
            "Cluster {}: ignition for the role {role} was removed.",
            cluster.name
        );
        let entry = cluster.entry("cluster_ignition_removed", Severity::Info, text);
        decision.journal.push(entry);
        Ok((decision, vec![FileWrite::delete(id, path.clone())]))
    })
    .await?;
    Ok(())
}

fn judge_role(role: &str) -> Result<InstallRole, Invalid> {
    if let Some(role) = InstallRole::from_word(role) {
        return Ok(role);
    }
    let known: Vec<_> = InstallRole::ALL.iter().map(|role| role.word()).collect();
    let role: String = role.chars().take(60).collect();
    Err(Invalid::schema(
        "role",
        format!("cannot be {role:?}"),
        format!("use one of {}", known.join(", ")),
    ))
}

fn find(hub: &Hub, id: ClusterId) -> Result<Arc<Cluster>, Error> {
    hub.index.cluster(id).ok_or_else(|| Error::missing("cluster", id))
}

fn missing(role: InstallRole) -> Error {
    Error::missing("uploaded ignition for the role", role)
}
