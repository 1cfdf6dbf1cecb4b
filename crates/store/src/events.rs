//! History: lines appended with the change they tell of, never changed, read by scope.

use crate::commit::Commit;
use crate::sql::{self, Columns, Value};
use crate::{Store, StoreError};
use futures_util::TryStreamExt;
use jiff::Timestamp;
use muster_domain::id::{ClusterId, HostId, InfraEnvId};
use muster_domain::journal::{Category, Entry, Severity};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use uuid::Uuid;

/// Lines that go in one transaction: the writer is held up for a few milliseconds only.
const PRUNED: i64 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: i64,
    pub at: Timestamp,
    pub request_id: Option<Uuid>,
    pub entry: Entry,
}

/// Which lines. A cluster is the strongest scope; without one, hosts go before an InfraEnv; without any, all lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    pub cluster: Option<ClusterId>,
    /// Within a cluster one of three widening wishes (hosts, deleted hosts, cluster level): a line that meets any of
    /// them is shown. Alone: all lines of these hosts, as long as the hosts exist.
    pub hosts: Vec<HostId>,
    pub infra_env: Option<InfraEnvId>,
    /// Only within a cluster.
    pub deleted_hosts: bool,
    /// Only within a cluster: lines about no host.
    pub cluster_level: bool,
    /// Empty: all.
    pub severities: Vec<Severity>,
    /// Empty: those meant for people.
    pub categories: Vec<Category>,
    /// Part of the text, in any case of letters; only within a cluster.
    pub message: Option<String>,
    /// `None`, and whatever is more than [`EventQuery::MOST`]: that many.
    pub limit: Option<u64>,
    pub offset: u64,
    /// Newest first.
    pub desc: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsPage {
    pub events: Vec<Event>,
    /// How many there are before the page is cut out.
    pub total: i64,
    /// How many there would be without the filter on severities; zero outside a cluster.
    pub severities: SeverityCounts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeverityCounts {
    pub info: i64,
    pub warning: i64,
    pub error: i64,
    pub critical: i64,
}

impl SeverityCounts {
    pub fn of(&self, severity: Severity) -> i64 {
        match severity {
            Severity::Info => self.info,
            Severity::Warning => self.warning,
            Severity::Error => self.error,
            Severity::Critical => self.critical,
        }
    }

    fn set(&mut self, severity: Severity, count: i64) {
        match severity {
            Severity::Info => self.info = count,
            Severity::Warning => self.warning = count,
            Severity::Error => self.error = count,
            Severity::Critical => self.critical = count,
        }
    }
}

impl EventQuery {
    /// Lines in one page: history has no end, and a page is in memory whole.
    pub const MOST: u64 = 5_000;

    /// Conditions on `e`, starting with `where`, all but the one on severities.
    fn conditions(&self, values: &mut Vec<Value>) -> String {
        let Self {
            cluster,
            hosts,
            infra_env,
            deleted_hosts,
            cluster_level,
            message,
            categories,
            ..
        } = self;
        let mut terms = Vec::new();
        if let Some(id) = cluster {
            terms.push(format!("e.cluster_id = {}", place(values, Value::text(id))));
            let mut wishes = Vec::new();
            if !hosts.is_empty() {
                wishes.push(among_hosts(hosts, values));
            }
            if *deleted_hosts {
                wishes.push(
                    "(e.host_id is not null and not exists (select 1 from hosts h where h.host_id = e.host_id
                      and (e.infra_env_id is null or h.infra_env_id = e.infra_env_id)))"
                        .to_owned(),
                );
            }
            if *cluster_level {
                wishes.push("e.host_id is null".to_owned());
            }
            if !wishes.is_empty() {
                terms.push(format!("({})", wishes.join(" or ")));
            }
            if let Some(part) = message {
                let pattern = Value::foreign(&format!("%{}%", escaped(part)));
                terms.push(format!(
                    "lower(e.message) like lower({}) escape '\\'",
                    place(values, pattern)
                ));
            }
        } else if !hosts.is_empty() {
            terms.push(among_hosts(hosts, values));
            // Not a join: a machine known through two images must not show its lines twice.
            terms.push("exists (select 1 from hosts h where h.host_id = e.host_id)".to_owned());
        } else if let Some(id) = infra_env {
            terms.push(format!("e.infra_env_id = {}", place(values, Value::text(id))));
        }
        let wanted = if categories.is_empty() {
            &[Category::User][..]
        } else {
            categories
        };
        let words: Vec<String> = wanted
            .iter()
            .map(|category| format!("'{}'", category.word()))
            .collect();
        terms.push(format!("e.category in ({})", words.join(", ")));
        format!("where {}", terms.join(" and "))
    }
}

fn place(values: &mut Vec<Value>, value: Value) -> String {
    values.push(value);
    format!("${}", values.len())
}

fn among_hosts(hosts: &[HostId], values: &mut Vec<Value>) -> String {
    let places: Vec<String> = hosts.iter().map(|id| place(values, Value::text(id))).collect();
    format!("e.host_id in ({})", places.join(", "))
}

