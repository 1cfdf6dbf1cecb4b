//! Fills the hub's memory from the database when it starts.

use crate::Hub;
use crate::error::Error;
use muster_domain::HostKey;
use muster_store::LoadedHost;
use std::collections::HashMap;

/// Rows per read: large enough to be fast, small enough not to be noticed in memory.
const PAGE: u32 = 5_000;

pub async fn everything(hub: &Hub) -> Result<(), Error> {
    for infra_env in hub.store.infra_envs_list(None).await? {
        hub.index.put_infra_env(infra_env);
    }
    for cluster in hub.store.clusters_list().await? {
        hub.mark_dirty(cluster.id);
        hub.index.put_cluster(cluster);
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
    let mut after: Option<HostKey> = None;
    loop {
        let page = hub.store.hosts_load(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.host.key());
        for LoadedHost { mut host, .. } in page {
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
    }
}
