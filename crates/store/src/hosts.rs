//! Hosts: one row each, found by key, listed by keyset, written in batches.

use crate::batch::{RowKey, Standing, expect_rows};
use crate::commit::HostWrite;
use crate::sql::{self, Columns, Value};
use crate::{Store, StoreError, checkins, reports, tombstones};
use futures_util::TryStreamExt;
use jiff::Timestamp;
use muster_domain::host::{Host, Report, Status};
use muster_domain::id::{ClusterId, HostId, HostKey, InfraEnvId};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::{BTreeMap, HashMap};

/// Hosts that meet every condition given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostFilter {
    pub infra_env: Option<InfraEnvId>,
    pub cluster: Option<ClusterId>,
    pub status: Option<Status>,
    /// `true`: in no cluster; `false`: in one.
    pub free: Option<bool>,
}

impl HostFilter {
    /// Conditions on `h`, starting with `where`; every value is a parameter.
    fn conditions(&self, after: Option<HostKey>, values: &mut Vec<Value>) -> String {
        let Self {
            infra_env,
            cluster,
            status,
            free,
        } = self;
        let mut terms = vec!["1 = 1".to_owned()];
        let mut equal = |column: &str, value: Value, terms: &mut Vec<String>| {
            values.push(value);
            terms.push(format!("{column} = ${}", values.len()));
        };
        if let Some(id) = infra_env {
            equal("h.infra_env_id", Value::text(id), &mut terms);
        }
        if let Some(id) = cluster {
            equal("h.cluster_id", Value::text(id), &mut terms);
        }
        if let Some(status) = status {
            equal("h.status", Value::text(status.word()), &mut terms);
        }
        match free {
            Some(true) => terms.push("h.cluster_id is null".into()),
            Some(false) => terms.push("h.cluster_id is not null".into()),
            None => {}
        }
        if let Some(key) = after {
            terms.push(self.beyond(key, values));
        }
        format!("where {}", terms.join(" and "))
    }

    /// Hosts whose keys come after a given one. Within one pool only the second half is left to compare, and SQLite
    /// needs that said to seek instead of walking the pool.
    fn beyond(&self, key: HostKey, values: &mut Vec<Value>) -> String {
        if self.infra_env == Some(key.infra_env) {
            values.push(Value::text(key.host));
            return format!("h.host_id > ${}", values.len());
        }
        values.extend(pair(key));
        format!(
            "(h.infra_env_id, h.host_id) > (${}, ${})",
            values.len() - 1,
            values.len()
        )
    }
}

pub(crate) fn pair(key: HostKey) -> [Value; 2] {
    [Value::text(key.infra_env), Value::text(key.host)]
}

impl Store {
    pub async fn host_find(&self, key: HostKey) -> Result<Option<Host>, StoreError> {
        let text = "select h.doc, h.revision from hosts h where h.infra_env_id = $1 and h.host_id = $2";
        let query = sqlx::query(text)
            .bind(key.infra_env.to_string())
            .bind(key.host.to_string());
        let row = self.inner.readers.row(query).await?;
        row.map(|row| host(&row)).transpose()
    }

    /// The same machine booted from several images is several hosts.
    pub async fn hosts_by_id(&self, id: HostId) -> Result<Vec<Host>, StoreError> {
        let text = "select h.doc, h.revision from hosts h where h.host_id = $1 order by h.infra_env_id";
        let query = sqlx::query(text).bind(id.to_string());
        let rows = self.inner.readers.rows(query).await?;
        rows.iter().map(host).collect()
    }

    /// At most `limit` hosts in the order of their keys, each with those of the wanted reports that it has. Rows that
    /// the caller knows at that revision are taken from there: reading a document costs more than finding it.
    pub async fn hosts_page(
        &self,
        filter: &HostFilter,
        after: Option<HostKey>,
        limit: u32,
        wanted: &[Report],
        known: impl Fn(HostKey, i64) -> Option<Host>,
    ) -> Result<Vec<(Host, BTreeMap<Report, String>)>, StoreError> {
        let page = self.page(filter, after, limit, wanted, known);
        self.inner.readers.in_time(page).await
    }

