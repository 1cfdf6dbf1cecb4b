//! Events: what happened to hosts, clusters and InfraEnvs, in words people read.

use crate::rules::{CommaList, loose_bool, null_as_default};
use crate::time::DateMs;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// How bad it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum EventSeverity {
    #[default]
    #[serde(rename = "info")]
    Info,
    #[serde(rename = "warning")]
    Warning,
    #[serde(rename = "error")]
    Error,
    #[serde(rename = "critical")]
    Critical,
}

impl EventSeverity {
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// Whom an event is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum EventCategory {
    #[default]
    #[serde(rename = "user")]
    User,
    #[serde(rename = "metrics")]
    Metrics,
}

impl EventCategory {
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Metrics => "metrics",
        }
    }
}

/// Oldest or newest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum EventOrder {
    #[default]
    #[serde(rename = "asc")]
    Asc,
    #[serde(rename = "desc")]
    Desc,
}

impl EventOrder {
    pub fn word(self) -> &'static str {
        match self {
            Self::Asc => "asc",
            Self::Desc => "desc",
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct EventView {
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_as_default")]
    #[schema(value_type = String)]
    pub name: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
    #[serde(deserialize_with = "null_as_default")]
    #[schema(value_type = String)]
    pub severity: Cow<'static, str>,
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    pub event_time: DateMs,
    /// JSON in a string.
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub props: String,
}

/// A controller reports something that happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
    pub severity: EventSeverity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<EventCategory>,
    pub message: String,
    pub event_time: DateMs,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Uuid>,
    /// JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub props: Option<String>,
}

/// Which events to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<Vec<Uuid>>, style = Form, explode = false)]
    pub host_ids: Option<CommaList<Uuid>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
    /// 5000 when absent; negative for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<EventOrder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<Vec<EventSeverity>>, style = Form, explode = false)]
    pub severities: Option<CommaList<EventSeverity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<Vec<EventCategory>>, style = Form, explode = false)]
    pub categories: Option<CommaList<EventCategory>>,
    /// Part of the message; only with `cluster_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Only with `cluster_id`.
    #[serde(deserialize_with = "loose_bool", skip_serializing_if = "Option::is_none")]
    pub deleted_hosts: Option<bool>,
    /// Only with `cluster_id`.
    #[serde(deserialize_with = "loose_bool", skip_serializing_if = "Option::is_none")]
    pub cluster_level: Option<bool>,
}
