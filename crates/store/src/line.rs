//! The writer's way to the database: one connection, and one transaction at a time on it.
//!
//! A transaction takes the connection along and gives it back only when the database has said that the transaction is
//! over. Whatever else happens to it (a commit or a rollback that fails, a future that is dropped, a panic) is the end of
//! that connection, and the next transaction makes a new one.

use crate::database::Dialect;
use crate::home::Home;
use crate::{StoreError, identity};
use sqlx::any::AnyConnectOptions;
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Executor};
use std::ops::{Deref, DerefMut};
use std::time::Duration;
use tokio::sync::watch;
use uuid::Uuid;

/// A server that takes longer to greet is not there.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Longer than PostgreSQL itself lets a turn take (see [`crate::database`]): only a server that does not even say so is
/// given up.
const TURN_LIMIT: Duration = Duration::from_secs(25);

/// Replicas on one PostgreSQL take turns under this number, so that the feed's order is the order of commits.
const TURN: i64 = 0x6d75_7374_6572;

pub(crate) struct Line {
    pub dialect: Dialect,
    way: Way,
    /// Where the file is; of SQLite only.
    pub home: Option<Home>,
    /// Which database it is, as soon as that is known.
    pub identity: Option<Uuid>,
    /// Set once, when the database turns out to be another one or none.
    lost: watch::Sender<Option<StoreError>>,
}

enum Way {
    Own {
        options: AnyConnectOptions,
        /// What every new connection starts with.
        prepare: &'static str,
        resting: Option<AnyConnection>,
    },
    /// A database in memory lives in its connection, which readers use as well and nobody can renew.
    Shared(AnyPool),
}

/// A transaction under way.
pub(crate) enum Turn {
    Own(AnyConnection),
    Shared(PoolConnection<Any>),
}

impl Deref for Turn {
    type Target = AnyConnection;
    fn deref(&self) -> &AnyConnection {
        match self {
            Self::Own(connection) => connection,
            Self::Shared(connection) => connection,
        }
    }
}

impl DerefMut for Turn {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        match self {
            Self::Own(connection) => connection,
            Self::Shared(connection) => connection,
        }
    }
}

impl Line {
    pub async fn connect(
        dialect: Dialect,
        options: AnyConnectOptions,
        prepare: &'static str,
    ) -> Result<Self, StoreError> {
        let resting = Some(connect(&options, prepare).await?);
        let way = Way::Own {
            options,
            prepare,
            resting,
        };
        Ok(Self::new(dialect, way))
    }

    pub fn shared(dialect: Dialect, pool: AnyPool) -> Self {
        Self::new(dialect, Way::Shared(pool))
    }

    fn new(dialect: Dialect, way: Way) -> Self {
        Self {
            dialect,
            way,
            home: None,
            identity: None,
            lost: watch::Sender::new(None),
        }
    }

    /// Tells when the database is lost.
    pub fn loss(&self) -> watch::Receiver<Option<StoreError>> {
        self.lost.subscribe()
    }

    /// Whether there is something to probe while nothing is written.
    pub fn can_be_lost(&self) -> bool {
        self.home.is_some() || self.dialect == Dialect::Postgres
    }

    /// Checks whether the database is still the one it was. A server that does not answer may come back.
    pub async fn probe(&mut self) {
        if self.lost.borrow().is_some() {
            return;
        }
        if let Some(home) = &self.home {
            let found = home.check();
            self.note(found).ok();
        }
        let (Dialect::Postgres, Some(identity)) = (self.dialect, self.identity) else {
            return;
        };
        if let Ok(mut connection) = self.take().await
            && let Ok(found) = within(Some(CONNECT_LIMIT), identity::probe(&mut connection, identity)).await
        {
            self.note(found).ok();
            self.rest(connection);
        }
    }

