//! Clusters as people describe them: a ClusterDeployment, an AgentClusterInstall, a ClusterImageSet and a pull secret.

use crate::lent::machine;
use crate::world::{PULL_SECRET, World};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::cluster_request::ClustersQuery;
use muster_operator::crd::agent_cluster_install::AgentClusterInstallSpec;
use muster_operator::crd::condition::find_install;
use muster_operator::crd::keys::annotation;
use muster_operator::crd::{Agent, AgentClusterInstall, ClusterDeployment, ClusterImageSet};
use muster_simfleet::Remote;
use serde_json::{Value, json};
use uuid::Uuid;

pub const RELEASE: &str = "quay.io/openshift-release-dev/ocp-release:4.20.33-x86_64";

/// Status and reason of a condition.
pub fn says(install: &AgentClusterInstall, type_: &str) -> (String, String) {
    let conditions = install
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let found = find_install(conditions, type_);
    found
        .map(|found| (found.status.clone(), found.reason.clone()))
        .unwrap_or_default()
}

pub fn state(install: &AgentClusterInstall) -> &str {
    install
        .status
        .as_ref()
        .map_or("", |status| status.debug_info.state.as_str())
}

/// The hub has the cluster; whether it lacks input or hosts depends on what was reconciled first.
pub fn waits(install: &AgentClusterInstall) -> bool {
    ["insufficient", "pending-for-input"].contains(&state(install))
}

/// A cluster of one host.
pub fn one_host() -> Value {
    json!({ "provisionRequirements": { "controlPlaneAgents": 1 } })
}

/// A cluster of three masters; its addresses are where simulated hosts are.
pub fn three_hosts() -> Value {
    json!({ "provisionRequirements": { "controlPlaneAgents": 3 }, "apiVIPs": ["10.64.0.20"],
        "ingressVIPs": ["10.64.0.21"] })
}

fn deployment(name: &str) -> ClusterDeployment {
    let mut deployment = ClusterDeployment::new(name, Default::default());
    deployment.spec = serde_json::from_value(json!({
        "clusterName": name, "baseDomain": "example.com", "pullSecretRef": { "name": format!("{name}-pull") },
        "platform": { "agentBareMetal": { "agentSelector": {} } },
        "clusterInstallRef": { "group": "extensions.hive.openshift.io", "version": "v1beta1",
            "kind": "AgentClusterInstall", "name": name },
    }))
    .unwrap();
    deployment
}

impl World {
    /// All objects of a cluster.
    pub async fn describe(&self, name: &str, spec: Value) {
        self.describe_in(&self.clusters, name, spec).await;
    }

    pub async fn describe_in(&self, namespace: &str, name: &str, spec: Value) {
        self.image_set().await;
        self.pull_secret(namespace, &format!("{name}-pull"), PULL_SECRET)
            .await;
        self.create(namespace, &deployment(name)).await;
        self.create(namespace, &self.new_install(name, spec)).await;
    }

    pub fn image_set_name(&self) -> String {
        format!("release-of-{}", self.clusters)
    }

    pub async fn image_set(&self) {
        let mut set = ClusterImageSet::new(&self.image_set_name(), Default::default());
        set.spec.release_image = RELEASE.into();
        // Several clusters of a test share it.
        let _ = Api::all(self.kube.clone())
            .create(&PostParams::default(), &set)
            .await;
    }

    pub async fn deploy(&self, name: &str, change: impl FnOnce(&mut ClusterDeployment)) -> ClusterDeployment {
        let mut deployment = deployment(name);
        change(&mut deployment);
        self.create(&self.clusters, &deployment).await
    }

    pub async fn install(&self, name: &str, spec: Value) -> AgentClusterInstall {
        self.create(&self.clusters, &self.new_install(name, spec)).await
    }

    fn new_install(&self, name: &str, spec: Value) -> AgentClusterInstall {
        let mut whole = json!({ "clusterDeploymentRef": { "name": name }, "imageSetRef": { "name": self.image_set_name() },
            "networking": {} });
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let spec: AgentClusterInstallSpec = serde_json::from_value(whole).unwrap();
        AgentClusterInstall::new(name, spec)
    }

