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
mod owner;
pub mod preprovisioning_image;

pub use crate::runtime::registry::{Controller, Group};

use std::str::FromStr;

/// The controllers there are.
pub const ALL: &[Controller] = &[
    infra_env::CONTROLLER,
    agent::CONTROLLER,
    agent_arrival::CONTROLLER,
    agent_label::CONTROLLER,
    agent_classification::CONTROLLER,
    agent_service_config::CONTROLLER,
    cluster_deployment::CONTROLLER,
    bare_metal_host::CONTROLLER,
    preprovisioning_image::CONTROLLER,
    agent_cluster::CONTROLLER,
    agent_machine::CONTROLLER,
    node_provider_id::CONTROLLER,
];

/// Which controllers run, in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen(pub Vec<Controller>);

impl Default for Chosen {
    fn default() -> Self {
        Self(ALL.to_vec())
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
        let (without, with): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
        if !without.is_empty() && !with.is_empty() {
            return Err("name the controllers that run, or those that do not, but not both".into());
        }
        let names: Vec<&str> = words.iter().map(|word| word.trim_start_matches('-')).collect();
        if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|one| one.name != **name)) {
            let all: Vec<_> = ALL.iter().map(|controller| controller.name).collect();
            return Err(format!(
                "there is no controller {unknown:?}; there are {}",
                all.join(", ")
            ));
        }
        let mut chosen = Self::default();
        chosen
            .0
            .retain(|one| names.contains(&one.name) != with.is_empty());
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn controllers_are_chosen_by_name_or_left_out_by_name() {
        let chosen = |text: &str| text.parse::<Chosen>();
        assert_eq!(chosen("infra-env"), Ok(Chosen(vec![infra_env::CONTROLLER])));
        assert!(!chosen("-infra-env").unwrap().0.contains(&infra_env::CONTROLLER));
        assert_eq!(chosen(""), Ok(Chosen::default()));
        assert!(chosen("infra").unwrap_err().contains("infra-env"));
        assert!(chosen("infra-env,-infra-env").is_err());
    }

    #[test]
    fn no_two_controllers_have_the_same_name() {
        let names: BTreeSet<_> = ALL.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
