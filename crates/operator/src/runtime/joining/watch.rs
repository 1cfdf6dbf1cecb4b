//! The watches themselves: of nodes, by their metadata alone, and of requests for certificates.

use super::{Order, Phase, Watched};
use crate::error::chain;
use crate::key::Key;
use crate::runtime::Context;
use futures_util::stream::{BoxStream, FuturesUnordered};
use futures_util::{StreamExt, stream};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use std::time::Duration;

/// What is known of Agents elsewhere.
#[derive(Clone, Copy)]
pub struct Joiners {
    /// Whose node asks for the certificate.
    pub node_of: fn(&CertificateSigningRequest) -> Option<String>,
    /// Something happened to the node of this Agent.
    pub wake: fn(&Context, Key),
}

/// The time until a watch that was cut off begins anew; twice as long each time it was cut off before it had begun.
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(60);

/// Rights may be given later.
const REFUSED: Duration = Duration::from_secs(600);

/// Servers end watches after so many seconds, so that one whose connection is dead is noticed soon.
const LONGEST: u32 = 60;

/// Carries out what is asked of it until it is dropped, and all watches with it.
pub async fn run(ctx: &Context, joiners: Joiners) {
    let placed = ctx.joining.take_orders();
    let Some(mut placed) = placed else {
        return std::future::pending().await;
    };
    let mut watches = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(order) = placed.recv() => watches.push(until_stopped(ctx, order, joiners)),
            Some(()) = watches.next() => {}
            else => return std::future::pending().await,
        }
    }
}

async fn until_stopped(ctx: &Context, order: Order, joiners: Joiners) {
    let Order { watched, stop } = order;
    tokio::select! {
        // Nobody sends anything: that the sender goes is the end.
        _ = stop => {}
        () = again_and_again(ctx, &watched, joiners) => {}
    }
}

async fn again_and_again(ctx: &Context, watched: &Watched, joiners: Joiners) {
    let mut pause = SOON;
    loop {
        let cut = watch(ctx, watched, joiners).await;
        let cluster = &watched.cluster;
        if let Some(why) = refusal(&cut.error) {
            tracing::warn!(%cluster, why, "the kubeconfig of this cluster lacks the right to watch nodes and \
                certificate requests: the operator reads them now and then");
            turn(ctx, joiners, watched, Phase::Refused(why));
            tokio::time::sleep(REFUSED).await;
            continue;
        }
        tracing::debug!(%cluster, error = %chain(&cut.error), "a watch of a cluster ended early; starting it again");
        turn(ctx, joiners, watched, Phase::Begins);
        pause = if cut.had_begun {
            SOON
        } else {
            (pause * 2).min(LATER)
        };
        tokio::time::sleep(pause).await;
    }
}

struct Cut {
    error: watcher::Error,
    had_begun: bool,
}

enum News {
    /// All there is was listed: from now on nothing is missed.
    Listed,
    /// Something happened to the node of this name.
    Of(String),
    Nothing,
}

/// Until one of the two is cut off. Only a new list shows that a watch goes on, so both begin anew then.
async fn watch(ctx: &Context, watched: &Watched, joiners: Joiners) -> Cut {
    let [nodes, requests] = [nodes(&watched.client), requests(&watched.client, joiners)];
    let mut both = stream::select(nodes, requests);
    let mut lists = 0;
    while let Some(news) = both.next().await {
        match news {
            Ok(News::Listed) => lists += 1,
            Ok(News::Of(node)) => wake(
                ctx,
                joiners,
                ctx.joining.called(&watched.cluster, watched.number, &node),
            ),
            Ok(News::Nothing) => continue,
            Err(error) => {
                return Cut {
                    error,
                    had_begun: lists >= BOTH,
                };
            }
        }
        if lists == BOTH {
            turn(ctx, joiners, watched, Phase::Watches);
        }
    }
    // Watches never end by themselves.
    std::future::pending().await
}

const BOTH: u32 = 2;

type NodeEvents = BoxStream<'static, watcher::Result<News>>;

/// What else is in a node is many times larger, and read when the Agent is reconciled.
fn nodes(client: &Client) -> NodeEvents {
    let nodes: Api<PartialObjectMeta<Node>> = Api::all(client.clone());
    let events = watcher(nodes, watcher::Config::default().timeout(LONGEST));
    events
        .map(|event| event.map(|event| news_of(event, |node| Some(node.name_any()))))
        .boxed()
}

fn requests(client: &Client, joiners: Joiners) -> NodeEvents {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let events = watcher(requests, watcher::Config::default().timeout(LONGEST));
    events
        .map(move |event| event.map(|event| news_of(event, joiners.node_of)))
        .boxed()
}

fn news_of<K>(event: Event<K>, node_of: impl Fn(&K) -> Option<String>) -> News {
    match event {
        Event::InitDone => News::Listed,
        // Whoever joins is reconciled when all is listed.
        Event::Init | Event::InitApply(_) => News::Nothing,
        Event::Apply(object) | Event::Delete(object) => node_of(&object).map_or(News::Nothing, News::Of),
    }
}

fn turn(ctx: &Context, joiners: Joiners, watched: &Watched, phase: Phase) {
    wake(
        ctx,
        joiners,
        ctx.joining.turn(&watched.cluster, watched.number, phase),
    );
}

fn wake(ctx: &Context, joiners: Joiners, agents: Vec<Key>) {
    agents.into_iter().for_each(|agent| (joiners.wake)(ctx, agent));
}

/// Why it may not be watched at all. What else goes wrong may be better soon.
fn refusal(error: &watcher::Error) -> Option<String> {
    let (watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause)) = error else {
        return None;
    };
    match cause {
        kube::Error::Api(status) if matches!(status.code, 403..=405) => Some(status.message.clone()),
        _ => None,
    }
}
