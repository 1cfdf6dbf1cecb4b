//! What an operator can be told.

use crate::controller::Chosen;
use crate::key::Key;
use crate::runtime::clock::Clock;
use crate::runtime::lease::Terms;
use std::net::SocketAddr;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Options {
    /// Where the hub is, such as `http://127.0.0.1:8090`.
    pub hub_url: String,
    pub controllers: Chosen,
    /// Empty: all namespaces.
    pub namespaces: Vec<String>,
    pub election: Election,
    /// Where metrics and health are served; absent: nowhere.
    pub metrics: Option<SocketAddr>,
    /// How long after a failure an object is looked at again.
    pub retry: Duration,
    /// The container image with `muster-agent` by which nodes are fetched back from the inside of their clusters;
    /// absent: somebody has to boot them.
    pub reclaim_image: Option<String>,
    /// How machines with a power controller boot discovery.
    pub metal_boot: MetalBoot,
    /// The Secret that tells where Ironic is and which image its agent has; for the converged flow.
    pub ironic: Key,
    pub clock: Clock,
}

/// How the bare metal operator is asked to boot discovery on a BareMetalHost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetalBoot {
    /// The discovery image as a live image. Works with any bare metal operator, and nothing need be known of Ironic.
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
            controllers: Chosen::default(),
            namespaces: Vec::new(),
            election: Election::On {
                namespace: None,
                terms: Terms::default(),
            },
            metrics: None,
            retry: Duration::from_secs(10),
            reclaim_image: None,
            metal_boot: MetalBoot::default(),
            ironic: Key::new("openshift-machine-api", "metal3-image-customization-config"),
            clock: Clock::default(),
        }
    }
}
