//! The single writer: takes everything that waits into one transaction, so that one wait for the disk serves many.

use crate::batch;
use crate::checkins::{self, Checkin};
use crate::commit::{Commit, Committed};
use crate::database::Dialect;
use crate::uploads::{self, Piece};
use crate::{Store, StoreError, changes, tombstones};
use jiff::Timestamp;
use sqlx::{AnyConnection, AnyPool};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

/// Commits in one transaction: enough for every request in flight to share it, few enough to answer them soon.
const BATCH: usize = 256;

/// Jobs that may wait; beyond it callers are held back at the door.
pub(crate) const QUEUE: usize = 1024;

/// Replicas on one PostgreSQL take turns under this number, so that the feed's order is the order of commits.
const TURN: i64 = 0x6d75_7374_6572;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(crate) enum Job {
    Commit(Box<Commit>, Reply<Committed>),
    Checkins(Vec<Checkin>, Reply<()>),
    Prune(Prune, Reply<u64>),
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
        self.ask(|reply| Job::Prune(Prune::Changes { before }, reply))
            .await
    }
}

/// Runs until it is told to close, or until nobody is left to ask.
pub(crate) async fn run(pool: AnyPool, dialect: Dialect, mut queue: mpsc::Receiver<Job>) {
    let writer = Writer { pool, dialect };
    let mut jobs = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut jobs, BATCH).await > 0 {
        let (mut commits, mut discards) = (Vec::with_capacity(jobs.len()), Vec::new());
        for job in jobs.drain(..) {
            match job {
                Job::Commit(commit, reply) => commits.push((*commit, reply)),
                // Nobody hears the answer of a caller that went away; the work is done all the same.
                Job::Checkins(checkins, reply) => drop(reply.send(writer.checkins(checkins).await)),
                Job::Prune(prune, reply) => drop(reply.send(writer.prune(prune).await)),
                Job::Grow(piece, reply) => drop(reply.send(writer.grow(piece).await)),
                Job::Discard(content) => {
                    discards.push(content);
                }
                Job::Close => queue.close(),
            }
        }
        writer.commits(commits).await;
        // After the commits: one of them may have taken over what its uploader let go of.
        for content in discards {
            writer.discard(content).await;
        }
    }
    writer.pool.close().await;
}

struct Writer {
    pool: AnyPool,
    dialect: Dialect,
}

impl Writer {
    async fn commits(&self, commits: Vec<(Commit, Reply<Committed>)>) {
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
                tracing::warn!(%error, commits = commits.len(), "a batch was not written");
                commits.iter().map(|_| Err(error.clone())).collect()
            }
        };
        for (answer, reply) in answers.into_iter().zip(replies) {
            let _ = reply.send(answer);
        }
    }

    async fn one_by_one(&self, commits: &[Commit]) -> Vec<Result<Committed, StoreError>> {
        let mut answers = Vec::with_capacity(commits.len());
        for commit in commits {
            let answer = self.transaction(std::slice::from_ref(commit)).await;
            answers.push(answer.and_then(|mut answers| answers.pop().expect("one commit has one answer")));
        }
        answers
    }

    async fn transaction(
        &self,
        commits: &[Commit],
    ) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
        let mut tx = self.pool.begin_with(self.dialect.begin_write()).await?;
        lock(&mut tx, self.dialect).await?;
        let answers = batch::apply(&mut tx, commits).await?;
        if answers.iter().any(Result::is_ok) {
            tx.commit().await.map_err(unknown)?;
        } else {
            tx.rollback().await?;
        }
        Ok(answers)
    }

    async fn checkins(&self, checkins: Vec<Checkin>) -> Result<(), StoreError> {
        let mut tx = self.pool.begin_with(self.dialect.begin_write()).await?;
        lock(&mut tx, self.dialect).await?;
        checkins::upsert(&mut tx, checkins).await?;
        Ok(tx.commit().await?)
    }

    async fn grow(&self, piece: Piece) -> Result<(), StoreError> {
        let mut tx = self.pool.begin_with(self.dialect.begin_write()).await?;
        lock(&mut tx, self.dialect).await?;
        uploads::grow(&mut tx, piece).await?;
        Ok(tx.commit().await?)
    }

    /// Nobody waits for the answer, and what is left over is pruned some day.
    async fn discard(&self, content: Uuid) {
        let done = async {
            let mut tx = self.pool.begin_with(self.dialect.begin_write()).await?;
            lock(&mut tx, self.dialect).await?;
            uploads::discard(&mut tx, content).await?;
            Ok::<_, StoreError>(tx.commit().await?)
        };
        if let Err(error) = done.await {
            tracing::warn!(%error, "an upload that was given up is still there");
        }
    }

    async fn prune(&self, prune: Prune) -> Result<u64, StoreError> {
        let mut tx = self.pool.begin_with(self.dialect.begin_write()).await?;
        lock(&mut tx, self.dialect).await?;
        let gone = match prune {
            Prune::Tombstones { before } => tombstones::prune(&mut tx, before).await?,
            Prune::Changes { before } => changes::prune(&mut tx, before).await?,
            Prune::Uploads { before } => uploads::prune(&mut tx, before).await?,
        };
        tx.commit().await?;
        Ok(gone)
    }
}

/// Whatever kept a transaction from ending well, nobody can tell whether it did: never try its commits again.
fn unknown(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(std::sync::Arc::new(error))
}

/// Held until the transaction ends. SQLite's own transactions exclude each other already.
pub(crate) async fn lock(connection: &mut AnyConnection, dialect: Dialect) -> Result<(), StoreError> {
    match dialect {
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => {
            sqlx::query("select pg_advisory_xact_lock($1)")
                .bind(TURN)
                .execute(connection)
                .await?;
            Ok(())
        }
    }
}
