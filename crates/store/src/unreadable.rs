//! Rows that this program cannot read: each stays in the database as it is, is named, and everybody else goes on without it.
//!
//! Nobody writes what he could not read: a commit names the revision that it was decided on, and these rows have none that
//! anybody knows.

use crate::document::{self, Noun};
use crate::sql::{self, Columns, Value};
use crate::{Store, StoreError};
use muster_domain::id::{ClusterId, HostKey, InfraEnvId};
use sqlx::any::AnyRow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    InfraEnv,
    Cluster,
    Host,
    /// One of those beside a host.
    Report,
    /// What is to be done, in the outbox.
    Order,
    /// When a host was heard of last.
    Checkin,
    /// Of a host that was deleted.
    Tombstone,
}

impl RowKind {
    pub const ALL: [RowKind; 7] = [
        Self::InfraEnv,
        Self::Cluster,
        Self::Host,
        Self::Report,
        Self::Order,
        Self::Checkin,
        Self::Tombstone,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::InfraEnv => "infra-env",
            Self::Cluster => "cluster",
            Self::Host => "host",
            Self::Report => "report",
            Self::Order => "order",
            Self::Checkin => "check-in",
            Self::Tombstone => "tombstone",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRow {
    pub kind: RowKind,
    /// As the table's key says; of what hangs on a host, the host's.
    pub id: String,
    /// Which host it is, or hangs on.
    pub host: Option<HostKey>,
    /// In which cluster that host is, as far as this is known without its document.
    pub cluster: Option<ClusterId>,
    /// For people; nothing of its content.
    pub reason: String,
}

impl fmt::Display for UnreadableRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} cannot be read: {}",
            self.kind.word(),
            self.id,
            self.reason
        )
    }
}

/// Which there are now.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    /// Read without the lock: usually there is none.
    count: AtomicUsize,
    rows: Mutex<BTreeMap<(RowKind, String), Arc<UnreadableRow>>>,
}

impl Unreadable {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(RowKind, String), Arc<UnreadableRow>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Told in the log when it is news.
    pub fn note(&self, row: UnreadableRow) -> Arc<UnreadableRow> {
        let mut rows = self.lock();
        let key = (row.kind, row.id.clone());
        if let Some(known) = rows.get(&key)
            && **known == row
        {
            return known.clone();
        }
        tracing::error!(kind = row.kind.word(), id = %row.id, reason = %row.reason,
            "a row of the database cannot be read and is set aside");
        let row = Arc::new(row);
        rows.insert(key, row.clone());
        self.count.store(rows.len(), Ordering::Relaxed);
        row
    }

    /// It can be read after all, or is gone.
    pub fn forget(&self, kind: RowKind, id: &str) {
        if self.is_empty() {
            return;
        }
        let mut rows = self.lock();
        if rows.remove(&(kind, id.to_owned())).is_some() {
            tracing::info!(
                kind = kind.word(),
                id,
                "a row that was set aside is no trouble any more"
            );
        }
        self.count.store(rows.len(), Ordering::Relaxed);
    }

    fn find(&self, kind: RowKind, id: impl fmt::Display) -> Option<Arc<UnreadableRow>> {
        if self.is_empty() {
            return None;
        }
        self.lock().get(&(kind, id.to_string())).cloned()
    }
}

impl Store {
    /// All rows that could not be read and may still be there, by kind and id.
    pub fn unreadable(&self) -> Vec<Arc<UnreadableRow>> {
        match self.inner.unreadable.is_empty() {
            true => Vec::new(),
            false => self.inner.unreadable.lock().values().cloned().collect(),
        }
    }

    /// It, or one of its reports.
    pub fn unreadable_host(&self, key: HostKey) -> Option<Arc<UnreadableRow>> {
        let of = |kind| self.inner.unreadable.find(kind, key);
        of(RowKind::Host).or_else(|| of(RowKind::Report))
    }

    pub fn unreadable_cluster(&self, id: ClusterId) -> Option<Arc<UnreadableRow>> {
        self.inner.unreadable.find(RowKind::Cluster, id)
    }

    pub fn unreadable_infra_env(&self, id: InfraEnvId) -> Option<Arc<UnreadableRow>> {
        self.inner.unreadable.find(RowKind::InfraEnv, id)
    }
}

impl Store {
    /// The row of a table under that id.
    pub(crate) async fn found<T: Noun>(&self, table: &str, id: String) -> Result<Option<T>, StoreError> {
        let unreadable = &self.inner.unreadable;
        match self.raw(table, &id).await? {
            Some(raw) => raw.read(unreadable).map(Some),
            None => {
                unreadable.forget(T::KIND, &id);
                Ok(None)
            }
        }
    }

    async fn raw(&self, table: &str, id: &str) -> Result<Option<Raw>, StoreError> {
        let text = format!("select {COLUMNS} from {table} where id = $1");
        let query = sql::query(text, vec![Value::text(id)]);
        match self.inner.readers.row(query).await {
            Ok(row) => Ok(row.as_ref().map(Raw::of)),
            Err(error) if error.is_undecodable() => Ok(Some(Raw::broken(id.to_owned()))),
            Err(error) => Err(error),
        }
    }

