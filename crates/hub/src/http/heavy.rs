//! Large requests are read and judged on threads of their own, a few at a time: whoever sends megabytes keeps nobody
//! else waiting, since the threads that serve everybody only pass such a request on.

use crate::carry::RunsApart;
use crate::http::body::{announced, whole};
use crate::http::v1::input::shaped;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::Method;
use axum::response::Response;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Smaller ones are done faster than handed over.
const LARGE: u64 = 64 * 1024;
/// More would only slow one another down.
const MOST_LANES: usize = 8;
/// Logs are hundreds of megabytes that nobody decodes; they pass piece by piece.
const STREAMED: &str = "/logs";

#[derive(Debug, Clone)]
pub struct Lanes(Arc<Semaphore>);

impl Default for Lanes {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::new(cores.min(MOST_LANES))
    }
}

impl Lanes {
    pub fn new(lanes: usize) -> Self {
        Self(Arc::new(Semaphore::new(lanes)))
    }
}

/// Answers the request, here or there.
pub async fn apart<F>(lanes: Lanes, request: Request, answer: impl FnOnce(Request) -> F) -> Response
where
    F: Future<Output = Response> + Send + 'static,
{
    if !is_large(&request) {
        return answer(request).await;
    }
    let (parts, body) = request.into_parts();
    // It is waited for here: a lane is for work, not for a slow line.
    let arrived = Request::from_parts(parts.clone(), body);
    let bytes = match whole(arrived, &()).await {
        Ok(bytes) => bytes,
        Err(refusal) => return shaped(parts.uri.path(), refusal).await,
    };
    let mut request = Request::from_parts(parts, Body::from(bytes));
    request.extensions_mut().insert(RunsApart);
    // Nobody closes it.
    let lane = lanes.0.acquire_owned().await.ok();
    let here = Handle::current();
    let answered = answer(request);
    let done = tokio::task::spawn_blocking(move || {
        let _lane = lane;
        here.block_on(answered)
    });
    match done.await {
        Ok(response) => response,
        // It is logged where all panics of requests are.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => crate::http::stopping(),
        },
    }
}

/// A body of unknown length may be any size.
fn is_large(request: &Request) -> bool {
    let has_body = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    if !has_body || request.uri().path().ends_with(STREAMED) {
        return false;
    }
    match announced(request.headers()) {
        Some(length) => length > LARGE,
        None => HttpBody::size_hint(request.body())
            .upper()
            .is_none_or(|most| most > LARGE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::extract::State;
    use axum::middleware::{Next, from_fn_with_state};
    use axum::routing::post;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use tower::ServiceExt;

    fn request(size: usize) -> Request {
        Request::post("/x").body(Body::from(vec![b' '; size])).unwrap()
    }

    /// As in the hub: what changes something is carried through, within this.
    fn router(lanes: usize, handler: axum::routing::MethodRouter) -> Router {
        Router::new().route("/x", handler).layer(from_fn_with_state(
            Lanes::new(lanes),
            async |State(lanes): State<Lanes>, request: Request, next: Next| {
                apart(lanes, request, |request| crate::carry::changes(request, next)).await
            },
        ))
    }

    #[tokio::test]
    async fn large_requests_leave_the_threads_that_serve_everybody() {
        let serving = thread::current().id();
        let where_at = async move |_: axum::body::Bytes| (thread::current().id() == serving).to_string();
        let router = router(2, post(where_at));
        for (size, here) in [(1000, "true"), (64 * 1024, "true"), (64 * 1024 + 1, "false")] {
            let response = router.clone().oneshot(request(size)).await.unwrap();
            let said = axum::body::to_bytes(response.into_body(), 100).await.unwrap();
            assert_eq!(said, here, "{size}");
        }
    }

    #[tokio::test]
    async fn no_more_of_them_run_at_once_than_there_are_lanes() {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = most.clone();
        let busy = async move |_: axum::body::Bytes| {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(now, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            running.fetch_sub(1, Ordering::SeqCst);
        };
        let router = router(2, post(busy));
        let all = (0..20).map(|_| router.clone().oneshot(request(100_000)));
        for response in futures_util::future::join_all(all).await {
            assert!(response.unwrap().status().is_success());
        }
        assert!(most.load(Ordering::SeqCst) <= 2);
    }
}
