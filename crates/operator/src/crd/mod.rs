//! The kinds of objects people and programs work with, exactly as they are known elsewhere.

// Columns of one kind repeat the word for their type.
#![allow(clippy::duplicated_attributes)]

pub mod agent;
pub mod agent_classification;
pub mod agent_cluster;
pub mod agent_cluster_install;
pub mod agent_machine;
pub mod agent_service_config;
pub mod capi;
pub mod cluster_deployment;
pub mod cluster_image_set;
pub mod condition;
pub mod hypershift_agent_service_config;
pub mod infra_env;
pub mod keys;
pub mod metal3;
pub mod nmstate_config;
pub mod reference;
pub mod rest_names;
pub mod rules;
pub mod schema;
#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use agent_classification::AgentClassification;
pub use agent_cluster::AgentCluster;
pub use agent_cluster_install::AgentClusterInstall;
pub use agent_machine::{AgentMachine, AgentMachineTemplate};
pub use agent_service_config::AgentServiceConfig;
pub use cluster_deployment::ClusterDeployment;
pub use cluster_image_set::ClusterImageSet;
pub use hypershift_agent_service_config::HypershiftAgentServiceConfig;
pub use infra_env::InfraEnv;
pub use metal3::{BareMetalHost, PreprovisioningImage};
pub use nmstate_config::NMStateConfig;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schema::Draft;

/// Cluster API finds the provider's kinds by these labels, and talks to them in the version they name.
const CAPI_LABELS: &[(&str, &str)] = &[
    ("cluster.x-k8s.io/provider", "agent"),
    ("cluster.x-k8s.io/v1alpha3", "v1alpha1"),
    ("cluster.x-k8s.io/v1alpha4", "v1alpha1"),
    ("cluster.x-k8s.io/v1beta1", "v1alpha1"),
];

/// Whether an InfraEnv may be given another cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClusterRefs {
    #[default]
    Fixed,
    /// For set-ups that never had the webhook and clear `clusterRef`.
    Free,
}

/// The kinds that belong to Muster and to the provider it stands in for.
pub fn own(cluster_refs: ClusterRefs) -> Vec<CustomResourceDefinition> {
    let mut rules = rules::always();
    match cluster_refs {
        ClusterRefs::Fixed => rules.push(rules::cluster_ref_stays()),
        ClusterRefs::Free => {}
    }
    let plain = [
        InfraEnv::crd(),
        Agent::crd(),
        NMStateConfig::crd(),
        AgentClassification::crd(),
        AgentClusterInstall::crd(),
        AgentServiceConfig::crd(),
        HypershiftAgentServiceConfig::crd(),
    ];
    let provider = [
        AgentMachine::crd(),
        AgentMachineTemplate::crd(),
        AgentCluster::crd(),
    ];
    let plain = plain.into_iter().map(Draft::of);
    let provider = provider
        .into_iter()
        .map(|crd| Draft::of(crd).also_as("v1alpha1").labelled(CAPI_LABELS));
    plain
        .chain(provider)
        .map(|draft| draft.with_rules(&rules).with_optional_spec().finish())
        .collect()
}

/// Kinds of Hive that are needed where Hive is not installed. Fields not known here are kept.
pub fn hive() -> Vec<CustomResourceDefinition> {
    [ClusterDeployment::crd(), ClusterImageSet::crd()]
        .into_iter()
        .map(|crd| Draft::of(crd).open().finish())
        .collect()
}

/// Several definitions as one YAML text.
pub fn yaml(definitions: &[CustomResourceDefinition]) -> String {
    definitions
        .iter()
        .map(|crd| {
            let text = serde_norway::to_string(crd).expect("definitions are plain data");
            format!("---\n{text}")
        })
        .collect()
}