    fn note<T>(&mut self, found: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error @ StoreError::NotOurs(_)) = &found
            && self.lost.borrow().is_none()
        {
            tracing::error!(%error, "the hub cannot go on");
            self.lost.send_replace(Some(error.clone()));
            if let Some(home) = &self.home {
                home.set_log_aside();
                home.keep_marker();
            }
        }
        found
    }

    /// How long a whole turn may take. SQLite's work is bounded by the work itself.
    pub fn limit(&self) -> Option<Duration> {
        (self.dialect == Dialect::Postgres).then_some(TURN_LIMIT)
    }

    /// Starts a transaction that excludes every other writer.
    pub async fn begin(&mut self) -> Result<Turn, StoreError> {
        if let Some(error) = &*self.lost.borrow() {
            return Err(error.clone());
        }
        let had_rested = matches!(&self.way, Way::Own { resting: Some(_), .. });
        let begun = match self.try_begin().await {
            // The server went away and came back while nothing was under way: no reason to refuse anybody.
            Err(error) if had_rested && error.hung_up() => self.try_begin().await,
            begun => begun,
        };
        self.note(begun)
    }

    async fn try_begin(&mut self) -> Result<Turn, StoreError> {
        let mut turn = self.take().await?;
        say(&mut turn, self.dialect.begin_write()).await?;
        if self.dialect == Dialect::Postgres {
            wait_for_turn(&mut turn, self.identity).await?;
        }
        Ok(turn)
    }

    async fn take(&mut self) -> Result<Turn, StoreError> {
        match &mut self.way {
            Way::Shared(pool) => Ok(Turn::Shared(pool.acquire().await?)),
            Way::Own {
                options,
                prepare,
                resting,
            } => Ok(Turn::Own(match resting.take() {
                Some(connection) => connection,
                None => connect(options, prepare).await?,
            })),
        }
    }

    /// Ends the transaction as its work has ended.
    pub async fn end<T>(&mut self, turn: Turn, done: Result<T, StoreError>) -> Result<T, StoreError> {
        match done {
            Ok(done) => self.commit(turn).await.map(|()| done),
            // A connection may remember its fault: SQLite's to a file that was read-only for a moment does.
            Err(error @ StoreError::Unavailable(_)) if matches!(turn, Turn::Own(_)) => Err(error),
            Err(error) => {
                self.roll_back(turn).await;
                Err(error)
            }
        }
    }

    /// Whatever keeps a commit from ending well, nobody can tell whether it did: its work must not be tried again.
    async fn commit(&mut self, mut turn: Turn) -> Result<(), StoreError> {
        match say(&mut turn, "commit").await {
            Ok(()) => {
                self.rest(turn);
                // What was written to a file without a name is nowhere.
                let found = self.home.as_ref().map_or(Ok(()), Home::check);
                self.note(found)
            }
            Err(error) => {
                if let Turn::Shared(_) = turn {
                    self.roll_back(turn).await;
                }
                Err(StoreError::unavailable(error))
            }
        }
    }

    /// SQLite's log, into the file, as far as no reader is in the way.
    pub async fn copy_log_back(&mut self) -> Result<(), StoreError> {
        let mut connection = self.take().await?;
        say(&mut connection, "pragma wal_checkpoint(passive)").await?;
        self.rest(connection);
        Ok(())
    }

    pub async fn roll_back(&mut self, mut turn: Turn) {
        match say(&mut turn, "rollback").await {
            Ok(()) => self.rest(turn),
            // Usually because the database has ended the transaction by itself.
            Err(error) => tracing::debug!(%error, "the writer takes a new connection"),
        }
    }

    fn rest(&mut self, turn: Turn) {
        if let (Way::Own { resting, .. }, Turn::Own(connection)) = (&mut self.way, turn) {
            *resting = Some(connection);
        }
    }

    pub async fn close(self) {
        if self.lost.borrow().is_some() {
            // Whoever removes a directory may have come to it only now.
            self.home.iter().for_each(Home::keep_marker);
            // SQLite would tidy up what it takes for its own.
            std::mem::forget(self.way);
            return;
        }
        let closed = match self.way {
            Way::Shared(pool) => {
                pool.close().await;
                return;
            }
            Way::Own { resting: None, .. } => return,
            Way::Own {
                resting: Some(connection),
                ..
            } => within(Some(CONNECT_LIMIT), async { Ok(connection.close().await?) }).await,
        };
        if let Err(error) = closed {
            tracing::warn!(%error, "closing the writer's connection failed");
        }
    }
}

async fn connect(options: &AnyConnectOptions, prepare: &'static str) -> Result<AnyConnection, StoreError> {
    within(Some(CONNECT_LIMIT), async {
        let mut connection = AnyConnection::connect_with(options).await?;
        connection.execute(sqlx::raw_sql(prepare)).await?;
        Ok(connection)
    })
    .await
}

/// Held until the transaction ends. The id comes along in the same answer.
async fn wait_for_turn(connection: &mut AnyConnection, identity: Option<Uuid>) -> Result<(), StoreError> {
    let Some(identity) = identity else {
        let lock = sqlx::query("select pg_advisory_xact_lock($1)").bind(TURN);
        lock.execute(connection).await?;
        return Ok(());
    };
    let text = "select value from meta where key = $1 and pg_advisory_xact_lock($2) is not null";
    let found = sqlx::query_scalar(text)
        .bind(identity::KEY)
        .bind(TURN)
        .fetch_optional(connection);
    identity::check(identity, found.await)
}

