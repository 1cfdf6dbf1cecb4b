//! Hosts: how one is stored, and how pages of them are read.

use crate::changes::{Change, Scope};
use crate::nouns::{ChangeKind, RowKey};
use crate::row::{Reference, Row, Table};
use crate::sql::{self, Columns, Value};
use crate::unreadable::{Raw, readable};
use crate::{Store, StoreError, reports};
use futures_util::TryStreamExt;
use jiff::Timestamp;
use muster_domain::host::{Host, Report, Status};
use muster_domain::id::{ClusterId, HostId, HostKey, InfraEnvId};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;
use uuid::Uuid;

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
    fn conditions(&self, after: Option<&Place>, values: &mut Vec<Value>) -> String {
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
        if let Some(place) = after {
            terms.push(self.beyond(place, values));
        }
        format!("where {}", terms.join(" and "))
    }

    /// Hosts whose keys come after a given one. Within one pool only the second half is left to compare, and SQLite
    /// needs that said to seek instead of walking the pool.
    fn beyond(&self, (infra_env, host): &Place, values: &mut Vec<Value>) -> String {
        if self.infra_env.is_some_and(|id| id.to_string() == *infra_env) {
            values.push(Value::text(host));
            return format!("h.host_id > ${}", values.len());
        }
        values.extend([Value::text(infra_env), Value::text(host)]);
        format!(
            "(h.infra_env_id, h.host_id) > (${}, ${})",
            values.len() - 1,
            values.len()
        )
    }
}

/// A key as the table has it, even if it is none.
type Place = (String, String);

fn place(key: HostKey) -> Place {
    (key.infra_env.to_string(), key.host.to_string())
}

pub(crate) fn pair(key: HostKey) -> [Value; 2] {
    [Value::text(key.infra_env), Value::text(key.host)]
}

impl Store {
    /// The same machine booted from several images is several hosts. Those that can be read, unless none can.
    pub async fn hosts_by_id(&self, id: HostId) -> Result<Vec<Host>, StoreError> {
        let (mut hosts, mut unreadable) = (Vec::new(), None);
        for raw in self.raw_by_id(id).await? {
            match raw.read(&self.inner.unreadable) {
                Ok(host) => hosts.push(host),
                Err(error @ StoreError::Unreadable(_)) => unreadable = Some(error),
                Err(error) => return Err(error),
            }
        }
        match unreadable.filter(|_| hosts.is_empty()) {
            Some(error) => Err(error),
            None => Ok(hosts),
        }
    }

    async fn raw_by_id(&self, id: HostId) -> Result<Vec<Raw>, StoreError> {
        let find = |columns| {
            let text = format!("select {columns} from hosts h where h.host_id = $1 order by h.infra_env_id");
            self.inner.readers.rows(sql::query(text, vec![Value::text(id)]))
        };
        match find(COLUMNS).await {
            Err(error) if error.is_undecodable() => {}
            rows => return rows?.iter().map(raw_of).collect(),
        }
        let mut raw = Vec::new();
        for row in find("h.infra_env_id, h.host_id").await? {
            raw.extend(self.raw_host(&place_of(&row)?).await?);
        }
        Ok(raw)
    }

    /// At most `limit` hosts in the order of their keys, each with those of the wanted reports that it has; fewer are the
    /// last ones. Hosts that cannot be read are left out. Rows that the caller knows at that revision are taken from there:
    /// reading a document costs more than finding it.
    pub async fn hosts_page(
        &self,
        filter: &HostFilter,
        after: Option<HostKey>,
        limit: u32,
        wanted: &[Report],
        known: impl Fn(HostKey, i64) -> Option<Host>,
    ) -> Result<Vec<HostWithReports>, StoreError> {
        let mut page = Vec::new();
        let mut after = after.map(place);
        loop {
            let left = limit - u32::try_from(page.len()).unwrap_or(limit);
            let piece = self.page(filter, after.as_ref(), left, wanted, &known);
            let (mut hosts, next) = match self.inner.readers.in_time(piece).await {
                Err(error) if error.is_undecodable() => {
                    self.page_one_by_one(filter, after.as_ref(), left, wanted).await?
                }
                piece => piece?,
            };
            page.append(&mut hosts);
            // Whoever is left out is made up for: a page that is not full is the last.
            match next {
                Some(next) if page.len() < limit as usize => after = Some(next),
                Some(_) | None => return Ok(page),
            }
        }
    }

