//! A transaction of a reader: all it reads is of one moment.

use crate::{Store, StoreError};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, Executor};
use std::ops::{Deref, DerefMut};

/// One that is dropped before its end takes its connection along: the next reader must not find itself inside it.
pub(crate) struct Snapshot {
    connection: PoolConnection<Any>,
    is_over: bool,
}

impl Store {
    pub(crate) async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let connection = self.readers().acquire().await?;
        let mut snapshot = Snapshot {
            connection,
            // A database in memory lives in its connection.
            is_over: self.inner.is_in_memory,
        };
        let begin = self.inner.dialect.begin_read();
        snapshot.connection.execute(sqlx::raw_sql(begin)).await?;
        Ok(snapshot)
    }
}

impl Snapshot {
    pub async fn end(mut self) -> Result<(), StoreError> {
        self.connection.execute(sqlx::raw_sql("commit")).await?;
        self.is_over = true;
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.close_on_drop();
        }
    }
}

impl Deref for Snapshot {
    type Target = AnyConnection;
    fn deref(&self) -> &AnyConnection {
        &self.connection
    }
}

impl DerefMut for Snapshot {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.connection
    }
}
