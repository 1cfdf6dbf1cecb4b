//! Serves connections until told to stop, then lets running requests end.

use crate::http::problem;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header, uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use muster_image::Images;
use muster_image::serve::router::Peer;
use muster_image::serve::wire::{self, Begun};
use std::future::Future;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

/// Requests that take longer than this after a stop, such as followers of the feed, are cut off.
const DRAIN: Duration = Duration::from_secs(5);
/// A client that sends its headers slower than this is not a client.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    serve_with(listener, router, None, shutdown).await
}

/// With images, which leave by a way of their own: see [`wire`].
pub async fn serve_with(
    listener: TcpListener,
    router: Router,
    images: Option<Images>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let router = router.layer(middleware::from_fn(framed));
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Small replies must not wait for more to say.
                    stream.set_nodelay(true).ok();
                    connections.spawn(connection(stream, router.clone(), images.clone(), stopping.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: others will be closed in a moment.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    stop.send_replace(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::info!("some requests did not end in time and are cut off");
    }
    Ok(())
}

async fn connection(
    stream: TcpStream,
    router: Router,
    images: Option<Images>,
    mut stopping: watch::Receiver<bool>,
) {
    let peer = stream.peer_addr().map(Peer);
    let begun = match &images {
        Some(images) => wire::attend(stream, images, stopping.clone()).await,
        None => Ok(Some(Begun::new(stream))),
    };
    // Nothing more to come, or a peer that went away in the middle: its business.
    let (Ok(peer), Ok(Some(stream))) = (peer, begun) else {
        return;
    };
    let router = router.map_request(move |mut request: axum::http::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer);
        request
    });
    let service = TowerToHyperService::new(router);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let stopped = async { stopping.wait_for(|stop| *stop).await.map(drop).ok() };
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => {}
        _ = stopped => {
            connection.as_mut().graceful_shutdown();
            // What the peer does with its connection is the peer's business.
            connection.await.ok();
        }
    }
}

/// What HTTP/1.1 asks of a server beyond what its parser sees to.
async fn framed(request: Request, next: Next) -> Response {
    if request.version() == Version::HTTP_11 && !names_one_host(request.headers()) {
        return problem::framework(
            StatusCode::BAD_REQUEST,
            "the request must name the host it is for, once",
        );
    }
    // A length besides chunks means that somebody on the way may see another end of this request. The parser has
    // removed it already, so after chunks the connection is always closed: what follows is never taken for a request.
    let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
    let mut response = next.run(request).await;
    if is_chunked {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn names_one_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let is_name = |host: &HeaderValue| {
        host.is_empty()
            || host
                .to_str()
                .is_ok_and(|text| text.parse::<uri::Authority>().is_ok())
    };
    first.is_some_and(is_name) && second.is_none()
}
