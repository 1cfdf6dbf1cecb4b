//! Facts of a cluster that the checks of all its hosts share: put together once whenever the cluster is reconciled.

use muster_domain::checks::{ClusterFacts, Neighbours};
use muster_domain::{ClusterId, HostId};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

#[derive(Debug, Default)]
pub struct SharedFacts {
    pub facts: ClusterFacts,
    pub neighbours: Neighbours,
    /// Each host as the others' connectivity check names it, rendered once for all of them.
    pub targets: Vec<(HostId, String)>,
    /// Small enough IPv4 networks that every host may look for free addresses in.
    pub networks: Vec<String>,
}

/// Those of each cluster, as last put together.
#[derive(Debug, Default)]
pub struct AllSharedFacts(RwLock<HashMap<ClusterId, Arc<SharedFacts>>>);

impl AllSharedFacts {
    pub fn of(&self, id: ClusterId) -> Option<Arc<SharedFacts>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned()
    }

    pub fn put(&self, id: ClusterId, shared: Arc<SharedFacts>) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, shared);
    }

    pub fn drop_of(&self, id: ClusterId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