async fn say(connection: &mut AnyConnection, statement: &'static str) -> Result<(), sqlx::Error> {
    connection.execute(sqlx::raw_sql(statement)).await.map(drop)
}

/// What is under way when the time is over is dropped, and its connection with it.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let Some(limit) = limit else { return work.await };
    let done = tokio::time::timeout(limit, work).await;
    done.unwrap_or_else(|_| Err(StoreError::slow(limit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DatabaseFault;
    use std::str::FromStr;

    /// A line whose first connections start like this, on a file of its own.
    async fn line(prepare: &'static str) -> (Line, tempfile::TempDir) {
        sqlx::any::install_default_drivers();
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("t.db").display());
        let options = AnyConnectOptions::from_str(&url).unwrap();
        let mut line = Line::connect(Dialect::Sqlite, options, "pragma journal_mode = wal")
            .await
            .unwrap();
        wrote(&mut line, "create table t (x blob)").await.unwrap();
        from_now_on(&mut line, prepare);
        if let Way::Own { resting, .. } = &mut line.way {
            *resting = None;
        }
        (line, directory)
    }

    fn from_now_on(line: &mut Line, statement: &'static str) {
        if let Way::Own { prepare, .. } = &mut line.way {
            *prepare = statement;
        }
    }

    async fn wrote(line: &mut Line, statement: &'static str) -> Result<(), StoreError> {
        let mut turn = line.begin().await?;
        let done = say(&mut turn, statement).await.map_err(StoreError::from);
        line.end(turn, done).await
    }

    const FILL: &str = "insert into t values (zeroblob(100000))";

    #[tokio::test]
    async fn after_a_full_disk_writes_go_on_as_soon_as_there_is_room() {
        let (mut line, _directory) = line("pragma max_page_count = 40").await;
        let mut refused = Vec::new();
        for _ in 0..4 {
            refused.extend(wrote(&mut line, FILL).await.err());
        }
        let causes: Vec<_> = refused.iter().map(StoreError::fault).collect();
        assert_eq!(causes, [Some(DatabaseFault::Full); 3], "{refused:?}");
        from_now_on(&mut line, "pragma max_page_count = 4000");
        wrote(&mut line, FILL).await.unwrap();
    }

    #[tokio::test]
    async fn after_a_read_only_moment_writes_go_on() {
        let (mut line, _directory) = line("pragma query_only = on").await;
        for _ in 0..2 {
            let refused = wrote(&mut line, FILL).await.unwrap_err();
            assert_eq!(refused.fault(), Some(DatabaseFault::ReadOnly), "{refused:?}");
        }
        from_now_on(&mut line, "");
        wrote(&mut line, FILL).await.unwrap();
    }

    #[tokio::test]
    async fn a_transaction_that_is_dropped_leaves_nothing_behind() {
        let (mut line, _directory) = line("").await;
        let mut turn = line.begin().await.unwrap();
        say(&mut turn, FILL).await.unwrap();
        drop(turn);
        let mut turn = line.begin().await.unwrap();
        let count: i64 = sqlx::query_scalar("select count(*) from t")
            .fetch_one(&mut *turn)
            .await
            .unwrap();
        assert_eq!(count, 0);
        line.roll_back(turn).await;
        wrote(&mut line, FILL).await.unwrap();
    }

    #[tokio::test]
    async fn a_transaction_that_the_database_ended_by_itself_does_not_end_the_writer() {
        let (mut line, _directory) = line("").await;
        let fault = "create trigger f before insert on t begin select raise(rollback, 'injected'); end";
        wrote(&mut line, fault).await.unwrap();
        wrote(&mut line, FILL).await.unwrap_err();
        wrote(&mut line, "drop trigger f").await.unwrap();
        wrote(&mut line, FILL).await.unwrap();
    }

    #[tokio::test]
    async fn a_hub_that_sleeps_in_its_turn_loses_it_and_is_told_so_when_it_wakes() {
        let Some(server) = crate::test_server() else {
            return;
        };
        sqlx::any::install_default_drivers();
        let options = AnyConnectOptions::from_str(&server).unwrap();
        let connect = || {
            Line::connect(
                Dialect::Postgres,
                options.clone(),
                crate::database::POSTGRES_WRITER,
            )
        };
        let (mut sleeper, mut other) = (connect().await.unwrap(), connect().await.unwrap());
        let turn = sleeper.begin().await.unwrap();
        let next = other.begin().await.unwrap();
        let told = sleeper.commit(turn).await.unwrap_err();
        assert!(told.hung_up(), "{told:?}");
        other.commit(next).await.unwrap();
        let turn = sleeper.begin().await.unwrap();
        sleeper.commit(turn).await.unwrap();
    }
}
