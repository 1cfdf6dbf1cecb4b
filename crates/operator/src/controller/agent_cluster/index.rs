//! By what AgentClusters are cached and found.

use crate::crd::AgentCluster;
use crate::runtime::cache::{Index, namespace_of};
use crate::runtime::registry::Cached;
use kube::api::ApiResource;

impl Cached for AgentCluster {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}

pub const AGENT_CLUSTERS_BY_NAMESPACE: Index<AgentCluster> = Index::new("namespace", namespace_of);
