//! What a commit relies on besides the rows it writes: rows that others refer to exist, a file's cluster and a report's
//! host, too, and what is deleted is not referred to.
//!
//! Foreign keys would say the same, but one broken key would fail the whole batch instead of the commit that broke it.

use crate::StoreError;
use crate::commit::{Commit, Delete};
use crate::nouns::{Record, RowKey, TABLES};
use crate::row::RowState;
use crate::sql::{self, Columns};
use muster_domain::id::ClusterId;
use sqlx::AnyConnection;
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// How many rows refer to each row that some commit of the batch deletes.
#[derive(Debug, Default)]
pub(crate) struct Referrers(HashMap<RowKey, i64>);

/// The rows that these commits refer to.
pub(crate) fn named(commits: &[Commit]) -> BTreeSet<RowKey> {
    let mut named = BTreeSet::new();
    for commit in commits {
        named.extend(commit.puts.iter().flat_map(Record::references));
        named.extend(file_clusters(commit));
        named.extend(hosts_of_reports(commit));
    }
    named
}

fn file_clusters(commit: &Commit) -> impl Iterator<Item = RowKey> {
    commit.files.iter().map(|file| RowKey::Cluster(file.cluster))
}

pub(crate) fn hosts_of_reports(commit: &Commit) -> impl Iterator<Item = RowKey> {
    commit.reports.iter().map(|report| RowKey::Host(report.host))
}

impl Referrers {
    pub async fn load(connection: &mut AnyConnection, commits: &[Commit]) -> Result<Self, StoreError> {
        let deletes = commits.iter().flat_map(|commit| &commit.deletes);
        let mut counts: HashMap<_, _> = deletes.map(|delete| (delete.key, 0)).collect();
        if counts.is_empty() {
            return Ok(Self::default());
        }
        for table in TABLES {
            for reference in table.references {
                let kind = (reference.row)(Uuid::nil()).kind();
                let mut values = Vec::new();
                let deleted = counts.keys().filter(|key| key.kind() == kind);
                deleted.for_each(|key| key.push(&mut values));
                let column = reference.column;
                let head = format!(
                    "select {column}, count(*) from {} where {column} in (",
                    table.name
                );
                let tail = format!(") group by {column}");
                for row in sql::fetch_all(connection, &head, 1, values, &tail).await? {
                    let key = (reference.row)(row.parsed(0, column)?);
                    *counts.entry(key).or_default() += row.int(1)?;
                }
            }
        }
        Ok(Self(counts))
    }

    /// Counts a commit in if everything it relies on is there; otherwise says what is missing or still referred to.
    pub fn admit(&mut self, commit: &Commit, states: &HashMap<RowKey, RowState>) -> Result<(), RowKey> {
        // Rows may come in any order, files and reports only with what they belong to: they would never be found
        // otherwise.
        let made: BTreeSet<_> = commit.puts.iter().map(Record::key).collect();
        let exists =
            |key: &RowKey| made.contains(key) || states.get(key).is_some_and(|state| state.revision > 0);
        let mut owners = file_clusters(commit).chain(hosts_of_reports(commit));
        if let Some(key) = owners.find(|key| !exists(key)) {
            return Err(key);
        }
        let changes = changes(commit, states);
        if !commit.in_any_order {
            let mut named = commit.puts.iter().flat_map(Record::references);
            if let Some(key) = named.find(|key| !exists(key)) {
                return Err(key);
            }
            let count = |key: &RowKey| self.0.get(key).copied().unwrap_or(0);
            let left = |key: &RowKey| count(key) + changes.get(key).copied().unwrap_or(0);
            if let Some(delete) = commit.deletes.iter().find(|delete| left(&delete.key) != 0) {
                return Err(delete.key);
            }
        }
        for (key, change) in changes {
            if let Some(count) = self.0.get_mut(&key) {
                *count += change;
            }
        }
        Ok(())
    }
}

pub(crate) fn deleted_clusters(commit: &Commit) -> impl Iterator<Item = ClusterId> {
    let of = |delete: &Delete| {
        if let RowKey::Cluster(id) = delete.key {
            Some(id)
        } else {
            None
        }
    };
    commit.deletes.iter().filter_map(of)
}

/// By how much the commit changes the number of rows that refer to each row.
fn changes(commit: &Commit, states: &HashMap<RowKey, RowState>) -> HashMap<RowKey, i64> {
    let mut changes = HashMap::new();
    let mut count = |key: RowKey, by: i64| *changes.entry(key).or_default() += by;
    let before = |key: &RowKey| {
        let state = states.get(key).filter(|state| state.revision > 0);
        state.into_iter().flat_map(|state| &state.references)
    };
    for record in &commit.puts {
        before(&record.key()).for_each(|key| count(*key, -1));
        record.references().into_iter().for_each(|key| count(key, 1));
    }
    for delete in &commit.deletes {
        before(&delete.key).for_each(|key| count(*key, -1));
    }
    changes
}
