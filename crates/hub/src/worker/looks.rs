//! Looks at clusters in which something changed; many changes make one look.

use super::pass::{Failed, Pass};
use crate::Hub;
use crate::behind::Look;
use crate::error::Error;
use crate::usecase::cluster_reconcile::cluster_reconcile;
use crate::worker::PULSE;
use muster_domain::ClusterId;
use std::time::{Duration, Instant};

/// Nobody should wait longer than this for a look that could begin.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// A cluster whose rest is over may be in somebody else's hands.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);

pub async fn run(hub: Hub) {
    loop {
        let started = Instant::now();
        hub.workers.begins("cluster-looks");
        let result = once(&hub).await.map(drop);
        hub.workers.note("cluster-looks", hub.now(), &result);
        // Looks at large clusters take an eighth of the time at most: what changes meanwhile waits for one look.
        let rest = if result.is_err() {
            Duration::from_secs(1)
        } else {
            (started.elapsed() * 7).min(LONGEST_REST)
        };
        tokio::time::sleep(rest).await;
        let retry = hub.behind.rests.next(hub.now()).unwrap_or(PULSE);
        tokio::select! {
            () = hub.behind.bell.notified() => {}
            () = tokio::time::sleep(retry.clamp(SHORTEST_RETRY, PULSE)) => {}
        }
    }
}

/// Every cluster is looked at: which ones were in hand is not known any more.
pub fn plan_anew(hub: &Hub) {
    hub.index
        .clusters()
        .iter()
        .for_each(|cluster| hub.mark_dirty(cluster.id));
}

/// Looks at every cluster that is behind. One that fails does not keep the others, and rests before it is tried again.
pub async fn once(hub: &Hub) -> Result<usize, Failed> {
    let mut pass = Pass::default();
    for id in hub.behind.due(hub.now()) {
        let looked = catch_up(hub, id).await;
        pass.note(named(hub, id), looked);
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

/// One look at a cluster, if something changed since the last one began. Whoever looks at it already is waited for.
pub async fn catch_up(hub: &Hub, id: ClusterId) -> Result<bool, Error> {
    let gate = hub.behind.gate(id);
    let _turn = gate.lock().await;
    // Whoever had the turn before failed at it a moment ago: those who queue need not try that one after the other.
    if hub.behind.rests.is_resting(&id, hub.now()) {
        return Ok(false);
    }
    let Some(look) = Look::begin(hub, id) else {
        return Ok(false);
    };
    match cluster_reconcile(hub, id).await {
        Ok(Some(_)) => look.worked(),
        Ok(None) => {
            look.worked();
            hub.behind.forget(id);
        }
        Err(error) => {
            look.failed(&error);
            return Err(error);
        }
    }
    Ok(true)
}