    /// The rows of a table in the order they were made; those that cannot be read are left out.
    pub(crate) async fn listed<T: Noun>(
        &self,
        table: &str,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<T>, StoreError> {
        let text = format!("select {COLUMNS} from {table} {condition} order by created_at, id");
        let rows = match self.rows(text, values.clone()).await {
            Err(error) if error.is_undecodable() => self.one_by_one(table, condition, values).await?,
            rows => rows?.iter().map(Raw::of).collect(),
        };
        let read = rows.iter().map(|raw| raw.read(&self.inner.unreadable));
        read.filter_map(|read| readable(read).transpose()).collect()
    }

    /// A row that cannot be taken over keeps its neighbours from being read together with it.
    async fn one_by_one(
        &self,
        table: &str,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<Raw>, StoreError> {
        let text = format!("select id from {table} {condition} order by created_at, id");
        let mut rows = Vec::new();
        for row in self.rows(text, values).await? {
            rows.extend(self.raw(table, row.text(0)?).await?);
        }
        Ok(rows)
    }

    /// However long that takes: a hub that starts reads everything.
    async fn rows(&self, text: String, values: Vec<Value>) -> Result<Vec<AnyRow>, StoreError> {
        Ok(sql::query(text, values).fetch_all(self.readers()).await?)
    }
}

/// What [`Raw::of`] reads.
const COLUMNS: &str = "id, revision, version, doc";

/// A row with a document, as its table has it.
pub(crate) struct Raw {
    pub id: String,
    pub host: Option<HostKey>,
    pub cluster: Option<ClusterId>,
    /// Revision, version and document, if they are what such columns hold.
    pub columns: Option<(i64, i64, String)>,
}

impl Raw {
    /// From a row of [`COLUMNS`].
    pub fn of(row: &AnyRow) -> Self {
        Self::under(name(row, 0), row, 1)
    }

    /// From a row whose columns from there on are `revision, version, doc`.
    pub fn under(id: String, row: &AnyRow, at: usize) -> Self {
        let columns = || {
            let doc = row.text(at + 2).ok()?.to_owned();
            Some((row.int(at).ok()?, row.int(at + 1).ok()?, doc))
        };
        Self {
            id,
            host: None,
            cluster: None,
            columns: columns(),
        }
    }

    /// One whose columns the database's client could not even take over.
    pub fn broken(id: String) -> Self {
        Self {
            id,
            host: None,
            cluster: None,
            columns: None,
        }
    }

    /// The document, or the name of what is set aside.
    pub fn read<T: Noun>(&self, unreadable: &Unreadable) -> Result<T, StoreError> {
        match self.document() {
            Ok(noun) => {
                unreadable.forget(T::KIND, &self.id);
                Ok(noun)
            }
            Err(reason) => Err(StoreError::Unreadable(unreadable.note(UnreadableRow {
                kind: T::KIND,
                id: self.id.clone(),
                host: self.host,
                cluster: self.cluster,
                reason,
            }))),
        }
    }

    fn document<T: Noun>(&self) -> Result<T, String> {
        let (revision, version, text) = self.columns.as_ref().ok_or("a column of it is damaged")?;
        let mut noun: T = document::read(*version, text)?;
        if noun.key() != self.id {
            return Err("its document is about something else".into());
        }
        noun.set_revision(*revision);
        Ok(noun)
    }
}

/// For lists: whatever can be read.
pub(crate) fn readable<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::Unreadable(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names a row whose columns begin with a host's key.
pub(crate) fn beside_host(row: &AnyRow, kind: RowKind, unreadable: &Unreadable) {
    unreadable.note(UnreadableRow {
        kind,
        id: format!("{}/{}", name(row, 0), name(row, 1)),
        host: None,
        cluster: None,
        reason: "a column of it is damaged".into(),
    });
}

/// A key as it is there, for people: not longer than a key, on one line.
pub(crate) fn name(row: &AnyRow, index: usize) -> String {
    let text = row.text(index).unwrap_or("(damaged)");
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, reason: &str) -> UnreadableRow {
        UnreadableRow {
            kind: RowKind::Cluster,
            id: id.into(),
            host: None,
            cluster: None,
            reason: reason.into(),
        }
    }

    #[test]
    fn what_is_set_aside_is_found_until_it_is_no_trouble_any_more() {
        let unreadable = Unreadable::default();
        assert_eq!(unreadable.find(RowKind::Cluster, "a"), None);
        unreadable.note(row("a", "broken"));
        unreadable.note(row("a", "broken differently"));
        unreadable.note(row("b", "broken"));
        assert_eq!(unreadable.lock().len(), 2, "one line for each");
        let found = unreadable.find(RowKind::Cluster, "a").unwrap();
        assert_eq!(found.to_string(), "cluster a cannot be read: broken differently");
        assert_eq!(unreadable.find(RowKind::Host, "a"), None);
        unreadable.forget(RowKind::Cluster, "a");
        unreadable.forget(RowKind::Cluster, "b");
        assert!(unreadable.is_empty());
    }
}
