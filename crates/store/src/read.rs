//! Reads: one statement, or a transaction of a reader, all of which is of one moment.

use crate::StoreError;
use crate::database::Dialect;
use crate::line::within;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Executor};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// For one statement, or for all of a transaction. A server whose machine is gone never says that it is.
const READ_LIMIT: Duration = Duration::from_secs(20);

pub(crate) type Query<'q> = sqlx::query::Query<'q, Any, AnyArguments>;

#[derive(Clone)]
pub(crate) struct Readers {
    pub pool: AnyPool,
    pub dialect: Dialect,
    pub is_in_memory: bool,
    /// SQLite's reads are bounded by the work itself.
    pub limit: Option<Duration>,
}

/// A reader's connection. One that is dropped before its end takes the connection along: its server may not be there any
/// more, and the next reader must not find itself inside a transaction.
pub(crate) struct Reading {
    connection: PoolConnection<Any>,
    is_over: bool,
}

impl Readers {
    pub fn new(pool: AnyPool, dialect: Dialect, is_in_memory: bool) -> Self {
        Self {
            pool,
            dialect,
            is_in_memory,
            limit: (dialect == Dialect::Postgres).then_some(READ_LIMIT),
        }
    }

    /// For single statements.
    pub async fn reading(&self) -> Result<Reading, StoreError> {
        Ok(Reading {
            connection: self.pool.acquire().await?,
            // A file does not go away in the middle of one.
            is_over: self.dialect == Dialect::Sqlite,
        })
    }

    pub async fn snapshot(&self) -> Result<Reading, StoreError> {
        let mut snapshot = Reading {
            connection: self.pool.acquire().await?,
            // A database in memory lives in its connection.
            is_over: self.is_in_memory,
        };
        let begin = self.dialect.begin_read();
        snapshot.connection.execute(sqlx::raw_sql(begin)).await?;
        Ok(snapshot)
    }

    /// What is read has an end also when its server has vanished without a word.
    pub async fn in_time<T>(
        &self,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        within(self.limit, read).await
    }
}

impl Readers {
    pub async fn rows(&self, query: Query<'_>) -> Result<Vec<AnyRow>, StoreError> {
        let read = async {
            let mut reading = self.reading().await?;
            let rows = query.fetch_all(&mut *reading).await?;
            reading.done();
            Ok(rows)
        };
        self.in_time(read).await
    }

    /// The first row, if there is one.
    pub async fn row(&self, query: Query<'_>) -> Result<Option<AnyRow>, StoreError> {
        let read = async {
            let mut reading = self.reading().await?;
            let row = query.fetch_optional(&mut *reading).await?;
            reading.done();
            Ok(row)
        };
        self.in_time(read).await
    }

    /// The row of a statement that always has one.
    pub async fn only_row(&self, query: Query<'_>) -> Result<AnyRow, StoreError> {
        let row = self.row(query).await?;
        row.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }
}

impl Reading {
    /// Ends a single statement.
    pub fn done(mut self) {
        self.is_over = true;
    }

    /// Ends a transaction.
    pub async fn end(mut self) -> Result<(), StoreError> {
        self.connection.execute(sqlx::raw_sql("commit")).await?;
        self.is_over = true;
        Ok(())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.close_on_drop();
        }
    }
}

impl Deref for Reading {
    type Target = AnyConnection;
    fn deref(&self) -> &AnyConnection {
        &self.connection
    }
}

impl DerefMut for Reading {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::any::AnyPoolOptions;

    #[tokio::test]
    async fn a_server_that_says_nothing_any_more_is_given_up_and_its_connection_with_it() {
        let Some(server) = crate::test_server() else {
            return;
        };
        sqlx::any::install_default_drivers();
        let pool = AnyPoolOptions::new()
            .max_connections(1)
            .connect(&server)
            .await
            .unwrap();
        let mut readers = Readers::new(pool, Dialect::Postgres, false);
        assert_eq!(readers.limit, Some(READ_LIMIT));
        readers.limit = Some(Duration::from_millis(100));
        let silence = sqlx::query("select cast(pg_sleep(3600) as text)");
        let told = readers.row(silence).await.err().unwrap();
        assert!(told.to_string().contains("does not answer in time"), "{told}");
        // There is room for one connection only.
        readers.limit = None;
        readers.only_row(sqlx::query("select 1")).await.unwrap();
    }
}
