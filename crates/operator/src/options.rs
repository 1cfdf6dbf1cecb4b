//! The options of an operator.

use crate::controller::Chosen;
use crate::key::Key;
use crate::runtime::clock::Clock;
use crate::runtime::lease::Terms;
use muster_contract::Trust;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Options {
    /// Where the hub is, such as `http://127.0.0.1:8090`.
    pub hub_url: String,
    /// Whose certificates are believed when that is https.
    pub hub_trust: Trust,
    pub controllers: Chosen,
    /// Empty: all namespaces.
    pub namespaces: Vec<String>,
    /// Where machines of Cluster API take Agents from; empty: from all namespaces that the operator watches.
    pub agent_namespaces: Vec<String>,
    pub election: Election,
    /// How long after a failure an object is reconciled again.
    pub retry: Duration,
    /// The container image with `muster-agent` with which the operator fetches nodes back from the inside of their
    /// clusters; absent: somebody has to boot them.
    pub reclaim_image: Option<String>,
    /// How machines with a power controller boot discovery.
    pub metal_boot: MetalBoot,
    /// The Secret that says where Ironic is and which image its agent has; for the converged flow.
    pub ironic: Key,
    /// Container images of Ironic's agent by architecture (`x86_64`, `arm64`), where neither an InfraEnv nor that Secret
    /// names one.
    pub ironic_images: BTreeMap<String, String>,
    /// Whether BareMetalHosts of installed hosts are paused once they are detached.
    pub pause_provisioned: bool,
    pub clock: Clock,
}

/// How the bare metal operator is asked to boot discovery on a BareMetalHost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetalBoot {
    /// The discovery image as a live image. Works with any bare metal operator, without any setting of Ironic.
    #[default]
    LiveImage,
    /// The converged flow: machines stay in the hands of Ironic's agent, which starts discovery by the deploy step
    /// `start_assisted_install`. Discovery images contain both agents, and are published as PreprovisioningImages.
    Converged,
}

/// Whether this operator has to be chosen before it acts.
#[derive(Debug, Clone)]
pub enum Election {
    /// It is the only one.
    Off,
    On {
        /// Absent: the namespace of the kubeconfig or of the pod.
        namespace: Option<String>,
        terms: Terms,
    },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hub_url: "http://127.0.0.1:8090".into(),
            hub_trust: Trust::default(),
            controllers: Chosen::default(),
            namespaces: Vec::new(),
            agent_namespaces: Vec::new(),
            election: Election::On {
                namespace: None,
                terms: Terms::default(),
            },
            retry: Duration::from_secs(10),
            reclaim_image: None,
            metal_boot: MetalBoot::default(),
            ironic: Key::new("openshift-machine-api", "metal3-image-customization-config"),
            ironic_images: BTreeMap::new(),
            pause_provisioned: true,
            clock: Clock::default(),
        }
    }
}