    /// And where to go on; nowhere after the last.
    async fn page(
        &self,
        filter: &HostFilter,
        after: Option<&Place>,
        limit: u32,
        wanted: &[Report],
        known: &impl Fn(HostKey, i64) -> Option<Host>,
    ) -> Result<(Vec<HostWithReports>, Option<Place>), StoreError> {
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
        let mut places = Places::new(limit);
        {
            let mut rows = sql::query(text, values).fetch(&mut *tx);
            while let Some(row) = rows.try_next().await? {
                places.pass(&row)?;
                let (Ok(key), Ok(revision)) = (key(&row), row.int(2)) else {
                    // Whoever reads such a row alone says what it is called.
                    unknown.insert(place_of(&row)?, BTreeMap::new());
                    continue;
                };
                let bundle = row
                    .maybe_text(3)?
                    .map(|text| reports::unbundle(key, text, &self.inner.unreadable));
                let Some(reports) = readable(bundle.transpose())? else {
                    continue;
                };
                let reports = reports.unwrap_or_default();
                if let Some(host) = known(key, revision) {
                    page.push((host, reports));
                } else {
                    unknown.insert(place(key), reports);
                }
            }
        }
        if !unknown.is_empty() {
            let wanted: Vec<_> = unknown.keys().cloned().collect();
            for raw in documents(&mut tx, wanted).await? {
                let Some(host) = readable(raw.read::<Host>(&self.inner.unreadable))? else {
                    continue;
                };
                let reports = unknown.remove(&place(host.key())).unwrap_or_default();
                page.push((host, reports));
            }
            page.sort_by_key(|(host, _)| host.key());
        }
        tx.end().await?;
        Ok((page, places.next()))
    }

    /// A value that cannot be taken over keeps its neighbours from being read together with it.
    async fn page_one_by_one(
        &self,
        filter: &HostFilter,
        after: Option<&Place>,
        limit: u32,
        wanted: &[Report],
    ) -> Result<(Vec<HostWithReports>, Option<Place>), StoreError> {
        let mut page = Vec::new();
        let (places, next) = self.places(filter, after, limit).await?;
        for place in places {
            let Some(raw) = self.raw_host(&place).await? else {
                continue;
            };
            let Some(host) = readable(raw.read::<Host>(&self.inner.unreadable))? else {
                continue;
            };
            let reports = if wanted.is_empty() {
                Ok(BTreeMap::new())
            } else {
                self.host_reports(host.key()).await
            };
            if let Some(mut reports) = readable(reports)? {
                reports.retain(|report, _| wanted.contains(report));
                page.push((host, reports));
            }
        }
        Ok((page, next))
    }

    async fn raw_host(&self, place: &Place) -> Result<Option<Raw>, StoreError> {
        let text = format!("select {COLUMNS} from hosts h where h.infra_env_id = $1 and h.host_id = $2");
        let (infra_env, host) = place;
        let query = sql::query(text, vec![Value::text(infra_env), Value::text(host)]);
        match self.inner.readers.row(query).await {
            Ok(row) => row.as_ref().map(raw_of).transpose(),
            Err(error) if error.is_undecodable() => Ok(Some(named(place, None))),
            Err(error) => Err(error),
        }
    }

    async fn places(
        &self,
        filter: &HostFilter,
        after: Option<&Place>,
        limit: u32,
    ) -> Result<(Vec<Place>, Option<Place>), StoreError> {
        let mut values = Vec::new();
        let conditions = filter.conditions(after, &mut values);
        values.push(Value::Int(limit.into()));
        let text = format!(
            "select h.infra_env_id, h.host_id from hosts h {conditions}
             order by h.infra_env_id, h.host_id limit ${}",
            values.len()
        );
        let rows = self.inner.readers.rows(sql::query(text, values)).await?;
        let mut places = Places::new(limit);
        for row in &rows {
            places.pass(row)?;
        }
        let all = rows.iter().map(place_of).collect::<Result<_, _>>()?;
        Ok((all, places.next()))
    }
}

/// A host with those of its reports that were asked for.
pub type HostWithReports = (Host, BTreeMap<Report, String>);

/// How far a piece reaches.
struct Places {
    left: u32,
    last: Option<Place>,
}

impl Places {
    fn new(limit: u32) -> Self {
        Self {
            left: limit,
            last: None,
        }
    }

    fn pass(&mut self, row: &AnyRow) -> Result<(), StoreError> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.last = Some(place_of(row)?);
        }
        Ok(())
    }

    /// Nothing comes after a piece that is not full.
    fn next(self) -> Option<Place> {
        self.last
    }
}

