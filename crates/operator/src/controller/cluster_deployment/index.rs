//! By what ClusterDeployments and the objects that belong to them are cached and found.

use crate::crd::keys::{annotation, hub_id, label};
use crate::crd::{AgentClusterInstall, ClusterDeployment, ClusterImageSet};
use crate::key::Key;
use crate::runtime::cache::Index;
use crate::runtime::registry::{Cached, Which};
use kube::ResourceExt;
use kube::api::ApiResource;

impl Cached for ClusterDeployment {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}

impl Cached for AgentClusterInstall {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}

impl Cached for ClusterImageSet {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }

    fn which() -> Which {
        Which::Everywhere
    }
}

/// The hub's id of its cluster.
pub const DEPLOYMENTS_BY_ID: Index<ClusterDeployment> = Index::new("id", |deployment| {
    let id = hub_id(deployment, annotation::CLUSTER_ID);
    id.iter().map(ToString::to_string).collect()
});

/// Name of the AgentCluster it stands for.
pub const DEPLOYMENTS_BY_AGENT_CLUSTER: Index<ClusterDeployment> =
    Index::new("agent-cluster", |deployment| {
        let name = deployment.labels().get(label::AGENT_CLUSTER);
        name.into_iter().cloned().collect()
    });

/// `namespace/name` of its ClusterDeployment.
pub const INSTALLS_BY_CLUSTER: Index<AgentClusterInstall> = Index::new("cluster", |install| {
    let namespace = install.namespace().unwrap_or_default();
    vec![Key::new(namespace, &install.spec.cluster_deployment_ref.name).to_string()]
});

/// Those that are to be deleted, all under the empty text.
pub const INSTALLS_LEAVING: Index<AgentClusterInstall> = Index::new("leaving", |install| {
    let leaves = install.metadata.deletion_timestamp.iter();
    leaves.map(|_| String::new()).collect()
});
