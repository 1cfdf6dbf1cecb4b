//! Work that no request waits for: deadlines, looks at clusters, the outbox, signs of life, the feed.

pub mod certificate;
pub mod deadlines;
pub mod feed;
pub mod flush;
pub mod limits;
pub mod load;
pub mod outbox;
pub mod pass;
pub mod reconcile;

mod supervise;

use crate::Hub;
use jiff::Timestamp;
use muster_domain::{ClusterId, HostKey};
use muster_store::RowKey;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A worker that has not begun a run for so long does not work any more.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// Workers without anything to do show this often that they are there.
const PULSE: Duration = Duration::from_secs(60);

/// How each worker is doing, for people.
#[derive(Debug, Default)]
pub struct Board(Mutex<BTreeMap<&'static str, Worker>>);

#[derive(Debug, Clone, Default)]
pub struct Worker {
    pub runs: u64,
    pub failures: u64,
    /// Only of workers that were started. Not by the clock that people set.
    pub begun: Option<Instant>,
    pub last_run_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

impl Board {
    /// A run begins.
    pub fn begins(&self, name: &'static str) {
        let mut board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        board.entry(name).or_default().begun = Some(Instant::now());
    }

    /// The first worker that was started and has not begun a run for too long.
    pub fn stuck(&self, now: Instant) -> Option<&'static str> {
        let board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        board
            .iter()
            .find(|(_, worker)| {
                worker
                    .begun
                    .is_some_and(|begun| now.saturating_duration_since(begun) > PATIENCE)
            })
            .map(|(name, _)| *name)
    }

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

/// What workers failed at, and when they try it again.
#[derive(Debug, Default)]
pub struct Resting {
    pub hosts: pass::Rests<HostKey>,
    pub limits: pass::Rests<ClusterId>,
    pub changes: pass::Rests<RowKey>,
}

/// Starts all of them; they end when the set is dropped.
pub fn start(hub: &Hub) -> JoinSet<()> {
    let mut workers = JoinSet::new();
    let mut keep = |name, run: fn(Hub) -> supervise::Run, again: fn(&Hub)| {
        workers.spawn(supervise::keep(hub.clone(), name, run, again));
    };
    keep(
        "deadlines",
        |hub| Box::pin(deadlines::run(hub)),
        deadlines::plan_anew,
    );
    keep(
        "reconcile",
        |hub| Box::pin(reconcile::run(hub)),
        reconcile::plan_anew,
    );
    keep("limits", |hub| Box::pin(limits::run(hub)), limits::plan_anew);
    // These read from the database what is to be done.
    keep("outbox", |hub| Box::pin(outbox::run(hub)), |_| ());
    keep("files", |hub| Box::pin(outbox::run_files(hub)), |_| ());
    keep("flush", |hub| Box::pin(flush::run(hub)), |_| ());
    keep("feed", |hub| Box::pin(feed::run(hub)), |_| ());
    if hub.tls().is_some() {
        keep("certificate", |hub| Box::pin(certificate::run(hub)), |_| ());
    }
    workers
}

/// Does everything that is to be done right now, once: what a simulation calls instead of starting workers.
pub async fn run_until_idle(hub: &Hub) -> Result<(), crate::Error> {
    loop {
        let due = deadlines::once(hub).await? + limits::once(hub).await?;
        let reconciled = reconcile::once(hub).await?;
        let sent = outbox::once(hub).await?;
        if due + reconciled + sent == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_has_not_begun_a_run_for_minutes_stands_still() {
        let (board, start) = (Board::default(), Instant::now());
        board.note("never-started", Timestamp::UNIX_EPOCH, &Ok::<(), String>(()));
        board.begins("flush");
        assert_eq!(board.stuck(start + Duration::from_secs(4 * 60)), None);
        assert_eq!(board.stuck(start + Duration::from_secs(6 * 60)), Some("flush"));
        board.begins("flush");
        assert_eq!(board.stuck(Instant::now()), None);
    }
}
