//! Work for the workers, written with the decision that asked for it.

use crate::commit::Commit;
use crate::sql::{self, Columns, Value};
use crate::{Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use muster_domain::host::Effect;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

/// Nothing is put off for so long: a clock that was ahead wrote it, and it shall not wait until the time comes again.
const LONGEST: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxItem {
    pub id: i64,
    pub effect: Effect,
    pub due_at: Timestamp,
    pub attempts: i64,
    pub last_error: String,
}

impl Store {
    /// What is to be done by now, the longest waiting first. An order that cannot be read, perhaps of a newer release, stays
    /// where it is and keeps nobody else's waiting.
    pub async fn outbox_due(&self, now: Timestamp, limit: u32) -> Result<Vec<OutboxItem>, StoreError> {
        let query = sqlx::query(
            "select id, effect, due_at, attempts, last_error from outbox
             where due_at <= $1 or due_at > $3 order by due_at, id limit $2",
        )
        .bind(now.as_microsecond())
        .bind(i64::from(limit))
        .bind((now + LONGEST).as_microsecond());
        let rows = self.inner.readers.rows(query).await?;
        let read = |row| {
            item(row)
                .inspect_err(|error| tracing::warn!(%error, "an order is left undone"))
                .ok()
        };
        Ok(rows.iter().filter_map(read).collect())
    }

    /// When the next item is due, so that a worker knows how long to rest.
    pub async fn outbox_next(&self) -> Result<Option<Timestamp>, StoreError> {
        let query = sqlx::query("select min(due_at) from outbox");
        let row = self.inner.readers.only_row(query).await?;
        row.maybe_time(0)
    }
}

fn item(row: &AnyRow) -> Result<OutboxItem, StoreError> {
    Ok(OutboxItem {
        id: row.int(0)?,
        effect: sql::read_document("effect", row.text(1)?)?,
        due_at: row.time(2)?,
        attempts: row.int(3)?,
        last_error: row.text(4)?.to_owned(),
    })
}

/// Two effects with the same key are one: the later wish replaces the earlier.
fn key(effect: &Effect) -> String {
    match effect {
        Effect::FinishMove { host, .. } => format!("finish-move {host}"),
        // Making is keyed by attempt: a reset and a new start while the old attempt's files are made are two wishes.
        Effect::MakeFiles { cluster, attempt } => format!("make-files {cluster} {attempt}"),
        Effect::DropFiles { cluster } => format!("drop-files {cluster}"),
    }
}

/// The new items of a batch by key: document and time.
pub(crate) fn items(commits: &[&Commit]) -> Result<BTreeMap<String, (String, Timestamp)>, StoreError> {
    let mut items = BTreeMap::new();
    for commit in commits {
        for effect in &commit.effects {
            items.insert(key(effect), (sql::document("effect", effect)?, commit.at));
        }
    }
    Ok(items)
}

/// A wish renewed while its item is being worked on gets a new number, so that marking the old one done keeps it.
pub(crate) async fn append(
    connection: &mut AnyConnection,
    items: BTreeMap<String, (String, Timestamp)>,
    last: i64,
) -> Result<(), StoreError> {
    let rows = items
        .into_iter()
        .zip(last + 1..)
        .map(|((key, (effect, at)), id)| {
            let (at, none) = (Value::time(at), Value::Text(String::new()));
            [
                Value::Int(id),
                Value::Text(key),
                Value::Text(effect),
                at.clone(),
                Value::Int(0),
                none,
                at,
            ]
        })
        .collect();
    sql::execute_rows(
        connection,
        "insert into outbox (id, key, effect, due_at, attempts, last_error, created_at)",
        rows,
        " on conflict (key) do update set id = excluded.id, effect = excluded.effect, due_at = excluded.due_at,
          attempts = 0, last_error = '', created_at = excluded.created_at",
    )
    .await?;
    Ok(())
}

/// Strikes out what is done and puts off what failed.
pub(crate) async fn settle(connection: &mut AnyConnection, commits: &[&Commit]) -> Result<(), StoreError> {
    let done = commits
        .iter()
        .flat_map(|commit| &commit.outbox_done)
        .map(|id| [Value::Int(*id)])
        .collect();
    sql::execute_rows(connection, "delete from outbox where id in (", done, ")").await?;
    for retry in commits.iter().flat_map(|commit| &commit.outbox_retry) {
        sqlx::query("update outbox set due_at = $1, attempts = attempts + 1, last_error = $2 where id = $3")
            .bind(retry.due_at.as_microsecond())
            .bind(sql::clean(&retry.error))
            .bind(retry.id)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
