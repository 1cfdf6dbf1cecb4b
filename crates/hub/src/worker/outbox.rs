//! Carries out what decisions promised; each effect may run twice and is done once.

use super::pass::{Failed, Pass};
use crate::Hub;
use crate::error::Error;
use crate::usecase::cluster_files::{files_drop, files_make};
use crate::usecase::host_bind::finish_move;
use jiff::SignedDuration;
use muster_domain::host::Effect;
use muster_store::{Commit, OutboxItem, OutboxRetry};
use std::collections::HashMap;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};

const BATCH: u32 = 1_000;
/// Nothing rings when a retry comes due, so the workers poll as well.
const POLL: Duration = Duration::from_secs(5);
/// Files made at the same time: each is a program that needs a core.
const FILES_AT_ONCE: usize = 4;

/// Does at once what can be done at once.
pub async fn run(hub: Hub) {
    loop {
        hub.workers.begins("outbox");
        let result = pass(&hub, false).await.map(drop);
        hub.workers.note("outbox", hub.now(), &result);
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = hub.outbox_bell.notified() => {}
        }
    }
}

/// Makes the files of installations, which takes minutes: nobody else waits for them.
pub async fn run_files(hub: Hub) {
    let mut jobs = JoinSet::new();
    let mut under_way = UnderWay::new();
    loop {
        hub.workers.begins("files");
        let result = start_files(&hub, &mut jobs, &mut under_way).await;
        hub.workers.note("files", hub.now(), &result);
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = hub.files_bell.notified() => {}
            Some(done) = jobs.join_next_with_id() => {
                let result = match done {
                    Ok((task, result)) => {
                        under_way.remove(&task);
                        result
                    }
                    Err(error) => ended_badly(&hub, under_way.remove(&error.id()), &error).await,
                };
                hub.workers.note("files", hub.now(), &result);
            }
        }
    }
}

/// Which task works on which order.
type UnderWay = HashMap<tokio::task::Id, OutboxItem>;

async fn start_files(
    hub: &Hub,
    jobs: &mut JoinSet<Result<(), Error>>,
    under_way: &mut UnderWay,
) -> Result<(), Error> {
    for job in due(hub, true).await? {
        if under_way.len() >= FILES_AT_ONCE {
            break;
        }
        if under_way.values().all(|other| other.id != job.id) {
            let (hub, order) = (hub.clone(), job.clone());
            let task = jobs.spawn(async move { carry_out(&hub, &order).await });
            under_way.insert(task.id(), job);
        }
    }
    Ok(())
}

/// A panic is our mistake: it is tried again later, and takes nobody's place meanwhile.
async fn ended_badly(hub: &Hub, job: Option<OutboxItem>, error: &JoinError) -> Result<(), Error> {
    tracing::error!(%error, "making files failed");
    match job {
        Some(job) => finish(hub, &job, Err(Error::BadReport(error.to_string()))).await,
        None => Ok(()),
    }
}

/// What was ordered and fails is tried again later; what cannot even be noted down is still an order.
async fn pass(hub: &Hub, slow: bool) -> Result<usize, Failed> {
    let mut pass = Pass::default();
    let jobs = due(hub, slow).await.unwrap_or_else(|error| {
        pass.note("the list of orders", Err(error));
        Vec::new()
    });
    for job in &jobs {
        let done = carry_out(hub, job).await.map(|()| true);
        pass.note(format_args!("order {}", job.id), done);
        if pass.is_hopeless() {
            break;
        }
    }
    pass.end()
}

/// Everything, in its order: what a simulation calls.
pub async fn once(hub: &Hub) -> Result<usize, Failed> {
    Ok(pass(hub, true).await? + pass(hub, false).await?)
}

async fn due(hub: &Hub, slow: bool) -> Result<Vec<OutboxItem>, Error> {
    let mut jobs = hub.store.outbox_due(hub.now(), BATCH).await?;
    jobs.retain(|job| is_slow(&job.effect) == slow);
    Ok(jobs)
}

fn is_slow(effect: &Effect) -> bool {
    match effect {
        Effect::MakeFiles { .. } => true,
        Effect::FinishMove { .. } | Effect::DropFiles { .. } => false,
    }
}

async fn carry_out(hub: &Hub, job: &OutboxItem) -> Result<(), Error> {
    let result = perform(hub, &job.effect).await;
    finish(hub, job, result).await
}

async fn perform(hub: &Hub, effect: &Effect) -> Result<(), Error> {
    match effect {
        Effect::FinishMove { host, to } => match finish_move(hub, *host, *to).await {
            Ok(_) | Err(Error::Missing { .. }) => Ok(()),
            Err(error) => Err(error),
        },
        Effect::MakeFiles { cluster, attempt } => files_make(hub, *cluster, *attempt).await,
        Effect::DropFiles { cluster } => files_drop(hub, *cluster).await,
    }
}

async fn finish(hub: &Hub, job: &OutboxItem, result: Result<(), Error>) -> Result<(), Error> {
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
    hub.commit(commit, true).await?;
    Ok(())
}
