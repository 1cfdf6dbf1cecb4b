//! What changes something is carried through, also when whoever asked for it is gone.
//!
//! The handler of a request is dropped when its connection closes. Between a commit and what follows from it (working
//! memory, the feed, deadlines, the look at the cluster) that would leave a change which only the database knows of: polls
//! are answered from memory, so a host that was bound would never hear of it.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use std::panic::resume_unwind;
use tokio::task::JoinHandle;
use tracing::Instrument;

/// Does the work apart from whoever waits for it.
pub async fn through<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    finished(tokio::spawn(work.in_current_span())).await
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
