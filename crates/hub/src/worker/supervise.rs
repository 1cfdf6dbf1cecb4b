//! Keeps a worker working: one that panics is logged and started again.

use crate::Hub;
use futures_util::FutureExt;
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

pub type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What it died of is most likely still there.
const BREATH: Duration = Duration::from_secs(1);

/// Runs a worker for ever. `again` puts back what it had taken in hand when it died.
pub async fn keep(hub: Hub, name: &'static str, run: fn(Hub) -> Run, again: fn(&Hub)) {
    loop {
        hub.workers.begins(name);
        let died = AssertUnwindSafe(run(hub.clone())).catch_unwind().await;
        let why = match died {
            Ok(()) => "it ended by itself".to_owned(),
            Err(panic) => format!("it panicked: {}", text(&*panic)),
        };
        hub.workers.note(name, hub.now(), &Err::<(), _>(why));
        tokio::time::sleep(BREATH).await;
        again(&hub);
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Settings};
    use muster_store::{Database, Store};
    use std::sync::atomic::{AtomicU32, Ordering};

    static LIVES: AtomicU32 = AtomicU32::new(0);
    static PUT_BACK: AtomicU32 = AtomicU32::new(0);

    fn mortal(hub: Hub) -> Run {
        Box::pin(async move {
            if LIVES.fetch_add(1, Ordering::Relaxed) < 2 {
                panic!("a bad cluster");
            }
            hub.stale_clusters.bell.notify_one();
            std::future::pending().await
        })
    }

    #[tokio::test]
    async fn a_worker_that_panics_is_told_of_and_started_again() {
        let store = Store::open(&Database::Memory).await.unwrap();
        let hub = Hub::open(store, Settings::plain().unwrap(), Clock::System)
            .await
            .unwrap();
        let worker = tokio::spawn(keep(hub.clone(), "mortal", mortal, |_| {
            PUT_BACK.fetch_add(1, Ordering::Relaxed);
        }));
        hub.stale_clusters.bell.notified().await;
        worker.abort();
        let (_, seen) = hub
            .workers
            .read()
            .into_iter()
            .find(|(name, _)| *name == "mortal")
            .unwrap();
        assert_eq!((seen.failures, PUT_BACK.load(Ordering::Relaxed)), (2, 2));
        assert!(seen.last_error.unwrap().contains("a bad cluster"));
    }
}
