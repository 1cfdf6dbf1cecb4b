//! Many commits in one transaction: judged against the revisions in the database, then written many rows at a time.
//!
//! The transaction excludes every other writer, so what it reads first stays true until it ends. Each statement checks
//! the revision again all the same: a writer that went round this door fails the batch instead of losing a change.

use crate::changes::{self, Change, ChangeKind, ChangeOp};
use crate::commit::{ClusterWrite, Commit, Committed, HostWrite, InfraEnvWrite};
use crate::hosts::{self, HostBatch};
use crate::references::{self, Members};
use crate::{StoreError, clusters, events, files, infra_envs, outbox, tombstones};
use muster_domain::id::{ClusterId, HostKey, InfraEnvId};
use sqlx::AnyConnection;
use std::collections::{BTreeSet, HashMap};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RowKey {
    Host(HostKey),
    Cluster(ClusterId),
    InfraEnv(InfraEnvId),
}

impl RowKey {
    fn stale(self) -> StoreError {
        let (kind, id) = match self {
            Self::Host(key) => ("host", key.to_string()),
            Self::Cluster(id) => ("cluster", id.to_string()),
            Self::InfraEnv(id) => ("infra-env", id.to_string()),
        };
        StoreError::Stale { kind, id }
    }
}

/// A row as the transaction sees it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standing {
    /// 0: there is no such row.
    pub revision: i64,
    pub cluster: Option<ClusterId>,
    /// Where a deleted host's numbers ended. Its next life goes on from there, so that nobody who still holds the
    /// old one is taken for up to date.
    pub buried: i64,
}

/// One guarded write, whichever noun it is about.
struct Guarded {
    key: RowKey,
    seen: i64,
    op: ChangeOp,
}

