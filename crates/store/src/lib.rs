//! SQL on SQLite and PostgreSQL: reads per noun, and one door through which everything is written.
//!
//! Reads use a pool of connections. Writes go through [`Store::commit`] to a single writer task, which takes everything
//! that waits into one transaction and answers when that transaction is on disk.

mod batch;
mod changes;
mod checkins;
mod clusters;
mod commit;
mod counts;
mod database;
mod error;
mod events;
mod files;
mod hosts;
mod infra_envs;
mod outbox;
mod references;
mod reports;
mod schema;
mod sql;
mod together;
mod tombstones;
mod uploads;
mod writer;

pub use changes::{Change, ChangeKind, ChangeOp, ChangesRange};
pub use checkins::Checkin;
pub use commit::{
    ClusterWrite, Commit, Committed, FileChange, FileWrite, HostWrite, InfraEnvWrite, OutboxRetry,
};
pub use counts::Counts;
pub use database::Database;
pub use error::StoreError;
pub use events::{Event, EventQuery, EventsPage, SeverityCounts};
pub use files::{FileReader, FileStat};
pub use hosts::HostFilter;
pub use outbox::OutboxItem;
pub use uploads::Upload;

use database::Pools;
use sqlx::AnyPool;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use writer::Job;

/// A handle on the database; clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    dialect: database::Dialect,
    readers: AnyPool,
    jobs: mpsc::Sender<Job>,
    reads: mpsc::Sender<together::Read>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Connects, brings the schema up to date and starts the writer.
    pub async fn open(database: &Database) -> Result<Self, StoreError> {
        let pools = Pools::connect(database).await?;
        schema::migrate(&pools).await?;
        let Pools {
            dialect,
            writer,
            readers,
        } = pools;
        let (jobs, queue) = mpsc::channel(writer::QUEUE);
        let writer = tokio::spawn(writer::run(writer, dialect, queue));
        let (reads, waiting) = mpsc::channel(together::QUEUE);
        tokio::spawn(together::run(readers.clone(), waiting));
        Ok(Self {
            inner: Arc::new(Inner {
                dialect,
                readers,
                jobs,
                reads,
                writer: Mutex::new(Some(writer)),
            }),
        })
    }

    /// Writes what is still queued, refuses what comes later, and hangs up.
    pub async fn close(&self) {
        let mut writer = self.inner.writer.lock().await;
        if let Some(task) = writer.take() {
            // A writer that is gone already has nothing left to drain.
            let _ = self.inner.jobs.send(Job::Close).await;
            if let Err(error) = task.await {
                tracing::error!(%error, "the store's writer ended badly");
            }
            self.inner.readers.close().await;
        }
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("select 1").execute(self.readers()).await?;
        Ok(())
    }

    fn readers(&self) -> &AnyPool {
        &self.inner.readers
    }
}
