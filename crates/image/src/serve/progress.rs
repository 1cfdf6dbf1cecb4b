//! How far each client has read: "10.0.0.7 has 40 % of the minimal image of InfraEnv X".

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Twice the largest site we serve; beyond, who rested longest is forgotten.
const MOST_READERS: usize = 20_000;
/// A BMC jumps about; more pieces than this are joined over the smallest gap.
const MOST_PIECES: usize = 128;

/// Who reads what.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reader {
    pub client: IpAddr,
    /// The InfraEnv, or version and architecture for what is not of one.
    pub image: String,
    /// `full.iso`, `rootfs`, …
    pub artifact: String,
}

#[derive(Debug)]
struct Reading {
    etag: String,
    total: u64,
    pieces: Vec<Range<u64>>,
    sent: u64,
    streams: u32,
    last: Instant,
}

/// The progress of one reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    #[serde(flatten)]
    pub reader: Reader,
    pub total_bytes: u64,
    /// Distinct bytes of the image.
    pub read_bytes: u64,
    /// All bytes sent, the same ones twice if asked twice.
    pub sent_bytes: u64,
    pub percent: u8,
    pub streams: u32,
    pub idle_seconds: u64,
}

/// All readers together, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Replies on their way now.
    pub streams: u64,
    /// Replies begun.
    pub replies: u64,
    pub sent_bytes: u64,
}

#[derive(Debug, Default)]
pub struct Readers {
    known: Mutex<HashMap<Reader, Reading>>,
    begun: AtomicU64,
    ended: AtomicU64,
    sent: AtomicU64,
}

impl Readers {
    /// A stream begins. Another representation starts the count anew.
    pub fn begin(&self, reader: &Reader, etag: &str, total: u64) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let mut known = self.lock();
        if known.len() >= MOST_READERS && !known.contains_key(reader) {
            forget_oldest(&mut known);
        }
        let reading = known
            .entry(reader.clone())
            .or_insert_with(|| Reading::new(etag, total));
        if reading.etag != etag {
            let streams = reading.streams;
            *reading = Reading::new(etag, total);
            reading.streams = streams;
        }
        reading.streams += 1;
        reading.last = Instant::now();
    }

    pub fn advance(&self, reader: &Reader, etag: &str, part: Range<u64>) {
        self.sent.fetch_add(part.end - part.start, Ordering::Relaxed);
        if let Some(reading) = self.lock().get_mut(reader).filter(|reading| reading.etag == etag) {
            reading.sent += part.end - part.start;
            reading.last = Instant::now();
            join(&mut reading.pieces, part);
        }
    }

    pub fn end(&self, reader: &Reader) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        if let Some(reading) = self.lock().get_mut(reader) {
            reading.streams = reading.streams.saturating_sub(1);
        }
    }

    pub fn totals(&self) -> Totals {
        // In this order a stream that ends meanwhile is not counted as minus one.
        let ended = self.ended.load(Ordering::Relaxed);
        let replies = self.begun.load(Ordering::Relaxed);
        Totals {
            streams: replies.saturating_sub(ended),
            replies,
            sent_bytes: self.sent.load(Ordering::Relaxed),
        }
    }

    /// Those of one image, or all; latest first.
    pub fn list(&self, image: Option<&str>) -> Vec<Progress> {
        let mut list: Vec<Progress> = self
            .lock()
            .iter()
            .filter(|(reader, _)| image.is_none_or(|image| reader.image == image))
            .map(|(reader, reading)| reading.told(reader))
            .collect();
        list.sort_by(|a, b| (a.idle_seconds, &a.reader.image).cmp(&(b.idle_seconds, &b.reader.image)));
        list
    }

    /// Drops those who rest longer than this.
    pub fn forget(&self, resting: Duration) {
        self.lock()
            .retain(|_, reading| reading.streams > 0 || reading.last.elapsed() < resting);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Reader, Reading>> {
        self.known.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

impl Reading {
    fn new(etag: &str, total: u64) -> Reading {
        Reading {
            etag: etag.to_owned(),
            total,
            pieces: Vec::new(),
            sent: 0,
            streams: 0,
            last: Instant::now(),
        }
    }

    fn told(&self, reader: &Reader) -> Progress {
        let read: u64 = self.pieces.iter().map(|piece| piece.end - piece.start).sum();
        let percent = (read * 100).checked_div(self.total).unwrap_or(100);
        Progress {
            reader: reader.clone(),
            total_bytes: self.total,
            read_bytes: read,
            sent_bytes: self.sent,
            percent: u8::try_from(percent).unwrap_or(100),
            streams: self.streams,
            idle_seconds: self.last.elapsed().as_secs(),
        }
    }
}

fn forget_oldest(known: &mut HashMap<Reader, Reading>) {
    // An eighth at once, so that a flood of new clients does not sort the list for each of them.
    let mut ages: Vec<Instant> = known.values().map(|reading| reading.last).collect();
    ages.sort_unstable();
    let limit = ages[ages.len() / 8];
    known.retain(|_, reading| reading.last > limit);
}

/// Keeps pieces sorted and apart.
fn join(pieces: &mut Vec<Range<u64>>, new: Range<u64>) {
    if new.is_empty() {
        return;
    }
    let first = pieces.partition_point(|piece| piece.end < new.start);
    let last = pieces.partition_point(|piece| piece.start <= new.end);
    let merged = if first < last {
        new.start.min(pieces[first].start)..new.end.max(pieces[last - 1].end)
    } else {
        new
    };
    pieces.splice(first..last, [merged]);
    if pieces.len() > MOST_PIECES {
        let gap = |number: &usize| pieces[number + 1].start - pieces[*number].end;
        let closest = (0..pieces.len() - 1)
            .min_by_key(gap)
            .expect("there are two pieces at least");
        let end = pieces[closest + 1].end;
        pieces[closest].end = end;
        pieces.remove(closest + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_read_twice_count_once_and_a_new_image_starts_anew() {
        let readers = Readers::default();
        let reader = Reader {
            client: [10, 0, 0, 7].into(),
            image: "x".into(),
            artifact: "full.iso".into(),
        };
        readers.begin(&reader, "a", 100);
        readers.advance(&reader, "a", 0..20);
        readers.advance(&reader, "a", 10..40);
        let told = &readers.list(Some("x"))[0];
        assert_eq!(
            (told.percent, told.read_bytes, told.sent_bytes, told.streams),
            (40, 40, 50, 1)
        );
        readers.end(&reader);
        readers.begin(&reader, "b", 200);
        readers.advance(&reader, "a", 40..60);
        let told = &readers.list(None)[0];
        assert_eq!((told.percent, told.total_bytes), (0, 200));
        assert!(readers.list(Some("y")).is_empty());
        let all = readers.totals();
        assert_eq!((all.streams, all.replies, all.sent_bytes), (1, 2, 70));
    }

    proptest! {
        #[test]
        fn pieces_are_the_union_of_what_was_read(list in prop::collection::vec((0u64..200, 0u64..20), 0..60)) {
            let mut pieces = Vec::new();
            let mut seen = [false; 256];
            for (start, len) in list {
                join(&mut pieces, start..start + len);
                seen[usize::try_from(start).unwrap()..usize::try_from(start + len).unwrap()].fill(true);
            }
            let total: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
            prop_assert_eq!(total, seen.iter().filter(|seen| **seen).count() as u64);
            prop_assert!(pieces.windows(2).all(|two| two[0].end < two[1].start));
        }
    }
}
