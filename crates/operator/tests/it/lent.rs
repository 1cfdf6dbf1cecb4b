//! Hosts and clusters for tests of Agents: an InfraEnv whose image was booted, clusters that are known to the hub, and
//! words for what Agents say.

use crate::world::{PULL_SECRET, World, id_of, named};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use muster_contract::v2::cluster_request::{CreateCluster, ImportCluster};
use muster_contract::v2::host::RegisterHost;
use muster_operator::crd::cluster_deployment::{AgentBareMetal, Platform};
use muster_operator::crd::condition::find_service;
use muster_operator::crd::infra_env::{IMAGE_CREATED, reason};
use muster_operator::crd::keys::annotation;
use muster_operator::crd::reference::ClusterRef;
use muster_operator::crd::{Agent, ClusterDeployment, InfraEnv};
use muster_simfleet::{Machine, Profile, Setup};
use serde_json::{Value, json};
use std::path::Path;
use uuid::Uuid;

/// Status and reason of a condition of an Agent.
pub fn says(agent: &Agent, type_: &str) -> (String, String) {
    let conditions = agent
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let found = find_service(conditions, type_);
    found
        .map(|found| (found.status.clone(), found.reason.clone()))
        .unwrap_or_default()
}

pub fn word(status: &str, reason: &str) -> (String, String) {
    (status.into(), reason.into())
}

pub fn state(agent: &Agent) -> &str {
    agent
        .status
        .as_ref()
        .map_or("", |status| status.debug_info.state.as_str())
}

pub fn stage(agent: &Agent) -> &str {
    let progress = agent.status.as_ref().and_then(|status| status.progress.as_ref());
    progress.map_or("", |progress| progress.current_stage.as_str())
}

/// The machine with this number in the fleet of an InfraEnv, as `World::fleet` makes it.
pub fn machine(infra_env: Uuid, index: u32) -> Machine {
    let setup = Setup {
        infra_env_id: infra_env,
        seed: u64::from_le_bytes(infra_env.as_bytes()[..8].try_into().unwrap()),
        profile: Some(Profile::Rack),
        ..Setup::default()
    };
    Machine::new(&setup, index, index)
}

impl World {
    /// An InfraEnv with an image; the hub's id of it.
    pub async fn pool_of(&self, name: &str, change: impl FnOnce(&mut InfraEnv)) -> Uuid {
        self.infra_env(name, change).await;
        let available = |infra_env: &InfraEnv| {
            let status = infra_env.status.clone().unwrap_or_default();
            find_service(&status.conditions, IMAGE_CREATED)
                .is_some_and(|found| found.reason == reason::AVAILABLE)
        };
        id_of(&self.when(&self.pool.clone(), name, "available", available).await)
    }

    /// A free host that is ready; its name.
    pub async fn free_host(&mut self, infra_env: Uuid) -> String {
        self.fleet(infra_env, 1, |config| {
            config.first_index = 0;
            config.return_boots = None;
        });
        let name = machine(infra_env, 0).id().to_string();
        self.agent_in(&name, "known-unbound").await;
        name
    }

    /// A host that registers and then says nothing more.
    pub async fn silent_host(&self, infra_env: Uuid) -> String {
        let host_id = Uuid::new_v4();
        self.register(infra_env, host_id).await;
        self.agent_in(&host_id.to_string(), "discovering-unbound").await;
        host_id.to_string()
    }

    pub async fn register(&self, infra_env: Uuid, host_id: Uuid) {
        let body = RegisterHost {
            host_id,
            discovery_agent_version: None,
        };
        self.hub.register_host(infra_env, &body).await.unwrap();
    }

    pub async fn agent(&self, name: &str) -> Agent {
        self.get(&self.pool, name).await
    }

    pub async fn agent_when(&self, name: &str, what: &str, holds: impl Fn(&Agent) -> bool) -> Agent {
        self.when(&self.pool, name, what, holds).await
    }

    pub async fn agent_in(&self, name: &str, wanted: &str) -> Agent {
        self.agent_when(name, wanted, |agent| state(agent) == wanted)
            .await
    }

    pub async fn change_agent(&self, name: &str, patch: Value) -> Result<Agent, kube::Error> {
        self.patch(&self.pool, name, patch).await
    }

    /// Sets `clusterDeploymentName`; nothing removes it.
    pub async fn want(&self, agent: &str, cluster: Option<&str>) -> Result<Agent, kube::Error> {
        let reference = cluster.map(|name| ClusterRef {
            name: name.into(),
            namespace: self.clusters.clone(),
        });
        self.change_agent(agent, json!({ "spec": { "clusterDeploymentName": reference } }))
            .await
    }

    /// A ClusterDeployment whose cluster has this id.
    pub async fn deployment(&self, name: &str, id: Uuid) {
        let mut deployment = ClusterDeployment::new(name, Default::default());
        deployment.spec.cluster_name = name.into();
        deployment.spec.base_domain = "example.com".into();
        deployment.spec.platform = Some(Platform {
            agent_bare_metal: Some(AgentBareMetal::default()),
        });
        deployment
            .annotations_mut()
            .insert(annotation::CLUSTER_ID.into(), id.to_string());
        self.create(&self.clusters, &deployment).await;
    }

    /// A cluster of one host, to be installed; the hub's id of it.
    pub async fn new_cluster(&self, name: &str, change: impl FnOnce(&mut CreateCluster)) -> Uuid {
        let id = Uuid::new_v4();
        let mut cluster: CreateCluster = serde_json::from_value(json!({
            "name": name, "openshift_version": "4.20", "pull_secret": PULL_SECRET, "base_dns_domain": "example.com",
            "control_plane_count": 1, "high_availability_mode": "None",
        }))
        .unwrap();
        change(&mut cluster);
        self.hub.put_cluster(id, &cluster).await.unwrap();
        self.deployment(name, id).await;
        id
    }

    /// A cluster that runs already, with a kubeconfig that leads to the API server of the tests.
    pub async fn running_cluster(&self, name: &str) -> Uuid {
        let id = Uuid::new_v4();
        let cluster = ImportCluster {
            name: name.into(),
            api_vip_dnsname: format!("api.{name}.example.com"),
            openshift_cluster_id: Uuid::new_v4(),
            openshift_version: Some("4.20".into()),
        };
        self.hub.put_imported_cluster(id, &cluster).await.unwrap();
        self.deployment(name, id).await;
        id
    }

    /// Lets the operator reach the cluster: it is the API server of the tests itself.
    pub async fn kubeconfig_of(&self, name: &str) {
        self.kubeconfig_at(name, &self.server.admin).await;
    }

    /// Lets the operator reach the cluster, which is another API server.
    pub async fn kubeconfig_at(&self, name: &str, path: &Path) {
        let text = std::fs::read_to_string(path).unwrap();
        let secret = Secret {
            metadata: named(&format!("{name}-admin-kubeconfig")),
            string_data: Some([("kubeconfig".to_owned(), text)].into()),
            ..Secret::default()
        };
        self.create(&self.clusters, &secret).await;
    }
}
