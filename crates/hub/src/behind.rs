//! Which clusters are behind their changes: something happened since the last look at them began.

use crate::Hub;
use crate::error::Error;
use crate::worker::pass::Rests;
use jiff::Timestamp;
use muster_domain::ClusterId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Readers wait for each other's looks, and at most so long for the next one to begin.
const LONGEST_BREATH: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub struct Behind {
    clusters: Mutex<HashMap<ClusterId, State>>,
    /// Rings when a cluster must be looked at again.
    pub bell: Notify,
    /// Looks that failed are tried again later each time.
    pub rests: Rests<ClusterId>,
}

#[derive(Debug, Default)]
struct State {
    is_marked: bool,
    is_looked_at: bool,
    /// There is one look at a cluster at a time; whoever comes meanwhile shares the next.
    gate: Arc<tokio::sync::Mutex<()>>,
    /// Readers let a cluster alone as long as its last look took.
    breathes_until: Option<Instant>,
}

impl Behind {
    fn lock(&self) -> MutexGuard<'_, HashMap<ClusterId, State>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn mark(&self, cluster: ClusterId) {
        self.lock().entry(cluster).or_default().is_marked = true;
        self.bell.notify_one();
    }

    /// It is gone.
    pub fn forget(&self, cluster: ClusterId) {
        self.lock().remove(&cluster);
        self.rests.worked(&cluster);
    }

    /// How many.
    pub fn count(&self) -> usize {
        let all = self.lock();
        all.values().filter(|state| state.is_behind()).count()
    }

    /// Those that are to be looked at now.
    pub fn due(&self, now: Timestamp) -> Vec<ClusterId> {
        let marked: Vec<_> = self
            .lock()
            .iter()
            .filter(|(_, state)| state.is_marked)
            .map(|(id, _)| *id)
            .collect();
        marked
            .into_iter()
            .filter(|id| !self.rests.is_resting(id, now))
            .collect()
    }

    /// Those whose answers are old at this moment, and can be made new.
    pub fn of(&self, wanted: Option<ClusterId>, now: Timestamp) -> Vec<ClusterId> {
        let all = self.lock();
        let behind = match wanted {
            Some(id) => Vec::from_iter(all.get(&id).filter(|state| state.is_behind()).map(|_| id)),
            None => all
                .iter()
                .filter(|(_, state)| state.is_behind())
                .map(|(id, _)| *id)
                .collect(),
        };
        drop(all);
        behind
            .into_iter()
            .filter(|id| !self.rests.is_resting(id, now))
            .collect()
    }

    pub fn gate(&self, cluster: ClusterId) -> Arc<tokio::sync::Mutex<()>> {
        self.lock().entry(cluster).or_default().gate.clone()
    }

    /// How long a reader should leave the cluster alone.
    pub fn breath(&self, cluster: ClusterId) -> Option<Duration> {
        let until = self.lock().get(&cluster)?.breathes_until?;
        until.checked_duration_since(Instant::now())
    }
}

impl State {
    fn is_behind(&self) -> bool {
        self.is_marked || self.is_looked_at
    }
}

/// A look under way. One that ends without a word, in a panic or because nobody waits for it, has failed.
pub struct Look<'a> {
    hub: &'a Hub,
    cluster: ClusterId,
    began: Instant,
    is_at_rest: bool,
}

impl<'a> Look<'a> {
    /// `None` if nothing changed since the last one began.
    pub fn begin(hub: &'a Hub, cluster: ClusterId) -> Option<Self> {
        let mut all = hub.behind.lock();
        let state = all.get_mut(&cluster).filter(|state| state.is_marked)?;
        state.is_marked = false;
        state.is_looked_at = true;
        Some(Self {
            hub,
            cluster,
            began: Instant::now(),
            is_at_rest: false,
        })
    }

    pub fn worked(self) {
        let behind = &self.hub.behind;
        behind.rests.worked(&self.cluster);
        let mut all = behind.lock();
        if let Some(state) = all.get_mut(&self.cluster) {
            state.is_looked_at = false;
            state.breathes_until = Some(Instant::now() + self.began.elapsed().min(LONGEST_BREATH));
        }
        drop(all);
        std::mem::forget(self);
    }

    pub fn failed(mut self, error: &Error) {
        let (hub, cluster) = (self.hub, self.cluster);
        hub.behind.rests.failed(cluster, hub.now(), error);
        self.is_at_rest = true;
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let behind = &self.hub.behind;
        if !self.is_at_rest {
            behind.rests.broke(self.cluster, self.hub.now());
        }
        if let Some(state) = behind.lock().get_mut(&self.cluster) {
            state.is_looked_at = false;
            // Nothing is forgotten: it is looked at again.
            state.is_marked = true;
        }
        // Who looked may not be the worker, which has to hear when that rest is over.
        behind.bell.notify_one();
    }
}
