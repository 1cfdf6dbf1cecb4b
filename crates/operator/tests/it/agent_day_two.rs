//! Agents of running clusters: nodes that are followed, certificates, and what is cleaned up after a host has left.

use crate::lent::{says, stage, state, word};
use crate::world::World;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use muster_operator::crd::Agent;
use muster_operator::crd::keys::annotation;
use muster_simfleet::Remote;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use uuid::Uuid;

/// A host that is being installed into a running cluster and has rebooted: only its node can show more.
pub struct Joining {
    pub world: World,
    pub pool: Uuid,
    pub name: String,
    pub node: String,
    pub remote: Remote,
    /// The cluster that it joins: the API server of the tests itself, unless somebody says otherwise.
    pub spoke: Client,
}

impl Joining {
    pub async fn start(world: World) -> Self {
        let mut joining = Self::bound(world).await;
        joining.install().await;
        joining.rebooted().await;
        joining
    }

    /// Into a cluster that people describe, which the operator lets hosts join.
    pub async fn described(world: World, patch: Value) -> Self {
        let joining = Self::free(world).await;
        let world = &joining.world;
        world.described_spoke("spoke").await;
        world.change_agent(&joining.name, patch).await.unwrap();
        let own = json!({ "spec": { "hostname": joining.node, "approved": true } });
        world.change_agent(&joining.name, own).await.unwrap();
        world.want(&joining.name, Some("spoke")).await.unwrap();
        joining
    }

    pub async fn rebooted(&self) {
        self.world
            .agent_when(&self.name, "rebooting", |agent| stage(agent) == "Rebooting")
            .await;
    }

    pub async fn free(mut world: World) -> Self {
        let pool = world.pool_of("lab", |_| ()).await;
        let remote = world.fleet(pool, 1, |config| {
            config.first_index = 0;
            config.return_boots = None;
        });
        let name = crate::lent::machine(pool, 0).id().to_string();
        world.agent_in(&name, "known-unbound").await;
        let node = format!("node-{}", &name[..8]);
        Self {
            spoke: world.kube.clone(),
            world,
            pool,
            name,
            node,
            remote,
        }
    }

    async fn bound(world: World) -> Self {
        let joining = Self::free(world).await;
        let (world, name, node) = (&joining.world, &joining.name, &joining.node);
        world.running_cluster("spoke").await;
        world
            .change_agent(name, json!({ "spec": { "hostname": node, "approved": true } }))
            .await
            .unwrap();
        world.want(name, Some("spoke")).await.unwrap();
        world.agent_in(name, "known").await;
        let named = async || {
            world
                .hub
                .host(joining.pool, name.parse().unwrap())
                .await
                .unwrap()
                .requested_hostname
                == *node
        };
        world.until("the host is called like its node", named).await;
        joining
    }

