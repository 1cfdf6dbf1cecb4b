//! Which release an image is.

use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// The image of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ReleaseQuery {
    /// Its address, such as `quay.io/openshift-release-dev/ocp-release:4.21.28-x86_64`.
    pub image: String,
}

/// A release that clusters can be installed with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ReleaseView {
    /// The exact version.
    pub version: String,
    /// One architecture, or `multi`.
    pub cpu_architecture: String,
    /// Where its image is.
    pub image: String,
}
