//! Which clusters are stale: something changed since their last reconcile began.

use crate::Hub;
use crate::error::Error;
use crate::worker::pass::Rests;
use jiff::Timestamp;
use muster_domain::ClusterId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Readers wait for each other's runs, and at most so long for the next one to begin.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub struct StaleClusters {
    clusters: Mutex<HashMap<ClusterId, State>>,
    /// Rings when a cluster is stale again.
    pub bell: Notify,
    /// Runs that failed are tried again, later each time.
    pub rests: Rests<ClusterId>,
}

#[derive(Debug, Default)]
struct State {
    is_marked: bool,
    is_running: bool,
    /// One run per cluster at a time; whoever comes meanwhile shares the next.
    gate: Arc<tokio::sync::Mutex<()>>,
    /// Readers start no new run for as long as the last one took.
    paused_until: Option<Instant>,
}

impl StaleClusters {
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
        all.values().filter(|state| state.is_stale()).count()
    }

    /// Those that the worker must reconcile now.
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
        let stale = match wanted {
            Some(id) => Vec::from_iter(all.get(&id).filter(|state| state.is_stale()).map(|_| id)),
            None => all
                .iter()
                .filter(|(_, state)| state.is_stale())
                .map(|(id, _)| *id)
                .collect(),
        };
        drop(all);
        stale
            .into_iter()
            .filter(|id| !self.rests.is_resting(id, now))
            .collect()
    }

    pub fn gate(&self, cluster: ClusterId) -> Arc<tokio::sync::Mutex<()>> {
        self.lock().entry(cluster).or_default().gate.clone()
    }

    /// How long a reader should wait before it starts another run.
    pub fn pause(&self, cluster: ClusterId) -> Option<Duration> {
        let until = self.lock().get(&cluster)?.paused_until?;
        until.checked_duration_since(Instant::now())
    }
}

impl State {
    fn is_stale(&self) -> bool {
        self.is_marked || self.is_running
    }
}

/// A run under way. One that is dropped, in a panic or because nobody waits for it, has failed.
pub struct Reconciling<'a> {
    hub: &'a Hub,
    cluster: ClusterId,
    began: Instant,
    is_at_rest: bool,
}

impl<'a> Reconciling<'a> {
    /// `None` if nothing changed since the last one began.
    pub fn begin(hub: &'a Hub, cluster: ClusterId) -> Option<Self> {
        let mut all = hub.stale_clusters.lock();
        let state = all.get_mut(&cluster).filter(|state| state.is_marked)?;
        state.is_marked = false;
        state.is_running = true;
        Some(Self {
            hub,
            cluster,
            began: Instant::now(),
            is_at_rest: false,
        })
    }

    pub fn worked(self) {
        let stale = &self.hub.stale_clusters;
        stale.rests.worked(&self.cluster);
        let mut all = stale.lock();
        if let Some(state) = all.get_mut(&self.cluster) {
            state.is_running = false;
            state.paused_until = Some(Instant::now() + self.began.elapsed().min(LONGEST_PAUSE));
        }
        drop(all);
        std::mem::forget(self);
    }

    /// It did not come to an end, and nothing speaks against another one at once.
    pub fn put_off(mut self) {
        self.is_at_rest = true;
    }

    pub fn failed(mut self, error: &Error) {
        let (hub, cluster) = (self.hub, self.cluster);
        hub.stale_clusters.rests.failed(cluster, hub.now(), error);
        self.is_at_rest = true;
    }
}

impl Drop for Reconciling<'_> {
    fn drop(&mut self) {
        let stale = &self.hub.stale_clusters;
        if !self.is_at_rest {
            stale.rests.broke(self.cluster, self.hub.now());
        }
        if let Some(state) = stale.lock().get_mut(&self.cluster) {
            state.is_running = false;
            // Nothing is lost: the cluster stays stale.
            state.is_marked = true;
        }
        // Whoever ran may not be the worker, which has to learn when that rest is over.
        stale.bell.notify_one();
    }
}
