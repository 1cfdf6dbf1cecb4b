//! Files that arrive piece by piece: kept aside until they are complete, then taken over by a commit like any change.

use crate::commit::{FileChange, FileWrite};
use crate::files::{self, CHUNK};
use crate::sql::{self, Value};
use crate::writer::{Job, Prune};
use crate::{Store, StoreError};
use jiff::Timestamp;
use muster_domain::id::ClusterId;
use sqlx::AnyConnection;
use uuid::Uuid;

/// One piece on its way to the writer.
pub(crate) struct Piece {
    pub content: Uuid,
    pub number: i64,
    pub body: Vec<u8>,
    pub at: Timestamp,
}

/// What was sent so far. Dropped before a commit took it over, it leaves nothing behind.
pub struct Upload {
    store: Store,
    content: Uuid,
    waiting: Vec<u8>,
    number: i64,
    size: u64,
}

impl Store {
    pub fn upload(&self) -> Upload {
        Upload {
            store: self.clone(),
            content: Uuid::new_v4(),
            waiting: Vec::new(),
            number: 0,
            size: 0,
        }
    }

    /// Throws away uploads that did not grow since then: whoever sent them is gone. Gives how many.
    pub async fn uploads_prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.ask(|reply| Job::Prune(Prune::Uploads { before }, reply))
            .await
    }
}

impl Upload {
    pub fn size(&self) -> u64 {
        self.size
    }

    pub async fn write(&mut self, mut bytes: &[u8], at: Timestamp) -> Result<(), StoreError> {
        self.size += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = CHUNK - self.waiting.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.waiting.extend_from_slice(now);
            bytes = later;
            if self.waiting.len() == CHUNK {
                self.send(at).await?;
            }
        }
        Ok(())
    }

    /// Writes what is still in memory and gives the change that makes it a file.
    pub async fn file(
        &mut self,
        cluster: ClusterId,
        path: &str,
        at: Timestamp,
    ) -> Result<FileWrite, StoreError> {
        if !self.waiting.is_empty() || self.number == 0 {
            self.send(at).await?;
        }
        let what = FileChange::Adopt {
            content: self.content,
            size: self.size,
        };
        Ok(FileWrite {
            cluster,
            path: path.to_owned(),
            what,
        })
    }

    async fn send(&mut self, at: Timestamp) -> Result<(), StoreError> {
        let piece = Piece {
            content: self.content,
            number: self.number,
            body: std::mem::take(&mut self.waiting),
            at,
        };
        self.number += 1;
        self.store.ask(|reply| Job::Grow(piece, reply)).await
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // When the queue is full it stays until it is pruned.
        if self.number > 0 {
            let _ = self.store.inner.jobs.try_send(Job::Discard(self.content));
        }
    }
}

pub(crate) async fn grow(connection: &mut AnyConnection, piece: Piece) -> Result<(), StoreError> {
    let Piece {
        content,
        number,
        body,
        at,
    } = piece;
    let text = "insert into file_uploads (content, grown_at) values ($1, $2)
        on conflict (content) do update set grown_at = excluded.grown_at";
    sql::execute(connection, text, vec![Value::text(content), Value::time(at)]).await?;
    if body.is_empty() {
        return Ok(());
    }
    files::put_chunk(connection, content, number, body).await
}

/// Of an upload that became a file nothing is found here, and nothing is touched.
pub(crate) async fn discard(connection: &mut AnyConnection, content: Uuid) -> Result<(), StoreError> {
    let text =
        "delete from file_chunks where content in (select content from file_uploads where content = $1)";
    sql::execute(connection, text, vec![Value::text(content)]).await?;
    let text = "delete from file_uploads where content = $1";
    sql::execute(connection, text, vec![Value::text(content)]).await?;
    Ok(())
}

pub(crate) async fn prune(connection: &mut AnyConnection, before: Timestamp) -> Result<u64, StoreError> {
    let text =
        "delete from file_chunks where content in (select content from file_uploads where grown_at < $1)";
    sql::execute(connection, text, vec![Value::time(before)]).await?;
    let text = "delete from file_uploads where grown_at < $1";
    sql::execute(connection, text, vec![Value::time(before)]).await
}
