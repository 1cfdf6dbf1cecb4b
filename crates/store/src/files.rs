//! Files of clusters: what an installation needs and leaves behind, in chunks, so that large ones never are in memory whole.

use crate::commit::{Commit, FileChange, FileWrite};
use crate::row::expect_rows;
use crate::sql::{self, Columns, Value};
use crate::{Store, StoreError, references};
use jiff::Timestamp;
use muster_domain::id::ClusterId;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use uuid::Uuid;

/// Bytes per chunk: large enough that a chunk's own cost does not matter, small enough to hold many in memory.
pub(crate) const CHUNK: usize = 1 << 20;

/// Sorts after every character a path has.
const LAST: char = '\u{10ffff}';

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    pub path: String,
    pub size: u64,
    pub written_at: Timestamp,
}

impl Store {
    /// The files whose path begins like this, by path.
    pub async fn file_list(&self, cluster: ClusterId, prefix: &str) -> Result<Vec<FileStat>, StoreError> {
        let query = sqlx::query(
            "select path, size, written_at from files where cluster_id = $1 and path >= $2 and path < $3
             order by path",
        )
        .bind(cluster.to_string())
        .bind(prefix.to_owned())
        .bind(format!("{prefix}{LAST}"));
        let rows = self.inner.readers.rows(query).await?;
        rows.iter().map(stat).collect()
    }

    pub async fn file_stat(&self, cluster: ClusterId, path: &str) -> Result<Option<FileStat>, StoreError> {
        let query =
            sqlx::query("select path, size, written_at from files where cluster_id = $1 and path = $2")
                .bind(cluster.to_string())
                .bind(path.to_owned());
        let row = self.inner.readers.row(query).await?;
        row.as_ref().map(stat).transpose()
    }

    /// The whole content, as it was at one moment.
    pub async fn file_read(&self, cluster: ClusterId, path: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query(
            "select c.body from files f left join file_chunks c on c.content = f.content
             where f.cluster_id = $1 and f.path = $2 order by c.number",
        )
        .bind(cluster.to_string())
        .bind(path.to_owned());
        let rows = self.inner.readers.rows(query).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut content = Vec::new();
        for row in &rows {
            // An empty file has a row and no chunk.
            content.append(&mut row.maybe_bytes(0)?.unwrap_or_default());
        }
        Ok(Some(content))
    }

    /// For files that should not be in memory whole.
    pub async fn file_open(&self, cluster: ClusterId, path: &str) -> Result<Option<FileReader>, StoreError> {
        let query = sqlx::query(
            "select path, size, written_at, content from files where cluster_id = $1 and path = $2",
        )
        .bind(cluster.to_string())
        .bind(path.to_owned());
        let row = self.inner.readers.row(query).await?;
        row.map(|row| {
            Ok(FileReader {
                store: self.clone(),
                stat: stat(&row)?,
                content: row.text(3)?.to_owned(),
                number: 0,
                given: 0,
            })
        })
        .transpose()
    }

    /// Writes one file.
    pub async fn file_put(
        &self,
        cluster: ClusterId,
        path: &str,
        content: impl Into<Vec<u8>>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let commit = Commit {
            files: vec![FileWrite::put(cluster, path, content)],
            ..Commit::new(at)
        };
        self.commit(commit).await.map(drop)
    }
}

/// A file being read piece by piece.
pub struct FileReader {
    store: Store,
    pub stat: FileStat,
    content: String,
    number: i64,
    given: u64,
}

impl FileReader {
    /// The next piece; `None` at the end. `Replaced` when the file was replaced or deleted meanwhile.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if self.given >= self.stat.size {
            return Ok(None);
        }
        let query = sqlx::query("select body from file_chunks where content = $1 and number = $2")
            .bind(self.content.clone())
            .bind(self.number);
        let row = self.store.inner.readers.row(query).await?;
        let Some(row) = row else {
            return Err(StoreError::Replaced {
                path: self.stat.path.clone(),
            });
        };
        let body = row.maybe_bytes(0)?.unwrap_or_default();
        self.number += 1;
        self.given += body.len() as u64;
        Ok(Some(body))
    }
}

fn stat(row: &AnyRow) -> Result<FileStat, StoreError> {
    Ok(FileStat {
        path: row.text(0)?.to_owned(),
        size: u64::try_from(row.int(1)?).unwrap_or_default(),
        written_at: row.time(2)?,
    })
}

