//! Follows the database's feed of changes, so that several hubs on one database see each other's work.

use crate::Hub;
use crate::error::Error;
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_store::{Change, ChangeKind, ChangeOp};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How far behind another hub may be.
const EVERY: Duration = Duration::from_millis(500);
const PAGE: u32 = 1_000;

pub async fn run(hub: Hub) {
    loop {
        tokio::time::sleep(EVERY).await;
        hub.workers.begins("feed", hub.now());
        let result = once(&hub).await;
        hub.workers.note("feed", hub.now(), &result);
    }
}

async fn once(hub: &Hub) -> Result<(), Error> {
    loop {
        let after = hub.feed_read_to.load(Ordering::Relaxed);
        let changes = hub.store.changes_after(after, PAGE).await?;
        let Some(last) = changes.last() else { return Ok(()) };
        let newest = last.seq;
        for change in &changes {
            follow(hub, change).await?;
        }
        hub.feed_read_to.store(newest, Ordering::Relaxed);
        hub.announce(newest);
    }
}

async fn follow(hub: &Hub, change: &Change) -> Result<(), Error> {
    match change.kind {
        ChangeKind::Host => {
            let Some(infra_env) = change.infra_env else {
                return Ok(());
            };
            host(
                hub,
                HostKey {
                    infra_env,
                    host: HostId(change.id),
                },
                change,
            )
            .await
        }
        ChangeKind::Cluster => cluster(hub, ClusterId(change.id), change).await,
        ChangeKind::InfraEnv => infra_env(hub, InfraEnvId(change.id), change).await,
    }
}

/// Our own changes come back to us as well; they are no news.
fn is_known(known: Option<i64>, change: &Change) -> bool {
    match change.op {
        ChangeOp::Put => known.is_some_and(|revision| revision >= change.revision),
        ChangeOp::Delete => known.is_none(),
    }
}

async fn host(hub: &Hub, key: HostKey, change: &Change) -> Result<(), Error> {
    if is_known(hub.index.slot(key).map(|slot| slot.row().revision), change) {
        return Ok(());
    }
    match hub.store.host_find(key).await? {
        Some(host) => {
            let slot = hub.index.put_host(host);
            hub.remind(&slot);
        }
        None => hub.index.drop_host(key, hub.now()),
    }
    // What the hosts of a cluster are asked to do depends on all of them.
    change.cluster.inspect(|cluster| hub.mark_dirty(*cluster));
    Ok(())
}

async fn cluster(hub: &Hub, id: ClusterId, change: &Change) -> Result<(), Error> {
    if is_known(hub.index.cluster(id).map(|row| row.revision), change) {
        return Ok(());
    }
    match hub.store.cluster_find(id).await? {
        Some(cluster) => {
            hub.keep_cluster(cluster);
            hub.mark_dirty(id);
        }
        None => hub.index.drop_cluster(id),
    }
    Ok(())
}

async fn infra_env(hub: &Hub, id: InfraEnvId, change: &Change) -> Result<(), Error> {
    if is_known(hub.index.infra_env(id).map(|row| row.revision), change) {
        return Ok(());
    }
    match hub.store.infra_env_find(id).await? {
        Some(infra_env) => drop(hub.index.put_infra_env(infra_env)),
        None => hub.index.drop_infra_env(id),
    }
    Ok(())
}
