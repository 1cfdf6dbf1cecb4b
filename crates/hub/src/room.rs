//! A cluster as its hosts' checks see it: computed once per look at the cluster, shared by all its hosts.

use muster_domain::checks::{ClusterFacts, Neighbours};
use muster_domain::{ClusterId, HostId};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

#[derive(Debug, Default)]
pub struct Room {
    pub facts: ClusterFacts,
    pub neighbours: Neighbours,
    /// Each host as the others' connectivity check names it, rendered once for all of them.
    pub targets: Vec<(HostId, String)>,
    /// Small enough IPv4 networks that every host may look for free addresses in.
    pub networks: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Rooms(RwLock<HashMap<ClusterId, Arc<Room>>>);

impl Rooms {
    pub fn find(&self, id: ClusterId) -> Option<Arc<Room>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned()
    }

    pub fn put(&self, id: ClusterId, room: Arc<Room>) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, room);
    }

    pub fn drop_room(&self, id: ClusterId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