    async fn install(&mut self) {
        self.world
            .hub
            .install_host(self.pool, self.name.parse().unwrap())
            .await
            .unwrap();
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.spoke.clone())
    }

    pub async fn node_is_gone(&self) {
        let gone = async || self.nodes().get_opt(&self.node).await.unwrap().is_none();
        self.world.until("the node is gone", gone).await;
    }

    pub async fn make_node(&self, ready: bool, annotations: Value) {
        let node: Node = serde_json::from_value(json!({
            "metadata": { "name": self.node, "annotations": annotations },
        }))
        .unwrap();
        let _ = self.nodes().create(&PostParams::default(), &node).await;
        let status = json!({ "status": {
            "conditions": [{ "type": "Ready", "status": if ready { "True" } else { "False" } }],
            "addresses": [{ "type": "Hostname", "address": self.node }, { "type": "InternalIP", "address": "10.1.2.3" }],
        }});
        self.nodes()
            .patch_status(&self.node, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
    }

    /// Installed and part of the cluster.
    pub async fn done(world: World) -> Self {
        let joining = Self::start(world).await;
        joining.join().await;
        joining
    }

    /// The node comes up, and gets what it asks for.
    pub async fn join(&self) {
        self.come_up().await;
        self.world.agent_in(&self.name, "added-to-existing-cluster").await;
    }

    pub async fn come_up(&self) {
        self.world.kubeconfig_of("spoke").await;
        self.allow_requests().await;
        self.request(&Asks::client(self)).await;
        self.make_node(true, json!({})).await;
        self.request(&Asks::serving(self)).await;
    }

    /// Bootstrapping nodes and nodes may ask for certificates.
    pub async fn allow_requests(&self) {
        let user =
            |name: &str| json!({ "kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io" });
        let binding: ClusterRoleBinding = serde_json::from_value(json!({
            "metadata": { "name": self.node },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper" },
            "subjects": [user(BOOTSTRAPPER), user(&format!("system:node:{}", self.node)), user("mallory")],
        }))
        .unwrap();
        let _ = Api::all(self.world.kube.clone())
            .create(&PostParams::default(), &binding)
            .await;
    }

    /// Asks for a certificate, as that user; the name of the request.
    pub async fn request(&self, asks: &Asks) -> String {
        let client = impersonating(&self.world.server.admin, asks).await;
        let mut csr: CertificateSigningRequest = serde_json::from_value(json!({
            "metadata": { "generateName": "test-" },
            "spec": { "request": "", "signerName": asks.signer, "usages": asks.usages },
        }))
        .unwrap();
        csr.spec.request = ByteString(pem(&asks.subject, asks.names.as_deref()));
        let csrs: Api<CertificateSigningRequest> = Api::all(client);
        csrs.create(&PostParams::default(), &csr)
            .await
            .unwrap()
            .name_any()
    }

    pub async fn is_approved(&self, name: &str) -> bool {
        let csrs: Api<CertificateSigningRequest> = Api::all(self.world.kube.clone());
        let csr = csrs.get(name).await.unwrap();
        let conditions = csr
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        conditions.iter().any(|condition| {
            condition.type_ == "Approved" && condition.reason.as_deref() == Some("NodeCSRApprove")
        })
    }
}

const BOOTSTRAPPER: &str = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";

pub struct Asks {
    user: String,
    groups: Vec<String>,
    subject: String,
    names: Option<String>,
    signer: &'static str,
    usages: [&'static str; 2],
}

impl Asks {
    pub fn client(joining: &Joining) -> Self {
        Self {
            user: BOOTSTRAPPER.into(),
            groups: Vec::new(),
            subject: format!("/O=system:nodes/CN=system:node:{}", joining.node),
            names: None,
            signer: "kubernetes.io/kube-apiserver-client-kubelet",
            usages: ["digital signature", "client auth"],
        }
    }

