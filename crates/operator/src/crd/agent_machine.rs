//! `AgentMachine` and its template: a machine of Cluster API that is an Agent.

use super::reference::ClusterRef;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which Agent a machine may be.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "capi-provider.agent-install.openshift.io",
    version = "v1beta1",
    kind = "AgentMachine",
    plural = "agentmachines",
    namespaced,
    status = "AgentMachineStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "AgentMachine is a machine of Cluster API that is made of an Agent."
)]
#[serde(rename_all = "camelCase")]
pub struct AgentMachineSpec {
    /// Chooses among Agents by their labels; any Agent will do when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_label_selector: Option<LabelSelector>,
    /// `agent://` and the name of the Agent. Written by the operator.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// Which Agent it is, and how far it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentMachineStatus {
    /// The machine is installed.
    #[serde(default)]
    pub ready: bool,
    /// The Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_ref: Option<ClusterRef>,
    /// Names and addresses of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// AgentReserved, AgentSpecSynced, AgentValidated, AgentRequirementsMet, Installed and Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// A word for what cannot be repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// What cannot be repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
}

/// A name or address of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineAddress {
    /// What it is.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"]))]
    pub type_: String,
    /// The name or address.
    #[schemars(length(min = 1, max = 256))]
    pub address: String,
}

/// Types of conditions.
pub mod condition {
    pub const RESERVED: &str = "AgentReserved";
    pub const SPEC_SYNCED: &str = "AgentSpecSynced";
    pub const VALIDATED: &str = "AgentValidated";
    pub const REQUIREMENTS_MET: &str = "AgentRequirementsMet";
    pub const INSTALLED: &str = "Installed";
    pub const READY: &str = "Ready";
}

/// Reasons of conditions.
pub mod reason {
    pub const RESERVED: &str = "AgentReserved";
    pub const READY: &str = "Ready";
    pub const NO_SUITABLE_AGENTS: &str = "NoSuitableAgents";
    pub const NOT_YET_FOUND: &str = "AgentNotYetFound";
    pub const CONDITION_NOT_FOUND: &str = "ConditionNotFound";
    pub const CONDITION_TRUE: &str = "AgentConditionTrue";
}

/// What Cluster API makes AgentMachines of.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "capi-provider.agent-install.openshift.io",
    version = "v1beta1",
    kind = "AgentMachineTemplate",
    plural = "agentmachinetemplates",
    shortname = "agentmt",
    category = "cluster-api",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    doc = "AgentMachineTemplate is what Cluster API makes AgentMachines of."
)]
pub struct AgentMachineTemplateSpec {
    /// The machines to make.
    pub template: AgentMachineTemplateResource,
}

/// The machines to make.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentMachineTemplateResource {
    /// Which Agent a machine may be.
    pub spec: AgentMachineSpec,
}
