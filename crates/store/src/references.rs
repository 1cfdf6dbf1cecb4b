//! What a commit relies on besides the rows it writes: a host's cluster and pool and a file's cluster exist, and what is
//! deleted is empty.
//!
//! Foreign keys would say the same, but one broken key would fail the whole batch instead of the commit that broke it.

use crate::StoreError;
use crate::batch::{RowKey, Standing};
use crate::commit::{ClusterWrite, Commit, HostWrite, InfraEnvWrite};
use crate::sql::{self, Columns, Value};
use muster_domain::id::{ClusterId, InfraEnvId};
use sqlx::AnyConnection;
use std::collections::{BTreeSet, HashMap};

/// How many hosts the clusters and pools have that some commit of the batch deletes.
#[derive(Debug, Default)]
pub(crate) struct Members(HashMap<RowKey, i64>);

/// The clusters and pools that hosts and files of these commits name.
pub(crate) fn named(commits: &[Commit]) -> BTreeSet<RowKey> {
    let puts = commits
        .iter()
        .flat_map(|commit| &commit.hosts)
        .filter_map(|write| match write {
            HostWrite::Put { host, .. } => Some(host),
            HostWrite::Delete { .. } => None,
        });
    let mut named = BTreeSet::new();
    for host in puts {
        named.insert(RowKey::InfraEnv(host.infra_env));
        named.extend(host.cluster.map(RowKey::Cluster));
    }
    named.extend(commits.iter().flat_map(file_clusters));
    named
}

fn file_clusters(commit: &Commit) -> impl Iterator<Item = RowKey> {
    commit.files.iter().map(|file| RowKey::Cluster(file.cluster))
}

impl Members {
    pub async fn load(connection: &mut AnyConnection, commits: &[Commit]) -> Result<Self, StoreError> {
        let mut members = Self::default();
        let clusters: BTreeSet<ClusterId> = commits.iter().flat_map(deleted_clusters).collect();
        let infra_envs: BTreeSet<InfraEnvId> = commits.iter().flat_map(deleted_infra_envs).collect();
        let text = "select cluster_id, count(*) from hosts where cluster_id in (";
        let ids = clusters.iter().map(|id| [Value::text(id)]).collect();
        members
            .0
            .extend(clusters.into_iter().map(|id| (RowKey::Cluster(id), 0)));
        for row in sql::fetch_rows(connection, text, ids, ") group by cluster_id").await? {
            members
                .0
                .insert(RowKey::Cluster(row.parsed(0, "cluster id")?), row.int(1)?);
        }
        let text = "select infra_env_id, count(*) from hosts where infra_env_id in (";
        let ids = infra_envs.iter().map(|id| [Value::text(id)]).collect();
        members
            .0
            .extend(infra_envs.into_iter().map(|id| (RowKey::InfraEnv(id), 0)));
        for row in sql::fetch_rows(connection, text, ids, ") group by infra_env_id").await? {
            members
                .0
                .insert(RowKey::InfraEnv(row.parsed(0, "infra-env id")?), row.int(1)?);
        }
        Ok(members)
    }

    /// Counts a commit in if everything it relies on is there; otherwise says what is missing or not empty.
    pub fn admit(&mut self, commit: &Commit, standings: &HashMap<RowKey, Standing>) -> Result<(), RowKey> {
        let changes = changes(commit, standings);
        // Rows may come in any order, files only into clusters that are there: they would never be found otherwise.
        let made = made(commit);
        let exists =
            |key: &RowKey| made.contains(key) || standings.get(key).is_some_and(|row| row.revision > 0);
        if let Some(key) = file_clusters(commit).find(|key| !exists(key)) {
            return Err(key);
        }
        if !commit.in_any_order {
            self.judge(commit, standings, &changes)?;
        }
        for (key, change) in changes {
            if let Some(count) = self.0.get_mut(&key) {
                *count += change;
            }
        }
        Ok(())
    }

    fn judge(
        &self,
        commit: &Commit,
        standings: &HashMap<RowKey, Standing>,
        changes: &HashMap<RowKey, i64>,
    ) -> Result<(), RowKey> {
        let made = made(commit);
        for key in named(std::slice::from_ref(commit)) {
            let exists = standings.get(&key).is_some_and(|standing| standing.revision > 0);
            if !exists && !made.contains(&key) {
                return Err(key);
            }
        }
        let left =
            |key: &RowKey| self.0.get(key).copied().unwrap_or(0) + changes.get(key).copied().unwrap_or(0);
        let deleted = deleted_clusters(commit).map(RowKey::Cluster);
        if let Some(key) = deleted
            .chain(deleted_infra_envs(commit).map(RowKey::InfraEnv))
            .find(|key| left(key) != 0)
        {
            return Err(key);
        }
        Ok(())
    }
}

pub(crate) fn deleted_clusters(commit: &Commit) -> impl Iterator<Item = ClusterId> {
    commit.clusters.iter().filter_map(|write| match write {
        ClusterWrite::Delete { id, .. } => Some(*id),
        ClusterWrite::Put { .. } => None,
    })
}

fn deleted_infra_envs(commit: &Commit) -> impl Iterator<Item = InfraEnvId> {
    commit.infra_envs.iter().filter_map(|write| match write {
        InfraEnvWrite::Delete { id, .. } => Some(*id),
        InfraEnvWrite::Put { .. } => None,
    })
}

/// Clusters and pools that the commit itself writes.
fn made(commit: &Commit) -> BTreeSet<RowKey> {
    let clusters = commit.clusters.iter().filter_map(|write| match write {
        ClusterWrite::Put { cluster } => Some(RowKey::Cluster(cluster.id)),
        ClusterWrite::Delete { .. } => None,
    });
    let infra_envs = commit.infra_envs.iter().filter_map(|write| match write {
        InfraEnvWrite::Put { infra_env } => Some(RowKey::InfraEnv(infra_env.id)),
        InfraEnvWrite::Delete { .. } => None,
    });
    clusters.chain(infra_envs).collect()
}

/// By how much the commit changes the number of hosts of each cluster and pool.
fn changes(commit: &Commit, standings: &HashMap<RowKey, Standing>) -> HashMap<RowKey, i64> {
    let mut changes = HashMap::new();
    for write in &commit.hosts {
        let (key, there, cluster) = match write {
            HostWrite::Put { host, .. } => (host.key(), true, host.cluster),
            HostWrite::Delete { key, .. } => (*key, false, None),
        };
        let before = standings
            .get(&RowKey::Host(key))
            .filter(|standing| standing.revision > 0);
        if let Some(cluster) = before.and_then(|standing| standing.cluster) {
            *changes.entry(RowKey::Cluster(cluster)).or_default() -= 1;
        }
        if let Some(cluster) = cluster {
            *changes.entry(RowKey::Cluster(cluster)).or_default() += 1;
        }
        let pool = changes.entry(RowKey::InfraEnv(key.infra_env)).or_default();
        *pool += i64::from(there) - i64::from(before.is_some());
    }
    changes
}
