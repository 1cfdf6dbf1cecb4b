//! The loop of a controller: take a key, reconcile the object, and again when that is due.

use super::registry::Controller;
use super::{Context, Queue};
use crate::error::{Error, chain};
use crate::key::Key;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The watch needs a moment to bring the newer object; twice as long each time it has not.
const CONFLICT: Duration = Duration::from_millis(20);

/// When an object is to be reconciled next, if nothing changes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Next {
    /// Only when something changes.
    #[default]
    Rest,
    After(Duration),
}

impl Next {
    /// Whatever comes first.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Rest, next) | (next, Self::Rest) => next,
            (Self::After(one), Self::After(two)) => Self::After(one.min(two)),
        }
    }
}

pub type Reconcile = for<'a> fn(&'a Context, &'a Key) -> BoxFuture<'a, Result<Next, Error>>;

/// Works until `stop` becomes true; objects that are being reconciled are finished.
pub async fn run(ctx: Arc<Context>, controller: Controller, stop: watch::Receiver<bool>) {
    let mut workers = JoinSet::new();
    for _ in 0..controller.workers {
        workers.spawn(worker(ctx.clone(), controller, stop.clone()));
    }
    while let Some(ended) = workers.join_next().await {
        if let Err(error) = ended {
            tracing::error!(controller = controller.name, %error, "a worker panicked");
        }
    }
}

async fn worker(ctx: Arc<Context>, controller: Controller, mut stop: watch::Receiver<bool>) {
    let queue = ctx.queue(&controller);
    loop {
        let key = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            key = queue.next() => key,
        };
        reconcile(&ctx, controller, queue, key).await;
    }
}

async fn reconcile(ctx: &Context, controller: Controller, queue: &Queue, key: Key) {
    let started = Instant::now();
    // A mistake in the code that one object brings to light must not keep the others waiting.
    let outcome = AssertUnwindSafe((controller.reconcile)(ctx, &key))
        .catch_unwind()
        .await;
    let outcome = outcome.unwrap_or(Err(Error::Panic));
    ctx.metrics
        .reconciled(controller.name, started.elapsed(), &outcome);
    if !matches!(outcome, Err(Error::Conflict)) {
        queue.went_through(&key);
    }
    let next = match outcome {
        Ok(next) => next,
        // Not worth a word: the newer object is reconciled instead.
        Err(Error::Conflict) => Next::After(after_conflict(queue.conflicted(&key), ctx.retry)),
        Err(Error::Gone) => Next::Rest,
        Err(error) => {
            tracing::warn!(controller = controller.name, %key, error = %chain(&error), "reconciling an object \
                failed; trying again");
            Next::After(ctx.retry)
        }
    };
    queue.done(&key);
    if let Next::After(delay) = next {
        queue.wake_after(key, delay);
    }
}

/// A watch that is cut off may take long to come back; nobody is helped by asking all the time.
fn after_conflict(before: u32, most: Duration) -> Duration {
    CONFLICT.saturating_mul(2u32.saturating_pow(before)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_in_a_row_are_waited_out_longer_and_longer() {
        let waits =
            [0, 1, 2, 9, 1000].map(|before| after_conflict(before, Duration::from_secs(10)).as_millis());
        assert_eq!(waits, [20, 40, 80, 10_000, 10_000]);
    }
}
