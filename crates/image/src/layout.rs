//! A file that is never written down: an ordered list of file ranges, bytes and zeros.

use axum::body::Bytes;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Where the bytes of a segment come from.
#[derive(Clone, Debug)]
pub enum Content {
    /// The file must never change while it is open: base images are written aside and renamed into place.
    File {
        file: Arc<File>,
        at: u64,
    },
    Bytes(Bytes),
    Zeros,
}

#[derive(Clone, Debug)]
pub struct Segment {
    pub content: Content,
    pub len: u64,
}

impl Segment {
    fn part(&self, skip: u64, len: u64) -> Segment {
        let content = match &self.content {
            Content::File { file, at } => Content::File {
                file: Arc::clone(file),
                at: at + skip,
            },
            Content::Bytes(bytes) => Content::Bytes(bytes.slice(index(skip)..index(skip + len))),
            Content::Zeros => Content::Zeros,
        };
        Segment { content, len }
    }

    /// Fills the buffer from `skip` on; the caller keeps within the segment.
    fn read(&self, skip: u64, buffer: &mut [u8]) -> io::Result<()> {
        match &self.content {
            Content::File { file, at } => file.read_exact_at(buffer, at + skip),
            Content::Bytes(bytes) => {
                buffer.copy_from_slice(&bytes[index(skip)..index(skip) + buffer.len()]);
                Ok(())
            }
            Content::Zeros => {
                buffer.fill(0);
                Ok(())
            }
        }
    }
}

/// Positions inside bytes held in memory always fit.
fn index(position: u64) -> usize {
    usize::try_from(position).expect("bytes in memory are addressed by usize")
}

#[derive(Clone, Debug, Default)]
pub struct Layout {
    segments: Vec<Segment>,
    /// Where each segment ends; makes finding a position a binary search.
    ends: Vec<u64>,
}

impl Layout {
    pub fn of_file(file: &Arc<File>, range: Range<u64>) -> Layout {
        let mut layout = Layout::default();
        layout.push_file(file, range);
        layout
    }

    pub fn of_bytes(bytes: impl Into<Bytes>) -> Layout {
        let mut layout = Layout::default();
        layout.push_bytes(bytes);
        layout
    }

    pub fn of_zeros(len: u64) -> Layout {
        let mut layout = Layout::default();
        layout.push_zeros(len);
        layout
    }

    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub fn push(&mut self, segment: Segment) {
        if segment.len > 0 {
            self.ends.push(self.len() + segment.len);
            self.segments.push(segment);
        }
    }

    pub fn push_file(&mut self, file: &Arc<File>, range: Range<u64>) {
        let content = Content::File {
            file: Arc::clone(file),
            at: range.start,
        };
        self.push(Segment {
            content,
            len: range.end - range.start,
        });
    }

    pub fn push_bytes(&mut self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        let len = bytes.len() as u64;
        self.push(Segment {
            content: Content::Bytes(bytes),
            len,
        });
    }

    pub fn push_zeros(&mut self, len: u64) {
        self.push(Segment {
            content: Content::Zeros,
            len,
        });
    }

    /// Zeros up to the next multiple of `unit`.
    pub fn pad_to(&mut self, unit: u64) {
        self.push_zeros(self.len().next_multiple_of(unit) - self.len());
    }

    pub fn append(&mut self, other: Layout) {
        for segment in other.segments {
            self.push(segment);
        }
    }

    /// The part of this layout in `range`, cut at the end.
    pub fn slice(&self, range: Range<u64>) -> Layout {
        let mut layout = Layout::default();
        self.copy_into(&mut layout, range);
        layout
    }

    fn copy_into(&self, target: &mut Layout, range: Range<u64>) {
        let end = range.end.min(self.len());
        let mut at = range.start;
        let mut number = self.ends.partition_point(|e| *e <= at);
        while at < end {
            let segment = &self.segments[number];
            let skip = at - (self.ends[number] - segment.len);
            let len = (segment.len - skip).min(end - at);
            target.push(segment.part(skip, len));
            at += len;
            number += 1;
        }
    }

    /// The same bytes with `patches` laid over them. Patches are sorted here, must not overlap each other, and must lie
    /// inside.
    pub fn overlaid(&self, mut patches: Vec<(u64, Layout)>) -> Layout {
        patches.sort_by_key(|(at, _)| *at);
        let mut layout = Layout::default();
        let mut at = 0;
        for (start, patch) in patches {
            debug_assert!(
                at <= start && start + patch.len() <= self.len(),
                "patches are apart and inside"
            );
            self.copy_into(&mut layout, at..start);
            at = start + patch.len();
            layout.append(patch);
        }
        self.copy_into(&mut layout, at..self.len());
        layout
    }

    /// Reads exactly the buffer from `offset` on. May wait for the disk.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut at, mut rest) = (offset, buffer);
        let mut number = self.ends.partition_point(|e| *e <= at);
        while !rest.is_empty() {
            let segment = &self.segments[number];
            let skip = at - (self.ends[number] - segment.len);
            let len = index((segment.len - skip).min(rest.len() as u64));
            let (now, later) = rest.split_at_mut(len);
            segment.read(skip, now)?;
            (rest, at, number) = (later, at + len as u64, number + 1);
        }
        Ok(())
    }

    /// A part as bytes; for metadata, never for whole images.
    pub fn bytes(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        // Lengths come from images: what is not there takes no memory either.
        if range.end > self.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut buffer = vec![0; index(range.end.saturating_sub(range.start))];
        self.read_at(range.start, &mut buffer)?;
        Ok(buffer)
    }
}
