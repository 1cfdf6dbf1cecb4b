//! Read, decide, commit: the one loop through which everything is changed.
//!
//! A [`Scope`] says which rows a decision may look at, a use case's closure decides over a snapshot of them, and what it
//! decided is one commit. When somebody else was faster, the rows are read anew and decided over anew.

use crate::Hub;
use crate::error::Error;
use crate::host_change::HostChange;
use crate::index::AnyRow;
use jiff::Timestamp;
use muster_domain::cluster;
use muster_domain::host::Effect;
use muster_domain::{Caller, Entry};
use muster_store::{Commit, Delete, FileWrite, Record, ReportWrite, Row, RowKey, StoreError};
use std::sync::Arc;
use uuid::Uuid;

/// Lost races in a row after which something else is wrong.
pub const ATTEMPTS: usize = 16;

/// Who asks, and under which request; carried through every use case.
#[derive(Debug, Clone)]
pub struct OpContext {
    pub caller: Caller,
    pub request_id: Option<Uuid>,
    /// Reconciling the cluster made this change, so it need not be reconciled again for it.
    pub from_reconcile: bool,
}

impl OpContext {
    /// The hub itself: a deadline, a worker.
    pub fn hub() -> Self {
        Self {
            caller: Caller::admin(),
            request_id: None,
            from_reconcile: false,
        }
    }
}

/// Which rows a decision may look at.
pub trait Scope: Sync {
    type Snapshot: Send;

    /// Reads them from memory; `fresh` wants them as the database has them, because a copy turned out to be old.
    fn read(
        &self,
        hub: &Hub,
        now: Timestamp,
        fresh: bool,
    ) -> impl Future<Output = Result<Self::Snapshot, Error>> + Send;
}

/// What shall be written. What changes nothing writes nothing.
#[derive(Debug, Default, Clone)]
pub struct Decision {
    pub puts: Vec<Record>,
    pub deletes: Vec<Delete>,
    pub reports: Vec<ReportWrite>,
    pub files: Vec<FileWrite>,
    pub journal: Vec<Entry>,
    pub effects: Vec<Effect>,
    /// What follows from it for its cluster is in it, so the cluster need not be reconciled for it.
    pub is_reconciled: bool,
    /// One sentence for logs, plans and explanations.
    pub why: &'static str,
}

impl Decision {
    pub fn because(why: &'static str) -> Self {
        Self {
            why,
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        let Self {
            puts,
            deletes,
            reports,
            files,
            journal,
            effects,
            is_reconciled: _,
            why: _,
        } = self;
        puts.is_empty()
            && deletes.is_empty()
            && reports.is_empty()
            && files.is_empty()
            && journal.is_empty()
            && effects.is_empty()
    }

    pub fn put(&mut self, row: impl Into<Record>) {
        self.puts.push(row.into());
    }

    pub fn delete<R: Row>(&mut self, row: &R) {
        self.deletes.push(Delete::of(row));
    }

    /// A host changes with what else changes.
    pub fn put_host(&mut self, change: HostChange) {
        let HostChange {
            decision,
            reports,
            files,
        } = change;
        let host = decision.host.key();
        let writes = reports
            .into_iter()
            .map(|(report, body)| ReportWrite { host, report, body });
        self.reports.extend(writes);
        self.files.extend(files);
        self.journal.extend(decision.journal);
        self.effects.extend(decision.effects);
        self.puts.push(decision.host.into());
    }

    /// A cluster changes with what else changes.
    pub fn put_cluster(&mut self, decision: cluster::Decision) {
        self.journal.extend(decision.journal);
        self.effects.extend(decision.effects);
        self.puts.push(decision.cluster.into());
    }
}

/// What came of a change.
#[derive(Debug)]
pub struct Changed<T> {
    /// What was decided over.
    pub snapshot: T,
    rows: Vec<AnyRow>,
}

impl<T> Changed<T> {
    /// The row of this noun as it was written, if one was.
    pub fn row<R: Row>(&self) -> Option<Arc<R>> {
        self.rows.iter().find_map(|row| Arc::downcast(row.clone()).ok())
    }
}

impl Hub {
    /// Changes rows: decided again on fresh data as long as somebody else is faster, but not for ever.
    pub async fn change<S: Scope>(
        &self,
        scope: &S,
        opctx: &OpContext,
        decide: impl Fn(&S::Snapshot) -> Result<Decision, Error>,
    ) -> Result<Changed<S::Snapshot>, Error> {
        let mut attempt = 0;
        loop {
            let now = self.now();
            let snapshot = scope.read(self, now, attempt > 0).await?;
            let decision = match decide(&snapshot) {
                // Another hub may have changed the rows a moment ago: nobody is refused because of an old copy.
                Err(Error::Refused(_)) if attempt == 0 && self.shares_database() => {
                    attempt += 1;
                    continue;
                }
                decided => decided?,
            };
            if decision.is_empty() {
                let rows = Vec::new();
                return Ok(Changed { snapshot, rows });
            }
            attempt += 1;
            let concerns = !opctx.from_reconcile && !decision.is_reconciled;
            match self.commit(commit(decision, opctx, now), concerns).await {
                Err(Error::Store(StoreError::Stale(key))) if attempt < ATTEMPTS => self.reload(key).await?,
                done => {
                    return done.map(|rows| Changed { snapshot, rows });
                }
            }
        }
    }

