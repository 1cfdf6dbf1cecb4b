//! Follows the database's feed of changes, so that working memory has what is committed, whoever committed it: another hub
//! on the same database, or a task of this one that is not yet at the point where it tells memory.

use super::pass::{Failed, Pass};
use crate::Hub;
use crate::error::Error;
use muster_store::{Change, ChangeOp, RowKey, StoreError};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How far memory may be behind, if nobody asks.
const EVERY: Duration = Duration::from_millis(500);
const PAGE: u32 = 1_000;

pub async fn run(hub: Hub) {
    loop {
        tokio::time::sleep(EVERY).await;
        hub.workers.begins("feed");
        let result = catch_up(&hub).await.map(drop);
        hub.workers.note("feed", hub.now(), &result);
    }
}

/// Takes over what was committed, and gives the place in the feed up to which it did. Nobody learns of a change before:
/// whoever reads what it is about would find it as it was, and never learn of it again.
pub async fn catch_up(hub: &Hub) -> Result<i64, Failed> {
    let rested = hub.resting.changes.over(hub.now());
    pass(hub, rested).await
}

/// Memory has all of these when this is done. A row that nobody can read does not end the feed for everybody else.
pub async fn have(hub: &Hub, changes: &[Change]) -> Result<(), Error> {
    let newest = changes.last().map_or(0, |change| change.seq);
    let missed = hub.resting.changes.all();
    if newest <= hub.followed_to() && missed.is_empty() {
        return Ok(());
    }
    match pass(hub, missed).await.map_err(Error::from) {
        Err(error) if error.is_unavailable() => Err(error),
        Err(error) => {
            tracing::warn!(%error, "cannot read a row; the feed goes on without it");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// What failed before, then what is new. One that fails keeps no news of the others: it is read anew later.
async fn pass(hub: &Hub, missed: Vec<RowKey>) -> Result<i64, Failed> {
    // Whoever comes while somebody reads begins where that one ended.
    let _turn = hub.feed_turn.lock().await;
    let mut pass = Pass::default();
    for subject in missed {
        if pass.is_hopeless() {
            break;
        }
        let done = follow(hub, subject, None).await;
        note_outcome(hub, subject, done, &mut pass);
    }
    while !pass.is_hopeless() {
        let changes = hub.store.changes_after(hub.followed_to(), PAGE).await;
        let changes = changes.unwrap_or_else(|error| {
            pass.note("the list of changes", Err(error.into()));
            Vec::new()
        });
        let Some(last) = changes.last() else { break };
        for change in &changes {
            if let Some(subject) = RowKey::of(change) {
                let done = follow(hub, subject, Some(change)).await;
                note_outcome(hub, subject, done, &mut pass);
            }
            if pass.is_hopeless() {
                // The database does not answer: this page is read once more.
                break;
            }
        }
        if !pass.is_hopeless() {
            hub.feed_read_to.store(last.seq, Ordering::Relaxed);
            hub.announce(last.seq);
        }
    }
    pass.end().map(|_| hub.followed_to())
}

fn note_outcome(hub: &Hub, subject: RowKey, done: Result<bool, Error>, pass: &mut Pass) {
    match &done {
        Ok(_) => hub.resting.changes.worked(&subject),
        Err(error) => drop(hub.resting.changes.failed(subject, hub.now(), error)),
    }
    pass.note(Named(subject), done);
}

/// A row, for people.
struct Named(RowKey);

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.0.kind().word(), self.0)
    }
}

/// `false` if it is no news; without a change it is read whatever is known.
async fn follow(hub: &Hub, subject: RowKey, change: Option<&Change>) -> Result<bool, Error> {
    let known = hub.index.revision(subject);
    if change.is_some_and(|change| is_known(known, change)) {
        return Ok(false);
    }
    match hub.store.find_any(subject).await {
        Ok(Some(record)) => drop(hub.keep(record, true)),
        Ok(None) => hub.forget(subject, true),
        // Memory goes on without it.
        Err(StoreError::Unreadable(_)) => {
            if let Some(concerned) = hub.index.set_aside(subject) {
                hub.mark_dirty(concerned);
            }
        }
        Err(error) => return Err(error.into()),
    }
    // What the hosts of a cluster are asked to do depends on all of them; it may have had this one and lost it again.
    if let (RowKey::Host(_), Some(cluster)) = (subject, change.and_then(|change| change.cluster)) {
        hub.mark_dirty(cluster);
    }
    Ok(true)
}

/// Most of our own changes come back to us when they are no news any more.
fn is_known(known: Option<i64>, change: &Change) -> bool {
    match change.op {
        ChangeOp::Put => known.is_some_and(|revision| revision >= change.revision),
        ChangeOp::Delete => known.is_none(),
    }
}
