//! Rows that this program cannot read: each stays in the database as it is, is named, and everybody else goes on without it.
//!
//! Nobody writes what he could not read: a commit names the revision that it was decided on, and these rows have none that
//! anybody knows.

use crate::document::{self, Document};
use crate::nouns::{ChangeKind, RowKey};
use crate::row::Row;
use crate::sql::Columns;
use crate::{Store, StoreError};
use muster_domain::id::{ClusterId, HostKey};
use sqlx::any::AnyRow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    Noun(ChangeKind),
    /// One of those beside a host.
    Report,
    /// What is to be done, in the outbox.
    Order,
    /// When a host polled last.
    Checkin,
    /// Of a host that was deleted.
    Tombstone,
}

impl RowKind {
    pub fn all() -> impl Iterator<Item = Self> {
        let nouns = ChangeKind::ALL.iter().copied().map(Self::Noun);
        nouns.chain([Self::Report, Self::Order, Self::Checkin, Self::Tombstone])
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Noun(noun) => noun.word(),
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

    /// Logged when it is news.
    pub fn note(&self, row: UnreadableRow) -> Arc<UnreadableRow> {
        let mut rows = self.lock();
        let key = (row.kind, row.id.clone());
        if let Some(known) = rows.get(&key)
            && **known == row
        {
            return known.clone();
        }
        tracing::error!(kind = row.kind.word(), id = %row.id, reason = %row.reason,
            "cannot read a row of the database; the hub sets it aside");
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
                "a row that was set aside is readable again, or gone"
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
        let report = || self.inner.unreadable.find(RowKind::Report, key);
        self.unreadable_row(key.into()).or_else(report)
    }

    /// Why this row could not be read.
    pub fn unreadable_row(&self, key: RowKey) -> Option<Arc<UnreadableRow>> {
        self.inner.unreadable.find(key.row_kind(), key)
    }
}

/// A row with a document, as its table has it.
pub(crate) struct Raw {
    pub id: String,
    pub host: Option<HostKey>,
    pub cluster: Option<ClusterId>,
    /// Revision, version and document, if they are what such columns hold.
    pub columns: Option<(i64, i64, String)>,
}

impl Raw {
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
    pub fn read<T: Row>(&self, unreadable: &Unreadable) -> Result<T, StoreError> {
        match self.document() {
            Ok(noun) => {
                unreadable.forget(<T as Document>::KIND, &self.id);
                Ok(noun)
            }
            Err(reason) => Err(StoreError::Unreadable(unreadable.note(UnreadableRow {
                kind: <T as Document>::KIND,
                id: self.id.clone(),
                host: self.host,
                cluster: self.cluster,
                reason,
            }))),
        }
    }

    fn document<T: Row>(&self) -> Result<T, String> {
        let (revision, version, text) = self.columns.as_ref().ok_or("a column of it is damaged")?;
        let mut noun: T = document::read(*version, text)?;
        if noun.key().to_string() != self.id {
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
            kind: RowKind::Noun(ChangeKind::Cluster),
            id: id.into(),
            host: None,
            cluster: None,
            reason: reason.into(),
        }
    }

    #[test]
    fn what_is_set_aside_is_found_until_it_is_no_trouble_any_more() {
        let unreadable = Unreadable::default();
        assert_eq!(unreadable.find(RowKind::Noun(ChangeKind::Cluster), "a"), None);
        unreadable.note(row("a", "broken"));
        unreadable.note(row("a", "broken differently"));
        unreadable.note(row("b", "broken"));
        assert_eq!(unreadable.lock().len(), 2, "one line for each");
        let found = unreadable.find(RowKind::Noun(ChangeKind::Cluster), "a").unwrap();
        assert_eq!(found.to_string(), "cluster a cannot be read: broken differently");
        assert_eq!(unreadable.find(RowKind::Noun(ChangeKind::Host), "a"), None);
        unreadable.forget(RowKind::Noun(ChangeKind::Cluster), "a");
        unreadable.forget(RowKind::Noun(ChangeKind::Cluster), "b");
        assert!(unreadable.is_empty());
    }
}
