//! What can go wrong, one variant per thing a caller can do differently.

use crate::{DatabaseFault, RowKey, UnreadableRow};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// One error may answer every commit of a failed batch, hence the shared causes.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Somebody else wrote first: read and decide again.
    #[error("the {} {} was changed meanwhile", .0.kind().word(), .0)]
    Stale(RowKey),
    /// A file that is being read was replaced or deleted.
    #[error("the file {path} was changed meanwhile")]
    Replaced { path: String },
    /// Nothing is known about the outcome of a write; a later try may succeed.
    #[error("the database {}", DatabaseFault::of(.0).text())]
    Unavailable(#[source] Arc<sqlx::Error>),
    /// The database holds something this program cannot have written, or not this release of it.
    #[error("the database holds an unreadable {what}: {detail}")]
    Corrupt { what: String, detail: String },
    /// One row of it, which is set aside.
    #[error("{0}")]
    Unreadable(Arc<UnreadableRow>),
    #[error("the database refused a statement")]
    Sql(#[source] Arc<sqlx::Error>),
    /// It is not the database it was, or another hub works on it: going on would lose or mix data.
    #[error("{0}")]
    NotOurs(Arc<str>),
}

impl StoreError {
    pub fn closed() -> Self {
        Self::Unavailable(Arc::new(sqlx::Error::PoolClosed))
    }

    /// Whatever the database said, it says nothing about the outcome.
    pub(crate) fn unavailable(error: sqlx::Error) -> Self {
        Self::Unavailable(Arc::new(error))
    }

    /// Why the database is not available, for people.
    pub fn fault(&self) -> Option<DatabaseFault> {
        match self {
            Self::Unavailable(cause) => Some(DatabaseFault::of(cause)),
            Self::Stale(_)
            | Self::Replaced { .. }
            | Self::Corrupt { .. }
            | Self::Unreadable(_)
            | Self::Sql(_)
            | Self::NotOurs(_) => None,
        }
    }

    /// Whether a value of some row is not even what its column holds, such as bytes that are no text.
    pub(crate) fn is_undecodable(&self) -> bool {
        matches!(self, Self::Sql(cause)
            if matches!(**cause, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)))
    }

    /// Whoever asked has waited for as long as this.
    pub fn slow(limit: Duration) -> Self {
        let text = format!("it did not answer within {} seconds", limit.as_secs());
        Self::unavailable(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text)))
    }

    pub(crate) fn not_ours(text: String) -> Self {
        Self::NotOurs(text.into())
    }

    /// Whether the connection is gone, which says nothing about the next one.
    pub(crate) fn hung_up(&self) -> bool {
        let Self::Unavailable(cause) = self else {
            return false;
        };
        match &**cause {
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
            _ => self
                .code()
                .is_some_and(|code| code.starts_with("08") || code.starts_with("57P") || code == "25P03"),
        }
    }

    /// What the database calls it.
    pub(crate) fn code(&self) -> Option<String> {
        match self {
            Self::Unavailable(cause) | Self::Sql(cause) => {
                Some(cause.as_database_error()?.code()?.into_owned())
            }
            Self::Stale(_)
            | Self::Replaced { .. }
            | Self::Corrupt { .. }
            | Self::Unreadable(_)
            | Self::NotOurs(_) => None,
        }
    }

    /// The kind of refusal, without what SQLite adds to it.
    pub(crate) fn sqlite_code(&self) -> Option<u32> {
        self.code()?.parse::<u32>().ok().map(|code| code & 0xff)
    }

    pub(crate) fn corrupt(what: impl Into<String>, detail: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            what: what.into(),
            detail: detail.to_string(),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let passing = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed => true,
            sqlx::Error::Database(refusal) => refusal.code().is_some_and(|code| passes(&code)),
            // Not our enum, and open for additions: whatever else there is, is a bug of ours.
            _ => false,
        };
        if passing {
            Self::Unavailable(Arc::new(error))
        } else {
            Self::Sql(Arc::new(error))
        }
    }
}

/// Whether a refusal says something about the server or the disk and not about the statement.
fn passes(code: &str) -> bool {
    // PostgreSQL's codes have five characters and their first two are a class: connection, who may log in, no such
    // database, transaction rollback, resources, operator intervention, system error; a server that became a read-only
    // replica, a transaction that was ended because its client slept, a lock that did not come free in time.
    if code.len() == 5 {
        return matches!(&code[..2], "08" | "28" | "3D" | "40" | "53" | "57" | "58")
            || matches!(code, "25006" | "25P03" | "25P04" | "55P03");
    }
    // SQLite's are numbers whose low byte tells: busy, locked, out of memory, read-only, interrupted, I/O, full,
    // cannot open, protocol.
    code.parse::<u32>()
        .is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 7 | 8 | 9 | 10 | 13 | 14 | 15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_faults_that_may_pass_are_called_unavailable() {
        for code in [
            "08006", "40001", "57P01", "53300", "25006", "25P03", "55P03", "5", "261", "13", "778", "14",
        ] {
            assert!(passes(code), "{code}");
        }
        for code in ["23505", "42P01", "22021", "1", "2067", "19"] {
            assert!(!passes(code), "{code}");
        }
    }

    #[test]
    fn a_message_does_not_repeat_its_cause() {
        let error = StoreError::from(sqlx::Error::PoolTimedOut);
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(!error.to_string().contains(&cause));
    }
}
