//! What all controllers share: the feed, health, who runs, and how objects are written.

use crate::described::one_host;
use crate::gate::pass_on;
use crate::lent::says;
use crate::machines::Capi;
use crate::world::{World, run, run_over, web_client};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use kube::client::Body;
use muster_operator::controller::{ALL, Chosen, Controller, Group};
use muster_operator::crd::NMStateConfig;
use muster_operator::crd::agent_classification::AgentClassification;
use muster_operator::runtime::lease::Terms;
use muster_operator::runtime::registry::Registry;
use muster_operator::runtime::{Change, Context, Next};
use muster_operator::{Connection, Election, Error, Key, Options};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use uuid::Uuid;

/// A hub whose feed reaches back to a place and no further.
struct Forgetful {
    hub: String,
    client: reqwest::Client,
    first: AtomicI64,
    refused: AtomicI64,
}

impl Forgetful {
    async fn before(hub: &str) -> (String, Arc<Self>) {
        let proxy = Arc::new(Self {
            hub: hub.to_owned(),
            client: web_client(),
            first: AtomicI64::new(0),
            refused: AtomicI64::new(0),
        });
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback(answer).with_state(proxy.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (url, proxy)
    }
}

async fn answer(State(proxy): State<Arc<Forgetful>>, request: Request) -> Response {
    let asked = request.uri().query().unwrap_or_default();
    let after = asked.split('&').find_map(|pair| pair.strip_prefix("after="));
    let after = after
        .and_then(|place| place.parse::<i64>().ok())
        .unwrap_or_default();
    let feed = request.uri().path().ends_with("/changes");
    let is_gone = || feed && after < proxy.first.load(Ordering::SeqCst);
    let gone = || {
        proxy.refused.fetch_add(1, Ordering::SeqCst);
        let problem = json!({ "type": "about:blank", "title": "Gone", "status": 410, "code": "feed-gone" });
        (StatusCode::GONE, axum::Json(problem)).into_response()
    };
    if is_gone() {
        return gone();
    }
    let answer = pass_on(&proxy.client, &proxy.hub, request).await;
    // What was asked before the feed was cut is not answered any more either.
    if is_gone() {
        return gone();
    }
    answer.unwrap_or_else(|_| StatusCode::BAD_GATEWAY.into_response())
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_feed_does_not_reach_back_everything_is_read_anew() {
    let world = World::without_operator().await;
    let (hub_url, feed) = Forgetful::before(&world.house.url).await;
    let options = Options {
        hub_url,
        ..world.options()
    };
    let operator = run(options).await;
    let pool = world.pool_of("lab", |_| ()).await;
    operator.idle().await;
    // From now on no feed reaches the operator: of these two it can only learn by reading.
    feed.first.store(i64::MAX, Ordering::SeqCst);
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    world.register(pool, first).await;
    world.register(pool, second).await;
    world
        .until("it notices that the feed is cut off", async || {
            feed.refused.load(Ordering::SeqCst) > 0
        })
        .await;
    feed.first.store(
        world.hub.hub_status().await.unwrap().newest_change,
        Ordering::SeqCst,
    );
    for host in [first, second] {
        world.agent_in(&host.to_string(), "discovering-unbound").await;
    }
    // And from there on it is followed as before.
    let third = Uuid::new_v4();
    world.register(pool, third).await;
    world.agent_in(&third.to_string(), "discovering-unbound").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_without_a_server_is_alive_and_not_ready() {
    let world = World::without_operator().await;
    // Nobody listens there.
    let nowhere: http::Uri = format!("https://{}", crate::world::free_address())
        .parse()
        .unwrap();
    let connection = Connection::with(kube::Config::new(nowhere)).unwrap();
    let lost = run_over(world.options(), connection);
    world
        .until("it is alive", async || lost.probe("/healthz").await == Some(200))
        .await;
    assert_eq!(lost.probe("/readyz").await, Some(503));
    let operator = run(world.options()).await;
    world
        .until("it is ready", async || {
            operator.probe("/readyz").await == Some(200)
        })
        .await;
    assert_eq!(operator.probe("/healthz").await, Some(200));
    assert_eq!(operator.probe("/elsewhere").await, Some(404));
    operator.stop().await;
    assert_eq!(lost.probe("/readyz").await, Some(503), "still");
    // One that never led can be stopped, too.
    lost.stop().await;
}

/// The controllers that have reconciled something.
async fn at_work(world: &World, options: Options) -> BTreeSet<String> {
    let running = run_over(options, world.server.connection().await);
    running.idle().await;
    let text = running.metrics().await.unwrap();
    let names = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("muster_operator_reconciles_total{controller=\"")?;
        Some(rest.split_once('"')?.0.to_owned())
    });
    let names = names.collect();
    running.stop().await;
    names
}

/// A controller as ARCHITECTURE.md says how to add one: all of it is here, and in the list that the operator is given.
mod added {
    use super::*;

