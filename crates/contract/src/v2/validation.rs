//! Validations: the JSON inside `validations_info`, and the ones a cluster ignores.

use crate::rules::null_as_default;
use muster_vocabulary::{CheckStatus, Word};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// The outcome of one check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ValidationView {
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub id: Cow<'static, str>,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: Word<CheckStatus>,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub message: Cow<'static, str>,
}

/// Outcomes by category, as kept in the string `validations_info`.
pub type ValidationsInfo = BTreeMap<Cow<'static, str>, Vec<ValidationView>>;

/// Checks that should not block a cluster. Each value is a JSON list in a string.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SetIgnoredValidations {
    #[serde(rename = "cluster-validation-ids", skip_serializing_if = "Option::is_none")]
    pub cluster_validation_ids: Option<String>,
    #[serde(rename = "host-validation-ids", skip_serializing_if = "Option::is_none")]
    pub host_validation_ids: Option<String>,
}

/// Checks that do not block a cluster. Each value is a JSON list in a string.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct IgnoredValidationsView {
    #[serde(
        rename = "cluster-validation-ids",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub cluster_validation_ids: String,
    #[serde(
        rename = "host-validation-ids",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub host_validation_ids: String,
}
