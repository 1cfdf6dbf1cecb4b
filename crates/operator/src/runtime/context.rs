//! Everything a controller may use, in one place.

use super::clock::Clock;
use super::copies::clusters::ClusterCopies;
use super::copies::hosts::HostCopies;
use super::event::Recorder;
use super::joining::Joining;
use super::last_clusters::LastClusters;
use super::lineage::Planes;
use super::metrics::Metrics;
use super::provider::Providers;
use super::registry::{Caches, HubHooks, Queues};
use super::sent::SentValues;
use super::spoke::Spokes;
use crate::key::Key;
use crate::options::MetalBoot;
use muster_contract::HubClient;
use std::collections::BTreeMap;
use std::time::Duration;

pub struct Context {
    pub kube: kube::Client,
    pub hub: HubClient,
    /// Copies of the hub's hosts.
    pub hosts: HostCopies,
    /// And of clusters.
    pub clusters: ClusterCopies,
    pub caches: Caches,
    pub queues: Queues,
    pub hooks: HubHooks,
    pub recorder: Recorder,
    pub metrics: Metrics,
    pub sent: SentValues,
    pub last_clusters: LastClusters,
    /// Clients of clusters that were installed.
    pub spokes: Spokes,
    /// Those that hosts are joining.
    pub joining: Joining,
    /// Others who provide machines for Cluster API.
    pub providers: Providers,
    /// Control planes that could not be read lately.
    pub planes: Planes,
    /// With what hosts are fetched back from the inside of their clusters; absent: not at all.
    pub reclaim_image: Option<String>,
    pub metal_boot: MetalBoot,
    /// The Secret that says where Ironic is.
    pub ironic: Key,
    /// Images of Ironic's agent that the site has, by architecture.
    pub ironic_images: BTreeMap<String, String>,
    /// Whether BareMetalHosts of installed hosts are paused once they are detached.
    pub pause_provisioned: bool,
    pub clock: Clock,
    /// How long after a failure an object is reconciled again.
    pub retry: Duration,
}

impl Context {
    /// The feed of changes begins or ends.
    pub fn is_fed(&self, is_fed: bool) {
        self.hosts.start_over(is_fed);
        self.clusters.start_over(is_fed);
    }

    /// Reconciles everything, and sends the hub again what it does not show.
    pub fn start_over(&self) {
        self.sent.forget_all();
        for hook in &self.hooks.start_over {
            hook(self);
        }
    }
}
