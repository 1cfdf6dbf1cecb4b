//! Hosts on the wire: registration, changes people make, and how a host is shown.

use crate::rules::{is_false, is_zero, loose_bool, null_as_default};
use crate::secret::Secret;
use crate::time::{DateMs, GoTime};
use muster_vocabulary::{HostKind, HostStatus, LogsState, MediaStatus, Role, Stage, Word};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Roles a person may choose for a host.
pub use muster_vocabulary::Role as HostRoleChoice;
pub use muster_vocabulary::{CertificateVerification, DiskRole};

/// An agent reports that its machine has booted the discovery image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterHost {
    pub host_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery_agent_version: Option<String>,
}

/// Lend a free host to a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BindHost {
    pub cluster_id: Uuid,
}

/// Choose what one disk is used for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DiskSelection {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<DiskRole>,
}

/// Keep or format one disk at installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DiskFormatting {
    pub disk_id: String,
    pub skip_formatting: bool,
}

/// A name with its value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyValue {
    pub key: String,
    pub value: String,
}

/// How to reach the power controller of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FencingCredentials {
    pub address: String,
    pub username: String,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Secret,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_verification: Option<CertificateVerification>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// Change a host. Absent and null leave a field as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateHost {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_role: Option<HostRoleChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks_selected_config: Option<Vec<DiskSelection>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks_skip_formatting: Option<Vec<DiskFormatting>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_config_pool_name: Option<String>,
    /// Empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub ignition_endpoint_token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint_http_headers: Option<Vec<KeyValue>>,
    /// Replaces all labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_labels: Option<Vec<KeyValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fencing_credentials: Option<FencingCredentials>,
}

/// Extra arguments for writing the system to disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SetInstallerArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
}

/// Ignition added to what the host installs with. Empty removes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SetHostIgnition {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

/// The ignition a host installs with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HostIgnitionView {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config: String,
}

/// How far the installation of a host is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HostProgressView {
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub current_stage: Word<Stage>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub installation_percentage: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub progress_info: String,
    pub stage_started_at: DateMs,
    pub stage_updated_at: DateMs,
    #[serde(default, skip_serializing_if = "is_false")]
    pub stage_timed_out: bool,
}

/// A host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HostView {
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Word<HostKind>,
    pub id: Uuid,
    #[serde(deserialize_with = "null_as_default")]
    pub href: String,
    pub infra_env_id: Uuid,
    /// Absent while the host is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: Word<HostStatus>,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status_info: Cow<'static, str>,
    pub status_updated_at: DateMs,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub validations_info: String,
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub media_status: Word<MediaStatus>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub connection_timed_out: bool,
    /// Absent only in the answer to a registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<HostProgressView>,
    /// Null where stages are not computed.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    pub progress_stages: Option<Vec<Word<Stage>>>,
    pub stage_started_at: DateMs,
    pub stage_updated_at: DateMs,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub inventory: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub connectivity: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disks_info: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub free_addresses: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub domain_name_resolutions: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_vip_connectivity: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tang_connectivity: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub images_status: String,
    /// The host's own clock in seconds since 1970.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timestamp: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub discovery_agent_version: String,
    pub checked_in_at: DateMs,
    pub registered_at: DateMs,
    pub created_at: GoTime,
    pub updated_at: GoTime,
    pub deleted_at: Option<GoTime>,
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: Word<Role>,
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub suggested_role: Word<Role>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub bootstrap: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub requested_hostname: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installation_disk_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installation_disk_path: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installer_version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignition_config_overrides: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignition_endpoint_token_set: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_config_pool_name: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_labels: String,
    /// Disk ids separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disks_to_be_formatted: String,
    /// Disk ids separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub skip_formatting_disks: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fencing_credentials: String,
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub logs_info: Word<LogsState>,
    pub logs_started_at: DateMs,
    pub logs_collected_at: DateMs,
}

/// What the agent starts after it has registered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct NextStepRunnerCommand {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    #[serde(deserialize_with = "null_as_default")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_seconds: i64,
}

/// The answer to a registration: the host and what its agent runs next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RegisteredHostView {
    #[serde(flatten)]
    pub host: HostView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step_runner_command: Option<NextStepRunnerCommand>,
}

/// Which hosts of a cluster to list, and how much of each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ClusterHostsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(
        rename = "with-inventory",
        deserialize_with = "loose_bool",
        skip_serializing_if = "Option::is_none"
    )]
    pub with_inventory: Option<bool>,
    #[serde(
        rename = "with-connectivity",
        deserialize_with = "loose_bool",
        skip_serializing_if = "Option::is_none"
    )]
    pub with_connectivity: Option<bool>,
}
