//! Stands between an operator and its two servers, counts what it writes, and can make one of these requests its last.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{Method, header};
use muster_operator::Connection;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Which writes are the last of an operator: of each kind, one in so many. Shared by the operators of a story, one after
/// the other, so that what one did not live to do the next one does.
pub struct Fate {
    moment: Moment,
    one_in: usize,
    /// The first of each kind, counted from one.
    first: usize,
    counts: Mutex<HashMap<String, usize>>,
}

/// How much becomes of the last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// It is not even sent.
    Before,
    /// Whoever sent it is gone while it is under way.
    Amid,
    /// It is carried out, but nobody hears the answer.
    After,
}

impl Moment {
    pub const ALL: [Self; 3] = [Self::Before, Self::Amid, Self::After];
}

impl Fate {
    pub fn new(moment: Moment, first: usize, one_in: usize) -> Arc<Self> {
        Arc::new(Self {
            moment,
            one_in,
            first,
            counts: Mutex::default(),
        })
    }

    fn strikes(&self, kind: &str) -> bool {
        let mut counts = self.counts.lock().unwrap();
        let times = counts.entry(kind.to_owned()).or_default();
        *times += 1;
        *times % self.one_in == self.first % self.one_in
    }
}

pub struct Gate {
    fate: Option<Arc<Fate>>,
    /// What was written, as `kind_of` tells it.
    writes: Mutex<Vec<String>>,
    /// Those that were to be the last. Several may be under way at the same moment.
    ends: Mutex<Vec<String>>,
    is_closed: watch::Sender<bool>,
    /// The hub as the operator sees it.
    pub hub_url: String,
    proxy: JoinHandle<()>,
}

impl Gate {
    /// Without a fate nobody dies.
    pub async fn open(hub_url: &str, fate: Option<Arc<Fate>>) -> Arc<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let behind = hub_url.to_owned();
        Arc::new_cyclic(|gate: &std::sync::Weak<Self>| {
            let proxy = Proxy {
                gate: gate.clone(),
                hub: crate::world::web_client(),
                behind,
            };
            let router = axum::Router::new().fallback(forward).with_state(proxy);
            Self {
                fate,
                writes: Mutex::default(),
                ends: Mutex::default(),
                is_closed: watch::Sender::new(false),
                hub_url: format!("http://{address}"),
                proxy: tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }),
            }
        })
    }

    /// The same connection, through this gate.
    pub fn over(self: &Arc<Self>, connection: Connection) -> Connection {
        let Connection { kube, requests } = connection;
        let namespace = kube.default_namespace().to_owned();
        let gate = self.clone();
        let through = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (kube, gate) = (kube.clone(), gate.clone());
            async move {
                let kind = kind_of(request.method(), request.uri().path());
                gate.pass(kind, kube.send(request)).await
            }
        });
        Connection {
            kube: kube::Client::new(through, namespace),
            requests,
        }
    }

    /// The kinds of all writes, in their order.
    pub fn writes(&self) -> Vec<String> {
        self.writes.lock().unwrap().clone()
    }

    /// Waits until the last write was made, and says which it was, or which they were.
    pub async fn closed(&self) -> Vec<String> {
        let mut closed = self.is_closed.subscribe();
        closed
            .wait_for(|closed| *closed)
            .await
            .expect("the sender lives as long as this");
        self.ends.lock().unwrap().clone()
    }

    /// Never returns to an operator that is dead by then.
    async fn pass<T>(&self, kind: Option<String>, request: impl Future<Output = T>) -> T {
        if *self.is_closed.borrow() {
            return std::future::pending().await;
        }
        self.writes.lock().unwrap().extend(kind.clone());
        let strikes = |fate: &&Arc<Fate>| kind.as_ref().is_some_and(|kind| fate.strikes(kind));
        let last = self.fate.as_ref().filter(strikes).map(|fate| fate.moment);
        if last.is_some() {
            self.ends.lock().unwrap().extend(kind.clone());
        }
        match last {
            Some(Moment::Before) => return self.close().await,
            Some(Moment::Amid) => {
                abandon(request).await;
                return self.close().await;
            }
            Some(Moment::After) | None => {}
        }
        let answer = request.await;
        if last.is_some() {
            return self.close().await;
        }
        if *self.is_closed.borrow() {
            return std::future::pending().await;
        }
        answer
    }

    async fn close<T>(&self) -> T {
        self.is_closed.send_replace(true);
        std::future::pending().await
    }
}

/// Begins it, and lets go of it by chance: before it has arrived, while it is carried out, or when it is answered.
async fn abandon(request: impl Future) {
    const LONGEST: u128 = 14;
    let mut request = std::pin::pin!(request);
    for _ in 0..1 << (Uuid::new_v4().as_u128() % LONGEST) {
        tokio::select! {
            biased;
            _ = &mut request => return,
            () = tokio::task::yield_now() => {}
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.proxy.abort();
    }
}

/// A write without the names of what it is about, such as `PATCH agents/*/status`; reads have none.
fn kind_of(method: &Method, path: &str) -> Option<String> {
    if method == Method::GET {
        return None;
    }
    // What comes before is the same for all.
    let rest = match path.split_once("/namespaces/") {
        Some((_, rest)) => rest.split_once('/').map_or(rest, |(_, rest)| rest),
        None => path
            .split_once("/v2/")
            .or(path.split_once("/v1/"))
            .map_or(path, |(_, rest)| rest),
    };
    // Ids, and names that a story made up, have digits in them.
    let name = |word: &str| word.contains(|letter: char| letter.is_ascii_digit());
    let words = rest.split('/').map(|word| if name(word) { "*" } else { word });
    Some(format!("{method} {}", words.collect::<Vec<_>>().join("/")))
}

#[derive(Clone)]
struct Proxy {
    gate: std::sync::Weak<Gate>,
    hub: reqwest::Client,
    behind: String,
}

/// A request to the hub. Following its feed is a read that waits.
async fn forward(State(proxy): State<Proxy>, request: Request) -> Response {
    let Some(gate) = proxy.gate.upgrade() else {
        return http::StatusCode::BAD_GATEWAY.into_response();
    };
    let kind = kind_of(request.method(), request.uri().path());
    let answer = gate.pass(kind, pass_on(&proxy.hub, &proxy.behind, request)).await;
    answer.unwrap_or_else(|_| http::StatusCode::BAD_GATEWAY.into_response())
}

/// Sends a request on to the server behind.
pub async fn pass_on(client: &reqwest::Client, behind: &str, request: Request) -> reqwest::Result<Response> {
    let url = format!("{behind}{}", request.uri());
    let (mut parts, body) = request.into_parts();
    for own in [header::HOST, header::CONTENT_LENGTH, header::ACCEPT_ENCODING] {
        parts.headers.remove(own);
    }
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let sent = client
        .request(parts.method, url)
        .headers(parts.headers)
        .body(body)
        .send();
    whole(sent.await?).await
}

async fn whole(answer: reqwest::Response) -> reqwest::Result<Response> {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body: Bytes = answer.bytes().await?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().extend(headers);
    // The body is whole and plain by now.
    for own in [
        header::TRANSFER_ENCODING,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
    ] {
        response.headers_mut().remove(own);
    }
    Ok(response)
}
