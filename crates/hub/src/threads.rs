//! Work that may take long is done on threads of its own, a few at a time: those who serve everybody stay free for it,
//! whatever is stored.

use crate::carry::finished;
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::sync::Semaphore;
use tracing::Span;

/// More at once would only slow one another down.
const MOST: usize = 8;

#[derive(Debug)]
pub struct Threads {
    free: Arc<Semaphore>,
    count: usize,
}

impl Default for Threads {
    fn default() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from).min(MOST))
    }
}

impl Threads {
    pub fn new(count: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(count)),
            count,
        }
    }

    /// How many works are done at once.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Waits for a thread and for the work. Nothing in it may wait for the database or for other work of this kind.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        // Nobody closes it.
        let thread = self.free.clone().acquire_owned().await.ok();
        let span = Span::current();
        let work = move || {
            let _thread = thread;
            span.in_scope(work)
        };
        finished(tokio::task::spawn_blocking(work)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::sync::mpsc;
    use std::thread;

    #[tokio::test]
    async fn work_leaves_the_threads_that_serve_everybody_and_its_panic_comes_back() {
        let threads = Threads::new(1);
        let there = threads.run(|| thread::current().id()).await;
        assert_ne!(there, thread::current().id());
        let panicked = std::panic::AssertUnwindSafe(threads.run(|| panic!("broken"))).catch_unwind();
        assert_eq!(panicked.await.unwrap_err().downcast_ref(), Some(&"broken"));
        assert_eq!(threads.run(|| 1).await, 1, "its thread is free again");
    }

    #[tokio::test]
    async fn no_more_run_at_once_than_there_are_threads() {
        let threads = Threads::new(1);
        let (goes_on, waits) = mpsc::channel::<()>();
        let first = threads.run(move || waits.recv().is_ok());
        let mut first = std::pin::pin!(first);
        assert!(first.as_mut().now_or_never().is_none());
        assert!(threads.run(|| ()).now_or_never().is_none());
        assert_eq!(threads.free.available_permits(), 0);
        goes_on.send(()).unwrap();
        assert!(first.await);
        threads.run(|| ()).await;
    }
}
