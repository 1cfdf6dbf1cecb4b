//! By what Agents are cached and found.

use crate::crd::Agent;
use crate::crd::keys::label;
use crate::key::Key;
use crate::runtime::cache::{Index, namespace_of};
use crate::runtime::registry::Cached;
use kube::ResourceExt;
use kube::api::ApiResource;

impl Cached for Agent {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}

/// `namespace/name` of the ClusterDeployment it wants to be bound to.
pub const AGENTS_BY_CLUSTER: Index<Agent> = Index::new("cluster", |agent| {
    let cluster = agent.spec.cluster_deployment_name.iter();
    cluster.map(|cluster| Key::from(cluster).to_string()).collect()
});

/// `namespace/name` of its InfraEnv.
pub const AGENTS_BY_INFRA_ENV: Index<Agent> = Index::new("infra-env", label_of_infra_env);

/// `namespace/name` of the Secret with its ignition token.
pub const AGENTS_BY_TOKEN: Index<Agent> = Index::new("token", |agent| {
    let token = agent.spec.ignition_endpoint_token_reference.iter();
    token.map(|token| Key::from(token).to_string()).collect()
});

/// Name of the AgentMachine that reserved it.
pub const AGENTS_BY_MACHINE: Index<Agent> = Index::new("machine", |agent| {
    let machine = agent.labels().get(label::AGENT_MACHINE);
    machine.into_iter().cloned().collect()
});

/// `namespace/address` of each of its network interfaces, as `mac_of` writes it.
pub const AGENTS_BY_MAC: Index<Agent> = Index::new("mac", |agent| {
    let namespace = agent.namespace().unwrap_or_default();
    let status = agent.status.iter();
    let interfaces = status.flat_map(|status| &status.inventory.interfaces);
    interfaces
        .filter_map(|interface| mac_of(&namespace, &interface.mac_address))
        .collect()
});

/// Its name, which may be in several namespaces.
pub const AGENTS_BY_NAME: Index<Agent> =
    Index::new("name", |agent| agent.metadata.name.iter().cloned().collect());

pub const AGENTS_BY_NAMESPACE: Index<Agent> = Index::new("namespace", namespace_of);

/// `namespace/name` of the InfraEnv that a label names.
pub fn label_of_infra_env<K: ResourceExt>(object: &K) -> Vec<String> {
    let namespace = object.namespace().unwrap_or_default();
    let name = object.labels().get(label::INFRA_ENV).into_iter();
    name.map(|name| Key::new(&namespace, name).to_string()).collect()
}

/// Addresses are the same whatever the letters they are written in.
pub fn mac_of(namespace: &str, mac: &str) -> Option<String> {
    (!mac.is_empty()).then(|| Key::new(namespace, mac.to_ascii_lowercase()).to_string())
}
