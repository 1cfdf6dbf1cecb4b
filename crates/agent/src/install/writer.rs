//! Writes an image to a disk so that the disk can be started only when all of it is there and right.
//!
//! Two wishes are in each other's way. An image that is cut short or damaged shall be refused before the boot sector is
//! touched: the machine then still starts what it had. And a machine that loses power in the middle shall not start half
//! a system: with the old boot sector left in place it would, and an old system that reports to the hub would even be
//! taken for the new one. Both hold because everything is done twice, see `flow::Job`:
//!
//! 1. The rehearsal: the whole image is fetched, unpacked and checked (sum, length, partition table, room on the disk, place
//!    for the config) against a target that writes nothing. Until it ends well, not one byte of the disk changes. What was
//!    fetched is kept in memory if it fits into half of what is free; if not, it is fetched again.
//! 2. The writing: the first and the last MiB of the disk are erased, so that a machine that loses power now falls through
//!    to its next boot device, which is discovery; everything behind the first MiB is written and synced; sum and length
//!    are checked once more when it was fetched again; the config is placed; and the first MiB, which makes the disk
//!    bootable, is written last. Whoever starts over after a power cut starts at 1, and nothing of the half counts.

use super::area::{self, Area};
use crate::collect::partition;
use anyhow::Context as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

const HEAD: usize = partition::HEAD_BYTES;
/// A multiple of every block size, large enough for a disk's own pace.
const PIECE: usize = 4 << 20;
/// What may be in memory but not on the disk; more would make the last sync look like a hang.
const UNSYNCED: u64 = 256 << 20;

/// The disk to write to; without a file nothing is written.
#[derive(Debug)]
pub struct Target {
    file: Option<File>,
    size: u64,
}

impl Target {
    /// For ourselves alone: a disk that is mounted, or part of something that runs, is refused by the kernel.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_device = std::fs::metadata(path)?.file_type().is_block_device();
        let flags = if is_device { libc::O_EXCL } else { 0 };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(path)?;
        let size = file.seek(SeekFrom::End(0))?;
        Ok(Self {
            file: Some(file),
            size,
        })
    }

    /// Does everything but write.
    pub fn pretend(size: u64) -> Self {
        Self { file: None, size }
    }

    /// A file as it is, with a size that need not be its own.
    pub fn of(file: File, size: u64) -> Self {
        Self {
            file: Some(file),
            size,
        }
    }

    fn put(&self, offset: u64, bytes: &[u8]) -> anyhow::Result<()> {
        let end = offset + bytes.len() as u64;
        anyhow::ensure!(
            end <= self.size,
            "the image is larger than the disk, which has {} bytes",
            self.size
        );
        if let Some(file) = &self.file {
            file.write_all_at(bytes, offset)
                .with_context(|| format!("writing to the disk failed at byte {offset}"))?;
        }
        Ok(())
    }

    fn sync(&self) -> anyhow::Result<()> {
        match &self.file {
            Some(file) => file.sync_data().context("the disk does not keep what is written"),
            None => Ok(()),
        }
    }

    fn erase_ends(&self) -> anyhow::Result<()> {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let zeros = vec![0; HEAD.min(size)];
        self.put(0, &zeros)?;
        if self.size > 2 * HEAD as u64 {
            // The second partition table is at the end.
            self.put(self.size - HEAD as u64, &zeros)?;
        }
        self.sync()
    }
}

/// An image that is on the disk but for its first MiB.
#[derive(Debug)]
pub struct Written {
    head: Vec<u8>,
    pub length: u64,
    area: Option<Area>,
}

fn fill(image: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match image.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Writes all of the image but its first MiB. `tell` is called after each piece.
pub fn write_body(image: &mut dyn Read, target: &Target, mut tell: impl FnMut()) -> anyhow::Result<Written> {
    let mut head = vec![0; HEAD];
    let length = fill(image, &mut head).context("cannot read the image")?;
    head.truncate(length);
    anyhow::ensure!(length >= 512, "the image is too short to be one");
    let is_bootable = partition::has_boot_signature(&head) || !partition::read(&head).is_empty();
    anyhow::ensure!(
        is_bootable,
        "this is not an image of a disk: it has neither a boot sector nor a partition table"
    );
    target.erase_ends()?;
    let mut written = Written {
        area: area::from_table(&head).or_else(|| area::from_marker(&head, 0)),
        head,
        length: length as u64,
    };
    let mut piece = vec![0; PIECE];
    let mut unsynced = 0;
    loop {
        let length = fill(image, &mut piece).context("cannot read the image")?;
        if length == 0 {
            break;
        }
        let piece = &piece[..length];
        target.put(written.length, piece)?;
        written.area = written.area.or_else(|| area::from_marker(piece, written.length));
        written.length += length as u64;
        unsynced += length as u64;
        if unsynced >= UNSYNCED {
            target.sync()?;
            unsynced = 0;
        }
        tell();
    }
    target.sync()?;
    Ok(written)
}

impl Written {
    /// An image with a partition table tells how long it must be.
    pub fn check_length(&self) -> anyhow::Result<()> {
        // `ee` only stands for "there is a newer table".
        let parts = partition::read(&self.head)
            .into_iter()
            .filter(|part| part.kind != "ee");
        let ends = parts.map(|part| part.start_byte.saturating_add(part.length_bytes));
        let needed = ends.max().unwrap_or_default();
        anyhow::ensure!(
            self.length >= needed,
            "the image ends after {} bytes, but its partitions need {needed}",
            self.length
        );
        Ok(())
    }

    /// Places the config and makes the disk bootable.
    pub fn complete(mut self, target: &Target, config: Option<&[u8]>) -> anyhow::Result<()> {
        if let Some(config) = config {
            let area = self.area.context(
                "the image has no place for the config of its host: it needs a partition labelled muster-config or a marked area",
            )?;
            let record = area::record(area, config).with_context(|| {
                format!(
                    "the config of this host does not fit into the image's {} bytes for it",
                    area.length_bytes
                )
            })?;
            self.place(target, area.start_byte, &record)?;
        }
        target.sync()?;
        target.put(0, &self.head)?;
        target.sync()
    }

    /// What lies in the first MiB is not on the disk yet.
    fn place(&mut self, target: &Target, start: u64, record: &[u8]) -> anyhow::Result<()> {
        let inside = usize::try_from(start).unwrap_or(usize::MAX).min(self.head.len());
        let in_head = (self.head.len() - inside).min(record.len());
        self.head[inside..inside + in_head].copy_from_slice(&record[..in_head]);
        target.put(start + in_head as u64, &record[in_head..])
    }
}
