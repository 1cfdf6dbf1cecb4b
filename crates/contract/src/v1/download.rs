//! How far machines have read the images of an InfraEnv.

use muster_vocabulary::{BaseImageState, Word};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;
use uuid::Uuid;

/// One client and one file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DownloadView {
    /// The address the client comes from; a BMC that mounts an image has its own.
    pub client: String,
    /// `full.iso`, `minimal.iso`, `pxe-initrd`, `kernel`, `rootfs`, …
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub file: Cow<'static, str>,
    /// The host of this InfraEnv that reported this address, as its own or its BMC's, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    pub total_bytes: u64,
    /// Different bytes of the file that the client has.
    pub read_bytes: u64,
    /// All bytes sent; those sent twice count twice.
    pub sent_bytes: u64,
    pub percent: u8,
    /// Replies on their way now.
    pub streams: u32,
    /// Since the last byte.
    pub idle_seconds: u64,
}

/// The base image of an InfraEnv's images, as far as the hub has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BaseImageView {
    pub version: String,
    pub cpu_architecture: String,
    /// `absent`, `fetching`, `importing`, `ready` or `failed`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word<BaseImageState>,
    pub done_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Why the hub cannot fetch it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Everything that this hub, and the image service beside it, sent for one InfraEnv since they started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DownloadsView {
    /// Those who read last come first.
    pub downloads: Vec<DownloadView>,
    /// Absent when the hub no longer has one for this InfraEnv.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_image: Option<BaseImageView>,
}
