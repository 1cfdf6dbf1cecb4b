//! `HypershiftAgentServiceConfig`: the settings of a service that serves the API of a hosted cluster. Manifests that have
//! one apply; nobody here serves another cluster's API, which the object says by its condition.

use super::agent_service_config::{AgentServiceConfigSpec, AgentServiceConfigStatus};
use super::reference::LocalRef;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the service, and the cluster whose API it serves.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agent-install.openshift.io",
    version = "v1beta1",
    kind = "HypershiftAgentServiceConfig",
    plural = "hypershiftagentserviceconfigs",
    shortname = "hasc",
    namespaced,
    status = "AgentServiceConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "HypershiftAgentServiceConfig is here so that existing manifests apply. Nothing in it has an effect: an operator serves the API of the cluster that its kubeconfig names, and no other. The condition ReconcileCompleted says what to do instead."
)]
#[serde(rename_all = "camelCase")]
pub struct HypershiftAgentServiceConfigSpec {
    #[serde(flatten)]
    pub service: AgentServiceConfigSpec,
    /// Secret in the same namespace whose key `kubeconfig` leads to the hosted cluster. Muster ignores it; give it to
    /// an operator of that cluster with `--kubeconfig`.
    pub kubeconfig_secret_ref: LocalRef,
}
