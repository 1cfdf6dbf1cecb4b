//! One folder per kind: a shell that reads and applies, and a pure plan that decides.

pub mod agent;
pub mod agent_arrival;
pub mod agent_classification;
pub mod agent_cluster;
pub mod agent_label;
pub mod agent_machine;
pub mod agent_service_config;
pub mod bare_metal_host;
pub mod cluster_deployment;
pub mod infra_env;
pub mod node_provider_id;
pub mod preprovisioning_image;

use crate::runtime::hook::Hooks;
use crate::runtime::work::Job;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The controllers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    InfraEnv,
    Agent,
    AgentArrival,
    AgentLabel,
    AgentClassification,
    AgentServiceConfig,
    ClusterDeployment,
    BareMetalHost,
    PreprovisioningImage,
    AgentCluster,
    AgentMachine,
    NodeProviderId,
}

/// Controllers that act under the same lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    Service,
    CapiProvider,
}

impl Group {
    pub const ALL: [Self; 2] = [Self::Service, Self::CapiProvider];

    pub fn lease(self) -> &'static str {
        match self {
            Self::Service => crate::crd::keys::lease::SERVICE,
            Self::CapiProvider => crate::crd::keys::lease::CAPI_PROVIDER,
        }
    }
}

impl Controller {
    pub const ALL: &'static [Self] = &[
        Self::InfraEnv,
        Self::Agent,
        Self::AgentArrival,
        Self::AgentLabel,
        Self::AgentClassification,
        Self::AgentServiceConfig,
        Self::ClusterDeployment,
        Self::BareMetalHost,
        Self::PreprovisioningImage,
        Self::AgentCluster,
        Self::AgentMachine,
        Self::NodeProviderId,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::InfraEnv => "infra-env",
            Self::Agent => "agent",
            Self::AgentArrival => "agent-arrival",
            Self::AgentLabel => "agent-label",
            Self::AgentClassification => "agent-classification",
            Self::AgentServiceConfig => "agent-service-config",
            Self::ClusterDeployment => "cluster-deployment",
            Self::BareMetalHost => "bare-metal-host",
            Self::PreprovisioningImage => "preprovisioning-image",
            Self::AgentCluster => "agent-cluster",
            Self::AgentMachine => "agent-machine",
            Self::NodeProviderId => "node-provider-id",
        }
    }

    pub fn group(self) -> Group {
        match self {
            Self::InfraEnv
            | Self::Agent
            | Self::AgentArrival
            | Self::AgentLabel
            | Self::AgentClassification
            | Self::AgentServiceConfig
            | Self::ClusterDeployment
            | Self::BareMetalHost
            | Self::PreprovisioningImage => Group::Service,
            Self::AgentCluster | Self::AgentMachine | Self::NodeProviderId => Group::CapiProvider,
        }
    }

    pub fn wire(self, hooks: &mut Hooks) {
        match self {
            Self::InfraEnv => infra_env::wire(hooks),
            Self::Agent => agent::wire(hooks),
            Self::AgentArrival => agent_arrival::wire(hooks),
            Self::AgentLabel => agent_label::wire(hooks),
            Self::AgentClassification => agent_classification::wire(hooks),
            Self::AgentServiceConfig => agent_service_config::wire(hooks),
            Self::ClusterDeployment => cluster_deployment::wire(hooks),
            Self::BareMetalHost => bare_metal_host::wire(hooks),
            Self::PreprovisioningImage => preprovisioning_image::wire(hooks),
            Self::AgentCluster => agent_cluster::wire(hooks),
            Self::AgentMachine => agent_machine::wire(hooks),
            Self::NodeProviderId => node_provider_id::wire(hooks),
        }
    }

    pub fn job(self) -> Job {
        match self {
            Self::InfraEnv => infra_env::JOB,
            Self::Agent => agent::JOB,
            Self::AgentArrival => agent_arrival::JOB,
            Self::AgentLabel => agent_label::JOB,
            Self::AgentClassification => agent_classification::JOB,
            Self::AgentServiceConfig => agent_service_config::JOB,
            Self::ClusterDeployment => cluster_deployment::JOB,
            Self::BareMetalHost => bare_metal_host::JOB,
            Self::PreprovisioningImage => preprovisioning_image::JOB,
            Self::AgentCluster => agent_cluster::JOB,
            Self::AgentMachine => agent_machine::JOB,
            Self::NodeProviderId => node_provider_id::JOB,
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Which controllers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen(pub BTreeSet<Controller>);

impl Default for Chosen {
    fn default() -> Self {
        Self(Controller::ALL.iter().copied().collect())
    }
}

/// Names separated by commas: those run. With a minus before each, all others run.
impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .collect();
        let find = |word: &str| {
            let found = Controller::ALL
                .iter()
                .copied()
                .find(|controller| controller.word() == word);
            found.ok_or_else(|| {
                let all: Vec<_> = Controller::ALL
                    .iter()
                    .map(|controller| controller.word())
                    .collect();
                format!("there is no controller {word:?}; there are {}", all.join(", "))
            })
        };
        let (without, with): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
        if !without.is_empty() && !with.is_empty() {
            return Err("name the controllers that run, or those that do not, but not both".into());
        }
        let mut chosen = if with.is_empty() {
            Self::default().0
        } else {
            BTreeSet::new()
        };
        for word in with {
            chosen.insert(find(word)?);
        }
        for word in without {
            chosen.remove(&find(word.trim_start_matches('-'))?);
        }
        Ok(Self(chosen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_chosen_by_name_or_left_out_by_name() {
        let chosen = |text: &str| text.parse::<Chosen>();
        assert_eq!(chosen("infra-env"), Ok(Chosen([Controller::InfraEnv].into())));
        assert!(!chosen("-infra-env").unwrap().0.contains(&Controller::InfraEnv));
        assert_eq!(chosen(""), Ok(Chosen::default()));
        assert!(chosen("infra").unwrap_err().contains("infra-env"));
        assert!(chosen("infra-env,-infra-env").is_err());
    }
}