    pub const CONTROLLER: Controller = Controller {
        name: "added",
        group: Group::Service,
        workers: 1,
        register,
        reconcile: |ctx, key| Box::pin(async move { reconcile(ctx, key) }),
    };

    /// The objects it was called for, and whether they were there.
    pub static CALLS: Mutex<Vec<(Key, bool)>> = Mutex::new(Vec::new());

    fn register(registry: &mut Registry) {
        registry.on(itself);
    }

    fn itself(ctx: &Context, change: &Change<NMStateConfig>) {
        ctx.queue(&CONTROLLER).wake(change.key.clone());
    }

    fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
        let is_there = ctx.cache::<NMStateConfig>().get(key).is_some();
        CALLS.lock().unwrap().push((key.clone(), is_there));
        Ok(Next::Rest)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_added_is_called_when_its_kind_changes() {
    let world = World::without_operator().await;
    let options = Options {
        controllers: Chosen(vec![added::CONTROLLER]),
        ..world.options()
    };
    let running = run_over(options, world.server.connection().await);
    let key = Key::new(&world.pool, "net");
    let config = NMStateConfig::new("net", Default::default());
    world.create(&world.pool, &config).await;
    let was_called = |is_there| added::CALLS.lock().unwrap().contains(&(key.clone(), is_there));
    world
        .until("it is called for an object that came", async || was_called(true))
        .await;
    world.delete::<NMStateConfig>(&world.pool, "net").await;
    world
        .until("it is called for an object that went", async || was_called(false))
        .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_controller_can_be_run_alone_and_be_left_out() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = Uuid::new_v4();
    world.register(pool, host).await;
    world.agent_in(&host.to_string(), "discovering-unbound").await;
    world.describe("blue", one_host()).await;
    world.capi_cluster(Capi::V1Beta2, "green").await;
    world.capi_machine(Capi::V1Beta2, "green", "m1", json!({})).await;
    let classification = json!({ "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "AgentClassification",
        "metadata": { "name": "large" }, "spec": { "labelKey": "size", "labelValue": "large", "query": ".cpu.count > 8" } });
    let classification: AgentClassification = serde_json::from_value(classification).unwrap();
    world.create(&world.pool, &classification).await;
    let hosts = world.kind("metal3.io", "v1alpha1", "BareMetalHost");
    let metal = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": "rack-1" }, "spec": { "online": true, "bootMACAddress": "52:54:00:00:00:01" } });
    world.put(&hosts, metal).await;
    world.operator().idle().await;
    world.stop_operator().await;
    // Of these there is no object in this world; but there may be one of another test.
    let absent = ["agent-service-config", "preprovisioning-image"];
    let is_here = |name: &String| !absent.contains(&name.as_str());
    let all: BTreeSet<String> = ALL.iter().map(ToString::to_string).collect();
    let all: BTreeSet<String> = all.into_iter().filter(is_here).collect();
    for name in &all {
        let only = Options {
            controllers: name.parse().unwrap(),
            ..world.options()
        };
        assert_eq!(at_work(&world, only).await, BTreeSet::from([name.clone()]));
        let without = Options {
            controllers: format!("-{name}").parse().unwrap(),
            ..world.options()
        };
        let mut others = all.clone();
        others.remove(name);
        let mut active = at_work(&world, without).await;
        active.retain(is_here);
        assert_eq!(active, others, "without {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_waits_for_a_controller_that_is_switched_off() {
    let mut world = World::without_operator().await;
    world.start_operator_with("-agent").await;
    let pool = world.pool_of("lab", |_| ()).await;
    world.register(pool, Uuid::new_v4()).await;
    world.stop_operator().await;
    // This one calls out the host that registered before.
    let running = world.start_operator_with("-agent").await;
    running.idle().await;
    let text = running.metrics().await.unwrap();
    let waiting = "muster_operator_queue_length{controller=\"agent\"} 0";
    assert!(text.lines().any(|line| line == waiting), "{text}");
    assert!(world.agents().await.is_empty());
}

/// A write as it was sent.
struct Sent {
    method: Method,
    uri: String,
    body: Value,
}

/// Writes down every write that goes over a connection.
fn recorded(connection: Connection) -> (Connection, Arc<Mutex<Vec<Sent>>>) {
    let Connection { kube, requests } = connection;
    let namespace = kube.default_namespace().to_owned();
    let all = Arc::new(Mutex::new(Vec::new()));
    let written = all.clone();
    let through = tower::service_fn(move |request: http::Request<Body>| {
        let (kube, written) = (kube.clone(), written.clone());
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect_bytes().await.unwrap();
            if parts.method != Method::GET {
                written.lock().unwrap().push(Sent {
                    method: parts.method.clone(),
                    uri: parts.uri.to_string(),
                    body: serde_json::from_slice(&bytes).unwrap_or_default(),
                });
            }
            kube.send(http::Request::from_parts(parts, Body::from(bytes.to_vec())))
                .await
        }
    });
    let kube = kube::Client::new(through, namespace);
    (Connection { kube, requests }, all)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_names_its_writer_and_lists_are_replaced_only_as_they_were_read() {
    let mut world = World::without_operator().await;
    let (connection, sent) = recorded(world.server.connection().await);
    let options = Options {
        election: Election::On {
            namespace: Some(world.pool.clone()),
            terms: Terms::default(),
        },
        ..world.options()
    };
    let operator = run_over(options, connection);
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_host(pool).await;
    world.describe("blue", one_host()).await;
    world.approve(&host).await;
    world.want(&host, Some("blue")).await.unwrap();
    world.install_in("blue", "adding-hosts").await;
    world.want(&host, None).await.unwrap();
    world
        .agent_when(&host, "on its way back", |agent| {
            says(agent, "Bound").0 == "False"
        })
        .await;
    operator.stop().await;
    let sent = sent.lock().unwrap();
    let kinds: BTreeSet<_> = sent
        .iter()
        .map(|one| {
            let path = one.uri.split('?').next().unwrap_or_default();
            let words: Vec<_> = path.split('/').collect();
            let place = words.iter().position(|word| *word == "namespaces");
            place
                .and_then(|place| words.get(place + 2))
                .copied()
                .unwrap_or_default()
        })
        .collect();
    for kind in ["agents", "infraenvs", "leases", "secrets", "agentclusterinstalls"] {
        assert!(kinds.contains(kind), "nobody wrote {kind}: {kinds:?}");
    }
    for one in sent.iter().filter(|one| one.method != Method::DELETE) {
        // Events belong to whoever records them.
        let is_event = one.uri.contains("/events");
        assert!(
            is_event || one.uri.contains("fieldManager=muster-"),
            "{} {}",
            one.method,
            one.uri
        );
        let guarded = one.body["metadata"]["resourceVersion"].is_string();
        let replaces = one.method == Method::PATCH && has_list(&one.body);
        assert!(guarded || !replaces || is_event, "{} {}", one.uri, one.body);
    }
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(has_list),
        _ => false,
    }
}
