//! How hosts know that they speak with this hub.

use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// What discovery images tell hosts about the certificate of this hub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TrustView {
    /// Certificates in PEM that hosts trust beside their own; empty when those are enough.
    pub service_ca: String,
    /// Hosts do not check the certificate at all.
    pub insecure: bool,
}