/// In the order of the commits, because a later one may replace what an earlier one wrote.
pub(crate) async fn write(connection: &mut AnyConnection, commits: &[&Commit]) -> Result<(), StoreError> {
    for commit in commits {
        for write in &commit.files {
            apply(connection, write, commit.at).await?;
        }
        for cluster in references::deleted_clusters(commit) {
            drop_range(connection, cluster, "", &LAST.to_string()).await?;
        }
    }
    Ok(())
}

async fn apply(connection: &mut AnyConnection, write: &FileWrite, at: Timestamp) -> Result<(), StoreError> {
    let FileWrite { cluster, path, what } = write;
    match what {
        FileChange::Put(body) => {
            let content = Uuid::new_v4();
            for (number, chunk) in (0..).zip(body.chunks(CHUNK)) {
                put_chunk(connection, content, number, chunk.to_vec()).await?;
            }
            place(connection, write, content, body.len() as u64, at).await
        }
        FileChange::Adopt { content, size } => {
            let text = "delete from file_uploads where content = $1";
            let met = sql::execute(connection, text, vec![Value::text(content)]).await?;
            expect_rows("upload", 1, met)?;
            place(connection, write, *content, *size, at).await
        }
        FileChange::Rename(to) if to == path => Ok(()),
        FileChange::Rename(to) => rename(connection, *cluster, path, to).await,
        FileChange::Delete => drop_one(connection, *cluster, path).await,
        FileChange::DeletePrefix => drop_range(connection, *cluster, path, &format!("{path}{LAST}")).await,
    }
}

pub(crate) async fn put_chunk(
    connection: &mut AnyConnection,
    content: Uuid,
    number: i64,
    body: Vec<u8>,
) -> Result<(), StoreError> {
    let text = "insert into file_chunks (content, number, body) values ($1, $2, $3)";
    let values = vec![Value::text(content), Value::Int(number), Value::Bytes(body)];
    sql::execute(connection, text, values).await?;
    Ok(())
}

/// Makes the content what the path holds.
async fn place(
    connection: &mut AnyConnection,
    write: &FileWrite,
    content: Uuid,
    size: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    drop_one(connection, write.cluster, &write.path).await?;
    let text = "insert into files (cluster_id, path, content, size, written_at) values ($1, $2, $3, $4, $5)";
    let values = vec![
        Value::text(write.cluster),
        Value::foreign(&write.path),
        Value::text(content),
        Value::Int(i64::try_from(size).unwrap_or(i64::MAX)),
        Value::time(at),
    ];
    sql::execute(connection, text, values).await?;
    Ok(())
}

async fn rename(
    connection: &mut AnyConnection,
    cluster: ClusterId,
    from: &str,
    to: &str,
) -> Result<(), StoreError> {
    let there = sqlx::query("select path from files where cluster_id = $1 and path = $2")
        .bind(cluster.to_string())
        .bind(from.to_owned())
        .fetch_optional(&mut *connection)
        .await?;
    if there.is_none() {
        return Ok(());
    }
    drop_one(connection, cluster, to).await?;
    let text = "update files set path = $3 where cluster_id = $1 and path = $2";
    let values = vec![Value::text(cluster), Value::foreign(from), Value::foreign(to)];
    sql::execute(connection, text, values).await?;
    Ok(())
}

async fn drop_one(connection: &mut AnyConnection, cluster: ClusterId, path: &str) -> Result<(), StoreError> {
    let values = vec![Value::text(cluster), Value::foreign(path)];
    let text = "delete from file_chunks where content in
        (select content from files where cluster_id = $1 and path = $2)";
    sql::execute(connection, text, values.clone()).await?;
    let text = "delete from files where cluster_id = $1 and path = $2";
    sql::execute(connection, text, values).await?;
    Ok(())
}

async fn drop_range(
    connection: &mut AnyConnection,
    cluster: ClusterId,
    from: &str,
    to: &str,
) -> Result<(), StoreError> {
    let values = vec![Value::text(cluster), Value::foreign(from), Value::foreign(to)];
    let text = "delete from file_chunks where content in
        (select content from files where cluster_id = $1 and path >= $2 and path < $3)";
    sql::execute(connection, text, values.clone()).await?;
    let text = "delete from files where cluster_id = $1 and path >= $2 and path < $3";
    sql::execute(connection, text, values).await?;
    Ok(())
}
