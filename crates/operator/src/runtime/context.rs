//! Everything a controller may use, in one place.

use super::clock::Clock;
use super::event::Recorder;
use super::hook::Hooks;
use super::joining::Joining;
use super::lineage::Planes;
use super::metrics::Metrics;
use super::mirror::{Change, Kind, Mirror, Scope};
use super::provider::Providers;
use super::queue::Queue;
use super::seen::Seen;
use super::spoke::Spokes;
use super::told::Told;
use crate::crd::{
    Agent, AgentClassification, AgentCluster, AgentClusterInstall, AgentMachine, AgentServiceConfig,
    BareMetalHost, ClusterDeployment, ClusterImageSet, HypershiftAgentServiceConfig, InfraEnv, NMStateConfig,
    PreprovisioningImage, capi, keys,
};
use crate::key::Key;
use crate::options::MetalBoot;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ApiResource;
use kube::{Resource, ResourceExt};
use muster_contract::HubClient;
use std::collections::BTreeMap;
use std::time::Duration;

pub struct Context {
    pub kube: kube::Client,
    pub hub: HubClient,
    pub mirrors: Mirrors,
    pub queues: Queues,
    pub hooks: Hooks,
    pub recorder: Recorder,
    pub metrics: Metrics,
    pub told: Told,
    pub seen: Seen,
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
    /// The Secret that tells where Ironic is.
    pub ironic: Key,
    /// Images of Ironic's agent that the site has, by architecture.
    pub ironic_images: BTreeMap<String, String>,
    /// Whether BareMetalHosts of installed hosts are paused once they are detached.
    pub pause_provisioned: bool,
    pub clock: Clock,
    /// How long after a failure an object is looked at again.
    pub retry: Duration,
}

/// One queue per controller.
#[derive(Debug, Default)]
pub struct Queues {
    pub infra_env: Queue,
    pub agent: Queue,
    pub cluster_deployment: Queue,
    pub agent_classification: Queue,
    /// AgentServiceConfigs, and in namespaces those of hosted clusters.
    pub agent_service_config: Queue,
    pub agent_label: Queue,
    /// InfraEnvs whose hosts are called out.
    pub agent_arrival: Queue,
    pub agent_cluster: Queue,
    pub agent_machine: Queue,
    /// AgentMachines whose nodes are told who they are.
    pub node_provider_id: Queue,
    pub bare_metal_host: Queue,
    pub preprovisioning_image: Queue,
}

