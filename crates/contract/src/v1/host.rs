//! Hosts in Muster's own API: moving them, and listing many of them page by page.

use crate::rules::{CommaList, loose_bool};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Move a host to another cluster, in one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveHost {
    pub cluster_id: Uuid,
}

/// How far a move is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoveView {
    pub infra_env_id: Uuid,
    pub host_id: Uuid,
    /// Absent when the host was free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Uuid>,
    pub to: Uuid,
    #[schema(value_type = String)]
    pub status: Cow<'static, str>,
    pub done: bool,
}

/// The short form of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostSummary {
    pub id: Uuid,
    pub infra_env_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    pub name: String,
    #[schema(value_type = String)]
    pub status: Cow<'static, str>,
    #[schema(value_type = String)]
    pub status_info: Cow<'static, str>,
    #[schema(value_type = String)]
    pub role: Cow<'static, str>,
    pub cpus: i64,
    pub memory_mib: i64,
    pub disk_gb: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub checked_in_at: Option<Timestamp>,
    pub revision: i64,
}

/// A page of hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostPage {
    pub hosts: Vec<HostSummary>,
    /// Ask for the next page with this; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which hosts to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct HostsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    /// Only hosts without a cluster.
    #[serde(deserialize_with = "loose_bool", skip_serializing_if = "Option::is_none")]
    pub free: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<Vec<String>>, style = Form, explode = false)]
    pub status: Option<CommaList<String>>,
    /// Only hosts with this name, or whose id begins with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named: Option<String>,
    /// The `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// 500 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}
