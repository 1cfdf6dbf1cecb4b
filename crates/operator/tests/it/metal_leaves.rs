//! Machines that are deleted with their Agents: their nodes are emptied before they are wiped.

use crate::lent::machine;
use crate::metal::{HOST, Room, noted};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use muster_operator::MetalBoot;
use muster_operator::crd::ClusterDeployment;
use muster_operator::crd::keys::annotation;
use muster_operator::crd::metal3::BareMetalHost;
use serde_json::{Value, json};

/// A machine that is lent to a cluster, which is the API server of the tests itself.
struct Lent {
    room: Room,
    node: String,
}

impl Lent {
    async fn open() -> Self {
        let mut room = Room::start(MetalBoot::Converged).await;
        let pool = room.world.pool_of("lab", |_| ()).await;
        let name = room.world.free_host(pool).await;
        let node = format!("node-{}", &name[..8]);
        let preset = json!({ "customDeploy": { "method": "start_assisted_install" } });
        room.machine(&machine(pool, 0).mac(0), preset).await;
        room.annotate(json!({ annotation::BMAC_REMOVE_ON_DELETE: "true", annotation::BMAC_HOSTNAME: node }))
            .await;
        room.world
            .agent_when(&name, "named", |agent| agent.spec.hostname == node)
            .await;
        room.world.running_cluster("spoke").await;
        room.world.want(&name, Some("spoke")).await.unwrap();
        room.status(json!({ "provisioning": { "state": "provisioned" }, "operationalStatus": "detached" }))
            .await;
        room.when("detached", |host| {
            noted(host, annotation::METAL3_DETACHED).is_some()
        })
        .await;
        Self { room, node }
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.room.world.kube.clone())
    }

    fn pods(&self) -> Api<Pod> {
        self.room.world.api(&self.room.world.pool)
    }

    async fn make_node(&self) {
        let node: Node = serde_json::from_value(json!({ "metadata": { "name": self.node } })).unwrap();
        self.nodes().create(&PostParams::default(), &node).await.unwrap();
    }

    /// One that runs on the node.
    async fn make_pod(&self, name: &str) {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { "app": name } },
            "spec": { "nodeName": self.node, "containers": [{ "name": "one", "image": "one" }] },
        }))
        .unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
        let running = Patch::Merge(json!({ "status": { "phase": "Running" } }));
        self.pods()
            .patch_status(name, &PatchParams::default(), &running)
            .await
            .unwrap();
    }

    /// The pod's containers have ended.
    async fn end_pod(&self, name: &str) {
        let at_once = DeleteParams::default().grace_period(0);
        self.pods().delete(name, &at_once).await.unwrap();
    }

    async fn budget(&self, name: &str, app: &str) {
        let budget: PodDisruptionBudget = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": { "minAvailable": 0, "selector": { "matchLabels": { "app": app } } },
        }))
        .unwrap();
        self.room.world.create(&self.room.world.pool, &budget).await;
    }

    async fn delete(&self) {
        let hosts = self.room.world.api::<BareMetalHost>(&self.room.world.pool);
        hosts.delete(HOST, &DeleteParams::default()).await.unwrap();
    }

    async fn when_evicted(&self, name: &str) {
        let evicted = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        let pool = &self.room.world.pool;
        self.room.world.when(pool, name, "evicted", evicted).await;
    }

    /// Waits until the note on the machine begins so.
    async fn when_says(&self, status: &str) -> BareMetalHost {
        let says = |host: &BareMetalHost| {
            noted(host, annotation::BMAC_DRAIN_STATUS).is_some_and(|said| said.starts_with(status))
        };
        self.room.when(status, says).await
    }

    /// The operator reconciles at once instead of in a while.
    async fn wake(&self, value: &str) -> BareMetalHost {
        self.room.annotate(json!({ "reconcile": value })).await
    }

    /// The machine is wiped, and then all is gone.
    async fn is_wiped(&self, host: &BareMetalHost) {
        assert_eq!(noted(host, annotation::METAL3_DETACHED), None);
        assert_eq!(host.spec.automated_cleaning_mode.as_deref(), Some("metadata"));
        self.room
            .status(json!({ "provisioning": { "state": "deleting" } }))
            .await;
        let pool = &self.room.world.pool;
        self.room.world.gone::<BareMetalHost>(pool, HOST).await;
        let _ = self.nodes().delete(&self.node, &DeleteParams::default()).await;
    }
}

