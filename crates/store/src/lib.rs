//! SQL on SQLite and PostgreSQL: reads per noun, and one door through which everything is written.
//!
//! Reads use a pool of connections. Writes go through [`Store::commit`] to a single writer task, which takes everything
//! that waits into one transaction and answers when that transaction is on disk.

mod batch;
mod changes;
mod checkins;
mod commit;
mod counts;
mod database;
mod document;
mod error;
mod events;
mod fault;
mod files;
mod hold;
mod home;
mod identity;
mod line;
mod nouns;
mod outbox;
mod pulse;
mod read;
mod references;
mod reports;
mod row;
mod schema;
mod shrink;
mod sql;
mod together;
mod tombstones;
mod unreadable;
mod uploads;
mod writer;

pub use changes::{Change, ChangeOp, ChangesRange, Scope};
pub use checkins::Checkin;
pub use commit::{Commit, Committed, Delete, FileChange, FileWrite, OutboxRetry, ReportWrite};
pub use counts::Counts;
pub use database::Database;
pub use error::StoreError;
pub use events::{Event, EventQuery, EventsPage, SeverityCounts};
pub use fault::DatabaseFault;
pub use files::{FileReader, FileStat};
pub use nouns::hosts::HostFilter;
pub use nouns::{ChangeKind, Record, RowKey, Visit, VisitKey};
pub use outbox::OutboxItem;
pub use row::{Reference, Row, RowId, Table};
pub use unreadable::{RowKind, UnreadableRow};
pub use uploads::Upload;

use database::Pools;
use read::Readers;
use sqlx::AnyPool;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinHandle;
use writer::Job;

/// A handle on the database; clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    is_file: bool,
    readers: Readers,
    jobs: mpsc::Sender<Job>,
    reads: mpsc::Sender<together::Read>,
    lost: watch::Receiver<Option<StoreError>>,
    unreadable: Arc<unreadable::Unreadable>,
    pulse: Arc<pulse::Pulse>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Connects, brings the schema up to date and starts the writer.
    pub async fn open(database: &Database) -> Result<Self, StoreError> {
        let Pools { mut writer, readers } = Pools::connect(database).await?;
        let migrated = schema::migrate(&mut writer).await;
        migrated.map_err(|error| match &writer.home {
            Some(home) => home.explain(error),
            None => error,
        })?;
        let lost = writer.loss();
        let is_in_memory = *database == Database::Memory;
        let readers = Readers::new(readers, writer.dialect, is_in_memory);
        let (jobs, queue) = mpsc::channel(writer::QUEUE);
        let pulse = Arc::new(pulse::Pulse::default());
        let writer = tokio::spawn(writer::run(writer, queue, pulse.clone()));
        let (reads, waiting) = mpsc::channel(together::QUEUE);
        let unreadable = Arc::new(unreadable::Unreadable::default());
        tokio::spawn(together::run(readers.clone(), unreadable.clone(), waiting));
        Ok(Self {
            inner: Arc::new(Inner {
                is_file: database.is_file(),
                readers,
                jobs,
                reads,
                lost,
                unreadable,
                pulse,
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
                tracing::error!(%error, "the store's writer failed");
            }
            let is_lost = self.inner.lost.borrow().is_some();
            if is_lost {
                // SQLite would tidy up what it takes for its own.
                std::mem::forget(self.readers().clone());
            } else {
                self.readers().close().await;
            }
        }
    }

    /// Ends when the database is not the one it was any more: gone, emptied, or replaced. Nothing is written from then
    /// on, and whoever runs this should end.
    pub async fn lost(&self) -> StoreError {
        let mut lost = self.inner.lost.clone();
        let found = match lost.wait_for(Option::is_some).await {
            Ok(found) => found.clone(),
            // The writer has ended in peace.
            Err(_) => None,
        };
        match found {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.inner
            .readers
            .only_row(sqlx::query("select 1"))
            .await
            .map(drop)
    }

    fn readers(&self) -> &AnyPool {
        &self.inner.readers.pool
    }
}

/// PostgreSQL, where there is one.
#[cfg(test)]
pub(crate) fn test_server() -> Option<String> {
    let server = std::env::var("MUSTER_TEST_POSTGRES").ok();
    if server.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI must have a PostgreSQL server"
        );
        // Past the test's captured output, where it is seen.
        let text = "\nSKIPPED on PostgreSQL: MUSTER_TEST_POSTGRES is not set\n";
        std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).ok();
    }
    server
}
