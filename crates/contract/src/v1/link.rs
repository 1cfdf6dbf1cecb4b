//! Where the things of an InfraEnv or a cluster can be fetched.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Addresses under which hosts and people reach this hub and its images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InfraEnvLinks {
    /// The discovery image.
    pub iso: String,
    pub kernel: String,
    pub initrd: String,
    pub rootfs: String,
    /// The iPXE script that always boots discovery.
    pub ipxe_script: String,
    /// The iPXE script that lets hosts boot their own disk when they should.
    pub ipxe_boot_order_script: String,
    pub discovery_ignition: String,
    pub static_network: String,
    pub events: String,
}

/// Addresses under which people reach what this hub knows of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterLinks {
    pub events: String,
    /// The logs of the cluster and of its hosts.
    pub logs: String,
}
