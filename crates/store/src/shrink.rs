//! Room of deleted rows goes back to the file system: a step at a time while the hub runs, and once, at the start, for files
//! that were made before that was possible.

use crate::home::{Home, at};
use crate::writer::Job;
use crate::{Database, Store, StoreError, home};
use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// Pages of one step, 4 MiB: the writer is held up for a few milliseconds only.
const STEP: i64 = 1_024;
/// Pages that stay, 16 MiB, because they will be used again soon.
const SPARE: i64 = 4_096;

/// Below this nobody misses the room.
const WORTH_IT: i64 = 64 << 20;
/// So little is copied in a moment, once, so that the file can shrink while the hub runs.
const SOON_DONE: i64 = 256 << 20;
/// Copying more than this takes too long at a start.
const TOO_LONG: i64 = 2 << 30;

impl Store {
    /// Gives back at most so many steps of room. PostgreSQL does that by itself.
    pub async fn shrink(&self, steps: usize) -> Result<u64, StoreError> {
        let mut freed = 0;
        if !self.inner.is_file {
            return Ok(freed);
        }
        for _ in 0..steps {
            match self.ask(Job::Shrink).await? {
                0 => break,
                more => freed += more,
            }
        }
        Ok(freed)
    }
}

/// Gives how many pages went.
pub(crate) async fn step(connection: &mut AnyConnection) -> Result<u64, StoreError> {
    let is_incremental = number(connection, "pragma auto_vacuum").await? == 2;
    let before = number(connection, "pragma freelist_count").await?;
    if !is_incremental || before <= SPARE {
        return Ok(0);
    }
    let text = format!("pragma incremental_vacuum({})", STEP.min(before - SPARE));
    connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await?;
    let after = number(connection, "pragma freelist_count").await?;
    Ok(u64::try_from(before - after).unwrap_or_default())
}

async fn number(connection: &mut AnyConnection, text: &'static str) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar(text).fetch_one(connection).await?)
}

/// What there is to know about a file before it is copied.
#[derive(Debug, Clone, Copy)]
struct Room {
    is_incremental: bool,
    unused: i64,
    used: i64,
    /// On the disk.
    left: i64,
}

impl Room {
    /// A file that can shrink while the hub runs needs no copy.
    fn is_worth_a_copy(self) -> bool {
        let gives_back_much = self.unused >= WORTH_IT && self.unused >= self.used / 4;
        !self.is_incremental && (self.used <= SOON_DONE || gives_back_much)
    }

    /// Twice, so that the hub finds room for its work.
    fn can_be_copied(self) -> bool {
        self.used <= TOO_LONG && self.left / 2 > self.used
    }
}

/// Files of older releases cannot shrink. One that is small, or to a large part empty, is copied, without its holes and so
/// that it can.
/// Whatever is in the way of that, the hub works on the file as it is.
pub(crate) async fn renew(home: &mut Home, options: &AnyConnectOptions) {
    let draft = home::beside(&home.path, ".compact");
    let done = try_renew(home, options, &draft).await;
    // Left over from a hub that was killed meanwhile, or from this one.
    if let Err(error) = fs::remove_file(&draft)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, file = %draft.display(), "this file is of no use and can be removed");
    }
    if let Err(error) = done {
        tracing::warn!(%error, "could not make the database smaller");
    }
}

/// Where SQLite's file format says whether a file can shrink by steps. See "The Database Header" in its documentation.
const INCREMENTAL_VACUUM: Range<usize> = 64..68;

/// Reads that from the file itself. A connection would copy the whole log back when it is closed, and every start would
/// wait for that. What only the log has is found out by asking.
fn says_incremental(path: &Path) -> bool {
    let mut header = [0; INCREMENTAL_VACUUM.end];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header[INCREMENTAL_VACUUM] != [0; 4]
}

async fn try_renew(home: &mut Home, options: &AnyConnectOptions, draft: &Path) -> Result<(), StoreError> {
    if says_incremental(&home.path) {
        return Ok(());
    }
    let mut connection = AnyConnection::connect_with(options).await?;
    let room = room(&mut connection, &home.path).await?;
    if !room.is_worth_a_copy() {
        return Ok(connection.close().await?);
    }
    let (unused, used) = (room.unused >> 20, room.used >> 20);
    if !room.can_be_copied() {
        tracing::warn!(
            "{unused} MiB of the database are unused, and the hub cannot make it smaller now: see \"Room \
             on the disk\" in docs/guides/operating.md"
        );
        return Ok(connection.close().await?);
    }
    tracing::info!(
        "copying the {used} MiB of the database, so that it gives back what is unused ({unused} MiB now)"
    );
    let _ = fs::remove_file(draft);
    home::create(draft)?;
    connection
        .execute(sqlx::raw_sql("pragma auto_vacuum = incremental"))
        .await?;
    let text = format!(
        "vacuum into '{}'",
        draft.display().to_string().replace('\'', "''")
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await?;
    connection
        .execute(sqlx::raw_sql("pragma wal_checkpoint(truncate)"))
        .await?;
    connection.close().await?;
    File::open(draft)
        .and_then(|file| file.sync_all())
        .map_err(|error| at(draft, error))?;
    home.replace(draft)
}

async fn room(connection: &mut AnyConnection, path: &Path) -> Result<Room, StoreError> {
    let size = number(connection, "pragma page_size").await?;
    let unused = number(connection, "pragma freelist_count").await? * size;
    let disk = rustix::fs::statvfs(path).map_err(|error| at(path, error.into()))?;
    Ok(Room {
        is_incremental: number(connection, "pragma auto_vacuum").await? == 2,
        unused,
        used: number(connection, "pragma page_count").await? * size - unused,
        left: i64::try_from(disk.f_bavail.saturating_mul(disk.f_frsize)).unwrap_or(i64::MAX),
    })
}

impl Database {
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_copied_only_when_that_is_soon_done_or_gives_back_much_and_there_is_room() {
        let room = Room {
            is_incremental: false,
            unused: 800 << 20,
            used: 400 << 20,
            left: 1 << 30,
        };
        assert!(room.is_worth_a_copy() && room.can_be_copied());
        assert!(
            !Room {
                is_incremental: true,
                ..room
            }
            .is_worth_a_copy()
        );
        assert!(
            !Room {
                unused: 1 << 20,
                ..room
            }
            .is_worth_a_copy()
        );
        let small = Room {
            unused: 0,
            used: 1 << 20,
            ..room
        };
        assert!(small.is_worth_a_copy());
        assert!(
            !Room {
                used: 8 << 30,
                ..room
            }
            .is_worth_a_copy()
        );
        assert!(
            !Room {
                left: 60 << 20,
                ..room
            }
            .can_be_copied()
        );
    }

    #[tokio::test]
    async fn the_header_of_a_file_says_whether_it_can_shrink_by_steps() {
        sqlx::any::install_default_drivers();
        let home = tempfile::tempdir().unwrap();
        assert!(!says_incremental(&home.path().join("absent.db")));
        for (mode, can) in [("none", false), ("full", false), ("incremental", true)] {
            let path = home.path().join(format!("{mode}.db"));
            let url = format!("sqlite://{}?mode=rwc", path.display());
            let mut connection = AnyConnection::connect(&url).await.unwrap();
            let text = format!("pragma auto_vacuum = {mode}; create table things (name text)");
            connection
                .execute(sqlx::raw_sql(AssertSqlSafe(text)))
                .await
                .unwrap();
            connection.close().await.unwrap();
            assert_eq!(says_incremental(&path), can, "{mode}");
        }
    }
}
