//! Follows the database's feed of changes, so that several hubs on one database see each other's work.

use crate::Hub;
use crate::error::Error;
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_store::{Change, ChangeKind, ChangeOp};
use std::time::Duration;

/// How far behind another hub may be.
const EVERY: Duration = Duration::from_millis(500);
const PAGE: u32 = 1_000;

pub async fn run(hub: Hub) {
    let mut after = *hub.newest_change.borrow();
    loop {
        tokio::time::sleep(EVERY).await;
        let result = once(&hub, &mut after).await;
        hub.workers.note("feed", hub.now(), &result);
    }
}

async fn once(hub: &Hub, after: &mut i64) -> Result<(), Error> {
    loop {
        let changes = hub.store.changes_after(*after, PAGE).await?;
        let Some(last) = changes.last() else { return Ok(()) };
        let newest = last.seq;
        for change in &changes {
            follow(hub, change).await?;
        }
        *after = newest;
        hub.announce(newest);
    }
}

async fn follow(hub: &Hub, change: &Change) -> Result<(), Error> {
    match change.kind {
        ChangeKind::Host => {
            let Some(infra_env) = change.infra_env else { return Ok(()) };
            let key = HostKey { infra_env, host: HostId(change.id) };
            if hub.index.slot(key).is_some_and(|slot| slot.row().revision >= change.revision && change.op == ChangeOp::Put) {
                return Ok(());
            }
            match hub.store.host_find(key).await? {
                Some(host) => {
                    let slot = hub.index.put_host(host);
                    hub.remind(&slot);
                }
                None => hub.index.drop_host(key, hub.now()),
            }
        }
        ChangeKind::Cluster => match hub.store.cluster_find(ClusterId(change.id)).await? {
            Some(cluster) => drop(hub.index.put_cluster(cluster)),
            None => hub.index.drop_cluster(ClusterId(change.id)),
        },
        ChangeKind::InfraEnv => match hub.store.infra_env_find(InfraEnvId(change.id)).await? {
            Some(infra_env) => drop(hub.index.put_infra_env(infra_env)),
            None => hub.index.drop_infra_env(InfraEnvId(change.id)),
        },
    }
    Ok(())
}
