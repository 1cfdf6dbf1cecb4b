//! Wakes up when the next host is due, not every few seconds for all of them.

use crate::Hub;
use crate::error::Error;
use crate::usecase::host_due::host_due;
use muster_domain::host::deadline;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Without anything on the agenda there is still the bell.
const IDLE: Duration = Duration::from_secs(3600);

pub async fn run(hub: Hub) {
    loop {
        let result = once(&hub).await.map(drop);
        hub.workers.note("deadlines", hub.now(), &result);
        let wait = if result.is_err() { Duration::from_secs(1) } else { pause(&hub) };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = hub.agenda.bell.notified() => {}
        }
    }
}

fn pause(hub: &Hub) -> Duration {
    match hub.agenda.next_micros() {
        Some(at) => Duration::from_micros(u64::try_from(at - hub.now().as_microsecond()).unwrap_or(0)),
        None => IDLE,
    }
}

/// Handles every host that is due now; says how many really were.
pub async fn once(hub: &Hub) -> Result<usize, Error> {
    let mut handled = 0;
    while let Some((at, key)) = hub.agenda.pop_due(hub.now().as_microsecond()) {
        let Some(slot) = hub.index.slot(key) else { continue };
        // A later wake-up replaced by an earlier one leaves its old entry behind.
        if slot.live.queued_micros.swap(i64::MAX, Ordering::Relaxed) > at {
            slot.live.queued_micros.store(i64::MAX, Ordering::Relaxed);
        }
        let host = slot.host();
        let cluster = host.cluster.and_then(|id| hub.index.cluster(id));
        let around = hub.around(cluster.as_deref(), hub.now());
        if deadline::of(&host, &around).is_some_and(|due| due <= around.now) {
            if seen_elsewhere(hub, &slot).await? {
                hub.remind(&slot);
                continue;
            }
            match host_due(hub, key).await {
                Ok(_) | Err(Error::Missing { .. }) => handled += 1,
                Err(error) => {
                    hub.agenda.add(at, key);
                    return Err(error);
                }
            }
        }
        hub.remind(&slot);
    }
    Ok(handled)
}

/// With several hubs on one database, the agent may have asked another one.
async fn seen_elsewhere(hub: &Hub, slot: &crate::index::Slot) -> Result<bool, Error> {
    if hub.settings.database != "postgresql" {
        return Ok(false);
    }
    let before = slot.live.seen();
    match hub.store.checkin_find(slot.row().key()).await? {
        Some((at, _)) if at > before => {
            slot.live.excuse(at);
            Ok(true)
        }
        _ => Ok(false),
    }
}