    pub async fn install_when(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&AgentClusterInstall) -> bool,
    ) -> AgentClusterInstall {
        self.when(&self.clusters, name, what, holds).await
    }

    pub async fn install_in(&self, name: &str, wanted: &str) -> AgentClusterInstall {
        self.install_when(name, wanted, |install| state(install) == wanted)
            .await
    }

    /// Waits until the hub has the cluster, and waits for its hosts.
    pub async fn install_waits(&self, name: &str) -> AgentClusterInstall {
        self.install_when(name, "waiting for hosts", waits).await
    }

    /// Waits until a condition says so.
    pub async fn install_says(
        &self,
        name: &str,
        type_: &str,
        status: &str,
        reason: &str,
    ) -> AgentClusterInstall {
        let wanted = (status.to_owned(), reason.to_owned());
        self.install_when(name, &format!("{type_} {status} {reason}"), |install| {
            says(install, type_) == wanted
        })
        .await
    }

    /// The hub's cluster.
    pub async fn cluster(&self, name: &str) -> ClusterView {
        self.hub.cluster(self.cluster_id(name).await).await.unwrap()
    }

    pub async fn cluster_id(&self, name: &str) -> Uuid {
        self.cluster_id_in(&self.clusters, name).await
    }

    pub async fn cluster_id_in(&self, namespace: &str, name: &str) -> Uuid {
        let deployment: ClusterDeployment = self.get(namespace, name).await;
        deployment.annotations()[annotation::CLUSTER_ID].parse().unwrap()
    }

    pub async fn change_install(&self, name: &str, patch: Value) -> AgentClusterInstall {
        self.patch(&self.clusters, name, patch).await.unwrap()
    }

    /// Free hosts that are ready; their names.
    pub async fn free_hosts(&mut self, infra_env: Uuid, count: u32) -> Vec<String> {
        self.fleet(infra_env, count, |config| {
            config.first_index = 0;
            config.return_boots = None;
        });
        let names: Vec<String> = (0..count)
            .map(|index| machine(infra_env, index).id().to_string())
            .collect();
        for name in &names {
            self.agent_in(name, "known-unbound").await;
        }
        names
    }

    pub async fn approve(&self, agent: &str) {
        self.change_agent(agent, json!({ "spec": { "approved": true } }))
            .await
            .unwrap();
    }

    /// A cluster of one late-bound host that is installed and takes on more; the host's name.
    pub async fn installed(&mut self, name: &str) -> (Uuid, String) {
        let pool = self.pool_of("lab", |_| ()).await;
        let host = self.free_hosts(pool, 1).await.remove(0);
        self.describe(name, one_host()).await;
        self.approve(&host).await;
        self.want(&host, Some(name)).await.unwrap();
        self.install_in(name, "adding-hosts").await;
        (pool, host)
    }

    /// A cluster that runs already, described in full; its kubeconfig is that of `kubeconfig_of`.
    pub async fn described_spoke(&self, name: &str) {
        self.deploy(name, |deployment| {
            deployment.spec.installed = true;
            deployment.spec.pull_secret_ref = None;
            let metadata = json!({ "clusterID": Uuid::new_v4(), "infraID": "x",
                "adminKubeconfigSecretRef": { "name": format!("{name}-admin-kubeconfig") } });
            deployment.spec.cluster_metadata = serde_json::from_value(metadata).unwrap();
        })
        .await;
        let mut spec = three_hosts();
        spec["imageSetRef"] = json!(null);
        self.install(name, spec).await;
        self.install_in(name, "adding-hosts").await;
    }

    pub async fn delete_deployment(&self, name: &str) {
        self.delete::<ClusterDeployment>(&self.clusters, name).await;
    }

    /// A host of the InfraEnv `lab`, which binds all its hosts to the cluster.
    pub async fn early_host(&mut self, cluster: &str) -> (Uuid, String, Remote) {
        let cluster = self.reference(cluster);
        let pool = self
            .pool_of("lab", |infra_env| infra_env.spec.cluster_ref = cluster)
            .await;
        let remote = self.fleet(pool, 1, |config| config.first_index = 0);
        let name = machine(pool, 0).id().to_string();
        self.agent_in(&name, "known").await;
        (pool, name, remote)
    }

    pub async fn secret(&self, name: &str) -> Secret {
        self.get(&self.clusters, name).await
    }

    /// Nothing of a cluster is left but, perhaps, its Agents.
    pub async fn cluster_is_gone(&self, name: &str, id: Uuid) {
        self.gone::<AgentClusterInstall>(&self.clusters, name).await;
        self.gone::<ClusterDeployment>(&self.clusters, name).await;
        let error = self.hub.cluster(id).await.unwrap_err();
        assert!(
            matches!(error, muster_contract::ClientError::NotFound(_)),
            "{error}"
        );
        // Lists come from working memory, which follows where whoever deleted it died in the middle.
        self.until("no list has it", async || {
            let listed = self.hub.clusters(&ClustersQuery::default()).await.unwrap();
            listed.iter().all(|cluster| cluster.id != id)
        })
        .await;
    }

    pub async fn agents(&self) -> Vec<Agent> {
        self.api::<Agent>(&self.pool)
            .list(&Default::default())
            .await
            .unwrap()
            .items
    }
}
