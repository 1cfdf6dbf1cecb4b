//! `ClusterImageSet` of Hive: a release of OpenShift.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A release.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hive.openshift.io",
    version = "v1",
    kind = "ClusterImageSet",
    plural = "clusterimagesets",
    shortname = "imgset",
    status = "ClusterImageSetStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "ClusterImageSet is a release that clusters can be installed with.",
    printcolumn(name = "Release", type_ = "string", json_path = ".spec.releaseImage")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterImageSetSpec {
    /// The release image.
    pub release_image: String,
}

/// Muster reports nothing here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterImageSetStatus {}
