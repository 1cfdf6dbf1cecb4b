//! What one use case wants written, and what it gets back.

use crate::nouns::{Record, RowKey};
use crate::row::Row;
use crate::{Store, StoreError};
use jiff::Timestamp;
use muster_domain::host::{Effect, Report};
use muster_domain::id::{ClusterId, HostKey};
use muster_domain::journal::Entry;
use uuid::Uuid;

/// Everything here is written, or nothing.
#[derive(Debug, Clone)]
pub struct Commit {
    pub at: Timestamp,
    pub request_id: Option<Uuid>,
    /// Each with the revision it was read at; 0 inserts, and takes away the tombstone of a deleted namesake.
    pub puts: Vec<Record>,
    pub deletes: Vec<Delete>,
    pub reports: Vec<ReportWrite>,
    /// In order. Their clusters must be there; a cluster that is deleted takes its files along by itself.
    pub files: Vec<FileWrite>,
    pub journal: Vec<Entry>,
    pub effects: Vec<Effect>,
    /// Rows may refer to others that are not there (yet), and what is deleted may be referred to: rows that are brought
    /// in piece by piece come in any order.
    pub in_any_order: bool,
    /// Outbox items that were performed.
    pub outbox_done: Vec<i64>,
    /// Outbox items that failed and are tried again.
    pub outbox_retry: Vec<OutboxRetry>,
}

impl Commit {
    pub fn new(at: Timestamp) -> Self {
        Self {
            at,
            request_id: None,
            puts: Vec::new(),
            deletes: Vec::new(),
            reports: Vec::new(),
            files: Vec::new(),
            journal: Vec::new(),
            effects: Vec::new(),
            in_any_order: false,
            outbox_done: Vec::new(),
            outbox_retry: Vec::new(),
        }
    }
}

/// A row that goes, with what hangs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delete {
    pub key: RowKey,
    /// The one it was read at.
    pub revision: i64,
}

impl Delete {
    pub fn of<R: Row>(row: &R) -> Self {
        Self {
            key: row.key().into(),
            revision: row.revision(),
        }
    }
}

/// One of the bulky reports beside a host's row. The host must be there; whoever puts it in the same commit writes the
/// report under the guard of the host's revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportWrite {
    pub host: HostKey,
    pub report: Report,
    /// `None` deletes the report; reports not named stay.
    pub body: Option<String>,
}

/// A change of one file of a cluster, or of all below a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    pub cluster: ClusterId,
    pub path: String,
    pub what: FileChange,
}

#[derive(Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The whole content; it replaces what was there.
    Put(Vec<u8>),
    /// What was uploaded; see [`crate::Upload::file`].
    Adopt {
        content: Uuid,
        size: u64,
    },
    /// To another path, over what is there. Nothing happens when there is no such file.
    Rename(String),
    Delete,
    /// Everything whose path begins like this.
    DeletePrefix,
}

// Files hold pull secrets, keys and passwords.
impl std::fmt::Debug for FileChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Put(content) => write!(f, "Put({} bytes)", content.len()),
            Self::Adopt { size, .. } => write!(f, "Adopt({size} bytes)"),
            Self::Rename(to) => write!(f, "Rename({to:?})"),
            Self::Delete => f.write_str("Delete"),
            Self::DeletePrefix => f.write_str("DeletePrefix"),
        }
    }
}

impl FileWrite {
    pub fn put(cluster: ClusterId, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self::new(cluster, path, FileChange::Put(content.into()))
    }

    pub fn rename(cluster: ClusterId, path: impl Into<String>, to: impl Into<String>) -> Self {
        Self::new(cluster, path, FileChange::Rename(to.into()))
    }

    pub fn delete(cluster: ClusterId, path: impl Into<String>) -> Self {
        Self::new(cluster, path, FileChange::Delete)
    }

    pub fn delete_prefix(cluster: ClusterId, path: impl Into<String>) -> Self {
        Self::new(cluster, path, FileChange::DeletePrefix)
    }

    fn new(cluster: ClusterId, path: impl Into<String>, what: FileChange) -> Self {
        Self {
            cluster,
            path: path.into(),
            what,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRetry {
    pub id: i64,
    pub due_at: Timestamp,
    pub error: String,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Committed {
    /// The rows of the commit with their new revisions, for whoever keeps copies.
    pub puts: Vec<Record>,
    /// The new revision of each written row: those that were put, then those that were deleted, in their order.
    pub revisions: Vec<i64>,
    /// The change feed's last number once this commit is in it.
    pub seq: i64,
}

impl Committed {
    /// Gives the rows back to whoever wrote them.
    pub(crate) fn with(mut self, puts: Vec<Record>) -> Self {
        self.puts = puts;
        for (record, revision) in self.puts.iter_mut().zip(&self.revisions) {
            record.set_revision(*revision);
        }
        self
    }
}

impl Store {
    /// Writes the commit whole or not at all; when this returns `Ok` it is on disk.
    pub async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.ask(|reply| crate::writer::Job::Commit(Box::new(commit), reply))
            .await
    }
}
