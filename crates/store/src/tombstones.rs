//! Hosts that were deleted, remembered for a while to tell a late agent apart from a new one.

use crate::nouns::hosts::key;
use crate::sql::Columns;
use crate::{RowKind, Store, StoreError, unreadable};
use futures_util::TryStreamExt;
use jiff::Timestamp;
use muster_domain::id::HostKey;
use sqlx::AnyConnection;

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
