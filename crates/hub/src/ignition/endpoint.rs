//! Ignition served elsewhere: hosts get a pointer to it, made when they ask, so there is nothing to keep.

use super::Made;
use crate::Hub;
use muster_domain::cluster::Cluster;

/// Only proves that hosts can be told where to go; tokens and headers are each host's own and never kept in a file.
pub fn make(_: &Hub, cluster: &Cluster) -> Result<Made, String> {
    let has_address = !cluster.ignition_endpoint.url.is_empty()
        || !cluster.api_vip_dns_name.is_empty()
        || !cluster.api_vips.is_empty();
    if has_address {
        return Ok(Made::new());
    }
    Err(format!(
        "Cluster {} has no ignition endpoint. Set ignition_endpoint.url, or api_vip_dns_name of the running cluster.",
        cluster.name
    ))
}
