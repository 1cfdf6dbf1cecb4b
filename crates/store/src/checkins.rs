//! When each host polled last: liveness only, flushed in batches beside the guarded rows.

use crate::nouns::hosts::{key, pair};
use crate::sql::{self, Columns, Value};
use crate::writer::Job;
use crate::{RowKind, Store, StoreError, unreadable};
use futures_util::TryStreamExt;
use jiff::Timestamp;
use muster_domain::id::HostKey;
use sqlx::AnyConnection;
use std::collections::BTreeMap;

/// Host, when it polled, and what its own clock said then (epoch seconds; 0 = never reported).
pub type Checkin = (HostKey, Timestamp, i64);

/// Check-ins per transaction: commits that wait meanwhile are held up for a few milliseconds only.
const PIECE: usize = 1024;

impl Store {
    /// Keeps the latest check-in of each host.
    pub async fn checkins_flush(&self, checkins: &[Checkin]) -> Result<(), StoreError> {
        let latest: BTreeMap<HostKey, Checkin> =
            checkins.iter().map(|checkin| (checkin.0, *checkin)).collect();
        let latest: Vec<Checkin> = latest.into_values().collect();
        for piece in latest.chunks(PIECE) {
            self.ask(|reply| Job::Checkins(piece.to_vec(), reply)).await?;
        }
        Ok(())
    }

    /// When any hub on this database last had a poll of a host.
    pub async fn checkin_find(&self, of: HostKey) -> Result<Option<(Timestamp, i64)>, StoreError> {
        let text = "select at, clock from host_checkins where infra_env_id = $1 and host_id = $2";
        let query = sqlx::query(text)
            .bind(of.infra_env.to_string())
            .bind(of.host.to_string());
        let row = self.inner.readers.row(query).await?;
        row.map(|row| Ok((row.time(0)?, row.int(1)?))).transpose()
    }

    pub async fn checkins_load(&self) -> Result<Vec<Checkin>, StoreError> {
        let text = "select c.infra_env_id, c.host_id, c.at, c.clock from host_checkins c
                    join hosts h on h.infra_env_id = c.infra_env_id and h.host_id = c.host_id";
        let mut rows = sqlx::query(text).fetch(self.readers());
        let mut checkins = Vec::new();
        while let Some(row) = rows.try_next().await? {
            match (key(&row), row.time(2), row.int(3)) {
                (Ok(key), Ok(at), Ok(clock)) => checkins.push((key, at, clock)),
                (Err(_), ..) | (_, Err(_), _) | (.., Err(_)) => {
                    unreadable::beside_host(&row, RowKind::Checkin, &self.inner.unreadable);
                }
            }
        }
        Ok(checkins)
    }
}

pub(crate) async fn upsert(connection: &mut AnyConnection, checkins: Vec<Checkin>) -> Result<(), StoreError> {
    let rows = checkins
        .into_iter()
        .map(|(key, at, clock)| {
            let [infra_env, host] = pair(key);
            [infra_env, host, Value::time(at), Value::Int(clock)]
        })
        .collect();
    sql::execute_rows(
        connection,
        "insert into host_checkins (infra_env_id, host_id, at, clock)",
        rows,
        " on conflict (infra_env_id, host_id) do update set at = excluded.at, clock = excluded.clock",
    )
    .await?;
    Ok(())
}
