//! Lending a host to a cluster, taking it back, and moving it on.

use crate::Hub;
use crate::error::Error;
use crate::turn::{Ask, Need, Scene, Stored, Turn};
use muster_domain::cluster::Cluster;
use muster_domain::host::{Event, Host};
use muster_domain::refusal::{Class, Refused};
use muster_domain::{ClusterId, Entry, HostKey, Severity};
use muster_store::Commit;
use std::sync::Arc;

pub async fn host_bind(hub: &Hub, key: HostKey, to: ClusterId, ask: &Ask) -> Result<Arc<Host>, Error> {
    let done = hub
        .host_turn(key, Need::Row, ask, |scene| bind_turn(scene, to))
        .await;
    match &done {
        Err(Error::Refused(refused)) => {
            tell_failure(hub, key, Some(to), "host_bind_failed", refused, ask).await?
        }
        Err(Error::Missing { .. }) if hub.index.is_deleted(key) => tell_gone(hub, key, to, ask).await?,
        Ok(_) | Err(_) => {}
    }
    done
}

pub async fn host_unbind(hub: &Hub, key: HostKey, ask: &Ask) -> Result<Arc<Host>, Error> {
    let done = hub.host_turn(key, Need::Row, ask, unbind_turn).await;
    if let Err(Error::Refused(refused)) = &done {
        tell_failure(hub, key, None, "host_unbind_failed", refused, ask).await?;
    }
    done
}

pub async fn host_move(hub: &Hub, key: HostKey, to: ClusterId, ask: &Ask) -> Result<Arc<Host>, Error> {
    hub.host_turn(key, Need::Row, ask, |scene| move_turn(scene, to))
        .await
}

/// The last step of a move, when the host is ready for it. One that is not gets another order when it is.
pub async fn finish_move(hub: &Hub, key: HostKey, to: ClusterId) -> Result<Arc<Host>, Error> {
    // The order is in the database before memory knows of the wish; an old copy would have none.
    hub.refresh_host(key).await?;
    if hub.has_company() {
        // Its refusal is final, so an old copy must not speak for it.
        hub.learn_cluster(to).await?;
    }
    hub.host_turn(key, Need::Row, &Ask::hub(), |scene| finish_turn(scene, to))
        .await
}

fn finish_turn(scene: &Scene<'_>, to: ClusterId) -> Result<Turn, Error> {
    let refused = match target(scene, to) {
        Ok(_) => None,
        Err(Error::Refused(refused)) => Some(refused),
        Err(error) => return Err(error),
    };
    Ok(scene.plain(scene.next(&Event::FinishMove { to, refused })?))
}

pub fn bind_turn(scene: &Scene<'_>, to: ClusterId) -> Result<Turn, Error> {
    if scene.host.cluster.is_none() {
        target(scene, to)?;
    }
    // Nothing is measured while the agent registers again; the old findings stand for these seconds.
    Ok(scene.plain(scene.next(&Event::Bind { to })?))
}

pub fn unbind_turn(scene: &Scene<'_>) -> Result<Turn, Error> {
    early_bound(scene)?;
    let decision = scene.next(&Event::Unbind)?;
    scene.measured(decision, Stored::new())
}

pub fn move_turn(scene: &Scene<'_>, to: ClusterId) -> Result<Turn, Error> {
    early_bound(scene)?;
    target(scene, to)?;
    let decision = scene.next(&Event::Move { to })?;
    match decision.host.cluster {
        Some(_) => Ok(scene.plain(decision)),
        None => scene.measured(decision, Stored::new()),
    }
}

/// Hosts of an image that binds them as they register belong to that cluster for good.
pub fn early_bound(scene: &Scene<'_>) -> Result<(), Error> {
    scene.hub.readable_infra_env(scene.host.infra_env)?;
    match scene.infra_env.as_ref().filter(|pool| pool.cluster.is_some()) {
        None => Ok(()),
        Some(pool) => Err(Refused::conflict(
            "pool-belongs-to-cluster",
            format!(
                "InfraEnv {} binds its hosts to its own cluster as they register.",
                pool.name
            ),
            "Delete the host here and boot it from an InfraEnv without a cluster.",
        )
        .into()),
    }
}

/// Whether that cluster can take this host at all, whatever the host's own state.
pub fn target(scene: &Scene<'_>, to: ClusterId) -> Result<Arc<Cluster>, Error> {
    let invalid = |code, reason, next| Error::from(Refused::new(Class::Invalid, code, reason, next));
    scene.hub.readable_cluster(to)?;
    scene.hub.readable_infra_env(scene.host.infra_env)?;
    let cluster = scene.hub.index.cluster(to).ok_or_else(|| {
        invalid(
            "cluster-not-found",
            format!("There is no cluster {to}."),
            "List the clusters and pick one of them.",
        )
    })?;
    if let Some(pool) = &scene.infra_env {
        let wanted = cluster.cpu_architecture.as_str();
        if !matches!(wanted, "" | "multi") && wanted != pool.cpu_architecture {
            return Err(invalid(
                "architecture-differs",
                format!(
                    "Cluster {} needs {wanted} hosts; {} has {}.",
                    cluster.name, pool.name, pool.cpu_architecture
                ),
                "Choose a host of the right architecture.",
            ));
        }
    }
    // What the old tenant put on a host that moves does not come along.
    if scene.host.is_free() {
        cluster.fits_settings_of(&scene.host)?;
    }
    if !cluster.accepts_hosts() {
        let status = cluster.status();
        return Err(Refused::conflict(
            "cluster-takes-no-hosts",
            format!("Cluster {} is {status} and takes no hosts now.", cluster.name),
            "Wait for its installation to end, or reset it.",
        )
        .into());
    }
    Ok(cluster)
}

/// Automation that binds a host somebody has just deleted leaves a trace, too.
async fn tell_gone(hub: &Hub, key: HostKey, to: ClusterId, ask: &Ask) -> Result<(), Error> {
    let text = format!("Host {} cannot be bound: it was deleted.", key.host);
    let mut entry = Entry::new("host_bind_failed", Severity::Error, text).of_infra_env(key.infra_env);
    entry.host = Some(key.host);
    entry.cluster = Some(to);
    let commit = Commit {
        request_id: ask.request_id,
        journal: vec![entry],
        ..Commit::new(hub.now())
    };
    hub.commit(commit, Vec::new()).await?;
    Ok(())
}

/// A refusal is history too: people look there when automation did not do what they expected.
async fn tell_failure(
    hub: &Hub,
    key: HostKey,
    cluster: Option<ClusterId>,
    name: &str,
    refused: &Refused,
    ask: &Ask,
) -> Result<(), Error> {
    let Some(host) = hub.index.host(key) else {
        return Ok(());
    };
    let text = format!("Host {}: {refused}", host.name());
    let mut entry: Entry = host.entry(name, Severity::Error, text);
    entry.cluster = cluster.or(entry.cluster);
    let commit = Commit {
        request_id: ask.request_id,
        journal: vec![entry],
        ..Commit::new(hub.now())
    };
    hub.commit(commit, Vec::new()).await?;
    Ok(())
}