    pub fn serving(joining: &Joining) -> Self {
        Self {
            user: format!("system:node:{}", joining.node),
            groups: vec!["system:nodes".into(), "system:authenticated".into()],
            names: Some(format!("subjectAltName=DNS:{},IP:10.1.2.3", joining.node)),
            signer: "kubernetes.io/kubelet-serving",
            usages: ["digital signature", "server auth"],
            ..Self::client(joining)
        }
    }
}

async fn impersonating(admin: &Path, asks: &Asks) -> Client {
    let file = Kubeconfig::read_from(admin).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.auth_info.impersonate = Some(asks.user.clone());
    config.auth_info.impersonate_groups = Some(asks.groups.clone()).filter(|groups| !groups.is_empty());
    Client::try_from(config).unwrap()
}

fn pem(subject: &str, names: Option<&str>) -> Vec<u8> {
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]);
    openssl.args(["-keyout", "/dev/null", "-subj", subject]);
    openssl.args(names.iter().flat_map(|names| ["-addext", names]));
    let done = openssl.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_joins_a_running_cluster_is_done_when_its_node_is() {
    let joining = Joining::start(World::start().await).await;
    let world = &joining.world;
    let waits = |agent: &Agent| says(agent, "SpecSynced") == word("False", "BackendError");
    world
        .agent_when(&joining.name, "without a kubeconfig", waits)
        .await;
    world.kubeconfig_of("spoke").await;
    joining.allow_requests().await;
    let client = joining.request(&Asks::client(&joining)).await;
    world
        .until("the node may speak", async || joining.is_approved(&client).await)
        .await;
    let early = joining.request(&Asks::serving(&joining)).await;
    world
        .change_agent(
            &joining.name,
            json!({ "spec": { "nodeLabels": { "zone": "north" } } }),
        )
        .await
        .unwrap();
    joining.make_node(false, json!({})).await;
    let agent = world
        .agent_when(&joining.name, "joined", |agent| stage(agent) == "Joined")
        .await;
    assert_eq!(says(&agent, "Installed"), word("False", "InstallationInProgress"));
    world
        .until("the node may be spoken to", async || {
            joining.is_approved(&early).await
        })
        .await;
    joining.make_node(true, json!({})).await;
    let agent = world
        .agent_when(&joining.name, "done", |agent| stage(agent) == "Done")
        .await;
    assert_eq!(state(&agent), "added-to-existing-cluster");
    assert_eq!(says(&agent, "Installed"), word("True", "InstallationCompleted"));
    let tracked = agent.status.unwrap().csr_status.unwrap().approved_csrs;
    let mut types: Vec<_> = tracked.iter().map(|csr| csr.type_.as_str()).collect();
    types.sort();
    assert_eq!(types, ["client", "serving"]);
    let node = joining.nodes().get(&joining.node).await.unwrap();
    assert_eq!(node.labels()["zone"], "north");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_resemble_those_of_the_node_are_left_alone() {
    let joining = Joining::start(World::start().await).await;
    let world = &joining.world;
    world.kubeconfig_of("spoke").await;
    joining.allow_requests().await;
    joining.make_node(false, json!({})).await;
    let stranger = Asks {
        user: "mallory".into(),
        ..Asks::client(&joining)
    };
    let greedy = Asks {
        subject: format!("/O=system:nodes/O=system:admins/CN=system:node:{}", joining.node),
        ..Asks::client(&joining)
    };
    let elsewhere = Asks {
        names: Some("subjectAltName=DNS:kubernetes.default.svc,IP:10.9.9.9".into()),
        ..Asks::serving(&joining)
    };
    let other = Asks {
        subject: "/O=system:nodes/CN=system:node:somebody-else".into(),
        ..Asks::client(&joining)
    };
    let mut refused = Vec::new();
    for asks in [stranger, greedy, elsewhere, other] {
        refused.push(joining.request(&asks).await);
    }
    let good = joining.request(&Asks::client(&joining)).await;
    world
        .until("the real one is approved", async || {
            joining.is_approved(&good).await
        })
        .await;
    // The reconcile after the one that approved the good ones notes it.
    let noted = |agent: &Agent| {
        let csrs = agent
            .status
            .as_ref()
            .and_then(|status| status.csr_status.as_ref());
        csrs.is_some_and(|csrs| csrs.approved_csrs.iter().any(|csr| csr.name == good))
    };
    world.agent_when(&joining.name, "noted", noted).await;
    for name in refused {
        assert!(!joining.is_approved(&name).await, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_a_running_cluster_can_be_taken_out_while_it_is_installed() {
    let joining = Joining::start(World::start().await).await;
    let world = &joining.world;
    world.want(&joining.name, None).await.unwrap();
    let agent = world
        .agent_in(&joining.name, "unbinding-pending-user-action")
        .await;
    assert_eq!(says(&agent, "Bound"), word("False", "UnbindingPendingUserAction"));
    assert_eq!(
        world
            .hub
            .host(joining.pool, joining.name.parse().unwrap())
            .await
            .unwrap()
            .cluster_id,
        None
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_host_comes_back_and_its_node_goes() {
    let joining = Joining::done(World::start().await).await;
    let world = &joining.world;
    world.want(&joining.name, None).await.unwrap();
    let agent = world
        .agent_in(&joining.name, "unbinding-pending-user-action")
        .await;
    assert_eq!(says(&agent, "Bound"), word("False", "UnbindingPendingUserAction"));
    let info = agent.status.unwrap().deprovision_info.unwrap();
    assert_eq!(
        (info.cluster_name.as_str(), info.node_name.as_str()),
        ("spoke", joining.node.as_str())
    );
    assert!(
        joining.nodes().get_opt(&joining.node).await.unwrap().is_some(),
        "not before the host is back"
    );
    joining.remote.boot_discovery(0);
    world.agent_in(&joining.name, "known-unbound").await;
    let cleaned = |agent: &Agent| {
        agent
            .status
            .as_ref()
            .is_some_and(|status| status.deprovision_info.is_none())
    };
    let agent = world.agent_when(&joining.name, "cleaned", cleaned).await;
    assert!(joining.nodes().get_opt(&joining.node).await.unwrap().is_none());
    assert_eq!(agent.spec.hostname, joining.node, "what people wrote stays");
    assert_eq!(agent.status.unwrap().csr_status, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_to_be_spared_stays() {
    let joining = Joining::done(World::start().await).await;
    let world = &joining.world;
    let spare = json!({ "metadata": { "annotations": { annotation::SKIP_SPOKE_CLEANUP: "" } } });
    world.change_agent(&joining.name, spare).await.unwrap();
    world.want(&joining.name, None).await.unwrap();
    world
        .agent_in(&joining.name, "unbinding-pending-user-action")
        .await;
    joining.remote.boot_discovery(0);
    world.agent_in(&joining.name, "known-unbound").await;
    let cleared = |agent: &Agent| {
        agent
            .status
            .as_ref()
            .is_some_and(|status| status.deprovision_info.is_none())
    };
    world.agent_when(&joining.name, "cleared", cleared).await;
    assert!(joining.nodes().get_opt(&joining.node).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_set_shrinks_with_its_host_instead_of_replacing_the_node() {
    let joining = Joining::done(World::start().await).await;
    let world = &joining.world;
    let namespace = world.pool.clone();
    let api = |group: &str, version: &str, kind: &str| -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(world.kube.clone(), &namespace, &resource)
    };
    let (machines, sets, metal) = (
        api("machine.openshift.io", "v1beta1", "Machine"),
        api("machine.openshift.io", "v1beta1", "MachineSet"),
        api("metal3.io", "v1alpha1", "BareMetalHost"),
    );
    let make = async |api: &Api<DynamicObject>, object: Value| {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    };
    make(&sets, json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "metadata": { "name": "workers" } })).await;
    // The bare metal operator keeps it until the machine is off.
    make(
        &metal,
        json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": "metal-1", "finalizers": ["baremetalhost.metal3.io/x"] } }),
    )
    .await;
    make(
        &machines,
        json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "metadata": {
            "name": "machine-1", "labels": { "machine.openshift.io/cluster-api-machineset": "workers" },
            "annotations": { "metal3.io/BareMetalHost": format!("{namespace}/metal-1") },
        }}),
    )
    .await;
    let annotated = json!({ "metadata": { "annotations": { "machine.openshift.io/machine": format!("{namespace}/machine-1") } } });
    joining
        .nodes()
        .patch(&joining.node, &PatchParams::default(), &Patch::Merge(annotated))
        .await
        .unwrap();
    world.want(&joining.name, None).await.unwrap();
    world
        .agent_in(&joining.name, "unbinding-pending-user-action")
        .await;
    joining.remote.boot_discovery(0);
    world
        .until("the host is to go from its cluster", async || {
            let host = metal.get("metal-1").await.unwrap();
            host.metadata.deletion_timestamp.is_some()
        })
        .await;
    let machine = machines.get("machine-1").await.unwrap();
    // The server counts all its writes in one row: the last write of each object shows the order.
    let written = async |api: &Api<DynamicObject>, name: &str| -> u64 {
        let object = api.get(name).await.unwrap();
        object.resource_version().unwrap().parse().unwrap()
    };
    let order = [
        written(&machines, "machine-1").await,
        written(&sets, "workers").await,
        written(&metal, "metal-1").await,
    ];
    assert!(
        order.is_sorted(),
        "the Machine and the MachineSet are changed before the host goes: {order:?}"
    );
    let let_go = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    metal
        .patch("metal-1", &PatchParams::default(), &let_go)
        .await
        .unwrap();
    assert_eq!(
        machine.annotations()["machine.openshift.io/delete-machine"],
        "true"
    );
    assert_eq!(
        machine.annotations()["machine.openshift.io/exclude-node-draining"],
        "true"
    );
    assert_eq!(
        sets.get("workers").await.unwrap().annotations()["metal3.io/autoscale-to-hosts"],
        "true"
    );
    assert!(
        joining.nodes().get_opt(&joining.node).await.unwrap().is_some(),
        "the cluster itself removes it"
    );
    tokio::time::timeout(
        Duration::from_secs(60),
        world.agent_in(&joining.name, "known-unbound"),
    )
    .await
    .unwrap();
}
