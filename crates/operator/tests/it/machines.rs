//! Clusters and machines of Cluster API for tests, hosts that need no hub, and words for what AgentMachines say.

use crate::world::{Running, World, named, run};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use muster_operator::Options;
use muster_operator::crd::agent::AgentSpec;
use muster_operator::crd::keys::{annotation, finalizer, label};
use muster_operator::crd::reference::ClusterRef;
use muster_operator::crd::{Agent, AgentCluster, AgentMachine};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub const HOOK: &str = annotation::CAPI_DELETE_HOOK;
pub const PROVIDER: &str = "agent-cluster,agent-machine,node-provider-id";
pub const TOKEN: &str = "a-token-nobody-sees";

/// A version of Cluster API, with its way to write references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capi {
    V1Beta1,
    V1Beta2,
}

impl Capi {
    fn api_version(self) -> &'static str {
        match self {
            Self::V1Beta1 => "cluster.x-k8s.io/v1beta1",
            Self::V1Beta2 => "cluster.x-k8s.io/v1beta2",
        }
    }

    fn reference(self, group: &str, kind: &str, name: &str) -> Value {
        match self {
            Self::V1Beta1 => json!({ "apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": name }),
            Self::V1Beta2 => json!({ "apiGroup": group, "kind": kind, "name": name }),
        }
    }

    /// How a Machine says that it waits for the hook.
    fn waits_for_hook(self) -> Value {
        let older = json!({ "type": "PreTerminateDeleteHookSucceeded", "status": "False", "severity": "Info",
            "reason": "WaitingExternalHook", "lastTransitionTime": "2026-01-01T00:00:00Z" });
        match self {
            Self::V1Beta1 => json!({ "conditions": [older] }),
            Self::V1Beta2 => json!({ "conditions": [{ "type": "Deleting", "status": "True",
                "reason": "WaitingForPreTerminateHook", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] }),
        }
    }
}

/// Status and reason of a condition of an AgentMachine.
pub fn says(machine: &AgentMachine, type_: &str) -> (String, String) {
    let conditions = machine.status.iter().flat_map(|status| &status.conditions);
    let found = conditions.into_iter().find(|found| found.type_ == type_);
    found
        .map(|found| (found.status.clone(), found.reason.clone()))
        .unwrap_or_default()
}

pub fn message(machine: &AgentMachine, type_: &str) -> String {
    let conditions = machine.status.iter().flat_map(|status| &status.conditions);
    let found = conditions.into_iter().find(|found| found.type_ == type_);
    found.map(|found| found.message.clone()).unwrap_or_default()
}

/// No Agent fits, and both conditions say so.
pub fn waits(machine: &AgentMachine) -> bool {
    let none = ("False".to_owned(), "NoSuitableAgents".to_owned());
    says(machine, "AgentReserved") == none && says(machine, "Ready") == none
}

/// The name of its Agent.
pub fn agent_of(machine: &AgentMachine) -> Option<String> {
    let status = machine.status.as_ref()?;
    status.agent_ref.as_ref().map(|agent| agent.name.clone())
}

pub fn holder(agent: &Agent) -> Option<&str> {
    agent.labels().get(label::AGENT_MACHINE).map(String::as_str)
}

/// What a free host says that can be lent.
pub fn free() -> Value {
    json!({
        "debugInfo": { "state": "known-unbound" },
        "inventory": {
            "hostname": "host", "memory": { "physicalBytes": 17179869184_i64 }, "cpu": { "count": 8 },
            "interfaces": [{ "name": "eth0", "hasCarrier": true, "ipV4Addresses": ["192.0.2.7/24"],
                "ipV6Addresses": [], "flags": [] }],
        },
        "conditions": conditions(&[
            ("SpecSynced", "True", "SyncOK"), ("Connected", "True", "AgentIsConnected"),
            ("RequirementsMet", "True", "AgentIsReady"), ("Validated", "True", "ValidationsPassing"),
            ("Installed", "False", "InstallationNotStarted"), ("Bound", "False", "Unbound"),
        ]),
    })
}

