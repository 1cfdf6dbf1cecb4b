//! Ignition that people bring for a cluster's roles.

use jiff::Timestamp;
use muster_vocabulary::{InstallRole, Word};
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::ToSchema;
use uuid::Uuid;

/// What somebody uploaded for a role; a request of its own shows the config itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct UploadedIgnitionView {
    pub cluster_id: Uuid,
    /// `bootstrap`, `master`, `worker` or `arbiter`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: Word<InstallRole>,
    pub size_bytes: u64,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub uploaded_at: Timestamp,
}
