//! The last known cluster of each host: the hub says where a host is, and not where it was.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// A host has a row for each InfraEnv whose image it booted.
type Host = (Uuid, Uuid);

#[derive(Debug, Default)]
pub struct LastClusters(Mutex<HashMap<Host, Uuid>>);

impl LastClusters {
    /// These are in that cluster.
    pub fn note(&self, cluster: Uuid, hosts: impl IntoIterator<Item = Host>) {
        let hosts = hosts.into_iter().map(|host| (host, cluster));
        self.clusters().extend(hosts);
    }

    /// The other cluster that a host was in until now.
    pub fn moved(&self, host: Host, to: Option<Uuid>) -> Option<Uuid> {
        let mut clusters = self.clusters();
        let before = match to {
            Some(cluster) => clusters.insert(host, cluster),
            None => clusters.remove(&host),
        };
        before.filter(|before| Some(*before) != to)
    }

    fn clusters(&self) -> MutexGuard<'_, HashMap<Host, Uuid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_moves_or_leaves_names_the_cluster_it_left_once() {
        let [host, other, blue, red] = [1, 2, 3, 4].map(Uuid::from_u128);
        let (clusters, pool) = (LastClusters::default(), Uuid::nil());
        assert_eq!(clusters.moved((pool, host), None), None, "nobody saw it anywhere");
        clusters.note(blue, [(pool, host), (pool, other)]);
        assert_eq!(
            clusters.moved((pool, host), Some(blue)),
            None,
            "it is where it was"
        );
        assert_eq!(clusters.moved((pool, host), Some(red)), Some(blue));
        assert_eq!(clusters.moved((pool, host), None), Some(red));
        assert_eq!(clusters.moved((pool, host), None), None);
        assert_eq!(
            clusters.moved((host, other), None),
            None,
            "another row of the same machine"
        );
        assert_eq!(clusters.moved((pool, other), None), Some(blue));
    }
}