impl Queues {
    /// Each by the name of its controller.
    pub fn all(&self) -> [(&'static str, &Queue); 12] {
        [
            ("infra-env", &self.infra_env),
            ("agent", &self.agent),
            ("cluster-deployment", &self.cluster_deployment),
            ("agent-classification", &self.agent_classification),
            ("agent-service-config", &self.agent_service_config),
            ("agent-label", &self.agent_label),
            ("agent-arrival", &self.agent_arrival),
            ("agent-cluster", &self.agent_cluster),
            ("agent-machine", &self.agent_machine),
            ("bare-metal-host", &self.bare_metal_host),
            ("preprovisioning-image", &self.preprovisioning_image),
            ("node-provider-id", &self.node_provider_id),
        ]
    }

    pub fn lengths(&self) -> [(&'static str, usize); 12] {
        self.all().map(|(name, queue)| (name, queue.len()))
    }
}

/// Names of indexes, each beside the kind it belongs to.
pub mod index {
    /// InfraEnv: the hub's id.
    pub const INFRA_ENV_ID: &str = "infra-env-id";
    /// InfraEnv: `namespace/name` of its ClusterDeployment.
    pub const INFRA_ENV_CLUSTER: &str = "infra-env-cluster";
    /// InfraEnv: its namespace.
    pub const INFRA_ENV_NAMESPACE: &str = "infra-env-namespace";
    /// NMStateConfig: its namespace.
    pub const NMSTATE_NAMESPACE: &str = "nmstate-namespace";
    /// ClusterDeployment: the hub's id of its cluster.
    pub const CLUSTER_ID: &str = "cluster-id";
    /// Agent: `namespace/name` of the ClusterDeployment it wants to be bound to.
    pub const AGENT_CLUSTER: &str = "agent-cluster";
    /// Agent: `namespace/name` of its InfraEnv.
    pub const AGENT_INFRA_ENV: &str = "agent-infra-env";
    /// Agent: `namespace/name` of the Secret with its ignition token.
    pub const AGENT_TOKEN: &str = "agent-token";
    /// Agent: name of the AgentMachine that reserved it.
    pub const AGENT_MACHINE: &str = "agent-machine";
    /// Agent: `namespace/address` of each of its network interfaces, in small letters.
    pub const AGENT_MAC: &str = "agent-mac";
    /// Agent: its name, which may be in several namespaces.
    pub const AGENT_NAME: &str = "agent-name";
    /// Agent, AgentClassification: namespace.
    pub const AGENT_NAMESPACE: &str = "agent-namespace";
    pub const CLASSIFICATION_NAMESPACE: &str = "classification-namespace";
    /// AgentClusterInstall: `namespace/name` of its ClusterDeployment.
    pub const INSTALL_CLUSTER: &str = "install-cluster";
    /// AgentClusterInstall: those that are to be deleted, all under the empty text.
    pub const INSTALL_LEAVING: &str = "install-leaving";
    /// AgentMachine: `namespace/name` of its Agent; the name alone as long as it tells no more.
    pub const MACHINE_AGENT: &str = "machine-agent";
    /// AgentMachine: `namespace/name` of the Machine that owns it.
    pub const MACHINE_OWNER: &str = "machine-owner";
    /// AgentMachine: its namespace.
    pub const MACHINE_NAMESPACE: &str = "machine-namespace";
    /// AgentMachine: those without an Agent, all under the empty text.
    pub const MACHINE_WAITING: &str = "machine-waiting";
    /// Machine: `namespace/name` of the Secret with its user data.
    pub const MACHINE_DATA: &str = "machine-data";
    /// AgentCluster: its namespace.
    pub const CLUSTER_NAMESPACE: &str = "cluster-namespace";
    /// ClusterDeployment: name of the AgentCluster it stands for.
    pub const AGENT_CLUSTER_LABEL: &str = "agent-cluster-label";
    /// BareMetalHost: `namespace/address` of the interface it boots from, in small letters.
    pub const METAL_MAC: &str = "metal-mac";
    /// BareMetalHost: `namespace/name` of its InfraEnv.
    pub const METAL_INFRA_ENV: &str = "metal-infra-env";
    /// BareMetalHost: `namespace/name` of the ClusterDeployment that its annotation names.
    pub const METAL_CLUSTER: &str = "metal-cluster";
    /// BareMetalHost: `namespace/name` of the Secret with the credentials of its power controller.
    pub const METAL_CREDENTIALS: &str = "metal-credentials";
    /// PreprovisioningImage: `namespace/name` of its InfraEnv.
    pub const IMAGE_INFRA_ENV: &str = "image-infra-env";
    /// PreprovisioningImage: `namespace/name` of the Secret with network settings that it names.
    pub const IMAGE_NETWORK: &str = "image-network";
}

/// Copies of everything that is read.
pub struct Mirrors {
    pub infra_envs: Mirror<InfraEnv>,
    pub agents: Mirror<Agent>,
    pub nmstate_configs: Mirror<NMStateConfig>,
    pub agent_classifications: Mirror<AgentClassification>,
    pub agent_service_configs: Mirror<AgentServiceConfig>,
    pub hosted_service_configs: Mirror<HypershiftAgentServiceConfig>,
    pub agent_cluster_installs: Mirror<AgentClusterInstall>,
    pub cluster_deployments: Mirror<ClusterDeployment>,
    pub cluster_image_sets: Mirror<ClusterImageSet>,
    pub agent_machines: Mirror<AgentMachine>,
    pub agent_clusters: Mirror<AgentCluster>,
    pub machines: Mirror<capi::Machine>,
    pub clusters: Mirror<capi::Cluster>,
    pub bare_metal_hosts: Mirror<BareMetalHost>,
    /// Only those that were made for an InfraEnv.
    pub preprovisioning_images: Mirror<PreprovisioningImage>,
    /// Control planes of HyperShift.
    pub control_planes: Mirror<capi::ControlPlane>,
    /// Only those with the label that says so.
    pub secrets: Mirror<Secret>,
    /// Only those with the label that says so.
    pub config_maps: Mirror<ConfigMap>,
}

impl Mirrors {
    /// Kinds of others that are not installed are looked for every few `retry`.
    pub fn new(kube: &kube::Client, namespaces: &[String], retry: Duration) -> Self {
        let everywhere = Scope {
            absent_retry: 3 * retry,
            ..Scope::default()
        };
        let here = Scope {
            namespaces: namespaces.to_vec(),
            ..everywhere.clone()
        };
        let labelled = Scope {
            labels: Some(format!("{}=true", keys::label::WATCH)),
            ..here.clone()
        };
        Self {
            infra_envs: mirror(kube, &here)
                .index(index::INFRA_ENV_ID, infra_env_id)
                .index(index::INFRA_ENV_CLUSTER, infra_env_cluster)
                .index(index::INFRA_ENV_NAMESPACE, namespace_of),
            agents: mirror(kube, &here)
                .index(index::AGENT_CLUSTER, agent_cluster)
                .index(index::AGENT_INFRA_ENV, label_of_infra_env)
                .index(index::AGENT_TOKEN, agent_token)
                .index(index::AGENT_MACHINE, agent_machine)
                .index(index::AGENT_MAC, agent_macs)
                .index(index::AGENT_NAME, |agent| {
                    agent.metadata.name.iter().cloned().collect()
                })
                .index(index::AGENT_NAMESPACE, namespace_of),
            nmstate_configs: mirror(kube, &here).index(index::NMSTATE_NAMESPACE, namespace_of),
            agent_classifications: mirror(kube, &here).index(index::CLASSIFICATION_NAMESPACE, namespace_of),
            agent_service_configs: mirror(kube, &everywhere),
            hosted_service_configs: mirror(kube, &here),
            agent_cluster_installs: mirror(kube, &here)
                .index(index::INSTALL_CLUSTER, install_cluster)
                .index(index::INSTALL_LEAVING, install_leaving),
            cluster_deployments: mirror(kube, &here)
                .index(index::CLUSTER_ID, cluster_id)
                .index(index::AGENT_CLUSTER_LABEL, agent_cluster_label),
            cluster_image_sets: mirror(kube, &everywhere),
            agent_machines: mirror(kube, &here)
                .index(index::MACHINE_AGENT, machine_agent)
                .index(index::MACHINE_OWNER, machine_owner)
                .index(index::MACHINE_NAMESPACE, namespace_of)
                .index(index::MACHINE_WAITING, machine_waiting),
            agent_clusters: mirror(kube, &here).index(index::CLUSTER_NAMESPACE, namespace_of),
            machines: Mirror::new(kube.clone(), capi::machines(), here.clone())
                .speaks(capi::newest)
                .index(index::MACHINE_DATA, machine_data),
            clusters: Mirror::new(kube.clone(), capi::clusters(), here.clone()).speaks(capi::newest),
            control_planes: Mirror::new(kube.clone(), capi::hosted_control_planes(), here.clone()),
            bare_metal_hosts: mirror(kube, &here)
                .index(index::METAL_MAC, metal_mac)
                .index(index::METAL_INFRA_ENV, label_of_infra_env)
                .index(index::METAL_CLUSTER, metal_cluster)
                .index(index::METAL_CREDENTIALS, metal_credentials),
            preprovisioning_images: mirror(
                kube,
                &Scope {
                    labels: Some(keys::label::INFRA_ENV.into()),
                    ..here
                },
            )
            .index(index::IMAGE_INFRA_ENV, label_of_infra_env)
            .index(index::IMAGE_NETWORK, image_network),
            secrets: mirror(kube, &labelled),
            config_maps: mirror(kube, &labelled),
        }
    }

    pub async fn ready(&self) {
        self.infra_envs.ready().await;
        self.agents.ready().await;
        self.nmstate_configs.ready().await;
        self.agent_classifications.ready().await;
        self.agent_service_configs.ready().await;
        self.hosted_service_configs.ready().await;
        self.agent_cluster_installs.ready().await;
        self.cluster_deployments.ready().await;
        self.cluster_image_sets.ready().await;
        self.agent_machines.ready().await;
        self.agent_clusters.ready().await;
        self.machines.ready().await;
        self.clusters.ready().await;
        self.bare_metal_hosts.ready().await;
        self.preprovisioning_images.ready().await;
        self.control_planes.ready().await;
        self.secrets.ready().await;
        self.config_maps.ready().await;
    }
}

fn mirror<K: Kind<DynamicType = ()>>(kube: &kube::Client, scope: &Scope) -> Mirror<K> {
    Mirror::new(kube.clone(), ApiResource::erase::<K>(&()), scope.clone())
}

impl Context {
    /// Watches everything, and passes each change on. Ends when it is dropped.
    pub async fn watch(&self) {
        let (mirrors, hooks) = (&self.mirrors, &self.hooks);
        tokio::join!(
            mirrors
                .infra_envs
                .run(|change| self.tell(&hooks.infra_env, change)),
            mirrors.agents.run(|change| self.tell(&hooks.agent, change)),
            mirrors
                .nmstate_configs
                .run(|change| self.tell(&hooks.nmstate_config, change)),
            mirrors
                .agent_classifications
                .run(|change| self.tell(&hooks.agent_classification, change)),
            mirrors
                .agent_service_configs
                .run(|change| self.tell(&hooks.agent_service_config, change)),
            mirrors
                .hosted_service_configs
                .run(|change| self.tell(&hooks.hosted_service_config, change)),
            mirrors
                .agent_cluster_installs
                .run(|change| self.tell(&hooks.agent_cluster_install, change)),
            mirrors
                .cluster_deployments
                .run(|change| self.tell(&hooks.cluster_deployment, change)),
            mirrors
                .cluster_image_sets
                .run(|change| self.tell(&hooks.cluster_image_set, change)),
            mirrors
                .agent_machines
                .run(|change| self.tell(&hooks.agent_machine, change)),
            mirrors
                .agent_clusters
                .run(|change| self.tell(&hooks.agent_cluster, change)),
            mirrors.machines.run(|change| self.tell(&hooks.machine, change)),
            mirrors.clusters.run(|change| self.tell(&hooks.cluster, change)),
            mirrors
                .bare_metal_hosts
                .run(|change| self.tell(&hooks.bare_metal_host, change)),
            mirrors
                .preprovisioning_images
                .run(|change| self.tell(&hooks.preprovisioning_image, change)),
            mirrors
                .control_planes
                .run(|change| self.tell(&hooks.control_plane, change)),
            mirrors.secrets.run(|change| self.tell(&hooks.secret, change)),
            mirrors
                .config_maps
                .run(|change| self.tell(&hooks.config_map, change)),
        );
    }

    pub fn tell<K>(&self, hooks: &[fn(&Context, &Change<K>)], change: &Change<K>) {
        for hook in hooks {
            hook(self, change);
        }
    }

    /// Everything is looked at, and the hub is told again what it does not show.
    pub fn start_over(&self) {
        self.told.forget_all();
        for hook in &self.hooks.everything {
            hook(self);
        }
    }
}

fn infra_env_id(infra_env: &InfraEnv) -> Vec<String> {
    let id = keys::hub_id(infra_env, keys::annotation::INFRA_ENV_ID);
    id.iter().map(ToString::to_string).collect()
}

fn infra_env_cluster(infra_env: &InfraEnv) -> Vec<String> {
    let cluster = infra_env.spec.cluster_ref.iter();
    cluster.map(|cluster| Key::from(cluster).to_string()).collect()
}

fn namespace_of<K: Resource>(object: &K) -> Vec<String> {
    object.meta().namespace.iter().cloned().collect()
}

fn cluster_id(cluster: &ClusterDeployment) -> Vec<String> {
    let id = keys::hub_id(cluster, keys::annotation::CLUSTER_ID);
    id.iter().map(ToString::to_string).collect()
}

fn agent_cluster(agent: &Agent) -> Vec<String> {
    let cluster = agent.spec.cluster_deployment_name.iter();
    cluster.map(|cluster| Key::from(cluster).to_string()).collect()
}

fn label_of_infra_env<K: Resource>(object: &K) -> Vec<String> {
    let namespace = object.namespace().unwrap_or_default();
    let name = object.labels().get(keys::label::INFRA_ENV).into_iter();
    name.map(|name| Key::new(&namespace, name).to_string()).collect()
}

/// Addresses are the same whatever the letters they are written in.
pub fn mac_of(namespace: &str, mac: &str) -> Option<String> {
    (!mac.is_empty()).then(|| Key::new(namespace, mac.to_ascii_lowercase()).to_string())
}

fn agent_macs(agent: &Agent) -> Vec<String> {
    let namespace = agent.namespace().unwrap_or_default();
    let interfaces = agent
        .status
        .iter()
        .flat_map(|status| &status.inventory.interfaces);
    interfaces
        .filter_map(|interface| mac_of(&namespace, &interface.mac_address))
        .collect()
}

fn metal_mac(host: &BareMetalHost) -> Vec<String> {
    let namespace = host.namespace().unwrap_or_default();
    mac_of(&namespace, &host.spec.boot_mac_address)
        .into_iter()
        .collect()
}

/// The annotation has the form of a key.
fn metal_cluster(host: &BareMetalHost) -> Vec<String> {
    let named = host.annotations().get(keys::annotation::BMAC_CLUSTER_REFERENCE);
    named.into_iter().cloned().collect()
}

fn metal_credentials(host: &BareMetalHost) -> Vec<String> {
    let namespace = host.namespace().unwrap_or_default();
    let bmc = host.spec.bmc.iter();
    bmc.map(|bmc| Key::new(&namespace, &bmc.credentials_name).to_string())
        .collect()
}

fn image_network(image: &PreprovisioningImage) -> Vec<String> {
    let namespace = image.namespace().unwrap_or_default();
    let name = Some(&image.spec.network_data_name).filter(|name| !name.is_empty());
    name.map(|name| Key::new(&namespace, name).to_string())
        .into_iter()
        .collect()
}

fn agent_token(agent: &Agent) -> Vec<String> {
    let token = agent.spec.ignition_endpoint_token_reference.iter();
    token.map(|token| Key::from(token).to_string()).collect()
}

fn agent_machine(agent: &Agent) -> Vec<String> {
    agent
        .labels()
        .get(keys::label::AGENT_MACHINE)
        .into_iter()
        .cloned()
        .collect()
}

fn install_cluster(install: &AgentClusterInstall) -> Vec<String> {
    let namespace = install.namespace().unwrap_or_default();
    vec![Key::new(namespace, &install.spec.cluster_deployment_ref.name).to_string()]
}

fn install_leaving(install: &AgentClusterInstall) -> Vec<String> {
    install
        .metadata
        .deletion_timestamp
        .iter()
        .map(|_| String::new())
        .collect()
}

fn machine_agent(machine: &AgentMachine) -> Vec<String> {
    machine.named_agent().iter().map(ToString::to_string).collect()
}

fn machine_owner(machine: &AgentMachine) -> Vec<String> {
    let namespace = machine.namespace().unwrap_or_default();
    let owner = capi::owner(machine, capi::MACHINE).into_iter();
    owner
        .map(|owner| Key::new(&namespace, &owner.name).to_string())
        .collect()
}

fn machine_waiting(machine: &AgentMachine) -> Vec<String> {
    let waits = machine_agent(machine).is_empty();
    waits.then(String::new).into_iter().collect()
}

fn machine_data(machine: &capi::Machine) -> Vec<String> {
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    let data = machine.spec.bootstrap.data_secret_name.iter();
    data.map(|name| Key::new(&namespace, name).to_string()).collect()
}

fn agent_cluster_label(cluster: &ClusterDeployment) -> Vec<String> {
    cluster
        .labels()
        .get(keys::label::AGENT_CLUSTER)
        .into_iter()
        .cloned()
        .collect()
}
