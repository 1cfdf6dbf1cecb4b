//! Hosts in Muster's own API: moving them, and listing many of them page by page.

use crate::rules::{CommaList, is_false, loose_bool, words};
use crate::v2::host::HostView;
use jiff::Timestamp;
use muster_vocabulary::{HostStatus, Role, Word};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Move a host to another cluster, in one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MoveHost {
    pub cluster_id: Uuid,
}

/// How far a move is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct MoveView {
    pub infra_env_id: Uuid,
    pub host_id: Uuid,
    /// Absent when the host was free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Uuid>,
    pub to: Uuid,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: Word<HostStatus>,
    pub done: bool,
}

/// The short form of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HostSummary {
    pub id: Uuid,
    pub infra_env_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    pub name: String,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: Word<HostStatus>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status_info: Cow<'static, str>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: Word<Role>,
    pub cpus: i64,
    pub memory_mib: i64,
    pub disk_gb: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub checked_in_at: Option<Timestamp>,
    pub revision: i64,
}

/// A page of hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HostPage {
    pub hosts: Vec<HostSummary>,
    /// Ask for the next page with this; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which hosts to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct HostsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    /// Only hosts without a cluster.
    #[serde(deserialize_with = "loose_bool", skip_serializing_if = "Option::is_none")]
    pub free: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Vec<String>>, style = Form, explode = false))]
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

/// A host with what REST v2 does not show.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HostDetail {
    #[serde(flatten)]
    pub host: HostView,
    /// Grows with every change, as the feed tells it.
    #[serde(default)]
    pub revision: i64,
    /// A person has approved the use of the host.
    #[serde(default, skip_serializing_if = "is_false")]
    pub approved: bool,
    /// Somebody follows the host after the reboot that ends its installation into a running cluster, and reports what
    /// becomes of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub followed: bool,
    /// The name a person gave; empty when the host has only the one it reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub given_name: String,
    /// A person chose the disk to install to; otherwise it follows the inventory.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disk_chosen: bool,
    /// Where a move leads once the host is free and ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moving_to: Option<Uuid>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignition_headers_set: bool,
    /// The host's history.
    pub events_url: String,
    /// The host's logs; empty until there are any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub logs_url: String,
}

/// Every host with one id: the same machine can be known to several InfraEnvs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HostRows {
    pub hosts: Vec<HostDetail>,
}

words! {
    /// Settings of a host that can be removed, as if nobody had ever set them.
    pub enum HostSetting {
        Hostname = "hostname",
        MachineConfigPool = "machine-config-pool",
        Fencing = "fencing",
        InstallationDisk = "installation-disk",
        Move = "move",
    }
}

/// Change what REST v2 cannot. Absent leaves a field as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeHost {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub followed: Option<bool>,
    /// Settings to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<HostSetting>,
}
