//! Operators of a cluster: what is offered, what is watched, what a controller reports.

use crate::rules::{is_false, is_zero};
use crate::time::DateMs;
use muster_vocabulary::Word;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

pub use muster_vocabulary::OperatorStatus;

/// An operator whose state counts for the installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct MonitoredOperatorView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subscription_name: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub operator_type: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub properties: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timeout_seconds: i64,
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: Word<OperatorStatus>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status_info: String,
    pub status_updated_at: DateMs,
    pub bundles: Option<Vec<String>>,
    pub source_bundles: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub dependency_only: bool,
}

/// A controller reports the state of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportOperator {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<OperatorStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_info: Option<String>,
}

/// Which operators to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct OperatorsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_name: Option<String>,
}

/// A setting of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct OperatorPropertyView {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub data_type: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub mandatory: bool,
    pub options: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub default_value: String,
}
