//! Serves connections until told to stop, then lets running requests end.

use crate::http::body::{BODY_TIME, BodyTime};
use crate::http::crowd::{self, Crowd, Limits, Seat, Wait};
use crate::http::guard::{self, Names};
use crate::http::hello::{self, Hello};
use crate::http::watched::{Answer, Arriving};
use crate::http::{firmware, problem};
use crate::tls::Tls;
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header, uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use muster_image::Images;
use muster_image::serve::outlet::Outlet;
use muster_image::serve::router::Peer;
use muster_image::serve::wire::{self, Attended, Begun};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceBuilder;

/// Requests that take longer than this after a stop, such as followers of the feed, are cut off.
const DRAIN: Duration = Duration::from_secs(5);
/// How long the whole of a head may take: a client that sends it slower is not a client.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long it may take until TLS is agreed on: two turns, and a slow processor's work.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// The longest address that is understood, and room for headers beside it.
const LARGEST_HEAD: usize = 128 * 1024;

/// What a listener serves, to whom, and how.
#[derive(Clone)]
pub struct Serving {
    pub router: Router,
    /// They leave by a way of their own: see [`wire`].
    pub images: Option<Images>,
    /// Without it, plain HTTP is spoken.
    pub tls: Option<Secured>,
    pub names: Names,
    pub limits: Limits,
    pub hello_time: Duration,
    pub head_time: Duration,
    /// For bodies that are taken in whole.
    pub body_time: Duration,
}

/// TLS, and the URL that is told to those who come without.
#[derive(Clone)]
pub struct Secured {
    pub tls: Tls,
    pub url: Arc<str>,
}

impl Serving {
    pub fn new(router: Router) -> Self {
        Self {
            router,
            images: None,
            tls: None,
            names: Names::default(),
            limits: Limits::of_process(crowd::PEER_WAITING),
            hello_time: HELLO_TIME,
            head_time: HEADER_TIMEOUT,
            body_time: BODY_TIME,
        }
    }

    /// What no handler sees: names that are not ours, requests that are none.
    fn guarded(mut self) -> Self {
        self.router = self
            .router
            .layer(middleware::from_fn_with_state(self.names.clone(), framed));
        self
    }

    /// For those who speak http where https is spoken.
    fn refusing(&self, url: &Arc<str>) -> Self {
        let refusing = Self {
            router: firmware::nothing(url.clone()),
            images: None,
            tls: None,
            ..self.clone()
        };
        refusing.guarded()
    }
}

pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    serve_with(listener, Serving::new(router), shutdown).await
}

pub async fn serve_with(
    listener: TcpListener,
    serving: Serving,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let crowd = Crowd::new(serving.limits);
    serve_among(listener, serving, crowd, shutdown).await
}

/// With a crowd that other listeners share: connections of all of them are limited together.
pub async fn serve_among(
    listener: TcpListener,
    serving: Serving,
    crowd: Crowd,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let serving = serving.guarded();
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = async {
            crowd.room().await;
            listener.accept().await
        };
        tokio::select! {
            () = &mut shutdown => break,
            accepted = accepted => match accepted {
                Ok((stream, peer)) => {
                    // Small replies must not wait for more to say.
                    stream.set_nodelay(true).ok();
                    match crowd.enter(peer.ip()) {
                        Some(seat) => drop(connections.spawn(connection(stream, Peer(peer), seat, serving.clone(), stopping.clone()))),
                        None => tracing::debug!(%peer, "refusing a connection: this address has too many"),
                    }
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
        tracing::info!("cutting off requests that did not end in time");
    }
    Ok(())
}

/// Until it ends, or its place is needed for somebody else while it waits for its client.
async fn connection(
    stream: TcpStream,
    peer: Peer,
    seat: Seat,
    serving: Serving,
    stopping: watch::Receiver<bool>,
) {
    let seat = Arc::new(seat);
    tokio::select! {
        () = greeted(stream, peer, &seat, serving, stopping) => {}
        () = seat.asked_to_close() => {}
    }
}

/// A connection waits for its first request from its beginning, so one that is slow to agree on TLS does, too.
async fn greeted(
    stream: TcpStream,
    peer: Peer,
    seat: &Arc<Seat>,
    serving: Serving,
    mut stopping: watch::Receiver<bool>,
) {
    let Some(secured) = &serving.tls else {
        return attended(stream, peer, seat, serving, stopping).await;
    };
    let stopped = async { stopping.wait_for(|stop| *stop).await.map(drop).ok() };
    let hello = tokio::select! {
        hello = hello::hello(stream, &secured.tls, serving.hello_time) => hello,
        _ = stopped => return,
    };
    match hello {
        Hello::Secure(stream) => attended(*stream, peer, seat, serving, stopping).await,
        Hello::Plain(stream) => {
            let refusing = serving.refusing(&secured.url);
            attended(stream, peer, seat, refusing, stopping).await;
        }
        Hello::None => {}
    }
}

async fn attended(
    stream: impl Outlet + 'static,
    peer: Peer,
    seat: &Arc<Seat>,
    serving: Serving,
    mut stopping: watch::Receiver<bool>,
) {
    let begun = match &serving.images {
        Some(images) => {
            let guest = Guest {
                seat,
                serving: &serving,
            };
            wire::attend(stream, peer.0.ip(), images, &guest, stopping.clone()).await
        }
        None => Ok(Some(Begun::new(stream))),
    };
    // Nothing more to come, or a peer that went away in the middle: its business.
    let Ok(Some(stream)) = begun else { return };
    let (coming, going) = (seat.clone(), seat.clone());
    let body_time = BodyTime(serving.body_time);
    let router = ServiceBuilder::new()
        .map_request(move |request: axum::http::Request<Incoming>| {
            let mut request = watched(request, &coming);
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(body_time);
            request
        })
        .map_response(move |response: Response| response.map(|body| Answer::new(body, going.clone())))
        .service(serving.router);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(serving.head_time)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
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

/// A request is whole when its body is there.
fn watched(request: axum::http::Request<Incoming>, seat: &Arc<Seat>) -> Request {
    if request.body().is_end_stream() {
        seat.works();
        return request.map(Body::new);
    }
    seat.waits(Wait::Body);
    request.map(|body| Body::new(Arriving::new(body, seat.clone())))
}

/// A connection as the way of the images sees it.
struct Guest<'a> {
    seat: &'a Seat,
    serving: &'a Serving,
}

impl Attended for Guest<'_> {
    fn admits(&self, host: &str) -> bool {
        self.serving.names.admit(host)
    }

    fn works(&self) {
        self.seat.works();
    }

    fn rests(&self) {
        self.seat.waits(Wait::Request);
    }

    fn begins(&self) {
        self.seat.waits(Wait::Head);
    }

    fn head_time(&self) -> Duration {
        self.serving.head_time
    }
}

/// What HTTP/1.1 asks of a server beyond what its parser sees to, and whether the hub answers to this name.
async fn framed(State(names): State<Names>, request: Request, next: Next) -> Response {
    if request.version() == Version::HTTP_11 && !names_one_host(request.headers()) {
        return problem::framework(
            StatusCode::BAD_REQUEST,
            "the request must name the host it is for, once",
        );
    }
    // A length besides chunks means that somebody on the way may see another end of this request. The parser has
    // removed it already, so after chunks the connection is always closed: what follows is never taken for a request.
    let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
    let mut response = match guard::judge(&names, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
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
