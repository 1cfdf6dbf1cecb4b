//! Wakes up when a cluster's time is over: an installation that takes too long ends with a reason.

use super::pass::{Failed, Pass};
use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::worker::PULSE;
use muster_domain::ClusterId;
use muster_domain::cluster::{Event, deadline, lifecycle};
use std::time::Duration;

pub async fn run(hub: Hub) {
    loop {
        hub.workers.begins("limits");
        let result = once(&hub).await.map(drop);
        hub.workers.note("limits", hub.now(), &result);
        let wait = match (&result, hub.cluster_agenda.next_micros()) {
            (Err(_), _) => Duration::from_secs(1),
            (Ok(()), Some(at)) => {
                let wait = u64::try_from(at - hub.now().as_microsecond()).unwrap_or(0);
                Duration::from_micros(wait).min(PULSE)
            }
            // Without anything on the agenda there is still the bell.
            (Ok(()), None) => PULSE,
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = hub.cluster_agenda.bell.notified() => {}
        }
    }
}

/// Every cluster's next deadline: what was taken in hand is not on the agenda any more.
pub fn plan_anew(hub: &Hub) {
    for cluster in hub.index.clusters() {
        if let Some(due) = deadline::of(&cluster, &hub.settings.cluster_timers) {
            hub.cluster_agenda.add(due.as_microsecond(), cluster.id);
        }
    }
}

/// Handles every cluster that is due now; says how many really were. One that fails is tried again later, and keeps
/// nobody else.
pub async fn once(hub: &Hub) -> Result<usize, Failed> {
    let mut pass = Pass::default();
    while let Some((_, id)) = hub.cluster_agenda.pop_due(hub.now().as_microsecond()) {
        let done = due(hub, id).await;
        match &done {
            Ok(_) => hub.resting.limits.worked(&id),
            Err(error) => {
                let again = hub.resting.limits.failed(id, hub.now(), error);
                hub.cluster_agenda.add(again.as_microsecond(), id);
            }
        }
        pass.note(format_args!("cluster {id}"), done);
        if pass.is_hopeless() {
            break;
        }
    }
    pass.end()
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
        .change_cluster(id, &OpContext::hub(), |cluster| {
            let decision = lifecycle::next(cluster, &Event::Due, hub.cluster_around())?;
            Ok((decision, Vec::new()))
        })
        .await;
    match done {
        Ok(_) | Err(Error::Missing { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}
