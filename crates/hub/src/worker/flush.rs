//! Writes signs of life to the database in batches, of which a crash loses at most the last, and takes out what is too old.

use super::pass::{Failed, Pass};
use crate::Hub;
use crate::error::Error;
use jiff::SignedDuration;
use std::time::Duration;

/// Well below the three minutes after which a host counts as silent.
const EVERY: Duration = Duration::from_secs(30);
/// Agents of deleted hosts have asked by then, or never will.
const TOMBSTONES: SignedDuration = SignedDuration::from_hours(72);
/// Followers of the feed that were gone longer must read everything anew.
const CHANGES: SignedDuration = SignedDuration::from_hours(7 * 24);
const ROWS: usize = 5_000;
/// Steps of a few megabytes in which the file gives back what was deleted.
const SHRINKS: usize = 32;

pub async fn run(hub: Hub) {
    loop {
        tokio::time::sleep(EVERY).await;
        hub.workers.begins("flush");
        let result = once(&hub).await;
        hub.workers.note("flush", hub.now(), &result);
    }
}

/// Each of these is done even if another one fails.
pub async fn once(hub: &Hub) -> Result<(), Failed> {
    let mut pass = Pass::default();
    pass.note("signs of life", signs_of_life(hub).await);
    let now = hub.now();
    hub.index.forget_tombstones(now - TOMBSTONES);
    let old = hub.store.tombstones_prune(now - TOMBSTONES).await;
    pass.note("old tombstones", old.map(|_| true).map_err(Error::from));
    let old = hub.store.changes_prune(now - CHANGES).await;
    pass.note("old changes", old.map(|_| true).map_err(Error::from));
    let history = SignedDuration::from_hours(24 * i64::from(hub.settings.event_days));
    let old = hub.store.events_prune(now - history).await;
    pass.note("old events", old.map(|_| true).map_err(Error::from));
    let shrunk = hub.store.shrink(SHRINKS).await;
    pass.note("the size of the file", shrunk.map(|_| true).map_err(Error::from));
    pass.end().map(drop)
}

async fn signs_of_life(hub: &Hub) -> Result<bool, Error> {
    let polled = hub.index.take_unflushed();
    for (chunk, rows) in polled.chunks(ROWS).enumerate() {
        if let Err(error) = hub.store.checkins_flush(rows).await {
            // They are written with the next ones.
            let rest = polled.iter().skip(chunk * ROWS);
            hub.index.keep_unflushed(rest.map(|(key, _, _)| *key));
            return Err(error.into());
        }
    }
    Ok(true)
}
