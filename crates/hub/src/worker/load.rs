//! Fills the hub's memory from the database when it starts.

use crate::Hub;
use crate::error::Error;
use jiff::Timestamp;
use muster_domain::HostKey;
use muster_domain::host::Host;
use muster_store::StoreError;
use std::collections::HashMap;

/// Rows per read: large enough to be fast, small enough not to be noticed in memory.
const PAGE: u32 = 5_000;

pub async fn everything(hub: &Hub) -> Result<(), Error> {
    for infra_env in hub.store.infra_envs_list(None).await? {
        hub.index.put_infra_env(infra_env);
    }
    for cluster in hub.store.clusters_list().await? {
        hub.mark_dirty(cluster.id);
        hub.keep_cluster(cluster);
    }
    for (key, at) in hub.store.tombstones_load().await? {
        hub.index.put_tombstone(key, at);
    }
    hosts(hub).await
}

async fn hosts(hub: &Hub) -> Result<(), Error> {
    let seen: HashMap<_, _> = hub
        .store
        .checkins_load()
        .await?
        .into_iter()
        .map(|(key, at, clock)| (key, (at, clock)))
        .collect();
    let mut page = hub.store.hosts_load(None, PAGE).await?;
    while let Some(last) = page.last() {
        let (store, after) = (hub.store.clone(), last.key());
        // The next page is read while this one is put in its places.
        let next = tokio::spawn(async move { store.hosts_load(Some(after), PAGE).await });
        page.into_iter().for_each(|host| place(hub, host, &seen));
        page = next.await.map_err(|_| StoreError::closed())??;
    }
    Ok(())
}

fn place(hub: &Hub, mut host: Host, seen: &HashMap<HostKey, (Timestamp, i64)>) {
    if let Some((at, clock)) = seen.get(&host.key()) {
        host.checked_in_at = host.checked_in_at.max(*at);
        host.clock = *clock;
    }
    // Nobody could reach us while we were away: silence counts from now on.
    let connected = host.connected;
    let slot = hub.index.put_host(host);
    if connected {
        slot.live.excuse(hub.started_at);
    }
    hub.remind(&slot);
}
