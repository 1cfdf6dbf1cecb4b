//! Reconciles clusters in which something changed; many changes make one run.

use super::pass::{Failed, Pass};
use crate::Hub;
use crate::error::Error;
use crate::stale_clusters::Reconciling;
use crate::usecase::cluster_reconcile::cluster_reconcile;
use crate::worker::PULSE;
use muster_domain::ClusterId;
use std::time::{Duration, Instant};

/// Nobody should wait longer than this for a run that could begin.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// A cluster whose rest is over may be in somebody else's hands.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);

pub async fn run(hub: Hub) {
    loop {
        let started = Instant::now();
        hub.workers.begins("reconcile");
        let result = once(&hub).await.map(drop);
        hub.workers.note("reconcile", hub.now(), &result);
        // Runs for large clusters take an eighth of the time at most: what changes meanwhile waits for one run.
        let rest = if result.is_err() {
            Duration::from_secs(1)
        } else {
            (started.elapsed() * 7).min(LONGEST_REST)
        };
        tokio::time::sleep(rest).await;
        let retry = hub.stale_clusters.rests.next(hub.now()).unwrap_or(PULSE);
        tokio::select! {
            () = hub.stale_clusters.bell.notified() => {}
            () = tokio::time::sleep(retry.clamp(SHORTEST_RETRY, PULSE)) => {}
        }
    }
}

/// Reconciles every cluster: nobody knows any more which runs were under way.
pub fn plan_anew(hub: &Hub) {
    hub.index
        .clusters()
        .iter()
        .for_each(|cluster| hub.mark_dirty(cluster.id));
}

/// Reconciles every cluster that is due. One that fails does not keep the others, and rests before it is tried again.
pub async fn once(hub: &Hub) -> Result<usize, Failed> {
    let mut pass = Pass::default();
    for id in hub.stale_clusters.due(hub.now()) {
        let done = catch_up(hub, id).await;
        pass.note(named(hub, id), done);
        if pass.is_hopeless() {
            break;
        }
    }
    pass.end()
}

fn named(hub: &Hub, id: ClusterId) -> String {
    match hub.index.cluster(id) {
        Some(cluster) => format!("cluster {} ({id})", cluster.name),
        None => format!("cluster {id}"),
    }
}

/// One run for a cluster, if something changed since the last one began. Waits for whoever reconciles it already.
pub async fn catch_up(hub: &Hub, id: ClusterId) -> Result<bool, Error> {
    let gate = hub.stale_clusters.gate(id);
    let _turn = gate.lock().await;
    // Whoever had the turn before failed at it a moment ago: those who queue need not try that one after the other.
    if hub.stale_clusters.rests.is_resting(&id, hub.now()) {
        return Ok(false);
    }
    let Some(run) = Reconciling::begin(hub, id) else {
        return Ok(false);
    };
    match cluster_reconcile(hub, id).await {
        Ok(Some(_)) => run.worked(),
        Ok(None) => {
            run.worked();
            hub.stale_clusters.forget(id);
        }
        Err(error) => {
            run.failed(&error);
            return Err(error);
        }
    }
    Ok(true)
}