fn is_kept(host: &BareMetalHost) -> bool {
    noted(host, annotation::METAL3_DETACHED).is_some() && host.spec.automated_cleaning_mode.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_goes_with_its_agent_is_drained_before_it_is_wiped() {
    let lent = Lent::open().await;
    lent.room.world.kubeconfig_of("spoke").await;
    lent.make_node().await;
    lent.make_pod("web").await;
    lent.delete().await;
    lent.when_says("draining in progress").await;
    lent.when_evicted("web").await;
    let closed = lent.nodes().get(&lent.node).await.unwrap();
    assert_eq!(closed.spec.unwrap().unschedulable, Some(true));
    assert!(is_kept(&lent.room.now().await));

    lent.end_pod("web").await;
    lent.wake("again").await;
    let done = lent.when_says("drain succeeded").await;
    lent.is_wiped(&done).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_cannot_be_evicted_keeps_no_other_from_it_and_the_note_of_it_stands_still() {
    let lent = Lent::open().await;
    lent.room.world.kubeconfig_of("spoke").await;
    lent.make_node().await;
    // The API server refuses to evict a pod with two budgets.
    lent.make_pod("a-guarded").await;
    lent.budget("one", "a-guarded").await;
    lent.budget("two", "a-guarded").await;
    lent.make_pod("web").await;
    lent.delete().await;
    let waits = lent.when_says("not drained yet: ").await;
    let note = noted(&waits, annotation::BMAC_DRAIN_STATUS).unwrap().to_owned();
    assert!(note.contains("a-guarded"), "{note}");
    lent.when_evicted("web").await;

    // Another reconcile tries again and writes nothing.
    for time in ["once", "twice", "thrice"] {
        let reconciles = lent.room.reconciles().await;
        let before = lent.wake(time).await;
        let reconciled_again = async || lent.room.reconciles().await > reconciles;
        lent.room.world.until("reconciled", reconciled_again).await;
        let after = lent.room.now().await;
        assert_eq!(after.resource_version(), before.resource_version());
        assert_eq!(noted(&after, annotation::BMAC_DRAIN_STATUS), Some(note.as_str()));
        assert!(is_kept(&after));
    }

    let budgets = lent.room.world.api::<PodDisruptionBudget>(&lent.room.world.pool);
    budgets.delete("two", &DeleteParams::default()).await.unwrap();
    for pod in ["a-guarded", "web"] {
        lent.end_pod(pod).await;
    }
    lent.wake("and again").await;
    let done = lent.when_says("drain succeeded").await;
    lent.is_wiped(&done).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_a_running_cluster_is_not_wiped_while_the_kubeconfig_is_missing() {
    let lent = Lent::open().await;
    let world = &lent.room.world;
    let installed = json!({ "spec": { "installed": true } });
    world
        .patch::<ClusterDeployment>(&world.clusters, "spoke", installed)
        .await
        .unwrap();
    let empty: Secret = serde_json::from_value(json!({
        "metadata": { "name": "spoke-admin-kubeconfig" }, "stringData": { "kubeconfig": "" },
    }))
    .unwrap();
    world.create(&world.clusters, &empty).await;
    // From an older machine of this name, whose YAML was kept.
    let before: Value = json!({ annotation::BMAC_DRAIN_STARTED_AT: "2020-01-01T00:00:00Z",
        annotation::BMAC_DRAIN_STATUS: "drain succeeded", annotation::BMAC_DRAIN_TIMEOUT: "12h" });
    lent.room.annotate(before).await;
    lent.delete().await;
    let waits = lent
        .when_says("not drained yet: the cluster has no kubeconfig")
        .await;
    assert!(is_kept(&waits));

    let secrets = world.api::<Secret>(&world.clusters);
    secrets
        .delete("spoke-admin-kubeconfig", &DeleteParams::default())
        .await
        .unwrap();
    world.kubeconfig_of("spoke").await;
    lent.wake("again").await;
    // There is no such node.
    let done = lent.when_says("drain succeeded").await;
    lent.is_wiped(&done).await;
}
