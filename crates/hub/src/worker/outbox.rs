//! Carries out what decisions promised; each effect may run twice and is done once.

use crate::Hub;
use crate::error::Error;
use crate::turn::{Ask, Need};
use crate::usecase::cluster_files::{files_drop, files_make};
use crate::usecase::host_bind::host_bind;
use jiff::SignedDuration;
use muster_domain::host::{Effect, Event};
use muster_store::{Commit, OutboxItem, OutboxRetry};
use std::time::Duration;

const BATCH: u32 = 100;
/// Nothing rings when a retry comes due, so the worker looks by itself as well.
const LOOK: Duration = Duration::from_secs(5);

pub async fn run(hub: Hub) {
    loop {
        let result = once(&hub).await.map(drop);
        hub.workers.note("outbox", hub.now(), &result);
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = hub.outbox_bell.notified() => {}
        }
    }
}

pub async fn once(hub: &Hub) -> Result<usize, Error> {
    let jobs = hub.store.outbox_due(hub.now(), BATCH).await?;
    let count = jobs.len();
    for job in jobs {
        let result = perform(hub, &job.effect).await;
        settle(hub, &job, result).await?;
    }
    Ok(count)
}

async fn perform(hub: &Hub, effect: &Effect) -> Result<(), Error> {
    match effect {
        Effect::FinishMove { host, to } => {
            let still_wanted = hub
                .index
                .host(*host)
                .is_some_and(|known| known.moving_to == Some(*to));
            if !still_wanted {
                return Ok(());
            }
            hub.meet_cluster(*to).await?;
            match host_bind(hub, *host, *to, &Ask::hub()).await {
                Ok(_) | Err(Error::Missing { .. }) => Ok(()),
                Err(Error::Refused(refused)) => {
                    let event = Event::MoveAbandoned {
                        why: refused.to_string(),
                    };
                    hub.host_turn(*host, Need::Row, &Ask::hub(), |scene| {
                        Ok(scene.plain(scene.next(&event)?))
                    })
                    .await?;
                    Ok(())
                }
                Err(error) => Err(error),
            }
        }
        Effect::MakeFiles { cluster, attempt } => files_make(hub, *cluster, *attempt).await,
        Effect::DropFiles { cluster } => files_drop(hub, *cluster).await,
    }
}

async fn settle(hub: &Hub, job: &OutboxItem, result: Result<(), Error>) -> Result<(), Error> {
    let now = hub.now();
    let commit = match result {
        Ok(()) => Commit {
            outbox_done: vec![job.id],
            ..Commit::new(now)
        },
        Err(error) => {
            // 2, 4, 8 … seconds, five minutes at most.
            let pause = SignedDuration::from_secs((1_i64 << job.attempts.clamp(1, 9)).min(300));
            let retry = OutboxRetry {
                id: job.id,
                due_at: now + pause,
                error: error.to_string(),
            };
            Commit {
                outbox_retry: vec![retry],
                ..Commit::new(now)
            }
        }
    };
    hub.commit(commit, Vec::new()).await?;
    Ok(())
}
