//! Base images on disk: fetched when first needed, once for all who wait, checked, kept within a bound.

mod download;
mod room;
mod shelf;

use crate::base::{self, Base};
use crate::catalog::OsImage;
use crate::error::ImageError;
use download::{DownloadError, Watcher};
use muster_vocabulary::{BaseImageState, Word};
use serde::{Deserialize, Serialize};
use shelf::{Held, Kind, Record, Shelf};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// After a failure, those who ask within this time get the error instead of trying again.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// The same for what was fetched whole and is wrong: a gigabyte is not fetched every ten seconds to be refused again.
const REST_AFTER_WRONG_IMAGE: Duration = Duration::from_secs(300);
/// Use is recorded on disk at most this often.
const TOUCH_EVERY: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hub could not fetch the base image {version} ({architecture}): {why}")]
pub struct DepotError {
    pub version: String,
    pub architecture: String,
    pub why: String,
}

/// What a base image is doing.
#[derive(Clone, Debug)]
pub enum State {
    Fetching {
        done_bytes: u64,
        total_bytes: Option<u64>,
    },
    /// Looking for areas and counting the checksum.
    Importing,
    Ready(Arc<Base>),
    Failed {
        why: String,
        /// From when on it is tried again, if somebody asks.
        again: Instant,
    },
}

/// For people and metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub architecture: String,
    pub state: Word<BaseImageState>,
    pub done_bytes: u64,
    pub total_bytes: Option<u64>,
    pub why: Option<String>,
}

#[derive(Clone)]
pub struct Depot {
    inner: Arc<Inner>,
}

struct Inner {
    shelf: Shelf,
    bound_bytes: u64,
    agent: ureq::Agent,
    slots: Mutex<HashMap<String, Slot>>,
    /// Bytes promised to images that are being prepared. Whoever makes room holds this, so that two that come at once
    /// are not both given the same room.
    promised: Mutex<HashMap<String, u64>>,
    evictions: AtomicU64,
}

struct Slot {
    image: OsImage,
    state: watch::Sender<State>,
    touched: Instant,
}

impl Depot {
    /// `bound_bytes` is for what was fetched; local files are used where they are and do not count.
    pub fn open(dir: &Path, bound_bytes: u64) -> io::Result<Depot> {
        let inner = Inner {
            shelf: Shelf::open(dir)?,
            bound_bytes,
            agent: download::agent(),
            slots: Mutex::new(HashMap::new()),
            promised: Mutex::default(),
            evictions: AtomicU64::new(0),
        };
        Ok(Depot {
            inner: Arc::new(inner),
        })
    }

    /// Waits until the image is here. All who ask for the same image wait for the same download, which goes on when
    /// they leave.
    pub async fn get(&self, image: &OsImage) -> Result<Arc<Base>, DepotError> {
        let mut state = self.watch(image);
        let done = state
            .wait_for(|state| matches!(state, State::Ready(_) | State::Failed { .. }))
            .await;
        let failed = |why: String| DepotError {
            version: image.version.clone(),
            architecture: image.cpu_architecture.clone(),
            why,
        };
        match done.as_deref() {
            Ok(State::Ready(base)) => Ok(Arc::clone(base)),
            Ok(State::Failed { why, .. }) => Err(failed(why.clone())),
            Ok(State::Fetching { .. } | State::Importing) | Err(_) => {
                Err(failed("somebody removed it meanwhile".into()))
            }
        }
    }

    /// Starts fetching unless it is here or on its way; returns at once.
    pub fn watch(&self, image: &OsImage) -> watch::Receiver<State> {
        let key = shelf::key(image);
        let mut slots = self.inner.lock();
        if let Some(slot) = slots.get_mut(&key) {
            let is_over = match &*slot.state.borrow() {
                State::Failed { again, .. } => Instant::now() >= *again,
                State::Ready(_) | State::Fetching { .. } | State::Importing => false,
            };
            if !is_over {
                if slot.touched.elapsed() >= TOUCH_EVERY {
                    slot.touched = Instant::now();
                    self.inner.shelf.touch(&key);
                }
                return slot.state.subscribe();
            }
        }
        let (sender, receiver) = watch::channel(State::Fetching {
            done_bytes: 0,
            total_bytes: None,
        });
        let slot = Slot {
            image: image.clone(),
            state: sender.clone(),
            touched: Instant::now(),
        };
        slots.insert(key.clone(), slot);
        let (inner, image) = (Arc::clone(&self.inner), image.clone());
        tokio::task::spawn_blocking(move || {
            let state = match inner.prepare(&key, &image, &sender) {
                Ok(base) => State::Ready(Arc::new(base)),
                Err(error) => {
                    let why = chain(&error);
                    tracing::warn!(version = image.version, why, "cannot fetch a base image");
                    State::Failed {
                        why,
                        again: Instant::now() + rest(&error, &image),
                    }
                }
            };
            sender.send_replace(state);
        });
        receiver
    }

