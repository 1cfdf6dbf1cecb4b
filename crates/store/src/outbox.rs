//! Work for the workers, written with the decision that asked for it.

use crate::commit::Commit;
use crate::sql::{self, Columns, Value};
use crate::unreadable::{Unreadable, readable};
use crate::{RowKind, Store, StoreError, UnreadableRow, document};
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
    /// What is to be done by now, the longest waiting first. An order that cannot be read stays where it is and keeps nobody
    /// else's waiting.
    pub async fn outbox_due(&self, now: Timestamp, limit: u32) -> Result<Vec<OutboxItem>, StoreError> {
        let mut items = Vec::new();
        let mut after = None;
        while items.len() < limit as usize {
            let rows = self.orders(now, after, limit).await?;
            for (id, _, row) in &rows {
                items.extend(readable(item(*id, row.as_ref(), &self.inner.unreadable))?);
            }
            match rows.last().filter(|_| rows.len() == limit as usize) {
                Some((id, due_at, _)) => after = Some((*due_at, *id)),
                None => break,
            }
        }
        items.truncate(limit as usize);
        Ok(items)
    }

    async fn orders(
        &self,
        now: Timestamp,
        after: Option<(i64, i64)>,
        limit: u32,
    ) -> Result<Vec<Order>, StoreError> {
        let (due_at, id) = after.unwrap_or((i64::MIN, i64::MIN));
        let find = |columns| {
            let text = format!(
                "select id, due_at{columns} from outbox
                 where (due_at <= $1 or due_at > $2) and (due_at, id) > ($3, $4) order by due_at, id limit $5"
            );
            let (now, far) = (Value::time(now), Value::time(now + LONGEST));
            let place = [Value::Int(due_at), Value::Int(id), Value::Int(limit.into())];
            let values = [now, far].into_iter().chain(place).collect();
            self.inner.readers.rows(sql::query(text, values))
        };
        let rows = match find(CONTENT).await {
            Err(error) if error.is_undecodable() => find("").await?,
            rows => {
                let orders = rows?
                    .into_iter()
                    .map(|row| Ok((row.int(0)?, row.int(1)?, Some(row))));
                return orders.collect();
            }
        };
        // One that cannot be taken over keeps its neighbours from being read together with it.
        let mut orders = Vec::with_capacity(rows.len());
        for row in rows {
            let (id, due_at) = (row.int(0)?, row.int(1)?);
            let text = format!("select id, due_at{CONTENT} from outbox where id = $1");
            let row = self
                .inner
                .readers
                .row(sql::query(text, vec![Value::Int(id)]))
                .await;
            match row {
                Ok(row) => orders.extend(row.map(|row| (id, due_at, Some(row)))),
                Err(error) if error.is_undecodable() => orders.push((id, due_at, None)),
                Err(error) => return Err(error),
            }
        }
        Ok(orders)
    }

    /// When the next item is due, so that a worker knows how long to rest.
    pub async fn outbox_next(&self) -> Result<Option<Timestamp>, StoreError> {
        let query = sqlx::query("select min(due_at) from outbox");
        let row = self.inner.readers.only_row(query).await?;
        row.maybe_time(0)
    }
}

/// What [`item`] reads after number and time.
const CONTENT: &str = ", version, effect, attempts, last_error";

/// Number, time, and the row if it could be taken over.
type Order = (i64, i64, Option<AnyRow>);

fn item(id: i64, row: Option<&AnyRow>, unreadable: &Unreadable) -> Result<OutboxItem, StoreError> {
    let name = id.to_string();
    match row
        .ok_or_else(|| DAMAGED.to_owned())
        .and_then(|row| content(id, row))
    {
        Ok(item) => {
            unreadable.forget(RowKind::Order, &name);
            Ok(item)
        }
        Err(reason) => Err(StoreError::Unreadable(unreadable.note(UnreadableRow {
            kind: RowKind::Order,
            id: name,
            host: None,
            cluster: None,
            reason,
        }))),
    }
}

const DAMAGED: &str = "a column of it is damaged";

fn content(id: i64, row: &AnyRow) -> Result<OutboxItem, String> {
    let damaged = |_: StoreError| DAMAGED.to_owned();
    Ok(OutboxItem {
        id,
        due_at: row.time(1).map_err(damaged)?,
        effect: document::read(row.int(2).map_err(damaged)?, row.text(3).map_err(damaged)?)?,
        attempts: row.int(4).map_err(damaged)?,
        last_error: row.text(5).map_err(damaged)?.to_owned(),
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

type Item = ([Value; 2], Timestamp);

/// The new items of a batch by key: version and document, and time.
pub(crate) fn items(commits: &[&Commit]) -> Result<BTreeMap<String, Item>, StoreError> {
    let mut items = BTreeMap::new();
    for commit in commits {
        for effect in &commit.effects {
            items.insert(key(effect), (document::written(effect)?, commit.at));
        }
    }
    Ok(items)
}

/// A wish renewed while its item is being worked on gets a new number, so that marking the old one done keeps it.
pub(crate) async fn append(
    connection: &mut AnyConnection,
    items: BTreeMap<String, Item>,
    last: i64,
) -> Result<(), StoreError> {
    let rows = items
        .into_iter()
        .zip(last + 1..)
        .map(|((key, ([version, effect], at)), id)| {
            let (at, none) = (Value::time(at), Value::Text(String::new()));
            [
                Value::Int(id),
                Value::Text(key),
                version,
                effect,
                at.clone(),
                Value::Int(0),
                none,
                at,
            ]
        })
        .collect();
    sql::execute_rows(
        connection,
        "insert into outbox (id, key, version, effect, due_at, attempts, last_error, created_at)",
        rows,
        " on conflict (key) do update set id = excluded.id, version = excluded.version, effect = excluded.effect,
          due_at = excluded.due_at, attempts = 0, last_error = '', created_at = excluded.created_at",
    )
    .await?;
    Ok(())
}

/// Strikes out what is done and puts off what failed.
pub(crate) async fn finish(connection: &mut AnyConnection, commits: &[&Commit]) -> Result<(), StoreError> {
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
