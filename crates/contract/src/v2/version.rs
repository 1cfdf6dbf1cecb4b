//! Versions: of the parts of the service, of OpenShift, and what each supports.

use crate::rules::{is_false, loose_bool, null_as_default};
use crate::v2::cluster_setting::{PlatformType, ReleaseArchitecture};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

/// Versions of the parts of the service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ComponentVersionsView {
    pub versions: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub release_tag: String,
}

/// An OpenShift version that can be installed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct OpenshiftVersionView {
    #[serde(deserialize_with = "null_as_default")]
    pub display_name: String,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub support_level: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub default: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub cpu_architectures: Vec<String>,
}

/// Versions that can be installed, by version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(transparent)]
pub struct OpenshiftVersionsView(pub BTreeMap<String, OpenshiftVersionView>);

/// Which versions to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct OpenshiftVersionsQuery {
    /// Part of a version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(deserialize_with = "loose_bool", skip_serializing_if = "Option::is_none")]
    pub only_latest: Option<bool>,
}

/// For which version and platform to tell what is supported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct SupportQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_type: Option<PlatformType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_platform_name: Option<String>,
}

/// How well each feature is supported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SupportedFeaturesView {
    pub features: BTreeMap<String, String>,
}

/// How well each architecture is supported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SupportedArchitecturesView {
    pub architectures: BTreeMap<String, String>,
}
