//! What changes something is carried through, also when whoever asked for it is gone.
//!
//! The handler of a request is dropped when its connection closes. Between a commit and what follows from it (working
//! memory, the feed, deadlines, reconciling the cluster) that would leave a change which only the database knows of:
//! polls are answered from memory, so a host that was bound would never hear of it.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Instrument;

/// Does the work, to its end: what is left of it when whoever asked goes away goes on in a task of its own.
pub async fn through<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let mut carried = Carried(Some(Box::pin(work.in_current_span())));
    poll_fn(|context| carried.poll(context)).await
}

/// Work that is not done, unless it has panicked. Nearly all of it is done by whoever asked: a task for each request would
/// cost another thread's wake-up.
struct Carried<F: Future<Output: Send + 'static> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send + 'static> + Send + 'static> Carried<F> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(mut work) = self.0.take() else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Drop for Carried<F> {
    fn drop(&mut self) {
        // Without a runtime the whole process ends.
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

/// What a task made; its panic goes on here.
pub async fn finished<T>(task: JoinHandle<T>) -> T {
    match task.await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // Only with the whole process.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Put on requests that run on a thread of their own: nothing ends those in the middle.
#[derive(Debug, Clone, Copy)]
pub struct RunsApart;

/// Requests that read may end at any moment. Polls, which read and now and then write, see to that themselves.
pub async fn changes(request: Request, next: Next) -> Response {
    if request.method().is_safe() || request.extensions().get::<RunsApart>().is_some() {
        return next.run(request).await;
    }
    through(next.run(request)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn whoever_asked_does_the_work_as_long_as_they_wait() {
        let asker = tokio::spawn(async {
            let mine = tokio::task::id();
            through(async move {
                tokio::task::yield_now().await;
                tokio::task::id() == mine
            })
            .await
        });
        assert!(asker.await.unwrap());
    }

    #[tokio::test]
    async fn work_that_panics_is_not_done_again() {
        let asker = tokio::spawn(through(async {
            tokio::task::yield_now().await;
            panic!("a mistake of ours");
        }));
        assert!(asker.await.unwrap_err().is_panic());
    }

    #[tokio::test]
    async fn what_takes_longer_goes_on_when_whoever_asked_is_gone() {
        let (go, told) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let mut asker = Box::pin(through(async move {
            told.await.unwrap();
            done.send("done").unwrap();
        }));
        let polled = poll_fn(|context| Poll::Ready(asker.as_mut().poll(context))).await;
        assert!(polled.is_pending());
        drop(asker);
        go.send(()).unwrap();
        assert_eq!(is_done.await.unwrap(), "done");
    }
}