    pub fn list(&self) -> Vec<Status> {
        self.inner.lock().values().map(Slot::status).collect()
    }

    /// What fetched images take on disk, with those that are on their way.
    pub fn taken_bytes(&self) -> u64 {
        let held = self.inner.shelf.held().unwrap_or_default();
        held.iter().map(|held| held.len).sum()
    }

    pub fn bound_bytes(&self) -> u64 {
        self.inner.bound_bytes
    }

    /// Grows with each image that had to go; whoever keeps files open looks whether it was theirs.
    pub fn evictions(&self) -> u64 {
        self.inner.evictions.load(Ordering::Acquire)
    }

    /// Whether this image is still held.
    pub fn holds(&self, sha256: &str) -> bool {
        let is_it = |slot: &Slot| match &*slot.state.borrow() {
            State::Ready(base) => base.areas.sha256 == sha256,
            State::Fetching { .. } | State::Importing | State::Failed { .. } => false,
        };
        self.inner.lock().values().any(is_it)
    }
}

#[derive(Debug, thiserror::Error)]
enum PrepareError {
    #[error("the hub cannot fetch it")]
    Download(#[from] DownloadError),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("its checksum is {found}, not {expected}")]
    Checksum { found: String, expected: String },
    #[error("the hub cannot use the file")]
    Disk(#[from] io::Error),
}

/// A local file may be mended at any moment, and looking again costs little.
fn rest(error: &PrepareError, image: &OsImage) -> Duration {
    match error {
        PrepareError::Image(_) | PrepareError::Checksum { .. } if local(&image.url).is_none() => {
            REST_AFTER_WRONG_IMAGE
        }
        PrepareError::Image(_)
        | PrepareError::Checksum { .. }
        | PrepareError::Download(_)
        | PrepareError::Disk(_) => REST_AFTER_FAILURE,
    }
}

impl Inner {
    fn prepare(
        &self,
        key: &str,
        image: &OsImage,
        state: &watch::Sender<State>,
    ) -> Result<Base, PrepareError> {
        if let Some(path) = local(&image.url) {
            return self.local(key, image, &path, state);
        }
        let _promise = self.promise(key);
        let path = self.shelf.image(key);
        if path.exists() {
            match self.known(key, image, &path, state) {
                Ok(base) => return Ok(base),
                Err(error) => {
                    tracing::warn!(
                        version = image.version,
                        why = chain(&error),
                        "fetching a base image anew that is on disk"
                    );
                    self.shelf.remove(key)?;
                }
            }
        }
        let part = self.shelf.part(key);
        let watcher = Telling {
            inner: self,
            key,
            state,
        };
        download::fetch(&self.agent, &image.url, &part, &watcher)?;
        state.send_replace(State::Importing);
        let file = Arc::new(File::open(&part)?);
        let areas = base::import(&file)
            .map_err(PrepareError::Image)
            .and_then(|areas| checked(areas, image));
        let areas = areas.inspect_err(|_| download::forget(&part))?;
        let record = Record {
            areas,
            modified: None,
        };
        self.shelf.keep_record(key, &record)?;
        fs::rename(&part, &path)?;
        download::forget_mark(&part);
        // Once more with what it really has: nobody is to find more here than the bound allows.
        let len = record.areas.len;
        if let Err(error) = self.make_room(key, len, len) {
            tracing::warn!(%error, key, "base images take more room than they may");
        }
        Ok(Base::open(file, record.areas)?)
    }

    /// Nothing of this image goes while it is being prepared, and the room it asks for is its own until then.
    fn promise<'a>(&'a self, key: &'a str) -> Promise<'a> {
        self.promises().insert(key.to_owned(), 0);
        Promise { inner: self, key }
    }

    /// Fetched in an earlier life.
    fn known(
        &self,
        key: &str,
        image: &OsImage,
        path: &Path,
        state: &watch::Sender<State>,
    ) -> Result<Base, PrepareError> {
        let file = Arc::new(File::open(path)?);
        let record = match self.shelf.record(key) {
            Some(record) => record,
            None => {
                state.send_replace(State::Importing);
                let areas = checked(base::import(&file)?, image)?;
                let record = Record {
                    areas,
                    modified: None,
                };
                self.shelf.keep_record(key, &record)?;
                record
            }
        };
        self.shelf.touch(key);
        Ok(Base::open(file, record.areas)?)
    }

    fn local(
        &self,
        key: &str,
        image: &OsImage,
        path: &Path,
        state: &watch::Sender<State>,
    ) -> Result<Base, PrepareError> {
        let file = Arc::new(File::open(path)?);
        let data = file.metadata()?;
        let modified = Some(data.modified()?);
        let known = self
            .shelf
            .record(key)
            .filter(|record| record.modified == modified && record.areas.len == data.len());
        let areas = match known {
            Some(record) => record.areas,
            None => {
                state.send_replace(State::Importing);
                let areas = checked(base::import(&file)?, image)?;
                let record = Record { areas, modified };
                self.shelf.keep_record(key, &record)?;
                record.areas
            }
        };
        Ok(Base::open(file, areas)?)
    }

    /// Removes the least recently used until the new one fits, both within the bound and on the disk.
    fn make_room(&self, key: &str, need: u64, have: u64) -> Result<(), DownloadError> {
        let mut promised = self.promises();
        let question = room::Question {
            key,
            need,
            have,
            held: self.shelf.held()?,
            promised: &promised,
            bound: self.bound_bytes,
            free: self.shelf.free()?,
        };
        for old in room::leaving(question).map_err(DownloadError::Room)? {
            self.evict(&old)?;
        }
        promised.insert(key.to_owned(), need);
        Ok(())
    }

    fn evict(&self, old: &Held) -> io::Result<()> {
        match old.kind {
            Kind::Whole => {
                tracing::info!(
                    key = old.key,
                    bytes = old.len,
                    "deleting a base image to make room"
                );
                self.shelf.remove(&old.key)?;
                self.lock().remove(&old.key);
                self.evictions.fetch_add(1, Ordering::Release);
            }
            Kind::Begun => {
                tracing::info!(
                    key = old.key,
                    bytes = old.len,
                    "deleting a download that broke off, to make room"
                );
                download::forget(&self.shelf.part(&old.key));
            }
        }
        Ok(())
    }

    fn promises(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.promised.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.slots.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

/// Given back when the image is here or there is no hope.
struct Promise<'a> {
    inner: &'a Inner,
    key: &'a str,
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.inner.promises().remove(self.key);
    }
}

struct Telling<'a> {
    inner: &'a Inner,
    key: &'a str,
    state: &'a watch::Sender<State>,
}

impl Watcher for Telling<'_> {
    fn advanced(&self, done_bytes: u64, total_bytes: Option<u64>) {
        self.state.send_replace(State::Fetching {
            done_bytes,
            total_bytes,
        });
    }