    async fn page(
        &self,
        filter: &HostFilter,
        after: Option<HostKey>,
        limit: u32,
        wanted: &[Report],
        known: impl Fn(HostKey, i64) -> Option<Host>,
    ) -> Result<Vec<(Host, BTreeMap<Report, String>)>, StoreError> {
        // All queries see the same moment.
        let mut tx = self.inner.readers.snapshot().await?;
        let mut values = Vec::new();
        let conditions = filter.conditions(after, &mut values);
        values.push(Value::Int(limit.into()));
        let text = format!(
            "select h.infra_env_id, h.host_id, h.revision, {} from hosts h {conditions}
             order by h.infra_env_id, h.host_id limit ${}",
            reports::bundle(wanted),
            values.len()
        );
        let (mut page, mut unknown) = (Vec::new(), BTreeMap::new());
        {
            let mut rows = sql::query(text, values).fetch(&mut *tx);
            while let Some(row) = rows.try_next().await? {
                let (key, revision) = (key(&row)?, row.int(2)?);
                let bundle = row.maybe_text(3)?.map(reports::unbundle).transpose()?;
                let reports = bundle.unwrap_or_default();
                if let Some(host) = known(key, revision) {
                    page.push((host, reports));
                } else {
                    unknown.insert(key, reports);
                }
            }
        }
        if !unknown.is_empty() {
            let keys: Vec<_> = unknown.keys().copied().collect();
            for host in documents(&mut tx, &keys).await? {
                let reports = unknown.remove(&host.key()).unwrap_or_default();
                page.push((host, reports));
            }
            page.sort_by_key(|(host, _)| host.key());
        }
        tx.end().await?;
        Ok(page)
    }

    /// All hosts, a piece at a time in the order of their keys, without their reports.
    pub async fn hosts_load(&self, after: Option<HostKey>, limit: u32) -> Result<Vec<Host>, StoreError> {
        let mut values = Vec::new();
        let conditions = HostFilter::default().conditions(after, &mut values);
        values.push(Value::Int(limit.into()));
        let text = format!(
            "select h.doc, h.revision from hosts h {conditions}
             order by h.infra_env_id, h.host_id limit ${}",
            values.len()
        );
        let mut rows = sql::query(text, values).fetch(self.readers());
        let mut raw = Vec::new();
        while let Some(row) = rows.try_next().await? {
            raw.push((row.text(0)?.to_owned(), row.int(1)?));
        }
        parsed(raw).await
    }
}

/// Parsing is most of the work when a hub starts, so all cores share it.
async fn parsed(mut raw: Vec<(String, i64)>) -> Result<Vec<Host>, StoreError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = raw.len().div_ceil(cores).max(1);
    let mut shares = Vec::with_capacity(cores);
    while !raw.is_empty() {
        let rest = raw.split_off(share.min(raw.len()));
        let part = std::mem::replace(&mut raw, rest);
        shares.push(tokio::task::spawn_blocking(move || {
            part.iter()
                .map(|(doc, revision)| document(doc, *revision))
                .collect::<Result<Vec<_>, _>>()
        }));
    }
    let mut hosts = Vec::new();
    for share in shares {
        let part = share.await.map_err(|_| StoreError::closed())?;
        hosts.append(&mut part?);
    }
    Ok(hosts)
}

/// From a row that starts with `doc, revision`.
fn host(row: &AnyRow) -> Result<Host, StoreError> {
    document(row.text(0)?, row.int(1)?)
}

fn document(doc: &str, revision: i64) -> Result<Host, StoreError> {
    let mut host: Host = sql::read_document("host", doc)?;
    host.revision = revision;
    Ok(host)
}

async fn documents(connection: &mut AnyConnection, keys: &[HostKey]) -> Result<Vec<Host>, StoreError> {
    let rows = sql::fetch_rows(
        connection,
        "select h.doc, h.revision from (",
        keys.iter().map(|key| pair(*key)).collect(),
        ") k cross join hosts h where h.infra_env_id = k.column1 and h.host_id = k.column2",
    )
    .await?;
    rows.iter().map(host).collect()
}

