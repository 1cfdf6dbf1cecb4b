//! The change feed: which row became what, in the order of commits, without gaps.

use crate::nouns::ChangeKind;
use crate::sql::{self, Columns, Value};
use crate::{Store, StoreError};
use jiff::Timestamp;
use muster_domain::id::{ClusterId, InfraEnvId};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use uuid::Uuid;

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeOp {
    Put,
    Delete,
}

impl ChangeOp {
    pub fn word(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Delete => "delete",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "put" => Some(Self::Put),
            "delete" => Some(Self::Delete),
            _ => None,
        }
    }
}

/// Where a follower looks for what changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scope {
    pub infra_env: Option<InfraEnvId>,
    pub cluster: Option<ClusterId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub seq: i64,
    pub at: Timestamp,
    pub kind: ChangeKind,
    pub id: Uuid,
    /// Of a host, and of an InfraEnv itself.
    pub infra_env: Option<InfraEnvId>,
    /// Where a host is now, or was when it was deleted; of a cluster itself; that an InfraEnv binds to.
    pub cluster: Option<ClusterId>,
    pub op: ChangeOp,
    pub revision: i64,
    /// Empty for what has none.
    pub status: String,
}

/// What the feed still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangesRange {
    /// The last number that was pruned: a reader that is not beyond it must start over.
    pub pruned: i64,
    pub last: i64,
}

impl Store {
    pub async fn changes_after(&self, seq: i64, limit: u32) -> Result<Vec<Change>, StoreError> {
        let query = sqlx::query(
            "select seq, at, kind, id, infra_env_id, cluster_id, op, revision, status from changes
             where seq > $1 order by seq limit $2",
        )
        .bind(seq)
        .bind(i64::from(limit));
        let rows = self.inner.readers.rows(query).await?;
        rows.iter().map(change).collect()
    }

    /// The number of the last change; 0 before the first.
    pub async fn changes_last(&self) -> Result<i64, StoreError> {
        let query = sqlx::query("select change_seq from counters where id = 1");
        self.inner.readers.only_row(query).await?.int(0)
    }

    pub async fn changes_range(&self) -> Result<ChangesRange, StoreError> {
        let text = "select change_seq, (select min(seq) from changes) from counters where id = 1";
        let row = self.inner.readers.only_row(sqlx::query(text)).await?;
        let last = row.int(0)?;
        Ok(ChangesRange {
            pruned: row.maybe_int(1)?.map_or(last, |first| first - 1),
            last,
        })
    }
}

fn change(row: &AnyRow) -> Result<Change, StoreError> {
    let (kind, op) = (row.text(2)?, row.text(6)?);
    Ok(Change {
        seq: row.int(0)?,
        at: row.time(1)?,
        kind: ChangeKind::from_word(kind).ok_or_else(|| StoreError::corrupt("kind of change", kind))?,
        id: row.parsed(3, "id of a change")?,
        infra_env: row.maybe_parsed(4, "infra-env id")?,
        cluster: row.maybe_parsed(5, "cluster id")?,
        op: ChangeOp::from_word(op).ok_or_else(|| StoreError::corrupt("operation of a change", op))?,
        revision: row.int(7)?,
        status: row.text(8)?.to_owned(),
    })
}

/// Numbers the changes from `last` on.
pub(crate) async fn append(
    connection: &mut AnyConnection,
    changes: Vec<Change>,
    last: i64,
) -> Result<(), StoreError> {
    let rows = changes
        .into_iter()
        .zip(last + 1..)
        .map(|(change, seq)| {
            let Change {
                seq: _,
                at,
                kind,
                id,
                infra_env,
                cluster,
                op,
                revision,
                status,
            } = change;
            [
                Value::Int(seq),
                Value::time(at),
                Value::text(kind.word()),
                Value::text(id),
                Value::maybe_text(infra_env),
                Value::maybe_text(cluster),
                Value::text(op.word()),
                Value::Int(revision),
                Value::Text(status),
            ]
        })
        .collect();
    let head = "insert into changes (seq, at, kind, id, infra_env_id, cluster_id, op, revision, status)";
    sql::execute_rows(connection, head, rows, "").await?;
    Ok(())
}

/// Changes that go in one transaction: the writer is held up for a few milliseconds only.
const PRUNED: i64 = 10_000;

/// Cuts below the first change that is young enough, so that no gap opens when a clock was set back. A batch of them.
pub(crate) async fn prune(connection: &mut AnyConnection, before: Timestamp) -> Result<u64, StoreError> {
    let text = "select (select min(seq) from changes), coalesce(
            (select min(seq) from changes where at >= $1), (select change_seq + 1 from counters where id = 1))";
    let row = sqlx::query(text)
        .bind(before.as_microsecond())
        .fetch_one(&mut *connection)
        .await?;
    let Some(first) = row.maybe_int(0)? else {
        return Ok(0);
    };
    let end = row.int(1)?.min(first + PRUNED);
    sql::execute(
        connection,
        "delete from changes where seq < $1",
        vec![Value::Int(end)],
    )
    .await
}
