//! Counts what a stream has sent, and gives back its pass at the end.

use super::gate::Pass;
use super::progress::{Reader, Readers};
use std::ops::Range;
use std::sync::Arc;

/// Progress is counted in steps of this, so that counting costs nothing.
const STEP: u64 = 1024 * 1024;

pub struct Meter {
    readers: Arc<Readers>,
    reader: Reader,
    etag: String,
    parts: std::vec::IntoIter<Range<u64>>,
    part: Range<u64>,
    unsaid: u64,
    _pass: Option<Pass>,
}

impl Meter {
    pub(super) fn new(
        readers: &Arc<Readers>,
        reader: Reader,
        etag: &str,
        total: u64,
        parts: Vec<Range<u64>>,
        pass: Option<Pass>,
    ) -> Meter {
        readers.begin(&reader, etag, total);
        let mut parts = parts.into_iter();
        Meter {
            readers: Arc::clone(readers),
            reader,
            etag: etag.to_owned(),
            part: parts.next().unwrap_or_default(),
            parts,
            unsaid: 0,
            _pass: pass,
        }
    }

    /// These many bytes of the body went out. The lines between parts are counted as if they were parts of the image:
    /// some hundred bytes that nobody will miss.
    pub fn sent(&mut self, bytes: u64) {
        self.unsaid += bytes;
        if self.unsaid >= STEP {
            self.tell();
        }
    }

    fn tell(&mut self) {
        while self.unsaid > 0 {
            let step = self.unsaid.min(self.part.end - self.part.start);
            if step > 0 {
                let done = self.part.start..self.part.start + step;
                self.part.start = done.end;
                self.unsaid -= step;
                self.readers.advance(&self.reader, &self.etag, done);
            }
            if self.part.is_empty() {
                match self.parts.next() {
                    Some(next) => self.part = next,
                    None => self.unsaid = 0,
                }
            }
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.tell();
        self.readers.end(&self.reader);
    }
}
