//! By what InfraEnvs, and the network settings of hosts beside them, are cached and found.

use crate::crd::keys::{annotation, hub_id};
use crate::crd::{InfraEnv, NMStateConfig};
use crate::key::Key;
use crate::runtime::cache::{Index, namespace_of};
use crate::runtime::registry::Cached;
use kube::api::ApiResource;

impl Cached for InfraEnv {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}

impl Cached for NMStateConfig {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}

/// The hub's id.
pub const INFRA_ENVS_BY_ID: Index<InfraEnv> = Index::new("id", |infra_env| {
    let id = hub_id(infra_env, annotation::INFRA_ENV_ID);
    id.iter().map(ToString::to_string).collect()
});

/// `namespace/name` of its ClusterDeployment.
pub const INFRA_ENVS_BY_CLUSTER: Index<InfraEnv> = Index::new("cluster", |infra_env| {
    let cluster = infra_env.spec.cluster_ref.iter();
    cluster.map(|cluster| Key::from(cluster).to_string()).collect()
});

pub const INFRA_ENVS_BY_NAMESPACE: Index<InfraEnv> = Index::new("namespace", namespace_of);

pub const NMSTATE_CONFIGS_BY_NAMESPACE: Index<NMStateConfig> = Index::new("namespace", namespace_of);