/// What [`raw_of`] reads.
const COLUMNS: &str = "h.infra_env_id, h.host_id, h.cluster_id, h.revision, h.version, h.doc";

fn place_of(row: &AnyRow) -> Result<Place, StoreError> {
    Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
}

fn raw_of(row: &AnyRow) -> Result<Raw, StoreError> {
    let cluster = row.maybe_parsed(2, "cluster id").ok().flatten();
    Ok(Raw {
        cluster,
        ..named(&place_of(row)?, Some((row, 3)))
    })
}

/// With the columns that begin there in the row, if it could be taken over.
fn named((infra_env, host): &Place, columns: Option<(&AnyRow, usize)>) -> Raw {
    let id = format!("{infra_env}/{host}");
    let key = || {
        Some(HostKey {
            infra_env: infra_env.parse().ok()?,
            host: host.parse().ok()?,
        })
    };
    let raw = match columns {
        Some((row, at)) => Raw::under(id, row, at),
        None => Raw::broken(id),
    };
    Raw { host: key(), ..raw }
}

async fn documents(connection: &mut AnyConnection, places: Vec<Place>) -> Result<Vec<Raw>, StoreError> {
    let rows = sql::fetch_rows(
        connection,
        &format!("select {COLUMNS} from ("),
        places
            .into_iter()
            .map(|(infra_env, host)| [Value::Text(infra_env), Value::Text(host)])
            .collect(),
        ") k cross join hosts h where h.infra_env_id = k.column1 and h.host_id = k.column2",
    )
    .await?;
    rows.iter().map(raw_of).collect()
}

/// From a row that starts with `infra_env_id, host_id`.
pub(crate) fn key(row: &AnyRow) -> Result<HostKey, StoreError> {
    Ok(HostKey {
        infra_env: row.parsed(0, "infra-env id")?,
        host: row.parsed(1, "host id")?,
    })
}

impl Row for Host {
    type Key = HostKey;

    const NOUN: ChangeKind = ChangeKind::Host;
    const TABLE: Table = Table {
        name: "hosts",
        key: &["infra_env_id", "host_id"],
        columns: &["cluster_id", "status"],
        references: &[
            Reference {
                column: "infra_env_id",
                row: |id| RowKey::InfraEnv(InfraEnvId(id)),
            },
            Reference {
                column: "cluster_id",
                row: |id| RowKey::Cluster(ClusterId(id)),
            },
        ],
        dependents: &["host_reports", "host_checkins"],
        tombstones: Some("tombstones"),
    };

    fn key(&self) -> HostKey {
        Host::key(self)
    }

    fn revision(&self) -> i64 {
        self.revision
    }

    fn set_revision(&mut self, revision: i64) {
        self.revision = revision;
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn push_key(key: HostKey, values: &mut Vec<Value>) {
        values.extend(pair(key));
    }

    fn read_key(row: &AnyRow) -> Result<HostKey, StoreError> {
        key(row)
    }

    fn push_columns(&self, values: &mut Vec<Value>) {
        values.push(Value::maybe_text(self.cluster));
        values.push(Value::text(Row::status(self)));
    }

    fn references(&self) -> Vec<RowKey> {
        let pool = RowKey::InfraEnv(self.infra_env);
        [pool]
            .into_iter()
            .chain(self.cluster.map(RowKey::Cluster))
            .collect()
    }

    fn host_of(key: HostKey) -> Option<HostKey> {
        Some(key)
    }

    fn concerns(&self) -> Option<ClusterId> {
        self.cluster
    }

    fn feed_id(key: HostKey) -> Uuid {
        key.host.0
    }

    fn key_of(change: &Change) -> Option<HostKey> {
        Some(HostKey {
            infra_env: change.infra_env?,
            host: HostId(change.id),
        })
    }

    fn scope(&self) -> Scope {
        Scope {
            infra_env: Some(self.infra_env),
            cluster: self.cluster,
        }
    }

    /// Who followed the cluster that had it hears of its end.
    fn scope_of_deleted(key: HostKey, references: &[RowKey]) -> Scope {
        let of = |row: &RowKey| {
            if let RowKey::Cluster(id) = row {
                Some(*id)
            } else {
                None
            }
        };
        Scope {
            infra_env: Some(key.infra_env),
            cluster: references.iter().find_map(of),
        }
    }

    fn status(&self) -> &'static str {
        Host::status(self).word()
    }
}
