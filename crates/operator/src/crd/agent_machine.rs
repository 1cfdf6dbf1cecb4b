//! `AgentMachine` and its template: a machine of Cluster API that is an Agent.

use super::reference::ClusterRef;
use crate::key::Key;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

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
    /// Selects Agents by their labels; when left out, any Agent will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_label_selector: Option<LabelSelector>,
    /// `agent://` and the name of the Agent. The operator writes it.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// How a machine names its Agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// By `agentRef` of its status.
    Whole(Key),
    /// By its `providerID`, which a backup keeps where it loses the status. It does not name the namespace.
    ById(String),
}

/// The key, or the name alone.
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(key) => key.fmt(f),
            Self::ById(name) => f.write_str(name),
        }
    }
}

const ID_PREFIX: &str = "agent://";

/// How Cluster API finds the node of a machine with the Agent of this name.
pub fn provider_id(agent: &str) -> String {
    format!("{ID_PREFIX}{agent}")
}

impl AgentMachine {
    /// The Agent that it has, whether that is there or not. What Cluster API and the node have is not taken back:
    /// where the status names another one, the id counts.
    pub fn named_agent(&self) -> Option<Named> {
        let by_id = self.spec.provider_id.as_deref();
        let by_id = by_id.and_then(|id| id.strip_prefix(ID_PREFIX));
        let by_id = by_id.filter(|name| !name.is_empty());
        let status = self.status.as_ref();
        let reference = status.and_then(|status| status.agent_ref.as_ref());
        let reference = reference.filter(|known| by_id.unwrap_or(&known.name) == known.name);
        match reference.filter(|known| !known.name.is_empty()) {
            Some(known) => Some(Named::Whole(known.into())),
            None => by_id.map(|name| Named::ById(name.to_owned())),
        }
    }
}

/// The Agent of the machine, and how far its installation is.
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
    /// The reason of a failure that the operator cannot repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// A failure that the operator cannot repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
}

/// A name or address of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineAddress {
    /// The type of the name or address.
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
    doc = "AgentMachineTemplate is the template from which Cluster API creates AgentMachines."
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

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(id: Option<&str>, agent: Option<&str>) -> Option<Named> {
        let mut machine = AgentMachine::new("m", AgentMachineSpec::default());
        machine.spec.provider_id = id.map(Into::into);
        let reference = agent.map(|name| ClusterRef {
            name: name.into(),
            namespace: "pool".into(),
        });
        machine.status = Some(AgentMachineStatus {
            agent_ref: reference,
            ..AgentMachineStatus::default()
        });
        machine.named_agent()
    }

    #[test]
    fn the_agent_is_named_by_the_status_or_by_the_provider_id() {
        let whole = Some(Named::Whole(Key::new("pool", "a")));
        let by_id = Some(Named::ById("a".into()));
        assert_eq!(machine(None, None), None);
        assert_eq!(machine(None, Some("a")), whole);
        assert_eq!(machine(Some("agent://a"), Some("a")), whole);
        assert_eq!(machine(Some("agent://a"), None), by_id);
        assert_eq!(machine(Some("agent://a"), Some("")), by_id);
        assert_eq!(machine(Some("agent://a"), Some("b")), by_id, "the id counts");
        for other in ["", "agent://", "aws:///eu/i-1"] {
            assert_eq!(machine(Some(other), None), None);
            assert_eq!(machine(Some(other), Some("a")), whole);
        }
    }

    #[test]
    fn what_is_named_is_shown_as_a_key_or_a_name() {
        assert_eq!(Named::ById("a".into()).to_string(), "a");
        assert_eq!(Named::Whole(Key::new("pool", "a")).to_string(), "pool/a");
    }
}
