//! The single writer: takes everything that waits into one transaction, so that one wait for the disk serves many.

use crate::batch;
use crate::checkins::{self, Checkin};
use crate::commit::{Commit, Committed};
use crate::line::{Line, within};
use crate::pulse::{self, Kind, Pulse};
use crate::uploads::{self, Piece};
use crate::{Store, StoreError, changes, events, shrink, tombstones};
use futures_util::FutureExt;
use jiff::Timestamp;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

/// Commits in one transaction: enough for every request in flight to share it, few enough to answer them soon.
const BATCH: usize = 256;

/// How soon a database that is gone is missed when nobody writes.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// Jobs that may wait; beyond it callers are held back at the door.
pub(crate) const QUEUE: usize = 1024;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(crate) enum Job {
    Commit(Box<Commit>, Reply<Committed>),
    Checkins(Vec<Checkin>, Reply<()>),
    Prune(Prune, Reply<u64>),
    /// Room of deleted rows is given back, a step of it.
    Shrink(Reply<u64>),
    /// Does a write work?
    Probe(Reply<()>),
    /// An upload goes on.
    Grow(Piece, Reply<()>),
    /// An upload was given up.
    Discard(Uuid),
    Close,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Prune {
    Tombstones { before: Timestamp },
    Changes { before: Timestamp },
    Events { before: Timestamp },
    Uploads { before: Timestamp },
}

impl Store {
    pub(crate) async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.inner
            .jobs
            .send(job(reply))
            .await
            .map_err(|_| StoreError::closed())?;
        answer.await.map_err(|_| StoreError::closed())?
    }

    /// Forgets hosts that were deleted before then. Gives how many.
    pub async fn tombstones_prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.ask(|reply| Job::Prune(Prune::Tombstones { before }, reply))
            .await
    }

    /// Cuts the feed's tail: whoever has not read that far must start over. Gives how many changes went.
    pub async fn changes_prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.all_of(Prune::Changes { before }).await
    }

    /// Forgets history from before then. Gives how many lines went.
    pub async fn events_prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.all_of(Prune::Events { before }).await
    }

    /// One batch after the other, and what others write in between.
    async fn all_of(&self, prune: Prune) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            match self.ask(|reply| Job::Prune(prune, reply)).await? {
                0 => return Ok(gone),
                more => gone += more,
            }
        }
    }
}

/// Runs until somebody closes it, or until nobody is left to ask.
pub(crate) async fn run(line: Line, mut queue: mpsc::Receiver<Job>, pulse: Arc<Pulse>) {
    let mut writer = Writer {
        line,
        pulse,
        has_shrunk: false,
    };
    let mut jobs = Vec::with_capacity(BATCH);
    while writer.wait(&mut queue, &mut jobs).await > 0 {
        let batch = std::mem::replace(&mut jobs, Vec::with_capacity(BATCH));
        if batch.iter().any(|job| matches!(job, Job::Close)) {
            queue.close();
        }
        // A mistake of ours costs those who are in this batch their answer, and its connection.
        if AssertUnwindSafe(writer.serve(batch))
            .catch_unwind()
            .await
            .is_err()
        {
            tracing::error!("the writer panicked over a batch and goes on with the next one");
        }
    }
    writer.line.close().await;
}

struct Writer {
    line: Line,
    pulse: Arc<Pulse>,
    /// Pages were let go, and the file is still as long as it was.
    has_shrunk: bool,
}

impl Writer {
    /// Until there is work or nobody is left to bring any. Probes the database meanwhile.
    async fn wait(&mut self, queue: &mut mpsc::Receiver<Job>, jobs: &mut Vec<Job>) -> usize {
        if !self.line.can_be_lost() {
            return queue.recv_many(jobs, BATCH).await;
        }
        loop {
            tokio::select! {
                biased;
                count = queue.recv_many(jobs, BATCH) => return count,
                () = tokio::time::sleep(PROBE_INTERVAL) => self.line.probe().await,
            }
        }
    }

    async fn serve(&mut self, jobs: Vec<Job>) {
        let (mut commits, mut discards) = (Vec::with_capacity(jobs.len()), Vec::new());
        let mut probes = Vec::new();
        for job in jobs {
            match job {
                Job::Commit(commit, reply) => commits.push((*commit, reply)),
                // Nobody hears the answer of a caller that went away; the work is done all the same.
                Job::Checkins(checkins, reply) => drop(reply.send(self.checkins(checkins).await)),
                Job::Prune(prune, reply) => drop(reply.send(self.prune(prune).await)),
                Job::Grow(piece, reply) => drop(reply.send(self.grow(piece).await)),
                Job::Shrink(reply) => drop(reply.send(self.shrink().await)),
                Job::Discard(content) => discards.push(content),
                Job::Probe(reply) => probes.push(reply),
                Job::Close => {}
            }
        }
        self.commits(commits).await;
        // After the commits: one of them may have taken over what its uploader let go of.
        for content in discards {
            self.discard(content).await;
        }
        self.answer(probes).await;
    }