    /// What a change would be decided over; whoever plans asks the same function and does not commit.
    pub async fn snapshot<S: Scope>(&self, scope: &S) -> Result<S::Snapshot, Error> {
        scope.read(self, self.now(), false).await
    }

    /// History alone.
    pub async fn tell(&self, entry: Entry, opctx: &OpContext) -> Result<(), Error> {
        let told = |(): &()| {
            Ok(Decision {
                journal: vec![entry.clone()],
                ..Decision::because("people are told")
            })
        };
        self.change(&Nothing, opctx, told).await.map(drop)
    }

    /// Writes, and lets everything follow that follows from a change: memory, agendas, clusters that must be reconciled,
    /// workers, and the feed. Clusters that it `concerns` are reconciled. Gives the rows that were put, in their order.
    pub(crate) async fn commit(&self, commit: Commit, concerns: bool) -> Result<Vec<AnyRow>, Error> {
        let has_effects = !commit.effects.is_empty();
        let deleted: Vec<RowKey> = commit.deletes.iter().map(|delete| delete.key).collect();
        let committed = self.store.commit(commit).await?;
        let puts = committed.puts.into_iter();
        let rows = puts.map(|record| self.keep(record, concerns)).collect();
        deleted.into_iter().for_each(|key| self.forget(key, concerns));
        if has_effects {
            self.ring_outbox();
        }
        self.announce(committed.seq);
        Ok(rows)
    }

    /// Memory takes over a row as it was committed, by whomever. Clusters that it `concerns` are reconciled.
    pub fn keep(&self, record: Record, concerns: bool) -> AnyRow {
        let key = record.key();
        let put = self.index.put(record);
        if concerns {
            put.concerned
                .into_iter()
                .flatten()
                .for_each(|id| self.mark_dirty(id));
        }
        self.remind(key);
        put.row
    }

    /// The same for a row that is gone.
    pub fn forget(&self, key: RowKey, concerns: bool) {
        let concerned = self.index.remove(key, self.now());
        if let RowKey::Cluster(id) = key {
            self.shared_facts.drop_of(id);
            self.stale_clusters.forget(id);
        } else if let Some(id) = concerned.filter(|_| concerns) {
            self.mark_dirty(id);
        }
    }

    /// Takes a row as the database has it; one that is gone there is gone here.
    pub async fn reload(&self, key: RowKey) -> Result<(), Error> {
        match self.store.find_any(key).await? {
            Some(record) => drop(self.keep(record, false)),
            None if self.index.has(key) => self.forget(key, false),
            None => {}
        }
        Ok(())
    }