pub(crate) async fn standings(
    connection: &mut AnyConnection,
    keys: &[HostKey],
    standings: &mut HashMap<RowKey, Standing>,
) -> Result<(), StoreError> {
    // A cross join keeps SQLite from walking the hosts instead of the keys.
    let rows = sql::fetch_rows(
        connection,
        "select h.infra_env_id, h.host_id, h.revision, h.cluster_id from (",
        keys.iter().map(|key| pair(*key)).collect(),
        ") k cross join hosts h where h.infra_env_id = k.column1 and h.host_id = k.column2",
    )
    .await?;
    for row in rows {
        let key = key(&row)?;
        let cluster = row.maybe_parsed(3, "cluster id")?;
        standings.insert(
            RowKey::Host(key),
            Standing {
                revision: row.int(2)?,
                cluster,
                buried: 0,
            },
        );
    }
    Ok(())
}

/// From a row that starts with `infra_env_id, host_id`.
pub(crate) fn key(row: &AnyRow) -> Result<HostKey, StoreError> {
    Ok(HostKey {
        infra_env: row.parsed(0, "infra-env id")?,
        host: row.parsed(1, "host id")?,
    })
}

/// Host rows to write together, with what hangs on them.
#[derive(Default)]
pub(crate) struct HostBatch {
    puts: Vec<[Value; 7]>,
    deletes: Vec<[Value; 3]>,
    reports: reports::ReportBatch,
    buried: Vec<[Value; 4]>,
    risen: Vec<[Value; 2]>,
}

impl HostBatch {
    pub fn add(&mut self, write: &HostWrite, revision: i64, at: Timestamp) -> Result<(), StoreError> {
        match write {
            HostWrite::Put { host, reports } => {
                self.puts.push(row(host, revision)?);
                self.reports.add(host.key(), reports);
                if host.revision == 0 && revision > 1 {
                    self.risen.push(pair(host.key()));
                }
            }
            HostWrite::Delete { key, revision: seen } => {
                let [infra_env, host] = pair(*key);
                self.buried.push([
                    infra_env.clone(),
                    host.clone(),
                    Value::Int(revision),
                    Value::time(at),
                ]);
                self.deletes.push([infra_env, host, Value::Int(*seen)]);
            }
        }
        Ok(())
    }

    pub async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let Self {
            puts,
            deletes,
            reports,
            buried,
            risen,
        } = self;
        let mut gone = Vec::with_capacity(deletes.len());
        for [infra_env, host, seen] in deletes {
            // One at a time: SQLite would walk all hosts for a list that names the revision too.
            let text = "delete from hosts where infra_env_id = $1 and host_id = $2 and revision = $3";
            let values = vec![infra_env.clone(), host.clone(), seen];
            expect_rows("host", 1, sql::execute(connection, text, values).await?)?;
            gone.push([infra_env, host]);
        }
        reports::forget(connection, gone.clone()).await?;
        checkins::forget(connection, gone).await?;
        let wanted = puts.len();
        let met = sql::execute_rows(
            connection,
            "insert into hosts (infra_env_id, host_id, cluster_id, revision, status, created_at, doc)",
            puts,
            " on conflict (infra_env_id, host_id) do update set cluster_id = excluded.cluster_id,
              revision = excluded.revision, status = excluded.status, doc = excluded.doc
              where hosts.revision = excluded.revision - 1",
        )
        .await?;
        expect_rows("host", wanted, met)?;
        reports.write(connection).await?;
        tombstones::bury(connection, buried).await?;
        tombstones::raise(connection, risen).await
    }
}

fn row(host: &Host, revision: i64) -> Result<[Value; 7], StoreError> {
    let [infra_env, id] = pair(host.key());
    Ok([
        infra_env,
        id,
        Value::maybe_text(host.cluster),
        Value::Int(revision),
        Value::text(host.status().word()),
        Value::time(host.created_at),
        Value::Text(sql::document("host", host)?),
    ])
}
