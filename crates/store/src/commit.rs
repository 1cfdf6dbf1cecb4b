//! What one use case wants written, and what it gets back.

use crate::{Store, StoreError};
use jiff::Timestamp;
use muster_domain::cluster::Cluster;
use muster_domain::host::{Effect, Host, Report};
use muster_domain::id::{ClusterId, HostKey, InfraEnvId};
use muster_domain::infra_env::InfraEnv;
use muster_domain::journal::Entry;
use uuid::Uuid;

/// Everything here is written, or nothing.
#[derive(Debug, Clone)]
pub struct Commit {
    pub at: Timestamp,
    pub request_id: Option<Uuid>,
    pub hosts: Vec<HostWrite>,
    pub clusters: Vec<ClusterWrite>,
    pub infra_envs: Vec<InfraEnvWrite>,
    /// In order. Their clusters must be there; a cluster that is deleted takes its files along by itself.
    pub files: Vec<FileWrite>,
    pub journal: Vec<Entry>,
    pub effects: Vec<Effect>,
    /// Hosts may name clusters and pools that are not there (yet), and what is deleted may have hosts: rows that are
    /// brought in piece by piece come in any order.
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
            hosts: Vec::new(),
            clusters: Vec::new(),
            infra_envs: Vec::new(),
            files: Vec::new(),
            journal: Vec::new(),
            effects: Vec::new(),
            in_any_order: false,
            outbox_done: Vec::new(),
            outbox_retry: Vec::new(),
        }
    }
}

#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "a commit holds one or a few, nearly all of them puts"
)]
pub enum HostWrite {
    Put {
        /// Its revision is the one it was read at; 0 inserts, and takes away the tombstone of a deleted namesake.
        host: Host,
        /// `None` deletes the report; reports not named stay.
        reports: Vec<(Report, Option<String>)>,
    },
    /// Takes the host's reports and check-in along and leaves a tombstone.
    Delete { key: HostKey, revision: i64 },
}

#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "a commit holds one or a few, nearly all of them puts"
)]
pub enum ClusterWrite {
    Put { cluster: Cluster },
    Delete { id: ClusterId, revision: i64 },
}

#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "a commit holds one or a few, nearly all of them puts"
)]
pub enum InfraEnvWrite {
    Put { infra_env: InfraEnv },
    Delete { id: InfraEnvId, revision: i64 },
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

/// The new revision of each written row, in the order of the commit's lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    pub hosts: Vec<i64>,
    pub clusters: Vec<i64>,
    pub infra_envs: Vec<i64>,
    /// The change feed's last number once this commit is in it.
    pub seq: i64,
}

impl Store {
    /// Writes the commit whole or not at all; when this returns `Ok` it is on disk.
    pub async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.ask(|reply| crate::writer::Job::Commit(Box::new(commit), reply))
            .await
    }
}