    pub fn announce(&self, seq: i64) {
        self.newest_change.send_if_modified(|newest| {
            let news = seq > *newest;
            *newest = seq.max(*newest);
            news
        });
    }
}

fn commit(decision: Decision, opctx: &OpContext, now: Timestamp) -> Commit {
    let Decision {
        puts,
        deletes,
        reports,
        files,
        journal,
        effects,
        is_reconciled: _,
        why,
    } = decision;
    tracing::trace!(why, "a change is written");
    Commit {
        request_id: opctx.request_id,
        puts,
        deletes,
        reports,
        files,
        journal,
        effects,
        ..Commit::new(now)
    }
}

/// No row: what is decided is history only.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl Scope for Nothing {
    type Snapshot = ();

    async fn read(&self, _hub: &Hub, _now: Timestamp, _fresh: bool) -> Result<(), Error> {
        Ok(())
    }
}

/// A row that shall be made under this key: it must not be there yet.
#[derive(Debug, Clone, Copy)]
pub struct New(pub RowKey);

impl Scope for New {
    type Snapshot = ();

    async fn read(&self, hub: &Hub, _now: Timestamp, fresh: bool) -> Result<(), Error> {
        // Memory is asked only after the database refused: whoever chose the key has looked already.
        match fresh && hub.index.has(self.0) {
            true => Err(StoreError::Stale(self.0).into()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Settings};
    use muster_domain::Severity;
    use muster_store::{Database, Store};
    use std::sync::atomic::{AtomicUsize, Ordering};

    async fn hub() -> Hub {
        let store = Store::open(&Database::Memory).await.unwrap();
        Hub::open(store, Settings::plain().unwrap(), Clock::System)
            .await
            .unwrap()
    }

    /// Counts how often it is read, and whether fresh.
    #[derive(Default)]
    struct Counted {
        reads: AtomicUsize,
        fresh: AtomicUsize,
    }

    impl Scope for Counted {
        type Snapshot = usize;

        async fn read(&self, _hub: &Hub, _now: Timestamp, fresh: bool) -> Result<usize, Error> {
            self.fresh.fetch_add(usize::from(fresh), Ordering::Relaxed);
            Ok(self.reads.fetch_add(1, Ordering::Relaxed) + 1)
        }
    }

    fn of_nowhere() -> Decision {
        // A file of a cluster that is not there is always stale.
        let id = muster_domain::ClusterId(Uuid::nil());
        Decision {
            files: vec![FileWrite::put(id, "a", "b")],
            ..Decision::default()
        }
    }

    fn told() -> Decision {
        Decision {
            journal: vec![Entry::new("test", Severity::Info, "told")],
            ..Decision::default()
        }
    }

    #[tokio::test]
    async fn who_always_comes_too_late_is_told_so_after_some_tries() {
        let (hub, scope) = (hub().await, Counted::default());
        let lost = hub.change(&scope, &OpContext::hub(), |_| Ok(of_nowhere())).await;
        assert!(lost.unwrap_err().is_stale());
        assert_eq!(scope.reads.into_inner(), ATTEMPTS);
        assert_eq!(
            scope.fresh.into_inner(),
            ATTEMPTS - 1,
            "only the first read may be old"
        );
    }

    #[tokio::test]
    async fn who_comes_in_time_at_last_is_done_and_other_failures_are_told_at_once() {
        let (hub, scope, opctx) = (hub().await, Counted::default(), OpContext::hub());
        let won = hub.change(&scope, &opctx, |read| {
            Ok(if *read < 3 { of_nowhere() } else { told() })
        });
        assert_eq!(won.await.unwrap().snapshot, 3);
        let failed = hub.change(&scope, &opctx, |_| Err(Error::missing("host", "1")));
        assert!(matches!(failed.await, Err(Error::Missing { .. })));
        assert_eq!(scope.reads.into_inner(), 4);
    }

    #[tokio::test]
    async fn what_changes_nothing_writes_nothing() {
        let (hub, opctx) = (hub().await, OpContext::hub());
        let told = async || {
            let all = muster_store::EventQuery::default();
            hub.store.events_list(&all).await.unwrap().total
        };
        hub.change(&Nothing, &opctx, |()| Ok(Decision::because("nothing to do")))
            .await
            .unwrap();
        assert_eq!(told().await, 0);
        let entry = Entry::new("test", Severity::Info, "told");
        hub.tell(entry, &opctx).await.unwrap();
        assert_eq!(told().await, 1);
    }
}