    /// One write for all who ask; whoever has stopped waiting for it needs none.
    async fn answer(&mut self, mut probes: Vec<Reply<()>>) {
        probes.retain(|reply| !reply.is_closed());
        if probes.is_empty() {
            return;
        }
        let done = within(self.line.limit(), async {
            let mut turn = self.line.begin().await?;
            let done = pulse::probe(&mut turn).await;
            self.line.end(turn, done).await
        })
        .await;
        self.pulse.note(Kind::Probe, &done);
        for reply in probes {
            let _ = reply.send(done.clone());
        }
    }

    async fn commits(&mut self, commits: Vec<(Commit, Reply<Committed>)>) {
        let (commits, replies): (Vec<_>, Vec<_>) = commits.into_iter().unzip();
        if commits.is_empty() {
            return;
        }
        let answers = match self.transaction(&commits).await {
            Ok(answers) => answers,
            // A statement was refused: somebody's value is to blame, and the others must not suffer for it.
            Err(StoreError::Sql(_) | StoreError::Corrupt { .. }) if commits.len() > 1 => {
                self.one_by_one(&commits).await
            }
            Err(error) => {
                tracing::warn!(%error, commits = commits.len(), "could not write a batch");
                commits.iter().map(|_| Err(error.clone())).collect()
            }
        };
        for ((answer, commit), reply) in answers.into_iter().zip(commits).zip(replies) {
            let _ = reply.send(answer.map(|committed| committed.with(commit.puts)));
        }
    }

    async fn one_by_one(&mut self, commits: &[Commit]) -> Vec<Result<Committed, StoreError>> {
        let mut answers = Vec::with_capacity(commits.len());
        for commit in commits {
            let answer = self.transaction(std::slice::from_ref(commit)).await;
            answers.push(answer.and_then(|mut answers| answers.pop().expect("one commit has one answer")));
        }
        answers
    }

    async fn transaction(
        &mut self,
        commits: &[Commit],
    ) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
        let done = within(self.line.limit(), async {
            let mut turn = self.line.begin().await?;
            match batch::apply(&mut turn, commits).await {
                // Nothing to write.
                Ok(answers) if answers.iter().all(Result::is_err) => {
                    self.line.roll_back(turn).await;
                    Ok(answers)
                }
                done => self.line.end(turn, done).await,
            }
        })
        .await;
        // Where nothing was written, nothing was shown.
        if !matches!(&done, Ok(answers) if answers.iter().all(Result::is_err)) {
            self.pulse.note(Kind::Change, &done);
        }
        done
    }

    async fn checkins(&mut self, checkins: Vec<Checkin>) -> Result<(), StoreError> {
        within(self.line.limit(), async {
            let mut turn = self.line.begin().await?;
            let done = checkins::upsert(&mut turn, checkins).await;
            self.line.end(turn, done).await
        })
        .await
    }

    async fn grow(&mut self, piece: Piece) -> Result<(), StoreError> {
        within(self.line.limit(), async {
            let mut turn = self.line.begin().await?;
            let done = uploads::grow(&mut turn, piece).await;
            self.line.end(turn, done).await
        })
        .await
    }

    /// Nobody waits for the answer, and what is left over is pruned some day.
    async fn discard(&mut self, content: Uuid) {
        let done = within(self.line.limit(), async {
            let mut turn = self.line.begin().await?;
            let done = uploads::discard(&mut turn, content).await;
            self.line.end(turn, done).await
        });
        if let Err(error) = done.await {
            tracing::warn!(%error, "could not discard an abandoned upload");
        }
    }

    /// The file itself gets smaller when the log has been copied back.
    async fn shrink(&mut self) -> Result<u64, StoreError> {
        let mut turn = self.line.begin().await?;
        let done = shrink::step(&mut turn).await;
        let freed = self.line.end(turn, done).await?;
        if freed == 0 && std::mem::take(&mut self.has_shrunk) {
            self.line.copy_log_back().await?;
        }
        self.has_shrunk |= freed > 0;
        Ok(freed)
    }

    async fn prune(&mut self, prune: Prune) -> Result<u64, StoreError> {
        within(self.line.limit(), async {
            let mut turn = self.line.begin().await?;
            let gone = match prune {
                Prune::Tombstones { before } => tombstones::prune(&mut turn, before).await,
                Prune::Changes { before } => changes::prune(&mut turn, before).await,
                Prune::Events { before } => events::prune(&mut turn, before).await,
                Prune::Uploads { before } => uploads::prune(&mut turn, before).await,
            };
            self.line.end(turn, gone).await
        })
        .await
    }
}