pub fn conditions(said: &[(&str, &str, &str)]) -> Value {
    let said = said
        .iter()
        .map(|(type_, status, reason)| json!({ "type": type_, "status": status, "reason": reason, "message": "m" }));
    said.collect()
}

/// A free host with one of its conditions otherwise.
pub fn but(type_: &str, status: &str, reason: &str) -> Value {
    let mut said = free();
    for condition in said["conditions"].as_array_mut().unwrap() {
        if condition["type"] == type_ {
            condition["status"] = json!(status);
            condition["reason"] = json!(reason);
        }
    }
    said
}

/// What the Agent of a running node says.
pub fn installed() -> Value {
    let mut said = but("Bound", "True", "Bound");
    for condition in said["conditions"].as_array_mut().unwrap() {
        if condition["type"] == "Installed" {
            condition["status"] = json!("True");
            condition["reason"] = json!("InstallationCompleted");
        }
    }
    said["debugInfo"]["state"] = json!("added-to-existing-cluster");
    said
}

/// The address of a machine of this type.
pub fn address(machine: &AgentMachine, type_: &str) -> Option<String> {
    let mut all = machine.status.iter().flat_map(|status| &status.addresses);
    let found = all.find(|address| address.type_ == type_);
    found.map(|found| found.address.clone())
}

impl World {
    /// Carries the name of a machine, as if it had been claimed.
    pub fn claimed_by(&self, machine: &str) -> impl Fn(&mut Agent) + use<> {
        let (machine, namespace) = (machine.to_owned(), self.clusters.clone());
        let cluster = self.reference("blue");
        move |agent| {
            agent
                .labels_mut()
                .insert(label::AGENT_MACHINE.into(), machine.clone());
            let note = (annotation::AGENT_MACHINE_NAMESPACE.to_owned(), namespace.clone());
            agent.annotations_mut().extend([note]);
            agent.spec.cluster_deployment_name.clone_from(&cluster);
        }
    }

    /// The provider alone: hosts are made by hand and no hub is asked.
    pub async fn provider(&self) -> Running {
        run(self.provider_options()).await
    }

    /// Without the controller that names nodes, which would poll for those of hosts made by hand.
    pub async fn provider_without_nodes(&self) -> Running {
        let options = Options {
            controllers: "agent-cluster,agent-machine".parse().unwrap(),
            ..self.options()
        };
        run(options).await
    }

    pub fn provider_options(&self) -> Options {
        Options {
            controllers: PROVIDER.parse().unwrap(),
            ..self.options()
        }
    }

    /// As Agents name a cluster.
    pub fn reference(&self, cluster: &str) -> Option<ClusterRef> {
        Some(ClusterRef {
            name: cluster.into(),
            namespace: self.clusters.clone(),
        })
    }

