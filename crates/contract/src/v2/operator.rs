//! Operators of a cluster: what is offered, what is watched, what a controller reports.

use crate::rules::{is_false, is_zero, null_as_default};
use crate::time::DateMs;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// How an operator is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum OperatorStatus {
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "progressing")]
    Progressing,
    #[serde(rename = "available")]
    Available,
}

impl OperatorStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Progressing => "progressing",
            Self::Available => "available",
        }
    }
}

/// An operator whose state counts for the installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct MonitoredOperatorView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_as_default")]
    #[schema(value_type = String)]
    pub name: Cow<'static, str>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub version: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub namespace: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub subscription_name: String,
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_as_default")]
    #[schema(value_type = String)]
    pub operator_type: Cow<'static, str>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub properties: String,
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub timeout_seconds: i64,
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_as_default")]
    #[schema(value_type = String)]
    pub status: Cow<'static, str>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub status_info: String,
    pub status_updated_at: DateMs,
    pub bundles: Option<Vec<String>>,
    pub source_bundles: Option<Vec<String>>,
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub dependency_only: bool,
}

/// A controller reports how an operator is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct OperatorsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_name: Option<String>,
}

/// A setting of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct OperatorPropertyView {
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub name: String,
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_as_default")]
    #[schema(value_type = String)]
    pub data_type: Cow<'static, str>,
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub mandatory: bool,
    pub options: Option<Vec<String>>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub description: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub default_value: String,
}
