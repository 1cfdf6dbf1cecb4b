//! Names of the container images that agents and installers run.

use std::collections::BTreeMap;

/// Pull addresses; all can be set by configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Runs on a discovered host. Agents compare it with their own version word for word.
    pub agent: String,
    pub installer: String,
    pub controller: String,
    /// For gathering logs of a failed installation; one image, or a JSON map per operator. Empty: the release's own.
    pub must_gather: String,
}

impl Default for Images {
    fn default() -> Self {
        let image = |name: &str| format!("quay.io/edge-infrastructure/{name}:latest");
        Images {
            agent: image("assisted-installer-agent"),
            installer: image("assisted-installer"),
            controller: image("assisted-installer-controller"),
            must_gather: String::new(),
        }
    }
}

impl Images {
    /// The map behind `component-versions`.
    pub fn component_versions(&self, service: &str) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            ("assisted-installer", self.installer.clone()),
            ("assisted-installer-controller", self.controller.clone()),
            ("assisted-installer-service", service.to_owned()),
            ("discovery-agent", self.agent.clone()),
        ])
    }
}
