//! Machines with a power controller that join a running cluster: what they trust, and which objects the cluster gets.
//! The cluster is an API server of its own, which at first knows nothing of machines.

use crate::agent_day_two::Joining;
use crate::joined::{METAL, with_metal};
use crate::own_server::{Front, Place, THEIRS};
use crate::world::{World, named};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use muster_operator::Connection;
use muster_operator::crd::keys::annotation;
use muster_operator::crd::metal3::BareMetalHost;
use serde_json::{Value, json};
use std::path::Path;

const MACHINES: &str = "openshift-machine-api";
/// As people write it.
const OWN: &str = r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/mine","contents":{"source":"data:,x"}}]}}"#;
const CERTIFICATE: &str = include_str!("../../src/controller/bare_metal_host/plan/tests/authority.pem");

/// A machine of the pool, and a cluster it can join.
struct Site {
    joining: Joining,
    place: Place,
    front: Front,
}

impl Site {
    async fn open(annotations: Value) -> Self {
        let place = Place::open().await;
        let front = place.front("spoke").await;
        let mut joining = Joining::free(World::start().await).await;
        joining.spoke = Connection::open(Some(&front.kubeconfig())).await.unwrap().kube;
        let spec = json!({ "customDeploy": { "method": "start_assisted_install" }, "bootMode": "UEFI",
            "bmc": { "address": "redfish://10.0.0.9/1", "credentialsName": "rack-1-bmc" } });
        let mut all = json!({ annotation::BMAC_HOSTNAME: joining.node });
        all.as_object_mut()
            .unwrap()
            .extend(annotations.as_object().unwrap().clone());
        with_metal(&joining, all, spec).await;
        joining.world.described_spoke("spoke").await;
        joining.world.kubeconfig_at("spoke", &front.kubeconfig()).await;
        Self {
            joining,
            place,
            front,
        }
    }

    fn world(&self) -> &World {
        &self.joining.world
    }

    async fn lend(&self) {
        let cluster = format!("{}/spoke", self.world().clusters);
        self.annotate(json!({ annotation::BMAC_CLUSTER_REFERENCE: cluster }))
            .await;
    }

    async fn annotate(&self, annotations: Value) {
        let patch = json!({ "metadata": { "annotations": annotations } });
        self.world()
            .patch::<BareMetalHost>(&self.world().pool, METAL, patch)
            .await
            .unwrap();
    }

    async fn when(&self, what: &str, holds: impl Fn(&BareMetalHost) -> bool) -> BareMetalHost {
        self.world().when(&self.world().pool, METAL, what, holds).await
    }

    /// Waits until one event says this.
    async fn warns(&self, text: &str) {
        let events: Api<Event> = Api::namespaced(self.world().kube.clone(), &self.world().pool);
        let of_host = ListParams::default().fields(&format!("regarding.name={METAL}"));
        let events = async || {
            let found = events.list(&of_host).await.unwrap().items;
            let says = |event: &&Event| event.note.as_deref().unwrap_or_default().contains(text);
            found.iter().filter(says).count()
        };
        self.world().until(text, async || events().await == 1).await;
    }

    async fn put_authority(&self, namespace: &str, name: &str) {
        self.namespace(namespace).await;
        let map = ConfigMap {
            metadata: named(name),
            data: Some([("ca.crt".to_owned(), CERTIFICATE.to_owned())].into()),
            ..ConfigMap::default()
        };
        let maps: Api<ConfigMap> = Api::namespaced(self.joining.spoke.clone(), namespace);
        maps.create(&PostParams::default(), &map).await.unwrap();
    }

    async fn namespace(&self, name: &str) {
        let namespace = Namespace {
            metadata: named(name),
            ..Namespace::default()
        };
        // Some are there from the beginning.
        let _ = Api::all(self.joining.spoke.clone())
            .create(&PostParams::default(), &namespace)
            .await;
    }

    /// The cluster has machines, and a master among them.
    async fn gets_machines(&self) {
        let kinds = ["metal3.yaml", "machine-api.yaml"].map(|file| Path::new(THEIRS).join(file));
        let kinds: Vec<&Path> = kinds.iter().map(|path| path.as_path()).collect();
        self.place.define(&self.front, &kinds).await;
        self.namespace(MACHINES).await;
        let master: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": { "name": "master-0", "labels": { "machine.openshift.io/cluster-api-machine-type": "master" } },
            "spec": { "providerSpec": { "value": { "image": { "checksum": "", "url": "http://image" } } } },
        }))
        .unwrap();
        self.machines()
            .create(&PostParams::default(), &master)
            .await
            .unwrap();
    }

    fn machines(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("machine.openshift.io", "v1beta1", "Machine");
        Api::namespaced_with(
            self.joining.spoke.clone(),
            MACHINES,
            &ApiResource::from_gvk(&kind),
        )
    }

    fn metal(&self) -> Api<BareMetalHost> {
        Api::namespaced(self.joining.spoke.clone(), MACHINES)
    }

    /// Neither of the two is in the cluster any more.
    async fn is_forgotten(&self) -> bool {
        let machine = self.machines().get_opt(&format!("spoke-{METAL}")).await.unwrap();
        machine.is_none() && self.metal().get_opt(METAL).await.unwrap().is_none()
    }
}

fn is_known(host: &BareMetalHost) -> bool {
    host.annotations().contains_key(annotation::BMAC_SPOKE_CREATED)
}

