//! Events: what happened to hosts, clusters and InfraEnvs, in words people read.

use crate::rules::{CommaList, loose_bool, null_as_default, words};
use crate::time::DateMs;
use muster_vocabulary::Word;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

pub use muster_vocabulary::{Category as EventCategory, Severity as EventSeverity};

words! {
    /// Oldest or newest first.
    #[derive(Default)]
    pub enum EventOrder {
        #[default]
        #[serde(alias = "asc")]
        Asc = "ascending",
        #[serde(alias = "desc")]
        Desc = "descending",
    }
}

/// Something that happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct EventView {
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub severity: Word<EventSeverity>,
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    pub event_time: DateMs,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub props: String,
}

/// A controller reports something that happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct EventsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Vec<Uuid>>, style = Form, explode = false))]
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
    #[cfg_attr(feature = "openapi", param(value_type = Option<Vec<EventSeverity>>, style = Form, explode = false))]
    pub severities: Option<CommaList<EventSeverity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Vec<EventCategory>>, style = Form, explode = false))]
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