    pub fn capi(&self, version: Capi, kind: &str) -> Api<DynamicObject> {
        let (group, version) = version.api_version().split_once('/').unwrap();
        self.kind(group, version, kind)
    }

    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.kube.clone(), &self.clusters, &resource)
    }

    pub async fn put(&self, api: &Api<DynamicObject>, object: Value) -> DynamicObject {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    /// A hosted cluster with its control plane, whose Agents are those of the pool.
    pub async fn hosted_cluster(&self, version: Capi, name: &str) -> AgentCluster {
        self.control_plane(name).await;
        self.planned_cluster(version, name).await
    }

    /// A hosted cluster whose control plane may not be there yet.
    pub async fn planned_cluster(&self, version: Capi, name: &str) -> AgentCluster {
        let plane = version.reference("hypershift.openshift.io", "HostedControlPlane", name);
        self.cluster_with(version, name, json!({ "controlPlaneRef": plane }))
            .await
    }

    /// A Cluster and its AgentCluster, whose control plane is nobody's business.
    pub async fn capi_cluster(&self, version: Capi, name: &str) -> AgentCluster {
        self.cluster_with(version, name, json!({})).await
    }

    pub async fn control_plane(&self, name: &str) {
        let planes = self.kind("hypershift.openshift.io", "v1beta1", "HostedControlPlane");
        self.put(
            &planes,
            json!({
                "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane", "metadata": { "name": name },
                "spec": {
                    "dns": { "baseDomain": "example.com" },
                    "pullSecret": { "name": format!("{name}-pull") },
                    "platform": { "type": "Agent", "agent": { "agentNamespace": self.pool } },
                },
            }),
        )
        .await;
        let status = json!({ "status": { "kubeConfig": { "name": "admin-kubeconfig", "key": "kubeconfig" },
            "kubeadminPassword": { "name": "kubeadmin-password" } } });
        planes
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
    }

    pub async fn cluster_with(&self, version: Capi, name: &str, mut spec: Value) -> AgentCluster {
        let group = "capi-provider.agent-install.openshift.io";
        spec["infrastructureRef"] = version.reference(group, "AgentCluster", name);
        let cluster = json!({
            "apiVersion": version.api_version(), "kind": "Cluster", "metadata": { "name": name }, "spec": spec,
        });
        let cluster = self.put(&self.capi(version, "Cluster"), cluster).await;
        let agent_cluster: AgentCluster = serde_json::from_value(json!({
            "apiVersion": format!("{group}/v1beta1"), "kind": "AgentCluster",
            "metadata": { "name": name, "ownerReferences": [{
                "apiVersion": version.api_version(), "kind": "Cluster", "name": name, "uid": cluster.uid(),
            }] },
            "spec": {
                "ignitionEndpoint": { "url": "https://ignition.example.com/ignition",
                    "caCertificateReference": { "namespace": self.clusters, "name": "ignition-server-ca-cert" } },
                "controlPlaneEndpoint": { "host": "api.example.com", "port": 6443 },
            },
        }))
        .unwrap();
        self.create(&self.clusters, &agent_cluster).await
    }

    /// A Machine of the cluster and its AgentMachine, both under this name.
    pub async fn capi_machine(&self, version: Capi, cluster: &str, name: &str, spec: Value) -> AgentMachine {
        self.capi_machine_with(version, cluster, name, spec, json!({}))
            .await
    }

    pub async fn capi_machine_with(
        &self,
        version: Capi,
        cluster: &str,
        name: &str,
        spec: Value,
        bootstrap: Value,
    ) -> AgentMachine {
        let labels = json!({ label::CAPI_CLUSTER: cluster });
        let machine = self
            .put(
                &self.capi(version, "Machine"),
                json!({
                    "apiVersion": version.api_version(), "kind": "Machine",
                    // As Cluster API itself holds it.
                    "metadata": { "name": name, "labels": labels, "finalizers": ["machine.cluster.x-k8s.io"] },
                    "spec": { "clusterName": cluster, "bootstrap": bootstrap },
                }),
            )
            .await;
        let agent_machine: AgentMachine = serde_json::from_value(json!({
            "apiVersion": "capi-provider.agent-install.openshift.io/v1beta1", "kind": "AgentMachine",
            "metadata": { "name": name, "labels": labels, "ownerReferences": [{
                "apiVersion": version.api_version(), "kind": "Machine", "name": name, "uid": machine.uid(),
                "controller": true,
            }] },
            "spec": spec,
        }))
        .unwrap();
        self.create(&self.clusters, &agent_machine).await
    }

    /// A machine as a backup brings it: marked, and without its status.
    pub async fn restored_machine(&self, cluster: &str, name: &str, spec: Value) {
        self.capi_machine(Capi::V1Beta2, cluster, name, spec).await;
        let mark = json!({ "metadata": { "finalizers": [finalizer::AGENT_MACHINE] } });
        self.patch::<AgentMachine>(&self.clusters, name, mark)
            .await
            .unwrap();
        let hook = Patch::Merge(json!({ "metadata": { "annotations": { HOOK: "" } } }));
        let machines = self.capi(Capi::V1Beta2, "Machine");
        machines
            .patch(name, &PatchParams::default(), &hook)
            .await
            .unwrap();
    }

    /// Says that a cluster is made and which ClusterDeployment stands for it, as a provider does.
    pub async fn cluster_is_ready(&self, name: &str) {
        let status = json!({ "ready": true, "clusterDeploymentReference": self.reference(name) });
        self.say::<AgentCluster>(name, status).await;
    }

    /// Says that a machine has an Agent of the pool, as a provider does.
    pub async fn machine_has(&self, name: &str, agent: &str) {
        let status = json!({ "agentRef": { "name": agent, "namespace": self.pool } });
        self.say::<AgentMachine>(name, status).await;
    }

    async fn say<K>(&self, name: &str, status: Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned,
    {
        let patch = Patch::Merge(json!({ "status": status }));
        let api = self.api::<K>(&self.clusters);
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub async fn machine_when(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&AgentMachine) -> bool,
    ) -> AgentMachine {
        self.when(&self.clusters, name, what, holds).await
    }

    /// With its Agent.
    pub async fn lent_machine(&self, name: &str) -> AgentMachine {
        self.machine_when(name, "has an Agent", |machine| agent_of(machine).is_some())
            .await
    }

    /// Deletes the Machine as far as Cluster API does before it waits for the hook.
    pub async fn terminate(&self, version: Capi, name: &str) {
        let machines = self.capi(version, "Machine");
        machines.delete(name, &DeleteParams::default()).await.unwrap();
        let status = json!({ "status": version.waits_for_hook() });
        machines
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
    }

    pub async fn is_hooked(&self, name: &str) -> bool {
        self.is_hooked_in(Capi::V1Beta2, name).await
    }

    pub async fn is_hooked_in(&self, version: Capi, name: &str) -> bool {
        let machine = self.capi(version, "Machine").get(name).await.unwrap();
        machine.annotations().contains_key(HOOK)
    }

    /// Waits until the hook is off.
    pub async fn unhooked(&self, name: &str) {
        self.until("the hook is off", async || !self.is_hooked(name).await)
            .await;
    }

    /// An Agent without a host.
    pub async fn hand_made(&self, name: &str, status: Value, change: impl FnOnce(&mut Agent)) -> Agent {
        let mut agent = Agent::new(
            name,
            AgentSpec {
                approved: true,
                ..AgentSpec::default()
            },
        );
        change(&mut agent);
        self.create(&self.pool, &agent).await;
        self.show(name, status).await
    }

    /// Writes the status of an Agent without a host.
    pub async fn show(&self, name: &str, status: Value) -> Agent {
        let patch = json!({ "status": status });
        self.api::<Agent>(&self.pool)
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap()
    }

    pub async fn show_state(&self, name: &str, state: &str) {
        self.show(name, json!({ "debugInfo": { "state": state } })).await;
    }

    /// The user data of a pool of nodes, with a token.
    pub async fn user_data(&self, name: &str, token: &str) -> Secret {
        let secret = Secret {
            metadata: named(name),
            string_data: Some([("value".to_owned(), user_data(token))].into()),
            ..Secret::default()
        };
        self.create(&self.clusters, &secret).await
    }
}

pub fn user_data(token: &str) -> String {
    json!({ "ignition": { "version": "3.2.0", "config": { "merge": [{
        "source": "https://ignition.example.com/ignition",
        "httpHeaders": [
            { "name": "Authorization", "value": format!("Bearer {token}") },
            { "name": "NodePool", "value": "clusters/blue" },
        ],
    }] } } })
    .to_string()
}
