//! Lending a host to a cluster, taking it back, and moving it on.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need, OneHost, Stored};
use muster_domain::cluster::{Cluster, joining};
use muster_domain::host::{Event, Host};
use muster_domain::refusal::{Class, Refused};
use muster_domain::{ClusterId, Entry, HostKey, Severity};
use std::sync::Arc;

pub async fn host_bind(
    hub: &Hub,
    key: HostKey,
    to: ClusterId,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    let scope = OneHost::going_to(key, Need::Row, to);
    let done = hub
        .change_one_host(&scope, opctx, |snapshot| decide_bind(snapshot, to))
        .await;
    match &done {
        Err(Error::Refused(refused)) => {
            tell_failure(hub, key, Some(to), "host_bind_failed", refused, opctx).await?
        }
        Err(Error::Missing { .. }) if hub.index.is_deleted(key) => tell_gone(hub, key, to, opctx).await?,
        Ok(_) | Err(_) => {}
    }
    done
}

pub async fn host_unbind(hub: &Hub, key: HostKey, opctx: &OpContext) -> Result<Arc<Host>, Error> {
    let done = hub.change_host(key, Need::Row, opctx, decide_unbind).await;
    if let Err(Error::Refused(refused)) = &done {
        tell_failure(hub, key, None, "host_unbind_failed", refused, opctx).await?;
    }
    done
}

pub async fn host_move(
    hub: &Hub,
    key: HostKey,
    to: ClusterId,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    let scope = OneHost::going_to(key, Need::Row, to);
    hub.change_one_host(&scope, opctx, |snapshot| decide_move(snapshot, to))
        .await
}

/// The last step of a move, when the host is ready for it. One that is not gets another order when it is.
pub async fn finish_move(hub: &Hub, key: HostKey, to: ClusterId) -> Result<Arc<Host>, Error> {
    // The order is in the database before memory knows of the wish; an old copy would have none.
    hub.reload(key.into()).await?;
    if hub.shares_database() {
        // Its refusal is final, so an old copy must not speak for it.
        hub.reload(to.into()).await?;
    }
    hub.change_host(key, Need::Row, &OpContext::hub(), |snapshot| {
        decide_finish(snapshot, to)
    })
    .await
}

fn decide_finish(snapshot: &HostSnapshot, to: ClusterId) -> Result<HostChange, Error> {
    let refused = match target(snapshot, to) {
        Ok(_) => None,
        Err(Error::Refused(refused)) => Some(refused),
        Err(error) => return Err(error),
    };
    Ok(snapshot.plain(snapshot.next(&Event::FinishMove { to, refused })?))
}

pub fn decide_bind(snapshot: &HostSnapshot, to: ClusterId) -> Result<HostChange, Error> {
    if snapshot.host.cluster.is_none() {
        target(snapshot, to)?;
    }
    // Nothing is measured while the agent registers again; the old findings stand for these seconds.
    Ok(snapshot.plain(snapshot.next(&Event::Bind { to })?))
}

pub fn decide_unbind(snapshot: &HostSnapshot) -> Result<HostChange, Error> {
    early_bound(snapshot)?;
    let decision = snapshot.next(&Event::Unbind)?;
    snapshot.measured(decision, Stored::new())
}

pub fn decide_move(snapshot: &HostSnapshot, to: ClusterId) -> Result<HostChange, Error> {
    early_bound(snapshot)?;
    target(snapshot, to)?;
    let decision = snapshot.next(&Event::Move { to })?;
    match decision.host.cluster {
        Some(_) => Ok(snapshot.plain(decision)),
        None => snapshot.measured(decision, Stored::new()),
    }
}

/// Hosts of an image that binds them as they register belong to that cluster for good.
pub fn early_bound(snapshot: &HostSnapshot) -> Result<(), Error> {
    match snapshot.infra_env.as_ref().filter(|pool| pool.cluster.is_some()) {
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
pub fn target(snapshot: &HostSnapshot, to: ClusterId) -> Result<Arc<Cluster>, Error> {
    snapshot.hub.readable_cluster(to)?;
    let cluster = snapshot.hub.index.cluster(to).ok_or_else(|| {
        Refused::new(
            Class::Invalid,
            "cluster-not-found",
            format!("There is no cluster {to}."),
            "List the clusters and pick one of them.",
        )
    })?;
    joining::takes(&cluster, &snapshot.host, snapshot.infra_env.as_deref())?;
    Ok(cluster)
}

/// Automation that binds a host somebody has just deleted leaves a trace, too.
async fn tell_gone(hub: &Hub, key: HostKey, to: ClusterId, opctx: &OpContext) -> Result<(), Error> {
    let text = format!("The hub cannot bind host {}: it was deleted.", key.host);
    let mut entry = Entry::new("host_bind_failed", Severity::Error, text).of_infra_env(key.infra_env);
    entry.host = Some(key.host);
    entry.cluster = Some(to);
    hub.tell(entry, opctx).await
}

/// A refusal is history too: people look there when automation did not do what they expected.
async fn tell_failure(
    hub: &Hub,
    key: HostKey,
    cluster: Option<ClusterId>,
    name: &str,
    refused: &Refused,
    opctx: &OpContext,
) -> Result<(), Error> {
    let Some(host) = hub.index.host(key) else {
        return Ok(());
    };
    let text = format!("Host {}: {refused}", host.name());
    let mut entry: Entry = host.entry(name, Severity::Error, text);
    entry.cluster = cluster.or(entry.cluster);
    hub.tell(entry, opctx).await
}