fn escaped(part: &str) -> String {
    part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

impl Store {
    pub async fn events_list(&self, query: &EventQuery) -> Result<EventsPage, StoreError> {
        self.inner.readers.in_time(self.events_listed(query)).await
    }

    async fn events_listed(&self, query: &EventQuery) -> Result<EventsPage, StoreError> {
        let mut tx = self.inner.readers.snapshot().await?;
        let counts = severity_counts(&mut tx, query).await?;
        let wanted = if query.severities.is_empty() {
            Severity::ALL
        } else {
            &query.severities
        };
        let total = Severity::ALL
            .iter()
            .copied()
            .filter(|severity| wanted.contains(severity))
            .map(|severity| counts.of(severity))
            .sum();
        let events = if query.limit == Some(0) {
            Vec::new()
        } else {
            page(&mut tx, query).await?
        };
        tx.end().await?;
        let severities = if query.cluster.is_some() {
            counts
        } else {
            SeverityCounts::default()
        };
        Ok(EventsPage {
            events,
            total,
            severities,
        })
    }
}

async fn severity_counts(
    connection: &mut AnyConnection,
    query: &EventQuery,
) -> Result<SeverityCounts, StoreError> {
    let mut values = Vec::new();
    let conditions = query.conditions(&mut values);
    let text = format!("select e.severity, count(*) from events e {conditions} group by e.severity");
    let mut counts = SeverityCounts::default();
    for row in sql::query(text, values).fetch_all(connection).await? {
        counts.set(severity(&row, 0)?, row.int(1)?);
    }
    Ok(counts)
}

async fn page(connection: &mut AnyConnection, query: &EventQuery) -> Result<Vec<Event>, StoreError> {
    let mut values = Vec::new();
    let mut conditions = query.conditions(&mut values);
    if !query.severities.is_empty() {
        let words: Vec<String> = query
            .severities
            .iter()
            .map(|severity| format!("'{}'", severity.word()))
            .collect();
        conditions = format!("{conditions} and e.severity in ({})", words.join(", "));
    }
    let whole = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let limit = query.limit.unwrap_or(EventQuery::MOST).min(EventQuery::MOST);
    let limit = place(&mut values, whole(limit));
    let offset = place(&mut values, whole(query.offset));
    let direction = if query.desc { "desc" } else { "asc" };
    let text = format!(
        "select e.id, e.at, e.name, e.severity, e.category, e.message, e.cluster_id, e.host_id, e.infra_env_id,
         e.request_id, e.props from events e {conditions}
         order by e.at {direction}, e.id {direction} limit {limit} offset {offset}"
    );
    let mut rows = sql::query(text, values).fetch(connection);
    let mut events = Vec::new();
    while let Some(row) = rows.try_next().await? {
        events.push(event(&row)?);
    }
    Ok(events)
}

fn severity(row: &AnyRow, index: usize) -> Result<Severity, StoreError> {
    let word = row.text(index)?;
    Severity::from_word(word).ok_or_else(|| StoreError::corrupt("severity", word))
}

fn event(row: &AnyRow) -> Result<Event, StoreError> {
    let category = row.text(4)?;
    Ok(Event {
        id: row.int(0)?,
        at: row.time(1)?,
        request_id: row.maybe_parsed(9, "request id")?,
        entry: Entry {
            name: row.text(2)?.to_owned(),
            severity: severity(row, 3)?,
            category: Category::from_word(category)
                .ok_or_else(|| StoreError::corrupt("category", category))?,
            message: row.text(5)?.to_owned(),
            host: row.maybe_parsed(7, "host id")?,
            infra_env: row.maybe_parsed(8, "infra-env id")?,
            cluster: row.maybe_parsed(6, "cluster id")?,
            props: row.text(10)?.to_owned(),
        },
    })
}

/// Forgets the oldest lines from before then, a batch of them.
pub(crate) async fn prune(connection: &mut AnyConnection, before: Timestamp) -> Result<u64, StoreError> {
    let text =
        "delete from events where id in (select id from events where at < $1 order by at, id limit $2)";
    sql::execute(connection, text, vec![Value::time(before), Value::Int(PRUNED)]).await
}

/// Numbers the lines of a batch from `last` on.
pub(crate) async fn append(
    connection: &mut AnyConnection,
    commits: &[&Commit],
    last: i64,
) -> Result<(), StoreError> {
    let lines = commits
        .iter()
        .flat_map(|commit| commit.journal.iter().map(move |entry| (commit, entry)));
    let rows = lines
        .zip(last + 1..)
        .map(|((commit, entry), id)| {
            let Entry {
                name,
                severity,
                category,
                message,
                host,
                infra_env,
                cluster,
                props,
            } = entry;
            [
                Value::Int(id),
                Value::time(commit.at),
                Value::foreign(name),
                Value::text(severity.word()),
                Value::text(category.word()),
                Value::foreign(message),
                Value::maybe_text(*cluster),
                Value::maybe_text(*host),
                Value::maybe_text(*infra_env),
                Value::maybe_text(commit.request_id),
                Value::foreign(props),
            ]
        })
        .collect();
    sql::execute_rows(
        connection,
        "insert into events (id, at, name, severity, category, message, cluster_id, host_id, infra_env_id,
         request_id, props)",
        rows,
        "",
    )
    .await?;
    Ok(())
}