pub(crate) async fn apply(
    connection: &mut AnyConnection,
    commits: &[Commit],
) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
    let mut standings = standings(connection, commits).await?;
    let mut members = Members::load(connection, commits).await?;
    let mut plan = Plan::default();
    let mut feed = Vec::new();
    let mut answers = Vec::with_capacity(commits.len());
    let mut accepted = Vec::with_capacity(commits.len());
    for commit in commits {
        let writes = writes(commit);
        if let Some(key) = first_stale(&writes, &standings) {
            answers.push(Err(key.stale()));
            continue;
        }
        if let Err(key) = members.admit(commit, &standings) {
            answers.push(Err(key.stale()));
            continue;
        }
        if writes.iter().any(|write| plan.touched.contains(&write.key)) {
            std::mem::take(&mut plan).write(connection).await?;
        }
        let committed = plan.add(commit, &mut standings, &mut feed)?;
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
    outbox::settle(connection, commits).await?;
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

async fn standings(
    connection: &mut AnyConnection,
    commits: &[Commit],
) -> Result<HashMap<RowKey, Standing>, StoreError> {
    let all: Vec<Guarded> = commits.iter().flat_map(writes).collect();
    let mut keys = references::named(commits);
    keys.extend(all.iter().map(|write| write.key));
    let mut standings = HashMap::with_capacity(keys.len());
    let (mut hosts, mut clusters, mut infra_envs) = (Vec::new(), Vec::new(), Vec::new());
    for key in keys {
        match key {
            RowKey::Host(key) => hosts.push(key),
            RowKey::Cluster(id) => clusters.push(id),
            RowKey::InfraEnv(id) => infra_envs.push(id),
        }
    }
    hosts::standings(connection, &hosts, &mut standings).await?;
    clusters::standings(connection, &clusters, &mut standings).await?;
    infra_envs::standings(connection, &infra_envs, &mut standings).await?;
    let inserted: BTreeSet<HostKey> = all
        .iter()
        .filter_map(|write| match write.key {
            RowKey::Host(key) if write.seen == 0 => Some(key),
            RowKey::Host(_) | RowKey::Cluster(_) | RowKey::InfraEnv(_) => None,
        })
        .collect();
    tombstones::standings(connection, inserted, &mut standings).await?;
    Ok(standings)
}

fn writes(commit: &Commit) -> Vec<Guarded> {
    let hosts = commit.hosts.iter().map(|write| match write {
        HostWrite::Put { host, .. } => (RowKey::Host(host.key()), host.revision, ChangeOp::Put),
        HostWrite::Delete { key, revision } => (RowKey::Host(*key), *revision, ChangeOp::Delete),
    });
    let clusters = commit.clusters.iter().map(|write| match write {
        ClusterWrite::Put { cluster } => (RowKey::Cluster(cluster.id), cluster.revision, ChangeOp::Put),
        ClusterWrite::Delete { id, revision } => (RowKey::Cluster(*id), *revision, ChangeOp::Delete),
    });
    let infra_envs = commit.infra_envs.iter().map(|write| match write {
        InfraEnvWrite::Put { infra_env } => {
            (RowKey::InfraEnv(infra_env.id), infra_env.revision, ChangeOp::Put)
        }
        InfraEnvWrite::Delete { id, revision } => (RowKey::InfraEnv(*id), *revision, ChangeOp::Delete),
    });
    hosts
        .chain(clusters)
        .chain(infra_envs)
        .map(|(key, seen, op)| Guarded { key, seen, op })
        .collect()
}

/// A row that is not as the commit saw it, that it would delete though there is none, or that it writes twice.
fn first_stale(writes: &[Guarded], standings: &HashMap<RowKey, Standing>) -> Option<RowKey> {
    let fresh = |write: &Guarded| {
        let now = standings.get(&write.key).map_or(0, |standing| standing.revision);
        now == write.seen && (now > 0 || write.op == ChangeOp::Put)
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
    hosts: HostBatch,
    clusters: clusters::ClusterBatch,
    infra_envs: infra_envs::InfraEnvBatch,
}

impl Plan {
    fn add(
        &mut self,
        commit: &Commit,
        standings: &mut HashMap<RowKey, Standing>,
        feed: &mut Vec<Change>,
    ) -> Result<Committed, StoreError> {
        let mut committed = Committed::default();
        for write in &commit.hosts {
            let (key, cluster, status, op) = match write {
                HostWrite::Put { host, .. } => {
                    (host.key(), host.cluster, host.status().word(), ChangeOp::Put)
                }
                HostWrite::Delete { key, .. } => (*key, None, "", ChangeOp::Delete),
            };
            let (before, revision) = self.advance(RowKey::Host(key), op, cluster, standings);
            self.hosts.add(write, revision, commit.at)?;
            committed.hosts.push(revision);
            let scope = Some((
                key.infra_env,
                cluster.or(before.cluster.filter(|_| op == ChangeOp::Delete)),
            ));
            feed.push(change(
                commit,
                ChangeKind::Host,
                key.host.0,
                scope,
                op,
                revision,
                status,
            ));
        }
        for write in &commit.clusters {
            let (id, status, op) = match write {
                ClusterWrite::Put { cluster } => (cluster.id, cluster.status().word(), ChangeOp::Put),
                ClusterWrite::Delete { id, .. } => (*id, "", ChangeOp::Delete),
            };
            let (_, revision) = self.advance(RowKey::Cluster(id), op, None, standings);
            self.clusters.add(write, revision)?;
            committed.clusters.push(revision);
            let mut row = change(commit, ChangeKind::Cluster, id.0, None, op, revision, status);
            row.cluster = Some(id);
            feed.push(row);
        }
        for write in &commit.infra_envs {
            let (id, cluster, op) = match write {
                InfraEnvWrite::Put { infra_env } => (infra_env.id, infra_env.cluster, ChangeOp::Put),
                InfraEnvWrite::Delete { id, .. } => (*id, None, ChangeOp::Delete),
            };
            let (_, revision) = self.advance(RowKey::InfraEnv(id), op, cluster, standings);
            self.infra_envs.add(write, revision)?;
            committed.infra_envs.push(revision);
            feed.push(change(
                commit,
                ChangeKind::InfraEnv,
                id.0,
                Some((id, cluster)),
                op,
                revision,
                "",
            ));
        }
        Ok(committed)
    }

    /// The row's standing before, and its next revision.
    fn advance(
        &mut self,
        key: RowKey,
        op: ChangeOp,
        cluster: Option<ClusterId>,
        standings: &mut HashMap<RowKey, Standing>,
    ) -> (Standing, i64) {
        self.touched.insert(key);
        let standing = standings.entry(key).or_default();
        let before = *standing;
        let revision = before.revision.max(before.buried) + 1;
        *standing = match op {
            ChangeOp::Put => Standing {
                revision,
                cluster,
                buried: 0,
            },
            ChangeOp::Delete => Standing {
                revision: 0,
                cluster: None,
                buried: revision,
            },
        };
        (before, revision)
    }

    async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let Self {
            touched: _,
            hosts,
            clusters,
            infra_envs,
        } = self;
        hosts.write(connection).await?;
        clusters.write(connection).await?;
        infra_envs.write(connection).await
    }
}

fn change(
    commit: &Commit,
    kind: ChangeKind,
    id: uuid::Uuid,
    scope: Option<(InfraEnvId, Option<ClusterId>)>,
    op: ChangeOp,
    revision: i64,
    status: &str,
) -> Change {
    Change {
        seq: 0,
        at: commit.at,
        kind,
        id,
        infra_env: scope.map(|(infra_env, _)| infra_env),
        cluster: scope.and_then(|(_, cluster)| cluster),
        op,
        revision,
        status: status.to_owned(),
    }
}

/// Fails the batch when a guarded statement met another number of rows than the revisions promised.
pub(crate) fn expect_rows(what: &str, wanted: usize, met: u64) -> Result<(), StoreError> {
    if u64::try_from(wanted).is_ok_and(|wanted| wanted == met) {
        return Ok(());
    }
    Err(StoreError::corrupt(
        format!("set of {what} rows"),
        format!("{met} of {wanted} were as read; who else writes?"),
    ))
}
