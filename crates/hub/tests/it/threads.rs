//! What follows from stored settings and reports is worked out on threads of its own, however small the request is.

use crate::door::{Door, V2};
use axum::http::{Method, StatusCode};
use futures_util::FutureExt;
use muster_contract::v2::infra_env::UpdateInfraEnv;
use muster_domain::{ClusterId, InfraEnvId};
use muster_hub::Hub;
use muster_hub::change::OpContext;
use muster_hub::threads::Threads;
use muster_hub::usecase::cluster_reconcile::cluster_reconcile;
use muster_hub::usecase::infra_env_update::infra_env_update;
use std::sync::mpsc::{Sender, channel};

/// Keeps all of these threads busy until the result is dropped.
async fn busy(hub: &Hub, which: fn(&Hub) -> &Threads) -> Vec<Sender<()>> {
    let (begun, mut begins) = tokio::sync::mpsc::channel(1);
    let mut all = Vec::new();
    for _ in 0..which(hub).count() {
        let (hub, begun) = (hub.clone(), begun.clone());
        let (end, ends) = channel();
        tokio::spawn(async move {
            let work = move || {
                begun.blocking_send(()).ok();
                ends.recv().ok()
            };
            which(&hub).run(work).await;
        });
        begins.recv().await.unwrap();
        all.push(end);
    }
    all
}

#[tokio::test]
async fn what_images_are_made_of_is_made_on_threads_of_their_own() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let busy = busy(&door.hub, |hub| &hub.image_threads).await;
    let files = [
        "files?file_name=discovery.ign",
        "files?file_name=static-network-config",
        "minimal-initrd",
    ]
    .map(|file| format!("{V2}/infra-envs/{pool}/downloads/{file}"));
    for file in &files {
        let asked = door.ask(Method::GET, file, None).now_or_never();
        assert!(asked.is_none(), "{file}");
    }
    let (nothing, opctx) = (UpdateInfraEnv::default(), OpContext::hub());
    let change = infra_env_update(&door.hub, InfraEnvId(pool), &nothing, &opctx);
    let mut change = std::pin::pin!(change);
    assert!(change.as_mut().now_or_never().is_none());
    let script = format!("{V2}/infra-envs/{pool}/downloads/files?file_name=ipxe-script");
    assert_eq!(door.ask(Method::GET, &script, None).await.status, StatusCode::OK);
    drop(busy);
    change.await.unwrap();
    for file in &files {
        assert!(
            door.ask(Method::GET, file, None).await.status.is_success(),
            "{file}"
        );
    }
}

#[tokio::test]
async fn looks_at_clusters_are_taken_on_threads_of_their_own() {
    let door = Door::open().await;
    let cluster = ClusterId(door.cluster("alpha").await);
    let busy = busy(&door.hub, |hub| &hub.reconcile_threads).await;
    let hub = door.hub.clone();
    let look = tokio::spawn(async move { cluster_reconcile(&hub, cluster).await });
    // All that a look reads would have been read many times.
    for _ in 0..50 {
        assert!(door.hub.store.find(cluster).await.unwrap().is_some());
    }
    assert!(!look.is_finished());
    drop(busy);
    assert!(look.await.unwrap().unwrap().is_some());
}
