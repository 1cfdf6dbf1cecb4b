//! Work that no request waits for: deadlines, looks at clusters, the outbox, signs of life, the feed.

pub mod deadlines;
pub mod feed;
pub mod flush;
pub mod limits;
pub mod load;
pub mod looks;
pub mod outbox;

use crate::Hub;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tokio::task::JoinSet;

/// How each worker is doing, for people.
#[derive(Debug, Default)]
pub struct Board(Mutex<BTreeMap<&'static str, Worker>>);

#[derive(Debug, Clone, Default)]
pub struct Worker {
    pub runs: u64,
    pub failures: u64,
    pub last_run_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

impl Board {
    pub fn note<E: std::fmt::Display>(&self, name: &'static str, at: Timestamp, result: &Result<(), E>) {
        let mut board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let worker = board.entry(name).or_default();
        worker.runs += 1;
        worker.last_run_at = Some(at);
        if let Err(error) = result {
            worker.failures += 1;
            worker.last_error = Some(error.to_string());
            tracing::error!(worker = name, %error, "worker failed; it tries again");
        }
    }

    pub fn read(&self) -> Vec<(&'static str, Worker)> {
        let board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        board
            .iter()
            .map(|(name, worker)| (*name, worker.clone()))
            .collect()
    }
}

/// Starts all of them; they end when the set is dropped.
pub fn start(hub: &Hub) -> JoinSet<()> {
    let mut workers = JoinSet::new();
    workers.spawn(deadlines::run(hub.clone()));
    workers.spawn(looks::run(hub.clone()));
    workers.spawn(outbox::run(hub.clone()));
    workers.spawn(outbox::run_files(hub.clone()));
    workers.spawn(limits::run(hub.clone()));
    workers.spawn(flush::run(hub.clone()));
    if hub.settings.database == "postgresql" {
        // Read here: once requests are answered, our own changes would hide older ones of others.
        let after = *hub.newest_change.borrow();
        workers.spawn(feed::run(hub.clone(), after));
    }
    workers
}

/// Does everything that is to be done right now, once: what a simulation calls instead of starting workers.
pub async fn settle(hub: &Hub) -> Result<(), crate::Error> {
    loop {
        let due = deadlines::once(hub).await? + limits::once(hub).await?;
        let looked = looks::once(hub).await?;
        let sent = outbox::once(hub).await?;
        if due + looked + sent == 0 {
            return Ok(());
        }
    }
}
