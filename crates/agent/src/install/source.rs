//! A file from an HTTP server, read as if the network never broke: what is lost is asked for again from where it ended.

use crate::clock::{Backoff, Clock};
use crate::http::Http;
use crate::note;
use anyhow::Context as _;
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Without any new byte for so long, nobody waits any more: hubs give a host half an hour for this stage.
const PATIENCE: Duration = Duration::from_secs(25 * 60);
/// Answers such as 404 may pass while a hub starts, but not for ever.
const REFUSALS: u32 = 10;

/// How to get it.
#[derive(Debug, Clone)]
pub struct Fetch {
    pub http: Http,
    pub clock: Arc<dyn Clock>,
    pub url: String,
}

pub struct Source {
    fetch: Fetch,
    cancel: Arc<AtomicBool>,
    reader: Option<Box<dyn Read + Send>>,
    at: u64,
    total: Option<u64>,
    etag: Option<String>,
    hash: Sha256,
    refusals: u32,
    backoff: Backoff,
    last_byte: Duration,
}

fn backoff() -> Backoff {
    Backoff::new(Duration::from_secs(1), Duration::from_secs(30))
}

/// Retrying is no use.
fn fatal(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// What the server said about the bytes it is about to send.
struct Opened {
    reader: Box<dyn Read + Send>,
    start: u64,
    total: Option<u64>,
    etag: Option<String>,
}

impl Source {
    pub fn new(fetch: Fetch, cancel: Arc<AtomicBool>) -> Self {
        let last_byte = fetch.clock.now();
        Self {
            fetch,
            cancel,
            reader: None,
            at: 0,
            total: None,
            etag: None,
            hash: Sha256::new(),
            refusals: 0,
            backoff: backoff(),
            last_byte,
        }
    }

    /// Part of the file that was read, in percent; nothing while its length is not known.
    pub fn percent(&self) -> Option<u64> {
        self.total
            .filter(|total| *total > 0)
            .map(|total| self.at * 100 / total)
    }

    /// Reads what is left and returns the sum of all bytes.
    pub fn finish(&mut self) -> io::Result<String> {
        let mut rest = vec![0; 64 * 1024];
        while self.read(&mut rest)? > 0 {}
        let sum = self.hash.clone().finalize();
        Ok(sum.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn open(&mut self) -> io::Result<()> {
        let mut request = self.fetch.http.get(&self.fetch.url);
        if self.at > 0 {
            request = request.header("Range", format!("bytes={}-", self.at));
            if let Some(etag) = self.etag.as_ref().filter(|etag| !etag.starts_with("W/")) {
                request = request.header("If-Range", etag);
            }
        }
        let answer = request.call().map_err(io::Error::other)?;
        let header = |name: &str| {
            answer
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        let length = header("content-length").and_then(|text| text.parse::<u64>().ok());
        let (start, total) = match answer.status().as_u16() {
            200 => (0, length),
            206 => parse_range(&header("content-range").unwrap_or_default())
                .ok_or_else(|| fatal("the server sends a part without saying which".into()))?,
            status => return Err(self.refused(status)),
        };
        let etag = header("etag");
        self.accept(Opened {
            reader: Box::new(answer.into_body().into_reader()),
            start,
            total,
            etag,
        })
    }

    fn refused(&mut self, status: u16) -> io::Error {
        self.refusals += 1;
        let text = format!("{} answers {status}", self.fetch.url);
        let may_pass = status >= 500 || matches!(status, 408 | 429);
        if may_pass || self.refusals < REFUSALS {
            io::Error::other(text)
        } else {
            fatal(text)
        }
    }

    /// A file that is another one than before must not be continued.
    fn accept(&mut self, opened: Opened) -> io::Result<()> {
        let changed = self.at > 0 && (differ(&self.total, &opened.total) || differ(&self.etag, &opened.etag));
        if changed || opened.start > self.at {
            return Err(fatal(format!(
                "{} changed while it was being read",
                self.fetch.url
            )));
        }
        let mut reader = opened.reader;
        // A server that cannot send parts starts anew: what we have is read past.
        let skip = self.at - opened.start;
        if skip > 0 && io::copy(&mut (&mut reader).take(skip), &mut io::sink())? < skip {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.reader = Some(reader);
        self.total = self.total.or(opened.total);
        self.etag = self.etag.take().or(opened.etag);
        Ok(())
    }

    fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.reader.is_none() {
            self.open()?;
        }
        let Some(reader) = &mut self.reader else {
            return Ok(0);
        };
        let length = reader.read(buffer)?;
        if length == 0 && self.total.is_some_and(|total| self.at < total) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(length)
    }

    fn pause(&mut self, error: io::Error) -> io::Result<()> {
        self.reader = None;
        let waited = self.fetch.clock.now().saturating_sub(self.last_byte);
        if error.kind() == io::ErrorKind::InvalidData || waited > PATIENCE {
            return Err(error);
        }
        let pause = self.backoff.next_pause();
        note!(
            "{} at byte {}: {error}; again in {:.1} s",
            self.fetch.url,
            self.at,
            pause.as_secs_f64()
        );
        self.fetch.clock.sleep(pause);
        Ok(())
    }
}

fn differ<T: PartialEq>(before: &Option<T>, now: &Option<T>) -> bool {
    matches!((before, now), (Some(before), Some(now)) if before != now)
}

/// `bytes 5-99/100`: where it starts, and the whole length.
fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split('-').next()?.parse().ok()?, total.parse().ok()))
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.cancel.load(Ordering::SeqCst) {
                return Err(fatal("stopped".into()));
            }
            match self.try_read(buffer) {
                Ok(length) => {
                    self.hash.update(&buffer[..length]);
                    self.at += length as u64;
                    self.last_byte = self.fetch.clock.now();
                    self.refusals = 0;
                    self.backoff = backoff();
                    return Ok(length);
                }
                Err(error) => self.pause(error)?,
            }
        }
    }
}

/// Fetches a whole file; it has its name only when it is complete, and nothing is left of one that is not.
pub fn fetch_file(fetch: &Fetch, path: &Path) -> anyhow::Result<()> {
    let part = path.with_extension("part");
    let fetched = fetch_part(fetch, &part).and_then(|()| Ok(std::fs::rename(&part, path)?));
    if fetched.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    fetched
}

fn fetch_part(fetch: &Fetch, part: &Path) -> anyhow::Result<()> {
    let mut source = Source::new(fetch.clone(), Arc::default());
    let mut file = std::fs::File::create(part).with_context(|| format!("cannot make {}", part.display()))?;
    io::copy(&mut source, &mut file)
        .with_context(|| format!("cannot fetch {} to {}", fetch.url, part.display()))?;
    file.sync_all()
        .with_context(|| format!("cannot keep {}", part.display()))
}
