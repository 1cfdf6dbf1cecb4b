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
use std::task::Poll;
use tokio::task::JoinHandle;
use tracing::Instrument;

/// Does the work apart from whoever waits for it. What is done at once, as most reports of agents are, needs no task of
/// its own: nobody can go away in the middle of it.
pub async fn through<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let mut work = Box::pin(work.in_current_span());
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(done) => done,
        Poll::Pending => finished(tokio::spawn(work)).await,
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
    async fn what_is_done_at_once_is_done_by_whoever_asked() {
        let asker = tokio::spawn(async {
            let mine = tokio::task::id();
            through(async move { tokio::task::id() == mine }).await
        });
        assert!(asker.await.unwrap());
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
