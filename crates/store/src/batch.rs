//! Many commits in one transaction: judged against the revisions in the database, then written many rows at a time.
//!
//! The transaction excludes every other writer, so what it reads first stays true until it ends. Each statement checks
//! the revision again all the same: a writer that went round this door fails the batch instead of losing a change.

use crate::changes::{self, Change, ChangeOp};
use crate::commit::{Commit, Committed};
use crate::nouns::{self, Batch, RowKey};
use crate::references::{self, Referrers};
use crate::reports::ReportBatch;
use crate::row::RowState;
use crate::{StoreError, events, files, outbox};
use sqlx::AnyConnection;
use std::collections::{BTreeSet, HashMap};

/// One guarded write, whichever noun it is about.
struct Guarded {
    key: RowKey,
    expected: i64,
    op: ChangeOp,
}

pub(crate) async fn apply(
    connection: &mut AnyConnection,
    commits: &[Commit],
) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
    let mut states = states(connection, commits).await?;
    let mut referrers = Referrers::load(connection, commits).await?;
    let mut plan = Plan::default();
    let mut feed = Vec::new();
    let mut answers = Vec::with_capacity(commits.len());
    let mut accepted = Vec::with_capacity(commits.len());
    for commit in commits {
        let writes = writes(commit);
        if let Some(key) = first_stale(&writes, &states) {
            answers.push(Err(key.stale()));
            continue;
        }
        if let Err(key) = referrers.admit(commit, &states) {
            answers.push(Err(key.stale()));
            continue;
        }
        if plan.touches(commit, &writes) {
            std::mem::take(&mut plan).write(connection).await?;
        }
        let committed = plan.add(commit, &mut states, &mut feed)?;
        accepted.push(commit);
        // For now the number of changes up to here; made absolute once the transaction knows where it starts.
        answers.push(Ok(Committed {
            seq: feed.len().try_into().unwrap_or(i64::MAX),
            ..committed
        }));
    }
    if accepted.is_empty() {
        return Ok(answers);
    }
    plan.write(connection).await?;
    files::write(connection, &accepted).await?;
    let before = append(connection, &accepted, feed).await?;
    for committed in answers.iter_mut().flatten() {
        committed.seq += before;
    }
    Ok(answers)
}

/// What every commit of the batch adds at the end of a table. Gives the feed's last number before it.
async fn append(
    connection: &mut AnyConnection,
    commits: &[&Commit],
    feed: Vec<Change>,
) -> Result<i64, StoreError> {
    outbox::finish(connection, commits).await?;
    let items = outbox::items(commits)?;
    let entries: usize = commits.iter().map(|commit| commit.journal.len()).sum();
    let row = sqlx::query_as::<_, (i64, i64, i64)>(
        "update counters set change_seq = change_seq + $1, event_id = event_id + $2, outbox_id = outbox_id + $3
         where id = 1 returning change_seq, event_id, outbox_id",
    );
    let counts = [feed.len(), entries, items.len()].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    let (seq, event, item) = row
        .bind(counts[0])
        .bind(counts[1])
        .bind(counts[2])
        .fetch_one(&mut *connection)
        .await?;
    events::append(connection, commits, event - counts[1]).await?;
    outbox::append(connection, items, item - counts[2]).await?;
    changes::append(connection, feed, seq - counts[0]).await?;
    Ok(seq - counts[0])
}

async fn states(
    connection: &mut AnyConnection,
    commits: &[Commit],
) -> Result<HashMap<RowKey, RowState>, StoreError> {
    let mut keys = references::named(commits);
    let mut inserted = BTreeSet::new();
    for write in commits.iter().flat_map(writes) {
        keys.insert(write.key);
        if write.expected == 0 {
            inserted.insert(write.key);
        }
    }
    nouns::states(connection, &keys, &inserted).await
}

fn writes(commit: &Commit) -> Vec<Guarded> {
    let puts = commit
        .puts
        .iter()
        .map(|record| (record.key(), record.revision(), ChangeOp::Put));
    let deletes = commit
        .deletes
        .iter()
        .map(|delete| (delete.key, delete.revision, ChangeOp::Delete));
    puts.chain(deletes)
        .map(|(key, expected, op)| Guarded { key, expected, op })
        .collect()
}

/// A row that is not as the commit saw it, that it would delete though there is none, or that it writes twice.
fn first_stale(writes: &[Guarded], states: &HashMap<RowKey, RowState>) -> Option<RowKey> {
    let fresh = |write: &Guarded| {
        let now = states.get(&write.key).map_or(0, |state| state.revision);
        now == write.expected && (now > 0 || write.op == ChangeOp::Put)
    };
    let once = |at: usize, write: &Guarded| writes[..at].iter().all(|earlier| earlier.key != write.key);
    writes
        .iter()
        .enumerate()
        .find(|(at, write)| !fresh(write) || !once(*at, write))
        .map(|(_, write)| write.key)
}

/// Rows to write, each key at most once.
#[derive(Default)]
struct Plan {
    touched: BTreeSet<RowKey>,
    rows: Batch,
    reports: ReportBatch,
}

impl Plan {
    /// Whether an earlier commit writes what this one writes, too: a statement may not write a row twice.
    fn touches(&self, commit: &Commit, writes: &[Guarded]) -> bool {
        writes.iter().any(|write| self.touched.contains(&write.key))
            || references::hosts_of_reports(commit).any(|host| self.touched.contains(&host))
    }

    fn add(
        &mut self,
        commit: &Commit,
        states: &mut HashMap<RowKey, RowState>,
        feed: &mut Vec<Change>,
    ) -> Result<Committed, StoreError> {
        let mut revisions = Vec::with_capacity(commit.puts.len() + commit.deletes.len());
        for record in &commit.puts {
            let key = record.key();
            let state = states.entry(key).or_default();
            let revision = state.revision.max(state.buried) + 1;
            *state = RowState {
                revision,
                references: record.references(),
                buried: 0,
            };
            self.touched.insert(key);
            self.rows.put(record, revision)?;
            revisions.push(revision);
            feed.push(nouns::put_change(record, revision, commit.at));
        }
        for delete in &commit.deletes {
            let state = states.entry(delete.key).or_default();
            let revision = state.revision.max(state.buried) + 1;
            let gone = RowState {
                buried: revision,
                ..RowState::default()
            };
            let before = std::mem::replace(state, gone);
            self.touched.insert(delete.key);
            self.rows.delete(delete.key, delete.revision, revision, commit.at);
            revisions.push(revision);
            feed.push(nouns::delete_change(delete.key, &before, revision, commit.at));
        }
        self.touched.extend(references::hosts_of_reports(commit));
        self.reports.add(&commit.reports);
        Ok(Committed {
            revisions,
            ..Committed::default()
        })
    }

    async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let Self {
            touched: _,
            rows,
            reports,
        } = self;
        rows.write(connection).await?;
        reports.write(connection).await
    }
}
