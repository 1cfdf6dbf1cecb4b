//! How far an installation is.

use super::network::MachineNetworkEntry;
use crate::crd::agent::{DebugInfo, ValidationResult};
use crate::crd::condition::InstallCondition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The state of the installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentClusterInstallStatus {
    /// SpecSynced, Validated, RequirementsMet, Completed, Failed, Stopped and LastInstallationPreparationFailed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub conditions: Vec<InstallCondition>,
    /// How much of the installation is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ClusterProgress>,
    /// How many control plane hosts the cluster has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_agents_discovered: Option<i64>,
    /// How many control plane hosts are ready to install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_agents_ready: Option<i64>,
    /// How many workers the cluster has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_agents_discovered: Option<i64>,
    /// How many workers are ready to install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_agents_ready: Option<i64>,
    /// Which hosts reach each other, as JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub connectivity_majority_groups: String,
    /// Networks of the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_network: Vec<MachineNetworkEntry>,
    /// Virtual address of the API.
    #[serde(default, rename = "apiVIP", skip_serializing_if = "String::is_empty")]
    pub api_vip: String,
    /// Virtual addresses of the API.
    #[serde(default, rename = "apiVIPs", skip_serializing_if = "Vec::is_empty")]
    pub api_vips: Vec<String>,
    /// Virtual address of the ingress.
    #[serde(default, rename = "ingressVIP", skip_serializing_if = "String::is_empty")]
    pub ingress_vip: String,
    /// Virtual addresses of the ingress.
    #[serde(default, rename = "ingressVIPs", skip_serializing_if = "Vec::is_empty")]
    pub ingress_vips: Vec<String>,
    /// Users manage load balancers and DNS themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
    /// The platform the cluster runs on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub platform_type: String,
    /// The checks of the cluster by category.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub validations_info: BTreeMap<String, Vec<ValidationResult>>,
    /// Links and texts for troubleshooting.
    #[serde(default)]
    pub debug_info: DebugInfo,
}

/// How much of an installation is done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProgress {
    /// Per cent.
    pub total_percentage: i64,
}
