//! Custom manifests of a cluster.

use crate::rules::{loose_bool, words};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};

words! {
    /// Where a manifest is kept.
    #[derive(Default)]
    pub enum ManifestFolder {
        #[default]
        Manifests = "manifests",
        Openshift = "openshift",
    }
}

/// Add a manifest. The content is base64.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateManifest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<ManifestFolder>,
    pub file_name: String,
    pub content: String,
}

/// Change, rename or move a manifest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateManifest {
    pub folder: ManifestFolder,
    pub file_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_folder: Option<ManifestFolder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_file_name: Option<String>,
    /// Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_content: Option<String>,
}

/// A manifest, without its content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ManifestView {
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub folder: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file_name: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub manifest_source: Cow<'static, str>,
}

/// Which manifests to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ManifestsQuery {
    #[serde(deserialize_with = "loose_bool", skip_serializing_if = "Option::is_none")]
    pub include_system_generated: Option<bool>,
}

/// Which manifest to download or delete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ManifestQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<ManifestFolder>,
    pub file_name: String,
}
