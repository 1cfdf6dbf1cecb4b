//! Fetches one base image into a file beside its place; what came before a break is not fetched again.

use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;
use ureq::Agent;
use ureq::http::{HeaderMap, Response, StatusCode, header};

/// A server that sends nothing for this long is gone.
const STALL: Duration = Duration::from_secs(60);
/// Tries in a row that brought not one byte.
const MOST_VAIN_TRIES: u32 = 8;
const LONGEST_REST: Duration = Duration::from_secs(30);
const PIECE: usize = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error("the server answers {0}")]
    Refused(StatusCode),
    #[error("cannot reach the server, or it broke off: {0}")]
    Network(String),
    #[error("{0}")]
    Room(String),
    #[error("cannot write the file")]
    Disk(#[from] io::Error),
}

/// What is known of a file that is partly here, so that the rest is of the same file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Mark {
    url: String,
    validator: Option<String>,
}

/// Who watches the download, and may stop it.
pub(super) trait Watcher {
    /// `total` is unknown when the server does not tell.
    fn advanced(&self, done: u64, total: Option<u64>);
    /// Called before the first byte is written; `have` bytes of it are on the disk already.
    fn room(&self, total: u64, have: u64) -> Result<(), DownloadError>;
    /// Waits between tries; a real clock outside of tests.
    fn rest(&self, time: Duration);
}

pub(super) fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(STALL))
        .timeout_per_read(Some(STALL))
        .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

/// Blocks until the whole file is at `part` or there is no hope.
pub(super) fn fetch(
    agent: &Agent,
    url: &str,
    part: &Path,
    watcher: &dyn Watcher,
) -> Result<(), DownloadError> {
    let mut vain = 0;
    loop {
        let before = len(part);
        let error = match attempt(agent, url, part, watcher) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let hopeless = match &error {
            DownloadError::Refused(status) => {
                status.is_client_error()
                    && *status != StatusCode::REQUEST_TIMEOUT
                    && *status != StatusCode::TOO_MANY_REQUESTS
            }
            DownloadError::Network(_) => false,
            DownloadError::Room(_) | DownloadError::Disk(_) => true,
        };
        vain = if len(part) > before { 0 } else { vain + 1 };
        if hopeless || vain >= MOST_VAIN_TRIES {
            // On a full disk others need the room more than we need what was begun.
            if matches!(error, DownloadError::Disk(_)) {
                forget(part);
            }
            return Err(error);
        }
        tracing::warn!(%error, url = %public(url), have_bytes = len(part), "a download broke off; trying again");
        watcher.rest(Duration::from_secs(1 << vain.min(5)).min(LONGEST_REST));
    }
}

fn attempt(agent: &Agent, url: &str, part: &Path, watcher: &dyn Watcher) -> Result<(), DownloadError> {
    let mark = read_mark(part, url);
    let have = if mark.validator.is_some() { len(part) } else { 0 };
    let mut request = agent.get(url).header(header::ACCEPT_ENCODING, "identity");
    if let Some(validator) = mark.validator.as_ref().filter(|_| have > 0) {
        request = request
            .header(header::RANGE, format!("bytes={have}-"))
            .header(header::IF_RANGE, validator);
    }
    let response = request
        .call()
        .map_err(|error| DownloadError::Network(error.to_string()))?;
    match response.status() {
        StatusCode::OK => {
            let total = number(response.headers(), header::CONTENT_LENGTH);
            watcher.room(total.unwrap_or(0), 0)?;
            write_mark(part, url, response.headers())?;
            let file = File::create(part)?;
            receive(response, file, 0, total, watcher)
        }
        StatusCode::PARTIAL_CONTENT => {
            let (start, total) = content_range(response.headers()).unwrap_or((u64::MAX, 0));
            if start != have {
                forget(part);
                return Err(DownloadError::Network(
                    "it sent another part than the hub asked for".into(),
                ));
            }
            watcher.room(total, have)?;
            let file = OpenOptions::new().append(true).open(part)?;
            receive(response, file, have, Some(total), watcher)
        }
        // What we have is the whole, or more than there is now.
        StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => {
            let range = response
                .headers()
                .get(header::CONTENT_RANGE)
                .and_then(|value| value.to_str().ok());
            if range == Some(&format!("bytes */{have}")) {
                return Ok(());
            }
            forget(part);
            Err(DownloadError::Network(
                "it no longer has the file that the hub began to fetch".into(),
            ))
        }
        status => Err(DownloadError::Refused(status)),
    }
}

fn receive(
    response: Response<ureq::Body>,
    mut file: File,
    have: u64,
    total: Option<u64>,
    watcher: &dyn Watcher,
) -> Result<(), DownloadError> {
    let mut reader = response.into_body().into_with_config().limit(u64::MAX).reader();
    let mut buffer = vec![0; PIECE];
    let mut done = have;
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) => return Err(DownloadError::Network(error.to_string())),
        };
        file.write_all(&buffer[..read])?;
        done += read as u64;
        if total.is_none() {
            watcher.room(done, done)?;
        }
        watcher.advanced(done, total);
    }
    if total.is_some_and(|total| total != done) {
        return Err(DownloadError::Network(format!("it ended after {done} bytes")));
    }
    Ok(file.sync_all()?)
}

/// Secrets may be in the query.
fn public(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |data| data.len())
}

fn mark_path(part: &Path) -> std::path::PathBuf {
    part.with_extension("mark")
}

fn read_mark(part: &Path, url: &str) -> Mark {
    let mark = fs::read(mark_path(part))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Mark>(&bytes).ok());
    mark.filter(|mark| mark.url == public(url)).unwrap_or_default()
}

/// Only a strong ETag or a date tells for sure that it is the same file.
fn write_mark(part: &Path, url: &str, headers: &HeaderMap) -> io::Result<()> {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let etag = text(header::ETAG).filter(|etag| etag.starts_with('"'));
    let mark = Mark {
        url: public(url).to_owned(),
        validator: etag.or_else(|| text(header::LAST_MODIFIED)),
    };
    fs::write(mark_path(part), serde_json::to_vec(&mark)?)
}

/// Removes what was begun.
pub(super) fn forget(part: &Path) {
    for path in [part.to_owned(), mark_path(part)] {
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "a file cannot be removed");
        }
    }
}

pub(super) fn forget_mark(part: &Path) {
    fs::remove_file(mark_path(part)).ok();
}

fn number(headers: &HeaderMap, name: header::HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// First byte and total of `bytes A-B/TOTAL`.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64)> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, total.parse().ok()?))
}
