//! Follows the database's feed of changes, so that working memory has what is committed, whoever committed it: another hub
//! on the same database, or a task of this one that is not yet at the point where it tells memory.

use super::pass::{Failed, Pass};
use crate::Hub;
use crate::error::Error;
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_store::{Change, ChangeKind, ChangeOp, StoreError};
use std::collections::BTreeSet;
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

/// What a change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Host(HostKey),
    Cluster(ClusterId),
    InfraEnv(InfraEnvId),
}

impl Subject {
    fn of(change: &Change) -> Option<Self> {
        Some(match change.kind {
            ChangeKind::Host => Self::Host(HostKey {
                infra_env: change.infra_env?,
                host: HostId(change.id),
            }),
            ChangeKind::Cluster => Self::Cluster(ClusterId(change.id)),
            ChangeKind::InfraEnv => Self::InfraEnv(InfraEnvId(change.id)),
        })
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(key) => write!(f, "host {key}"),
            Self::Cluster(id) => write!(f, "cluster {id}"),
            Self::InfraEnv(id) => write!(f, "InfraEnv {id}"),
        }
    }
}

/// Takes over what was committed, and gives the place in the feed up to which it did. Nobody is told of a change before:
/// whoever reads what it is about would find it as it was, and never be told again.
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
            tracing::warn!(%error, "the feed goes on without a row that cannot be read");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// What failed before, then what is new. One that fails keeps no news of the others: it is read anew later.
async fn pass(hub: &Hub, missed: Vec<Subject>) -> Result<i64, Failed> {
    // Whoever comes while somebody reads begins where that one ended.
    let _turn = hub.feed_turn.lock().await;
    let mut pass = Pass::default();
    for subject in missed {
        if pass.is_hopeless() {
            break;
        }
        let done = follow(hub, subject, None).await;
        settle(hub, subject, done, &mut pass);
    }
    while !pass.is_hopeless() {
        let changes = hub.store.changes_after(hub.followed_to(), PAGE).await;
        let changes = changes.unwrap_or_else(|error| {
            pass.note("the list of changes", Err(error.into()));
            Vec::new()
        });
        let Some(last) = changes.last() else { break };
        for change in &changes {
            if let Some(subject) = Subject::of(change) {
                let done = follow(hub, subject, Some(change)).await;
                settle(hub, subject, done, &mut pass);
            }
            if pass.is_hopeless() {
                // The database is away: this page is read once more.
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

fn settle(hub: &Hub, subject: Subject, done: Result<bool, Error>, pass: &mut Pass) {
    match &done {
        Ok(_) => hub.resting.changes.worked(&subject),
        Err(error) => drop(hub.resting.changes.failed(subject, hub.now(), error)),
    }
    pass.note(subject, done);
}

/// What was read, or `None` of a row that is set aside: memory goes on without it.
fn readable<T>(read: Result<Option<T>, StoreError>) -> Result<Option<T>, Error> {
    match read {
        Err(StoreError::Unreadable(_)) => Ok(None),
        read => Ok(read?),
    }
}

/// `false` if it is no news; without a change it is read whatever is known.
async fn follow(hub: &Hub, subject: Subject, change: Option<&Change>) -> Result<bool, Error> {
    let is_news = |known: Option<i64>| change.is_none_or(|change| !is_known(known, change));
    match subject {
        Subject::Host(key) if is_news(hub.index.slot(key).map(|slot| slot.row().revision)) => {
            host(hub, key, change.and_then(|change| change.cluster)).await?;
        }
        Subject::Cluster(id) if is_news(hub.index.cluster(id).map(|row| row.revision)) => {
            cluster(hub, id).await?;
        }
        Subject::InfraEnv(id) if is_news(hub.index.infra_env(id).map(|row| row.revision)) => {
            infra_env(hub, id).await?;
        }
        Subject::Host(_) | Subject::Cluster(_) | Subject::InfraEnv(_) => return Ok(false),
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

async fn host(hub: &Hub, key: HostKey, cluster: Option<ClusterId>) -> Result<(), Error> {
    let before = hub.index.slot(key).and_then(|slot| slot.row().cluster);
    let after = readable(hub.store.host_find(key).await)?;
    let now = after.as_ref().and_then(|host| host.cluster);
    match after {
        Some(host) => {
            let slot = hub.index.put_host(host);
            hub.remind(&slot);
        }
        None if hub.store.unreadable_host(key).is_some() => hub.index.set_host_aside(key),
        None => hub.index.drop_host(key, hub.now()),
    }
    // What the hosts of a cluster are asked to do depends on all of them.
    let concerned: BTreeSet<_> = [before, now, cluster].into_iter().flatten().collect();
    concerned.into_iter().for_each(|cluster| hub.mark_dirty(cluster));
    Ok(())
}

async fn cluster(hub: &Hub, id: ClusterId) -> Result<(), Error> {
    match readable(hub.store.cluster_find(id).await)? {
        Some(cluster) => {
            hub.keep_cluster(cluster);
            hub.mark_dirty(id);
        }
        None if hub.store.unreadable_cluster(id).is_some() => hub.index.set_cluster_aside(id),
        None => {
            hub.index.drop_cluster(id);
            hub.behind.forget(id);
        }
    }
    Ok(())
}

async fn infra_env(hub: &Hub, id: InfraEnvId) -> Result<(), Error> {
    match readable(hub.store.infra_env_find(id).await)? {
        Some(infra_env) => drop(hub.index.put_infra_env(infra_env)),
        None if hub.store.unreadable_infra_env(id).is_some() => hub.index.set_infra_env_aside(id),
        None => hub.index.drop_infra_env(id),
    }
    Ok(())
}
