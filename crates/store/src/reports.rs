//! The bulky reports beside a host's row.

use crate::hosts::pair;
use crate::sql::{self, Columns, Value};
use crate::{Store, StoreError, together};
use futures_util::TryStreamExt;
use muster_domain::host::{Host, Report};
use muster_domain::id::HostKey;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::{BTreeMap, HashMap};
use tokio::sync::oneshot;

impl Store {
    pub async fn host_reports(&self, key: HostKey) -> Result<BTreeMap<Report, String>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let read = together::Read { key, reply };
        self.inner
            .reads
            .send(read)
            .await
            .map_err(|_| StoreError::closed())?;
        answer.await.map_err(|_| StoreError::closed())?
    }

    pub async fn host_report(&self, key: HostKey, report: Report) -> Result<Option<String>, StoreError> {
        let text = "select body from host_reports where infra_env_id = $1 and host_id = $2 and kind = $3";
        let body = sqlx::query_scalar(text)
            .bind(key.infra_env.to_string())
            .bind(key.host.to_string())
            .bind(report.word())
            .fetch_optional(self.readers())
            .await?;
        Ok(body)
    }
}

/// Fills in the reports of a page whose hosts `h` meet the conditions.
pub(crate) async fn attach(
    connection: &mut AnyConnection,
    conditions: &str,
    values: Vec<Value>,
    wanted: &[Report],
    page: &mut [(Host, BTreeMap<Report, String>)],
) -> Result<(), StoreError> {
    let places: HashMap<HostKey, usize> = page
        .iter()
        .enumerate()
        .map(|(place, (host, _))| (host.key(), place))
        .collect();
    let kinds: Vec<String> = wanted
        .iter()
        .map(|report| format!("'{}'", report.word()))
        .collect();
    // A cross join keeps SQLite from walking all reports of the pool instead of the page's hosts.
    let text = format!(
        "select r.infra_env_id, r.host_id, r.kind, r.body from hosts h cross join host_reports r
         {conditions} and r.infra_env_id = h.infra_env_id and r.host_id = h.host_id and r.kind in ({})",
        kinds.join(", ")
    );
    let mut rows = sql::query(text, values).fetch(connection);
    while let Some(row) = rows.try_next().await? {
        if let Some(place) = places.get(&crate::hosts::key(&row)?) {
            page[*place].1.insert(kind(&row, 2)?, row.text(3)?.to_owned());
        }
    }
    Ok(())
}

pub(crate) fn kind(row: &AnyRow, index: usize) -> Result<Report, StoreError> {
    let word = row.text(index)?;
    Report::from_word(word).ok_or_else(|| StoreError::corrupt("kind of report", word))
}

#[derive(Default)]
pub(crate) struct ReportBatch {
    /// Each at most once, as a statement may not write a row twice.
    writes: BTreeMap<(HostKey, Report), Option<String>>,
}

impl ReportBatch {
    pub fn add(&mut self, key: HostKey, reports: &[(Report, Option<String>)]) {
        for (report, body) in reports {
            self.writes
                .insert((key, *report), body.as_deref().map(sql::clean));
        }
    }

    pub async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for ((key, report), body) in self.writes {
            let [infra_env, host] = pair(key);
            let kind = Value::text(report.word());
            match body {
                Some(body) => puts.push([infra_env, host, kind, Value::Text(body)]),
                None => deletes.push([infra_env, host, kind]),
            }
        }
        sql::execute_rows(
            connection,
            "insert into host_reports (infra_env_id, host_id, kind, body)",
            puts,
            " on conflict (infra_env_id, host_id, kind) do update set body = excluded.body",
        )
        .await?;
        let head = "delete from host_reports where (infra_env_id, host_id, kind) in (";
        sql::execute_rows(connection, head, deletes, ")").await?;
        Ok(())
    }
}

/// Drops all reports of hosts that are gone.
pub(crate) async fn forget(connection: &mut AnyConnection, hosts: Vec<[Value; 2]>) -> Result<(), StoreError> {
    let head = "delete from host_reports where (infra_env_id, host_id) in (";
    sql::execute_rows(connection, head, hosts, ")").await?;
    Ok(())
}
