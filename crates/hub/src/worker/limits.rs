//! Wakes up when a cluster's time is over: an installation that takes too long ends with a reason.

use crate::Hub;
use crate::error::Error;
use crate::turn::Ask;
use muster_domain::ClusterId;
use muster_domain::cluster::{Event, deadline, lifecycle};
use std::time::Duration;

/// Without anything on the agenda there is still the bell.
const IDLE: Duration = Duration::from_secs(3600);

pub async fn run(hub: Hub) {
    loop {
        let result = once(&hub).await.map(drop);
        hub.workers.note("limits", hub.now(), &result);
        let wait = match (&result, hub.cluster_agenda.next_micros()) {
            (Err(_), _) => Duration::from_secs(1),
            (Ok(()), Some(at)) => {
                Duration::from_micros(u64::try_from(at - hub.now().as_microsecond()).unwrap_or(0))
            }
            (Ok(()), None) => IDLE,
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = hub.cluster_agenda.bell.notified() => {}
        }
    }
}

/// Handles every cluster that is due now; says how many really were.
pub async fn once(hub: &Hub) -> Result<usize, Error> {
    let mut handled = 0;
    while let Some((at, id)) = hub.cluster_agenda.pop_due(hub.now().as_microsecond()) {
        match due(hub, id).await {
            Ok(was_due) => handled += usize::from(was_due),
            Err(error) => {
                hub.cluster_agenda.add(at, id);
                return Err(error);
            }
        }
    }
    Ok(handled)
}

/// The agenda may name a time that is not true any more; the cluster itself knows.
async fn due(hub: &Hub, id: ClusterId) -> Result<bool, Error> {
    let is_due = |now| {
        let cluster = hub.index.cluster(id)?;
        Some(deadline::of(&cluster, &hub.settings.cluster_timers)? <= now)
    };
    if is_due(hub.now()) != Some(true) {
        return Ok(false);
    }
    let done = hub
        .cluster_turn(id, &Ask::hub(), |cluster| {
            let decision = lifecycle::next(cluster, &Event::Due, hub.cluster_around())?;
            Ok((decision, Vec::new()))
        })
        .await;
    match done {
        Ok(_) | Err(Error::Missing { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}
