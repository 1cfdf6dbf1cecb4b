//! Archives written while they are sent, so that nothing large is ever in memory whole.
//!
//! The crate `tar` makes the headers. What is between them is streamed here: it would want a writer that waits, and the
//! lengths that an answer tells ahead.

use axum::body::Bytes;
use futures_util::{Stream, stream};
use jiff::Timestamp;
use muster_store::{FileReader, StoreError};
use std::collections::VecDeque;

const BLOCK: usize = 512;
/// What fits into the header itself; longer names need a block of their own.
const NAME: usize = 100;
/// An archive ends with two empty blocks.
const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// One file of an archive.
pub struct Part {
    name: String,
    changed_at: Timestamp,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    File(FileReader),
}

impl Part {
    pub fn bytes(name: impl Into<String>, content: Vec<u8>, changed_at: Timestamp) -> Self {
        Self {
            name: name.into(),
            changed_at,
            content: Content::Bytes(content),
        }
    }

    pub fn file(name: impl Into<String>, file: FileReader) -> Self {
        Self {
            name: name.into(),
            changed_at: file.stat.written_at,
            content: Content::File(file),
        }
    }

    fn size(&self) -> u64 {
        match &self.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::File(file) => file.stat.size,
        }
    }
}

/// How long the archive will be.
pub fn size(parts: &[Part]) -> u64 {
    parts.iter().map(length).sum::<u64>() + END.len() as u64
}

/// The archive, piece by piece.
pub fn write(parts: Vec<Part>) -> impl Stream<Item = Result<Bytes, StoreError>> {
    let start = Writing {
        parts: parts.into(),
        open: None,
        ended: false,
    };
    stream::try_unfold(start, Writing::next)
}

fn length(part: &Part) -> u64 {
    let size = part.size();
    head(&part.name, size, part.changed_at).len() as u64 + size + padding(size) as u64
}

fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    (BLOCK - over) % BLOCK
}

/// Where the writing of an archive is.
struct Writing {
    parts: VecDeque<Part>,
    /// A file that is being sent.
    open: Option<FileReader>,
    ended: bool,
}

impl Writing {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, StoreError> {
        if let Some(file) = &mut self.open {
            if let Some(piece) = file.next().await? {
                return Ok(Some((piece.into(), self)));
            }
            let padding = padding(file.stat.size);
            self.open = None;
            if padding > 0 {
                return Ok(Some((vec![0; padding].into(), self)));
            }
        }
        let Some(part) = self.parts.pop_front() else {
            if self.ended {
                return Ok(None);
            }
            self.ended = true;
            return Ok(Some((Bytes::from_static(&END), self)));
        };
        let size = part.size();
        let mut bytes = head(&part.name, size, part.changed_at);
        match part.content {
            Content::Bytes(content) => {
                bytes.extend_from_slice(&content);
                bytes.resize(bytes.len() + padding(size), 0);
            }
            Content::File(file) => self.open = Some(file),
        }
        Ok(Some((bytes.into(), self)))
    }
}

/// The header of a file, with another before it when the name is long.
fn head(name: &str, size: u64, changed_at: Timestamp) -> Vec<u8> {
    let mut long = tar::Builder::new(Vec::new());
    if name.len() > NAME {
        long.append_pax_extensions([("path", name.as_bytes())])
            .expect("writing to memory does not fail");
    }
    let mut header = tar::Header::new_ustar();
    // As it is: the crate's way to set a path takes it as one on this machine.
    let short = &name.as_bytes()[..name.len().min(NAME)];
    header.as_old_mut().name[..short.len()].copy_from_slice(short);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o600);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header.set_mtime(u64::try_from(changed_at.as_second()).unwrap_or(0));
    header.set_cksum();
    [&long.get_ref()[..], header.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::TryStreamExt;

    #[tokio::test]
    async fn tar_reads_what_is_written() {
        let long = format!("{}.txt", "n".repeat(150));
        let parts = vec![
            Part::bytes("a.json", b"{}".to_vec(), Timestamp::UNIX_EPOCH),
            Part::bytes(long.clone(), vec![b'x'; BLOCK], Timestamp::UNIX_EPOCH),
            Part::bytes("empty", Vec::new(), Timestamp::UNIX_EPOCH),
        ];
        let told = size(&parts);
        let pieces: Vec<Bytes> = write(parts).try_collect().await.unwrap();
        let bytes = pieces.concat();
        assert_eq!(bytes.len() as u64, told);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs.tar");
        std::fs::write(&path, &bytes).unwrap();
        let listed = std::process::Command::new("tar")
            .arg("-tf")
            .arg(&path)
            .output()
            .unwrap();
        assert!(
            listed.status.success(),
            "{}",
            String::from_utf8_lossy(&listed.stderr)
        );
        assert_eq!(
            String::from_utf8(listed.stdout).unwrap(),
            format!("a.json\n{long}\nempty\n")
        );
    }
}