fn overrides(host: &BareMetalHost) -> &str {
    let text = host.annotations().get(annotation::BMAC_IGNITION_OVERRIDES);
    text.map_or("", String::as_str)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_joins_trusts_its_cluster_is_known_there_and_forgotten_when_it_is_back() {
    let mut site = Site::open(json!({ annotation::BMAC_IGNITION_OVERRIDES: OWN })).await;
    site.put_authority("openshift-config", "kube-root-ca").await;
    site.lend().await;
    let encoded = BASE64_STANDARD.encode(CERTIFICATE.trim());
    let host = site
        .when("trusting", |host| overrides(host).contains(&encoded))
        .await;
    assert!(overrides(&host).contains("/etc/mine"), "{}", overrides(&host));
    let text = overrides(&host).to_owned();
    let name = site.joining.name.clone();
    let has_it = async || {
        let row = site
            .world()
            .hub
            .host(site.joining.pool, name.parse().unwrap())
            .await;
        row.unwrap().ignition_config_overrides == text
    };
    site.world().until("the host trusts it, too", has_it).await;

    // The cluster knows no machines: nothing breaks, and it is asked again.
    site.warns("it has no Machines").await;
    assert!(!is_known(&site.when("there", |_| true).await));
    site.gets_machines().await;
    site.when("known there", is_known).await;
    let metal = site.metal().get(METAL).await.unwrap();
    let bmc = metal.spec.bmc.clone().unwrap();
    assert_eq!((bmc.address.as_str(), bmc.credentials_name.as_str()), ("", ""));
    assert_eq!(metal.spec.rest["bootMode"], "UEFI");
    assert_eq!(metal.spec.rest["consumerRef"]["name"], format!("spoke-{METAL}"));
    assert!(metal.annotations()[annotation::METAL3_HARDWARE_DETAILS].contains(&site.joining.node));
    let machine = site.machines().get(&format!("spoke-{METAL}")).await.unwrap();
    assert_eq!(
        machine.annotations()["metal3.io/BareMetalHost"],
        format!("{MACHINES}/{METAL}")
    );
    assert_eq!(
        machine.data["spec"]["providerSpec"]["value"]["image"],
        json!({ "checksum": "", "url": "http://image" })
    );

    // The cluster itself approves what the node asks for.
    let of_node = json!({ "machine.openshift.io/machine": format!("{MACHINES}/spoke-{METAL}") });
    site.joining.make_node(true, of_node).await;
    site.world().agent_in(&name, "added-to-existing-cluster").await;
    site.joining.world.assert_converged().await;

    site.annotate(json!({ annotation::BMAC_CLUSTER_REFERENCE: "" }))
        .await;
    site.world()
        .agent_in(&name, "unbinding-pending-user-action")
        .await;
    site.when("no longer known there", |host| !is_known(host)).await;
    site.joining.remote.boot_discovery(0);
    site.world().agent_in(&name, "known-unbound").await;
    site.world()
        .until("the cluster forgot it", async || site.is_forgotten().await)
        .await;
    let back = site
        .when("trusting nobody", |host| !overrides(host).contains(&encoded))
        .await;
    assert!(overrides(&back).contains("/etc/mine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_taken_out_before_it_is_a_node_is_forgotten_by_its_cluster() {
    let site = Site::open(json!({})).await;
    site.gets_machines().await;
    site.lend().await;
    site.warns("kube-system/root-ca").await;
    site.when("known there", is_known).await;
    assert!(!site.is_forgotten().await);
    // As long as its agent runs it needs nobody to come back.
    site.joining.rebooted().await;
    site.annotate(json!({ annotation::BMAC_CLUSTER_REFERENCE: "" }))
        .await;
    let name = &site.joining.name;
    site.world().agent_in(name, "unbinding-pending-user-action").await;
    site.joining.remote.boot_discovery(0);
    site.world().agent_in(name, "known-unbound").await;
    site.world()
        .until("the cluster forgot it", async || site.is_forgotten().await)
        .await;
    site.when("nor is it noted here", |host| !is_known(host)).await;
    let masters = site.machines().list(&ListParams::default()).await.unwrap();
    assert_eq!(masters.items.len(), 1, "others stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_the_cluster_with_the_same_name_is_not_taken_for_the_one_that_joins() {
    let site = Site::open(json!({})).await;
    site.put_authority("openshift-config", "kube-root-ca").await;
    site.gets_machines().await;
    let theirs = json!({ "online": true, "bootMACAddress": "52:54:00:ff:ff:01",
        "bmc": { "address": "redfish://10.0.0.77/1", "credentialsName": "theirs" },
        "consumerRef": { "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "master-0",
            "namespace": MACHINES } });
    let theirs = BareMetalHost::new(METAL, serde_json::from_value(theirs).unwrap());
    let theirs = site
        .metal()
        .create(&PostParams::default(), &theirs)
        .await
        .unwrap();
    site.lend().await;
    site.warns("another MAC address").await;
    let kept = site.metal().get(METAL).await.unwrap();
    assert_eq!(kept, theirs);
    let machine = site.machines().get_opt(&format!("spoke-{METAL}")).await.unwrap();
    assert!(machine.is_none());
    assert!(!is_known(&site.when("there", |_| true).await));

    // It gets out of the way.
    site.metal()
        .delete(METAL, &DeleteParams::default())
        .await
        .unwrap();
    site.when("known there", is_known).await;
    let bmc = site.metal().get(METAL).await.unwrap().spec.bmc.unwrap();
    assert_eq!(bmc.address, "");
}
