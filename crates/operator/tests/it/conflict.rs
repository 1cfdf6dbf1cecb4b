//! Others who write the same objects at the same moment.

use crate::described::three_hosts;
use crate::killed::{deeds, lend_install_and_return, once};
use crate::lent::{says, state, word};
use crate::world::{House, Server, World, run_over};
use http::Method;
use kube::api::DynamicObject;
use kube::client::Body;
use muster_operator::Connection;
use muster_operator::crd::ClusterDeployment;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;
use uuid::Uuid;

/// Somebody who is often a moment faster: of three changes that the operator makes, two come after another one, so
/// that the API server answers with a conflict where the operator guards what it has read.
struct Rival {
    admin: kube::Client,
    patches: AtomicU64,
}

impl Rival {
    fn over(self: &Arc<Self>, connection: Connection) -> Connection {
        let Connection { kube, requests } = connection;
        let namespace = kube.default_namespace().to_owned();
        let rival = self.clone();
        let through = tower::service_fn(move |request: http::Request<Body>| {
            let (kube, rival) = (kube.clone(), rival.clone());
            async move {
                if request.method() == Method::PATCH {
                    rival.be_faster(request.uri().path()).await;
                }
                kube.send(request).await
            }
        });
        Connection {
            kube: kube::Client::new(through, namespace),
            requests,
        }
    }

    async fn be_faster(&self, path: &str) {
        let turn = self.patches.fetch_add(1, Ordering::SeqCst);
        if turn % 3 == 2 {
            return;
        }
        let object = path.strip_suffix("/status").unwrap_or(path);
        let body = json!({ "metadata": { "annotations": { "example.com/rival": turn.to_string() } } });
        let request = http::Request::patch(object)
            .header("content-type", "application/merge-patch+json")
            .body(body.to_string().into_bytes())
            .unwrap();
        self.admin.request::<DynamicObject>(request).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_no_failures_and_nobody_hears_of_them() {
    let mut world = World::without_operator().await;
    let rival = Arc::new(Rival {
        admin: world.kube.clone(),
        patches: AtomicU64::new(0),
    });
    let running = run_over(world.options(), rival.over(world.server.connection().await));
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_host(pool).await;
    world.new_cluster("blue", |_| ()).await;
    world
        .change_agent(
            &host,
            json!({ "spec": { "approved": true, "hostname": "kept-by-people" } }),
        )
        .await
        .unwrap();
    world.want(&host, Some("blue")).await.unwrap();
    let agent = world
        .agent_when(&host, "bound and synced", |agent| {
            assert_ne!(
                says(agent, "SpecSynced").1,
                "BackendError",
                "a conflict is nothing to tell people"
            );
            state(agent) == "known" && says(agent, "SpecSynced") == word("True", "SyncOK")
        })
        .await;
    assert_eq!(agent.spec.hostname, "kept-by-people");
    running.idle().await;
    let metrics = running.metrics().await.unwrap();
    let sum = |what: &str| -> f64 {
        let lines = metrics.lines().filter(|line| line.starts_with(what));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    };
    assert!(
        sum("muster_operator_reconcile_conflicts_total") > 0.0,
        "nothing was tried"
    );
    assert_eq!(sum("muster_operator_reconcile_failures_total"), 0.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_rival_all_the_way_nothing_is_done_twice_and_nothing_is_lost() {
    let namespace = format!("rival-{}", Uuid::new_v4().simple());
    let house = House::open().await;
    let mut world = World::at(Server::shared(), house, (namespace.clone(), namespace)).await;
    let rival = Arc::new(Rival {
        admin: world.kube.clone(),
        patches: AtomicU64::new(0),
    });
    let running = run_over(world.options(), rival.over(world.server.connection().await));
    let ids = lend_install_and_return(&mut world, "blue").await;
    assert_eq!(deeds(&world, &ids).await, once());
    let agent = world.agent(&ids.host.to_string()).await;
    assert_eq!(
        (&*agent.spec.hostname, agent.spec.approved),
        ("kept-by-people", true)
    );
    running.idle().await;
    running.stop().await;
}

/// Holds up the first time that an Agent is set free, until somebody lets it go on.
#[derive(Default)]
struct Held {
    /// The Agent's name.
    whose: watch::Sender<Option<String>>,
    goes_on: watch::Sender<bool>,
}

impl Held {
    fn over(self: &Arc<Self>, connection: Connection) -> Connection {
        let Connection { kube, requests } = connection;
        let namespace = kube.default_namespace().to_owned();
        let held = self.clone();
        let through = tower::service_fn(move |request: http::Request<Body>| {
            let (kube, held) = (kube.clone(), held.clone());
            async move { kube.send(held.inspect(request).await).await }
        });
        Connection {
            kube: kube::Client::new(through, namespace),
            requests,
        }
    }

    async fn inspect(&self, request: http::Request<Body>) -> http::Request<Body> {
        let agent = request.uri().path().rsplit_once("/agents/");
        let Some((_, agent)) = agent.filter(|_| request.method() == Method::PATCH) else {
            return request;
        };
        let agent = agent.to_owned();
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let frees = String::from_utf8_lossy(&body).contains(r#""clusterDeploymentName":null"#);
        let is_first = frees
            && self
                .whose
                .send_if_modified(|whose| whose.replace(agent).is_none());
        if is_first {
            self.goes_on.subscribe().wait_for(|goes| *goes).await.unwrap();
        }
        http::Request::from_parts(head, Body::from(body.to_vec()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_lent_elsewhere_while_its_cluster_goes_is_not_set_free() {
    let mut world = World::without_operator().await;
    let held = Arc::new(Held::default());
    let running = run_over(world.options(), held.over(world.server.connection().await));
    let pool = world.pool_of("lab", |_| ()).await;
    world.describe("blue", three_hosts()).await;
    let green = world.new_cluster("green", |_| ()).await;
    let hosts = world.free_hosts(pool, 2).await;
    for host in &hosts {
        world.want(host, Some("blue")).await.unwrap();
        lent(&world, host, |to| to != green).await;
    }
    world.delete_deployment("blue").await;
    let first = {
        let mut whose = held.whose.subscribe();
        let whose = whose.wait_for(Option::is_some).await.unwrap();
        whose.clone().unwrap()
    };
    let other = hosts.iter().find(|host| **host != first).unwrap();
    world.want(other, Some("green")).await.unwrap();
    // The operator has noticed it: the hub has the change.
    lent(&world, other, |to| to == green).await;
    held.goes_on.send_replace(true);
    world.gone::<ClusterDeployment>(&world.clusters, "blue").await;
    world.agent_in(&first, "known-unbound").await;
    running.idle().await;
    let agent = world.agent(other).await;
    let cluster = agent.spec.cluster_deployment_name.unwrap();
    assert_eq!(cluster.name, "green");
    lent(&world, other, |to| to == green).await;
    running.stop().await;
}

async fn lent(world: &World, host: &str, to: impl Fn(Uuid) -> bool) {
    world
        .until("the hub has the host in the cluster", async || {
            let rows = world.hub.host_rows(host.parse().unwrap()).await.unwrap();
            rows.hosts[0].host.cluster_id.is_some_and(&to)
        })
        .await;
}
