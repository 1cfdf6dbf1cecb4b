//! Hosts that were deleted, remembered for a while so that a late agent can be told apart from a new one.

use crate::batch::{RowKey, Standing};
use crate::hosts::{key, pair};
use crate::sql::{self, Columns, Value};
use crate::{RowKind, Store, StoreError, unreadable};
use futures_util::TryStreamExt;
use jiff::Timestamp;
use muster_domain::id::HostKey;
use sqlx::AnyConnection;
use std::collections::{BTreeSet, HashMap};

impl Store {
    /// Deleted hosts and when they were.
    pub async fn tombstones_load(&self) -> Result<Vec<(HostKey, Timestamp)>, StoreError> {
        let mut rows =
            sqlx::query("select infra_env_id, host_id, deleted_at from tombstones").fetch(self.readers());
        let mut tombstones = Vec::new();
        while let Some(row) = rows.try_next().await? {
            match (key(&row), row.time(2)) {
                (Ok(key), Ok(at)) => tombstones.push((key, at)),
                (Err(_), _) | (_, Err(_)) => {
                    unreadable::beside_host(&row, RowKind::Tombstone, &self.inner.unreadable);
                }
            }
        }
        Ok(tombstones)
    }
}

pub(crate) async fn standings(
    connection: &mut AnyConnection,
    keys: BTreeSet<HostKey>,
    standings: &mut HashMap<RowKey, Standing>,
) -> Result<(), StoreError> {
    let rows = sql::fetch_rows(
        connection,
        "select t.infra_env_id, t.host_id, t.revision from (",
        keys.into_iter().map(pair).collect(),
        ") k cross join tombstones t where t.infra_env_id = k.column1 and t.host_id = k.column2",
    )
    .await?;
    for row in rows {
        standings.entry(RowKey::Host(key(&row)?)).or_default().buried = row.int(2)?;
    }
    Ok(())
}

pub(crate) async fn bury(connection: &mut AnyConnection, rows: Vec<[Value; 4]>) -> Result<(), StoreError> {
    sql::execute_rows(
        connection,
        "insert into tombstones (infra_env_id, host_id, revision, deleted_at)",
        rows,
        " on conflict (infra_env_id, host_id) do update set revision = excluded.revision,
          deleted_at = excluded.deleted_at",
    )
    .await?;
    Ok(())
}

pub(crate) async fn raise(connection: &mut AnyConnection, hosts: Vec<[Value; 2]>) -> Result<(), StoreError> {
    let head = "delete from tombstones where (infra_env_id, host_id) in (";
    sql::execute_rows(connection, head, hosts, ")").await?;
    Ok(())
}

/// Also sweeps up check-ins that were flushed after their host was gone.
pub(crate) async fn prune(connection: &mut AnyConnection, before: Timestamp) -> Result<u64, StoreError> {
    sqlx::query(
        "delete from host_checkins where not exists (select 1 from hosts h
         where h.infra_env_id = host_checkins.infra_env_id and h.host_id = host_checkins.host_id)",
    )
    .execute(&mut *connection)
    .await?;
    let done = sqlx::query("delete from tombstones where deleted_at < $1")
        .bind(before.as_microsecond())
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}
