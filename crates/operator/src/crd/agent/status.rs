//! What an Agent shows of its host, besides its hardware.

use super::inventory::Inventory;
use crate::crd::condition::ServiceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use muster_vocabulary::{CheckStatus, HostKind, NtpSourceState, Role, Stage, Word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the hub knows of the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// The host starts the cluster's control plane for the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bootstrap: bool,
    /// The role of the host, or the one that the hub suggests.
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[schemars(with = "String")]
    pub role: Word<Role>,
    /// `Host`, or `AddToExistingClusterHost` for one that joins an installed cluster.
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[schemars(with = "String")]
    pub kind: Word<HostKind>,
    /// The host's hardware and network.
    #[serde(default)]
    pub inventory: Inventory,
    /// How far the installation is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<HostProgress>,
    /// The NTP servers of the host and whether it synchronises with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ntp_sources: Vec<NtpSource>,
    /// SpecSynced, Connected, RequirementsMet, Validated, Installed and Bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ServiceCondition>,
    /// Links and texts for troubleshooting.
    #[serde(default)]
    pub debug_info: DebugInfo,
    /// The checks of the host by category.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub validations_info: BTreeMap<String, Vec<ValidationResult>>,
    /// The disk that the hub installs to.
    #[serde(
        default,
        rename = "installation_disk_id",
        skip_serializing_if = "String::is_empty"
    )]
    pub installation_disk_id: String,
    /// The Node that the operator still has to remove from the cluster that the host left.
    #[serde(default, rename = "deprovision_info", skip_serializing_if = "Option::is_none")]
    pub deprovision_info: Option<DeprovisionInfo>,
    /// Certificates that the operator approved for the Node of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csr_status: Option<CsrStatus>,
}

/// How far the installation is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostProgress {
    /// The stage that the host is in.
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[schemars(with = "String")]
    pub current_stage: Word<Stage>,
    /// All stages of this host, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub progress_stages: Vec<Word<Stage>>,
    /// More about the stage.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub progress_info: String,
    /// How much is done, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation_percentage: Option<i64>,
    /// When the stage began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_start_time: Option<Time>,
    /// When the host last reported the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_update_time: Option<Time>,
}

/// An NTP server as the host sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NtpSource {
    /// Name or address of the server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_name: String,
    /// synced, combined, not_combined, error, variable or unreachable.
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[schemars(with = "String")]
    pub source_state: Word<NtpSourceState>,
}

/// Links and texts for troubleshooting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DebugInfo {
    /// Address of the host's events.
    #[serde(default, rename = "eventsURL", skip_serializing_if = "String::is_empty")]
    pub events_url: String,
    /// Address of the logs.
    #[serde(default, rename = "logsURL", skip_serializing_if = "String::is_empty")]
    pub logs_url: String,
    /// The hub's word for the state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Why the host or cluster is in that state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state_info: String,
}

/// The result of one check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationResult {
    /// Which check.
    pub id: String,
    /// success, failure, pending, error or disabled.
    #[schemars(with = "String")]
    pub status: Word<CheckStatus>,
    /// What the check found.
    pub message: String,
}

/// The Node that the operator still has to remove from the cluster that the host left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeprovisionInfo {
    /// Name of the cluster's ClusterDeployment.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// Namespace of the cluster's ClusterDeployment.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_namespace: String,
    /// Name of the Node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// What the operator waits for, or what went wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Certificates that the operator approved for the Node of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CsrStatus {
    /// The requests that the operator approved.
    #[serde(default, rename = "approvedCSRs", skip_serializing_if = "Vec::is_empty")]
    pub approved_csrs: Vec<ApprovedCsr>,
    /// When the operator last listed requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_approval_attempt: Option<Time>,
}

/// A request for a certificate that the operator approved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedCsr {
    /// Name of the CertificateSigningRequest.
    pub name: String,
    /// `client` or `serving`.
    #[serde(rename = "type")]
    pub type_: String,
    /// When the operator approved it.
    pub approved_at: Time,
}
