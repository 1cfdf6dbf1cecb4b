//! Wakes up when the next host is due, not every few seconds for all of them.

use super::pass::{Failed, Pass};
use crate::Hub;
use crate::error::Error;
use crate::index::Slot;
use crate::usecase::host_due::host_due;
use crate::worker::PULSE;
use futures_util::stream::{self, StreamExt};
use muster_domain::HostKey;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A whole rack may fall silent at once: so many share a wait for the disk.
const TOGETHER: usize = 64;

pub async fn run(hub: Hub) {
    loop {
        hub.workers.begins("deadlines");
        let result = once(&hub).await.map(drop);
        hub.workers.note("deadlines", hub.now(), &result);
        let wait = if result.is_err() {
            Duration::from_secs(1)
        } else {
            pause(&hub)
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = hub.agenda.bell.notified() => {}
        }
    }
}

fn pause(hub: &Hub) -> Duration {
    match hub.agenda.next_micros() {
        Some(at) => {
            let wait = u64::try_from(at - hub.now().as_microsecond()).unwrap_or(0);
            Duration::from_micros(wait).min(PULSE)
        }
        // Without anything on the agenda there is still the bell.
        None => PULSE,
    }
}

/// Every host's next deadline: what was taken in hand is not on the agenda any more.
pub fn plan_anew(hub: &Hub) {
    for slot in hub.index.keys().into_iter().filter_map(|key| hub.index.slot(key)) {
        slot.live.queued_micros.store(i64::MAX, Ordering::Relaxed);
        hub.remind_of_host(&slot);
    }
}

/// Handles every host that is due now; says how many really were. One that fails keeps nobody else.
pub async fn once(hub: &Hub) -> Result<usize, Failed> {
    // When everything fails nothing new is begun, and what is under way ends.
    let hopeless = AtomicBool::new(false);
    let due = std::iter::from_fn(|| match hopeless.load(Ordering::Relaxed) {
        true => None,
        false => hub.agenda.pop_due(hub.now().as_microsecond()),
    });
    let mut turns = stream::iter(due)
        .map(|(_, key)| async move { (key, turn(hub, key).await) })
        .buffer_unordered(TOGETHER);
    let mut pass = Pass::default();
    while let Some((key, done)) = turns.next().await {
        pass.note(format_args!("host {key}"), done);
        hopeless.store(pass.is_hopeless(), Ordering::Relaxed);
    }
    pass.end()
}

/// One host whose time may have come; `false` when it had not. After a failure it is tried again later.
async fn turn(hub: &Hub, key: HostKey) -> Result<bool, Error> {
    let Some(slot) = hub.index.slot(key) else {
        hub.resting.hosts.worked(&key);
        return Ok(false);
    };
    // Whatever else woke it: when it has rested is on the agenda.
    if hub.resting.hosts.is_resting(&key, hub.now()) {
        return Ok(false);
    }
    slot.live.queued_micros.store(i64::MAX, Ordering::Relaxed);
    let done = due(hub, &slot, key).await;
    match &done {
        Ok(_) => {
            hub.resting.hosts.worked(&key);
            hub.remind_of_host(&slot);
        }
        Err(error) => {
            let again = hub.resting.hosts.failed(key, hub.now(), error);
            hub.agenda.add(again.as_microsecond(), key);
        }
    }
    done
}

async fn due(hub: &Hub, slot: &Slot, key: HostKey) -> Result<bool, Error> {
    let is_due = hub.due_at(&slot.host()).is_some_and(|due| due <= hub.now());
    if !is_due || polled_elsewhere(hub, slot).await? {
        return Ok(false);
    }
    match host_due(hub, key).await {
        Ok(_) | Err(Error::Missing { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// With several hubs on one database, the agent may have asked another one.
async fn polled_elsewhere(hub: &Hub, slot: &Slot) -> Result<bool, Error> {
    if !hub.shares_database() {
        return Ok(false);
    }
    let before = slot.live.last_poll();
    match hub.store.checkin_find(slot.row().key()).await? {
        Some((at, _)) if at > before => {
            slot.live.excuse(at);
            Ok(true)
        }
        _ => Ok(false),
    }
}
