//! Ignition served elsewhere: hosts get a pointer to it, made when they ask, so there is nothing to keep.

use super::Made;
use crate::Hub;
use muster_domain::cluster::Cluster;
use muster_domain::render::host_ignition::config_url;

/// Only proves that the hub can tell every host where to go; tokens and headers are each host's own, never kept in a
/// file.
pub fn make(hub: &Hub, cluster: &Cluster) -> Result<Made, String> {
    for slot in hub.index.hosts_of_cluster(cluster.id) {
        config_url(&slot.row(), cluster).map_err(|problem| format!("Cluster {}: {problem}", cluster.name))?;
    }
    Ok(Made::new())
}
