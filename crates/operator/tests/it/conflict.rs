//! Others who write the same objects at the same moment.

use crate::lent::{says, state, word};
use crate::world::{World, run_over};
use http::Method;
use kube::api::DynamicObject;
use kube::client::Body;
use muster_operator::Connection;

use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Somebody who is often a moment faster: of three changes that the operator makes, two come after another one, so that
/// the API server answers with a conflict where the operator guards what it has seen.
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
        sum("muster_operator_look_conflicts_total") > 0.0,
        "nothing was tried"
    );
    assert_eq!(sum("muster_operator_look_failures_total"), 0.0);
    running.stop().await;
}
