//! Writes signs of life to the database in batches; a crash loses at most the last of them.

use crate::Hub;
use crate::error::Error;
use jiff::SignedDuration;
use std::time::Duration;

/// Well below the three minutes after which a host counts as silent.
const EVERY: Duration = Duration::from_secs(30);
/// Agents of deleted hosts have asked by then, or never will.
const TOMBSTONES: SignedDuration = SignedDuration::from_hours(72);
/// Followers of the feed that were away longer must read everything anew.
const CHANGES: SignedDuration = SignedDuration::from_hours(7 * 24);
const ROWS: usize = 5_000;

pub async fn run(hub: Hub) {
    loop {
        tokio::time::sleep(EVERY).await;
        hub.workers.begins("flush", hub.now());
        let result = once(&hub).await;
        hub.workers.note("flush", hub.now(), &result);
    }
}

pub async fn once(hub: &Hub) -> Result<(), Error> {
    let seen = hub.index.take_unflushed();
    for rows in seen.chunks(ROWS) {
        hub.store.checkins_flush(rows).await?;
    }
    let now = hub.now();
    hub.store.tombstones_prune(now - TOMBSTONES).await?;
    hub.index.forget_tombstones(now - TOMBSTONES);
    hub.store.changes_prune(now - CHANGES).await?;
    Ok(())
}
