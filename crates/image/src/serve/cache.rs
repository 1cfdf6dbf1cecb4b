//! Representations that were made, by InfraEnv and time of change, and which of them each client is reading.

use super::path::Artifact;
use super::reply::Representation;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

/// Bytes of payload kept in memory: a thousand InfraEnvs of a quarter megabyte.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// A BMC that reads nothing for this long has let go of its medium.
const PIN: Duration = Duration::from_secs(600);
const MOST_PINS: usize = 20_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The InfraEnv; empty for what is the same for everybody.
    pub id: String,
    pub base_sha256: String,
    pub artifact: Artifact,
}

/// Who reads what, under which address: one that was given out for another edition is another medium, and whoever reads it
/// has begun anew, wherever he begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub client: IpAddr,
    pub key: Key,
    pub edition: String,
}

struct Made {
    changed: SystemTime,
    image: Arc<Representation>,
    cost: u64,
    used: u64,
}

#[derive(Default)]
struct State {
    made: HashMap<Key, Made>,
    cost: u64,
    clock: u64,
    pins: HashMap<Place, (Arc<Representation>, Instant)>,
    hits: u64,
    misses: u64,
}

/// For metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub hits: u64,
    pub misses: u64,
    pub bytes: u64,
}

#[derive(Default)]
pub struct Cache {
    state: Mutex<State>,
}

impl Cache {
    pub fn find(&self, key: &Key, changed: SystemTime) -> Option<Arc<Representation>> {
        let mut state = self.lock();
        state.clock += 1;
        let clock = state.clock;
        let made = state.made.get_mut(key).filter(|made| made.changed == changed)?;
        made.used = clock;
        let image = Arc::clone(&made.image);
        state.hits += 1;
        Some(image)
    }

    pub fn keep(&self, key: Key, changed: SystemTime, image: &Arc<Representation>) {
        let mut state = self.lock();
        state.clock += 1;
        state.misses += 1;
        let made = Made {
            changed,
            cost: cost(image),
            image: Arc::clone(image),
            used: state.clock,
        };
        state.cost += made.cost;
        if let Some(old) = state.made.insert(key, made) {
            state.cost -= old.cost;
        }
        while state.cost > MOST_BYTES && state.made.len() > 1 {
            let oldest = state
                .made
                .iter()
                .min_by_key(|(_, made)| made.used)
                .map(|(key, _)| key.clone());
            let gone = oldest.and_then(|key| state.made.remove(&key));
            state.cost -= gone.map_or(0, |made| made.cost);
        }
    }

    /// What this client shall read. One that reads by pieces and cannot tell a change (no `If-Range`) stays with what
    /// it began with, until it begins anew or rests.
    pub fn pinned(
        &self,
        place: Place,
        current: &Arc<Representation>,
        continues: bool,
    ) -> Arc<Representation> {
        let mut state = self.lock();
        let now = Instant::now();
        if continues
            && let Some((image, last)) = state.pins.get_mut(&place)
            && last.elapsed() < PIN
        {
            *last = now;
            return Arc::clone(image);
        }
        if state.pins.len() >= MOST_PINS {
            state.pins.retain(|_, (_, last)| last.elapsed() < PIN);
        }
        if state.pins.len() < MOST_PINS {
            state.pins.insert(place, (Arc::clone(current), now));
        }
        Arc::clone(current)
    }

    pub fn counts(&self) -> Counts {
        let state = self.lock();
        Counts {
            hits: state.hits,
            misses: state.misses,
            bytes: state.cost,
        }
    }

    /// Lets go of files that were removed, so that their room is free.
    pub fn retain(&self, holds: impl Fn(&str) -> bool) {
        let mut state = self.lock();
        let State { made, cost, pins, .. } = &mut *state;
        made.retain(|key, made| {
            let stays = holds(&key.base_sha256);
            *cost -= if stays { 0 } else { made.cost };
            stays
        });
        pins.retain(|place, (_, last)| holds(&place.key.base_sha256) && last.elapsed() < PIN);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

/// Bytes held in memory, and something for the list itself.
fn cost(image: &Representation) -> u64 {
    use crate::layout::Content;
    let bytes = |content: &Content, len| match content {
        Content::Bytes(_) => len,
        Content::File { .. } | Content::Zeros => 0,
    };
    image
        .layout
        .segments()
        .iter()
        .map(|segment| 64 + bytes(&segment.content, segment.len))
        .sum()
}
