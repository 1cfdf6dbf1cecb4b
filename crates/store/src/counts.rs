//! How many of each there are, for metrics.

use crate::sql::Columns;
use crate::{Store, StoreError};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub hosts: i64,
    pub hosts_by_status: BTreeMap<String, i64>,
    pub clusters: i64,
    pub infra_envs: i64,
    pub events: i64,
    pub outbox: i64,
}

impl Store {
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        self.inner.readers.in_time(self.counted()).await
    }

    async fn counted(&self) -> Result<Counts, StoreError> {
        let mut tx = self.inner.readers.snapshot().await?;
        let rows = sqlx::query("select status, count(*) from hosts group by status")
            .fetch_all(&mut *tx)
            .await?;
        let hosts_by_status: BTreeMap<String, i64> = rows
            .iter()
            .map(|row| Ok((row.text(0)?.to_owned(), row.int(1)?)))
            .collect::<Result<_, StoreError>>()?;
        let row = sqlx::query(
            "select (select count(*) from clusters), (select count(*) from infra_envs),
             (select count(*) from events),
             (select count(*) from outbox)",
        )
        .fetch_one(&mut *tx)
        .await?;
        tx.end().await?;
        Ok(Counts {
            hosts: hosts_by_status.values().sum(),
            hosts_by_status,
            clusters: row.int(0)?,
            infra_envs: row.int(1)?,
            events: row.int(2)?,
            outbox: row.int(3)?,
        })
    }
}
