//! The bulky reports beside a host's row.

use crate::commit::ReportWrite;
use crate::nouns::hosts::pair;
use crate::sql::{self, Columns, Value};
use crate::unreadable::Unreadable;
use crate::{RowKind, Store, StoreError, UnreadableRow, document, together};
use muster_domain::host::Report;
use muster_domain::id::HostKey;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;
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
        let text =
            "select version, body from host_reports where infra_env_id = $1 and host_id = $2 and kind = $3";
        let query = sqlx::query(text)
            .bind(key.infra_env.to_string())
            .bind(key.host.to_string())
            .bind(report.word());
        let row = self.inner.readers.row(query).await?;
        row.map(|row| brought_up(key, report, row.int(0)?, row.text(1)?, &self.inner.unreadable))
            .transpose()
    }
}

/// An expression for those of the wanted reports that a host `h` has, in one text: a row for each would cost more than
/// what is in them.
pub(crate) fn bundle(wanted: &[Report]) -> String {
    if wanted.is_empty() {
        return "cast(null as text)".into();
    }
    let kinds: Vec<String> = wanted
        .iter()
        .map(|report| format!("'{}'", report.word()))
        .collect();
    format!(
        "(select string_agg(r.kind || ' ' || r.version || ' ' || octet_length(r.body) || ' ' || r.body, '')
          from host_reports r
          where r.infra_env_id = h.infra_env_id and r.host_id = h.host_id and r.kind in ({}))",
        kinds.join(", ")
    )
}

/// Takes such a text apart: kind, version, length and body of each report of the host.
pub(crate) fn unbundle(
    key: HostKey,
    text: &str,
    unreadable: &Unreadable,
) -> Result<BTreeMap<Report, String>, StoreError> {
    let broken = || StoreError::corrupt("bundle of reports", "its lengths do not fit");
    let mut reports = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_once(' ').ok_or_else(broken)?;
        let (version, after) = after.split_once(' ').ok_or_else(broken)?;
        let (length, after) = after.split_once(' ').ok_or_else(broken)?;
        let version = version.parse().map_err(|_| broken())?;
        let length = length.parse().map_err(|_| broken())?;
        let (body, after) = after.split_at_checked(length).ok_or_else(broken)?;
        let report = known(word)?;
        reports.insert(report, brought_up(key, report, version, body, unreadable)?);
        rest = after;
    }
    Ok(reports)
}

/// The report as this program would have written it. With one that cannot be read the host is set aside: whatever is
/// decided about it without that report would be wrong, and put another one in its place.
pub(crate) fn brought_up(
    key: HostKey,
    report: Report,
    version: i64,
    body: &str,
    unreadable: &Unreadable,
) -> Result<String, StoreError> {
    document::report(report, version, body).map_err(|reason| aside(key, reason, unreadable))
}

fn known(word: &str) -> Result<Report, StoreError> {
    Report::from_word(word).ok_or_else(|| StoreError::corrupt("kind of report", word))
}

/// From a row of `infra_env_id, host_id, kind, version, body`.
pub(crate) fn of(
    key: HostKey,
    row: &AnyRow,
    unreadable: &Unreadable,
) -> Result<(Report, String), StoreError> {
    let columns = || Some((row.text(2).ok()?, row.int(3).ok()?, row.text(4).ok()?));
    let (word, version, body) = columns().ok_or_else(|| damaged(key, unreadable))?;
    let report = Report::from_word(word);
    // A kind that only a newer program knows.
    let report = report.ok_or_else(|| aside(key, "one of its reports is of an unknown kind", unreadable))?;
    Ok((report, brought_up(key, report, version, body, unreadable)?))
}

pub(crate) fn damaged(key: HostKey, unreadable: &Unreadable) -> StoreError {
    aside(key, "a column of one of its reports is damaged", unreadable)
}

fn aside(key: HostKey, reason: impl Into<String>, unreadable: &Unreadable) -> StoreError {
    StoreError::Unreadable(unreadable.note(UnreadableRow {
        kind: RowKind::Report,
        id: key.to_string(),
        host: Some(key),
        cluster: None,
        reason: reason.into(),
    }))
}

#[derive(Default)]
pub(crate) struct ReportBatch {
    /// Each at most once, as a statement may not write a row twice.
    writes: BTreeMap<(HostKey, Report), Option<String>>,
}

impl ReportBatch {
    pub fn add(&mut self, writes: &[ReportWrite]) {
        for ReportWrite { host, report, body } in writes {
            self.writes
                .insert((*host, *report), body.as_deref().map(sql::clean));
        }
    }

    pub async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for ((key, report), body) in self.writes {
            let [infra_env, host] = pair(key);
            let kind = Value::text(report.word());
            match body {
                Some(body) => puts.push([
                    infra_env,
                    host,
                    kind,
                    Value::Int(document::REPORT_VERSION),
                    Value::Text(body),
                ]),
                None => deletes.push([infra_env, host, kind]),
            }
        }
        sql::execute_rows(
            connection,
            "insert into host_reports (infra_env_id, host_id, kind, version, body)",
            puts,
            " on conflict (infra_env_id, host_id, kind) do update set version = excluded.version,
              body = excluded.body",
        )
        .await?;
        let head = "delete from host_reports where (infra_env_id, host_id, kind) in (";
        sql::execute_rows(connection, head, deletes, ")").await?;
        Ok(())
    }
}
