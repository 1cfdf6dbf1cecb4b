//! Fills the hub's memory from the database when it starts.

use super::{deadlines, limits, reconcile};
use crate::Hub;
use crate::error::Error;
use jiff::Timestamp;
use muster_domain::HostKey;
use muster_domain::host::Host;
use muster_store::{ChangeKind, Record, StoreError};
use std::collections::HashMap;

/// Rows per read: large enough to be fast, small enough not to be noticed in memory.
const PAGE: u32 = 5_000;

/// When each host polled last, and what its clock said then.
type LastPolls = HashMap<HostKey, (Timestamp, i64)>;

pub async fn everything(hub: &Hub) -> Result<(), Error> {
    for (key, at) in hub.store.tombstones_load().await? {
        hub.index.put_tombstone(key, at);
    }
    let checkins = hub.store.checkins_load().await?.into_iter();
    let last_polls: LastPolls = checkins.map(|(key, at, clock)| (key, (at, clock))).collect();
    for kind in ChangeKind::ALL {
        rows(hub, *kind, &last_polls).await?;
    }
    deadlines::plan_anew(hub);
    limits::plan_anew(hub);
    reconcile::plan_anew(hub);
    Ok(())
}

async fn rows(hub: &Hub, kind: ChangeKind, last_polls: &LastPolls) -> Result<(), Error> {
    let mut page = hub.store.load_any(kind, None, PAGE).await?;
    while let Some(last) = page.last() {
        let (store, after) = (hub.store.clone(), last.key());
        // The next page is read while this one is put in its places.
        let next = tokio::spawn(async move { store.load_any(kind, Some(after), PAGE).await });
        for record in page {
            match record {
                Record::Host(host) => place(hub, host, last_polls),
                other => drop(hub.index.put(other)),
            }
        }
        page = next.await.map_err(|_| StoreError::closed())??;
    }
    Ok(())
}

fn place(hub: &Hub, mut host: Host, last_polls: &LastPolls) {
    let (key, connected) = (host.key(), host.connected);
    if let Some((at, clock)) = last_polls.get(&key) {
        host.checked_in_at = host.checked_in_at.max(*at);
        host.clock = *clock;
    }
    hub.index.put(host.into());
    // Nobody could reach us while we were down: silence counts from now on.
    if let Some(slot) = hub.index.slot(key).filter(|_| connected) {
        slot.live.excuse(hub.started_at);
    }
}
