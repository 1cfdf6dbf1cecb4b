//! Where the things of an InfraEnv or a cluster can be fetched.

use crate::time::DateMs;
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Addresses under which hosts and people reach this hub and its images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct InfraEnvLinks {
    /// The discovery image. The address changes with its content; older ones lead to the current content.
    pub iso: String,
    /// When the content of the image, and with it its address, last changed.
    #[serde(default)]
    pub image_changed_at: DateMs,
    pub kernel: String,
    /// The address changes with the content, as that of the image does.
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

/// Addresses under which people reach the files of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ClusterLinks {
    pub events: String,
    /// The logs of the cluster and of its hosts.
    pub logs: String,
}
