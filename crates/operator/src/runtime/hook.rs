//! Who wants to know of what: functions that turn a change into keys on queues.
//!
//! They are plain functions, not closures: all they need is in the context.

use super::Context;
use super::mirror::Change;
use crate::crd::{
    Agent, AgentClassification, AgentCluster, AgentClusterInstall, AgentMachine, AgentServiceConfig,
    BareMetalHost, ClusterDeployment, ClusterImageSet, HypershiftAgentServiceConfig, InfraEnv, NMStateConfig,
    PreprovisioningImage, capi,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use muster_contract::v1::change::Change as HubChange;

pub type Hook<K> = fn(&Context, &Change<K>);

/// Filled by the `wire` function of each controller that is switched on.
#[derive(Default)]
pub struct Hooks {
    pub infra_env: Vec<Hook<InfraEnv>>,
    pub agent: Vec<Hook<Agent>>,
    pub nmstate_config: Vec<Hook<NMStateConfig>>,
    pub agent_classification: Vec<Hook<AgentClassification>>,
    pub agent_service_config: Vec<Hook<AgentServiceConfig>>,
    pub hosted_service_config: Vec<Hook<HypershiftAgentServiceConfig>>,
    pub agent_cluster_install: Vec<Hook<AgentClusterInstall>>,
    pub cluster_deployment: Vec<Hook<ClusterDeployment>>,
    pub cluster_image_set: Vec<Hook<ClusterImageSet>>,
    pub agent_machine: Vec<Hook<AgentMachine>>,
    pub agent_cluster: Vec<Hook<AgentCluster>>,
    pub machine: Vec<Hook<capi::Machine>>,
    pub cluster: Vec<Hook<capi::Cluster>>,
    pub bare_metal_host: Vec<Hook<BareMetalHost>>,
    pub preprovisioning_image: Vec<Hook<PreprovisioningImage>>,
    pub control_plane: Vec<Hook<capi::ControlPlane>>,
    pub secret: Vec<Hook<Secret>>,
    pub config_map: Vec<Hook<ConfigMap>>,
    /// Something changed in the hub.
    pub hub: Vec<fn(&Context, &HubChange)>,
    /// The hub does not answer any more. That it does again is part of `everything`.
    pub hub_away: Vec<fn(&Context)>,
    /// Everything must be looked at: the operator began to lead, or the feed was cut off.
    pub everything: Vec<fn(&Context)>,
}
