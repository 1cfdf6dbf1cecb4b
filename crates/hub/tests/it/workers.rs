//! What one object fails at keeps the workers from nobody else.

use crate::door::{Door, V2};
use crate::place::Place;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_hub::worker::{deadlines, reconcile};
use muster_hub::{Clock, Hub};
use std::time::Duration;
use uuid::Uuid;

/// So many that it matters in which order they come.
const MANY: u8 = 8;

async fn open() -> Door {
    let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
    Door::at(Place::new().await, clock).await
}

/// A copy in memory that no commit can be based on, and that nothing corrects.
fn break_cluster(hub: &Hub, id: ClusterId) {
    let mut row = muster_domain::cluster::Cluster::clone(&hub.index.cluster(id).unwrap());
    row.revision = 999;
    row.validations.clear();
    hub.index.put(row.into());
}

async fn mend_cluster(hub: &Hub, id: ClusterId) {
    hub.index.remove(id.into(), hub.now());
    hub.reload(id.into()).await.unwrap();
}

#[tokio::test]
async fn a_cluster_whose_look_fails_keeps_no_other_waiting_and_is_tried_again_later_each_time() {
    let door = open().await;
    let hub = &door.hub;
    let mut clusters = Vec::new();
    for number in 0..MANY {
        clusters.push(ClusterId(door.cluster(&format!("cluster-{number}")).await));
    }
    door.settle().await;
    break_cluster(hub, clusters[0]);
    clusters.iter().for_each(|id| hub.mark_dirty(*id));
    let failed = reconcile::once(hub).await.unwrap_err().to_string();
    assert!(
        failed.contains("cluster-0") && failed.contains(&clusters[0].to_string()),
        "{failed}"
    );
    assert_eq!(hub.clusters_to_reconcile(), 1, "all the others were looked at");
    for pause in [1, 2, 4] {
        assert_eq!(reconcile::once(hub).await.unwrap(), 0, "it rests");
        hub.clock.advance(SignedDuration::from_secs(pause));
        reconcile::once(hub).await.unwrap_err();
    }
    // A read is answered with what there is.
    let path = format!("{V2}/clusters/{}", clusters[0]);
    assert_eq!(door.get(&path).await.status, StatusCode::OK);
    mend_cluster(hub, clusters[0]).await;
    hub.clock.advance(SignedDuration::from_secs(8));
    assert_eq!(reconcile::once(hub).await.unwrap(), 1);
    assert_eq!(hub.clusters_to_reconcile(), 0);
}

#[tokio::test]
async fn a_cluster_whose_reader_failed_to_look_at_it_is_looked_at_by_the_worker() {
    let door = open().await;
    let hub = &door.hub;
    let id = ClusterId(door.cluster("alpha").await);
    door.settle().await;
    break_cluster(hub, id);
    let worker = tokio::spawn(reconcile::run(hub.clone()));
    // Taken before the worker wakes up, which therefore finds nothing to do.
    hub.mark_dirty(id);
    reconcile::catch_up(hub, id).await.unwrap_err();
    mend_cluster(hub, id).await;
    hub.clock.advance(SignedDuration::from_secs(2));
    let looked_at = async {
        while hub.clusters_to_reconcile() > 0 {
            tokio::task::yield_now().await;
        }
    };
    // By itself the worker stirs once a minute.
    tokio::time::timeout(Duration::from_secs(30), looked_at)
        .await
        .unwrap();
    worker.abort();
}

#[tokio::test]
async fn a_worker_shows_which_cluster_it_fails_at() {
    let door = open().await;
    let id = ClusterId(door.cluster("alpha").await);
    door.settle().await;
    break_cluster(&door.hub, id);
    door.hub.mark_dirty(id);
    let worker = tokio::spawn(reconcile::run(door.hub.clone()));
    let shown = async {
        loop {
            let status = door.get("/api/muster/v1/status").await;
            if status.text.contains("cluster alpha") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), shown)
        .await
        .unwrap();
    worker.abort();
}

#[tokio::test]
async fn a_host_whose_deadline_cannot_be_handled_keeps_no_other_waiting() {
    let door = open().await;
    let hub = &door.hub;
    let pool = door.infra_env("pool").await;
    let mut hosts: Vec<Uuid> = Vec::new();
    for number in 1..=MANY {
        hosts.push(door.worker(pool, number).await);
    }
    let infra_env = InfraEnvId(pool);
    let key = HostKey {
        infra_env,
        host: HostId(hosts[0]),
    };
    let mut broken = hub.index.host(key).unwrap();
    broken.revision = 999;
    hub.index.put(broken.into());
    hub.clock.advance(SignedDuration::from_mins(4));
    let failed = deadlines::once(hub).await.unwrap_err().to_string();
    assert!(failed.contains(&key.to_string()), "{failed}");
    for host in &hosts[1..] {
        assert_eq!(door.status(pool, *host).await, "disconnected-unbound");
    }
    assert_eq!(deadlines::once(hub).await.unwrap(), 0, "it rests");
    hub.index.remove(key.into(), hub.now());
    hub.reload(key.into()).await.unwrap();
    hub.clock.advance(SignedDuration::from_secs(2));
    assert!(deadlines::once(hub).await.unwrap() > 0);
    assert_eq!(door.status(pool, hosts[0]).await, "disconnected-unbound");
}
