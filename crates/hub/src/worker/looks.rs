//! Looks at clusters in which something changed; many changes make one look.

use crate::Hub;
use crate::error::Error;
use crate::usecase::cluster_look::cluster_look;
use crate::worker::PULSE;
use muster_domain::ClusterId;
use std::time::{Duration, Instant};

/// Nobody should wait longer than this for a look that could begin.
const LONGEST_REST: Duration = Duration::from_secs(1);

pub async fn run(hub: Hub) {
    loop {
        let started = Instant::now();
        hub.workers.begins("cluster-looks", hub.now());
        let result = once(&hub).await.map(drop);
        hub.workers.note("cluster-looks", hub.now(), &result);
        // Looks at large clusters take an eighth of the time at most: what changes meanwhile waits for one look.
        let rest = if result.is_err() {
            Duration::from_secs(1)
        } else {
            (started.elapsed() * 7).min(LONGEST_REST)
        };
        tokio::time::sleep(rest).await;
        tokio::select! {
            () = hub.dirty_bell.notified() => {}
            () = tokio::time::sleep(PULSE) => {}
        }
    }
}

/// Every cluster is looked at: which ones were in hand is not known any more.
pub fn plan_anew(hub: &Hub) {
    hub.looked();
    hub.index
        .clusters()
        .iter()
        .for_each(|cluster| hub.mark_dirty(cluster.id));
}

pub async fn once(hub: &Hub) -> Result<usize, Error> {
    let clusters = hub.take_dirty();
    let done = all(hub, &clusters).await;
    hub.looked();
    done.map(|()| clusters.len())
}

async fn all(hub: &Hub, clusters: &[ClusterId]) -> Result<(), Error> {
    let mut pending = clusters.iter();
    while let Some(id) = pending.next() {
        if let Err(error) = cluster_look(hub, *id).await {
            // Nothing is forgotten: this one and the rest are looked at again.
            hub.mark_dirty(*id);
            pending.for_each(|id| hub.mark_dirty(*id));
            return Err(error);
        }
    }
    Ok(())
}