    fn room(&self, total: u64, have: u64) -> Result<(), DownloadError> {
        self.inner.make_room(self.key, total, have)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a thread of its own that waits for a server to come back"
    )]
    fn rest(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

impl Slot {
    fn status(&self) -> Status {
        let (state, done_bytes, total_bytes, why) = match &*self.state.borrow() {
            State::Fetching {
                done_bytes,
                total_bytes,
            } => (BaseImageState::Fetching, *done_bytes, *total_bytes, None),
            State::Importing => (BaseImageState::Importing, 0, None, None),
            State::Ready(base) => (BaseImageState::Ready, base.areas.len, Some(base.areas.len), None),
            State::Failed { why, .. } => (BaseImageState::Failed, 0, None, Some(why.clone())),
        };
        Status {
            version: self.image.version.clone(),
            architecture: self.image.cpu_architecture.clone(),
            state: state.into(),
            done_bytes,
            total_bytes,
            why,
        }
    }
}

fn checked(areas: base::areas::Areas, image: &OsImage) -> Result<base::areas::Areas, PrepareError> {
    match &image.sha256 {
        Some(expected) if !expected.eq_ignore_ascii_case(&areas.sha256) => Err(PrepareError::Checksum {
            found: areas.sha256,
            expected: expected.to_ascii_lowercase(),
        }),
        Some(_) | None => Ok(areas),
    }
}

fn local(url: &str) -> Option<PathBuf> {
    match url.split_once("://") {
        Some(("file", path)) => Some(PathBuf::from(path)),
        Some(_) => None,
        None => Some(PathBuf::from(url)),
    }
}

/// The error and what caused it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
