//! Serves pages to those who watch over the operator. Anybody may connect, and in `serve --kube` that is the process of the
//! hub: one request per connection, little time for it, and a place for newcomers, whoever else keeps one.

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// For all of a request and its answer.
const TIME: Duration = Duration::from_secs(30);
/// Connections at a time; the oldest makes room for the next.
const MOST: usize = 64;

/// Until it is dropped.
pub async fn serve(listener: TcpListener, router: Router) {
    let mut all = JoinSet::new();
    let mut oldest: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: others will be closed in a moment.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            Some(_) = all.join_next(), if !all.is_empty() => continue,
        };
        oldest.retain(|one| !one.is_finished());
        while oldest.len() >= MOST
            && let Some(one) = oldest.pop_front()
        {
            one.abort();
        }
        oldest.push_back(all.spawn(connection(stream, router.clone())));
    }
}

async fn connection(stream: TcpStream, router: Router) {
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // What the peer does with its connection is the peer's business.
    let _ = tokio::time::timeout(TIME, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn who_never_ends_a_request_keeps_nobody_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = tokio::spawn(serve(listener, Router::new().route("/x", get(async || "fine"))));
        let mut slow = Vec::new();
        for _ in 0..2 * MOST {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /x HTTP/1.1\r\n").await.unwrap();
            slow.push(stream);
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("fine"), "{answer}");
        // The first is closed without an answer.
        assert!(!matches!(slow[0].read(&mut [0; 10]).await, Ok(1..)));
        served.abort();
    }
}
