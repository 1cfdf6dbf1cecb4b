//! What Ironic's agent boots on machines of the converged flow.

use crate::described::one_host;
use crate::infra_env::{KEY, network, rack};
use crate::lent::machine;
use crate::metal::{HOST, Room, method, noted};
use crate::world::id_of;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams,
};
use kube::{Resource, ResourceExt};
use muster_operator::MetalBoot;
use muster_operator::controller::preprovisioning_image::ironic;
use muster_operator::crd::InfraEnv;
use muster_operator::crd::keys::{annotation, finalizer, label};
use muster_operator::crd::metal3::{BareMetalHost, PreprovisioningImage, PreprovisioningImageStatus};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const START: &str = "start_assisted_install";
/// As people write it who bring Ironic's agent themselves.
const OWN_AGENT: &str = r#"{"ignition":{"version":"3.1.0"},
    "systemd":{"units":[{"name":"ironic-agent.service","enabled":true,"contents":"[Service]\n"}]}}"#;

/// As the bare metal operator makes it for a BareMetalHost.
async fn make(room: &Room, spec: Value) -> PreprovisioningImage {
    let host = room.now().await;
    let mut image = PreprovisioningImage::new(HOST, serde_json::from_value(spec).unwrap());
    image.metadata.labels = host.metadata.labels.clone();
    image.metadata.owner_references = host.controller_owner_ref(&()).map(|owner| vec![owner]);
    room.world.create(&room.world.pool, &image).await
}

fn for_iso() -> Value {
    json!({ "architecture": "x86_64", "acceptFormats": ["iso", "initrd"] })
}

/// Ready, Error and their reason.
fn says(image: &PreprovisioningImage) -> (String, String, String) {
    let conditions = image.status.clone().unwrap_or_default().conditions;
    let find = |type_: &str| conditions.iter().find(|one| one.type_ == type_).cloned();
    match (find("Ready"), find("Error")) {
        (Some(ready), Some(error)) => (ready.status, error.status, ready.reason),
        _ => Default::default(),
    }
}

async fn when_says(room: &Room, ready: &str, error: &str, reason: &str) -> PreprovisioningImageStatus {
    let expected = (ready.to_owned(), error.to_owned(), reason.to_owned());
    let said = |image: &PreprovisioningImage| says(image) == expected;
    let image = room.world.when(&room.world.pool, HOST, reason, said).await;
    image.status.unwrap()
}

async fn infra_env(room: &Room) -> InfraEnv {
    room.world.get(&room.world.pool, "lab").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_the_converged_flow_boots_the_image_of_its_infra_env_with_ironics_agent_in_it() {
    let mut room = Room::at_once(MetalBoot::Converged).await;
    let pool = room.world.pool_of("lab", |_| ()).await;
    room.machine("52:54:00:aa:00:01", json!({})).await;
    make(&room, for_iso()).await;
    let failed = when_says(&room, "False", "True", "IronicAgentIgnitionUpdateFailure").await;
    let message = &failed.conditions[0].message;
    assert!(
        message.contains(&room.ironic().to_string()) && message.contains("IRONIC_BASE_URL"),
        "{message}"
    );
    assert_eq!(failed.image_url, "", "nothing is claimed that is not there");

    let config: Secret = serde_json::from_value(json!({
        "metadata": { "name": room.ironic().name },
        "stringData": { "IRONIC_BASE_URL": "https://ironic.example.com:6385", "IRONIC_AGENT_IMAGE": "registry/ipa:1" },
    }))
    .unwrap();
    // The operator polls for it.
    room.world.create(&room.world.pool, &config).await;
    when_says(&room, "False", "False", "WaitingForInfraEnvImageToCoolDown").await;
    assert_eq!(
        noted_on(&infra_env(&room).await, annotation::ENABLE_IRONIC_AGENT),
        Some("true".into())
    );
    let row = room.world.hub.infra_env(pool).await.unwrap();
    assert!(
        ironic::is_in(&row.ignition_config_override),
        "{}",
        row.ignition_config_override
    );

    room.clock.advance(Duration::from_secs(61));
    room.reconciled().await;
    let published = when_says(&room, "True", "False", "InfraEnvAvailable").await;
    assert_eq!(
        published.image_url,
        infra_env(&room).await.status.unwrap().iso_download_url
    );
    assert_eq!(
        (published.format.as_str(), published.architecture.as_str()),
        ("iso", "x86_64")
    );
    let image: PreprovisioningImage = room.world.get(&room.world.pool, HOST).await;
    assert_eq!(image.finalizers(), [finalizer::PREPROVISIONING_IMAGE]);
    assert_eq!(image.labels()[label::NOT_IN_BACKUP], "true");
    assert_eq!(
        published.conditions[0].observed_generation,
        image.metadata.generation
    );
    // And only now does the machine get the order to deploy.
    room.status(json!({ "provisioning": { "state": "available" }, "operationalStatus": "OK" }))
        .await;
    room.when("deployed", |host| method(host) == Some(START)).await;
    room.assert_converged().await;
    assert_eq!(id_of(&infra_env(&room).await), pool);
}

fn noted_on(infra_env: &InfraEnv, annotation: &str) -> Option<String> {
    infra_env.annotations().get(annotation).cloned()
}

/// An InfraEnv that brings Ironic's agent and chooses networks, with a machine in a state.
async fn pool_with(room: &Room, mac: impl FnOnce(Uuid) -> String, state: &str) -> Uuid {
    let pool = room
        .world
        .pool_of("lab", |infra_env| {
            infra_env.spec.ignition_config_override = OWN_AGENT.into();
            infra_env.spec.nm_state_config_label_selector = Some(rack("a"));
        })
        .await;
    room.machine(&mac(pool), json!({ "customDeploy": { "method": START } }))
        .await;
    room.status(json!({ "provisioning": { "state": state }, "operationalStatus": "OK" }))
        .await;
    pool
}

/// The image of the machine is published; its address.
async fn publish(room: &Room) -> String {
    make(room, for_iso()).await;
    when_says(room, "False", "False", "WaitingForInfraEnvImageToCoolDown").await;
    room.clock.advance(Duration::from_secs(61));
    room.reconciled().await;
    let first = when_says(room, "True", "False", "InfraEnvAvailable")
        .await
        .image_url;
    when_noted(room, |noted| noted == first).await
}

async fn published(room: &Room, state: &str) -> String {
    pool_with(room, |_| "52:54:00:aa:00:01".into(), state).await;
    publish(room).await
}

/// Waits until an image is published that is noted as the one that the machine runs.
async fn when_noted(room: &Room, wanted: impl Fn(&str) -> bool) -> String {
    let is_noted = |image: &PreprovisioningImage| {
        let url = image.status.clone().unwrap_or_default().image_url;
        let noted = image.annotations().get(annotation::PUBLISHED_IMAGE);
        wanted(&url) && noted == Some(&url)
    };
    let image = room.world.when(&room.world.pool, HOST, "noted", is_noted).await;
    image.status.unwrap().image_url
}

async fn edit(room: &Room, spec: Value) {
    let patch = json!({ "spec": spec });
    room.world
        .patch::<InfraEnv>(&room.world.pool, "lab", patch)
        .await
        .unwrap();
}

/// The same agent, and a file.
fn with_file(path: &str) -> Value {
    let mut config: Value = serde_json::from_str(OWN_AGENT).unwrap();
    config["storage"] = json!({ "files": [{ "path": path }] });
    json!({ "ignitionConfigOverride": config.to_string() })
}

async fn is_rebooted(room: &Room) {
    let force = Some(r#"{"force": true}"#);
    room.when("rebooted", |host| noted(host, annotation::METAL3_REBOOT) == force)
        .await;
    // The bare metal operator has done so.
    room.annotate(json!({ annotation::METAL3_REBOOT: null })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_in_the_image_reaches_a_machine_that_booted_it_and_is_not_provisioned() {
    let mut room = Room::at_once(MetalBoot::Converged).await;
    let mut before = published(&room, "inspecting").await;
    assert_eq!(
        noted(&room.now().await, annotation::METAL3_REBOOT),
        None,
        "it boots the first anyway"
    );
    let mine = network("mine", "a", "52:54:00:00:00:0a");
    room.world.create(&room.world.pool, &mine).await;
    let mut images = vec![before.clone()];
    for change in ["network", "file", "key"] {
        match change {
            "file" => edit(&room, with_file("/etc/new")).await,
            "key" => edit(&room, json!({ "sshAuthorizedKey": KEY })).await,
            _ => {}
        }
        let after = when_noted(&room, |url| !url.is_empty() && url != before).await;
        assert_eq!(after, infra_env(&room).await.status.unwrap().iso_download_url);
        assert!(!images.contains(&after), "{change}: {after}");
        is_rebooted(&room).await;
        images.push(after.clone());
        before = after;
    }
    // Nothing of this is in the image.
    edit(&room, json!({ "agentLabels": { "rack": "7" } })).await;
    let theirs = network("theirs", "b", "52:54:00:00:00:0b");
    room.world.create(&room.world.pool, &theirs).await;
    room.world.house.close().await;
    room.world.house.reopen().await;
    room.assert_converged().await;
    assert_eq!(when_noted(&room, |url| !url.is_empty()).await, before);
    assert_eq!(noted(&room.now().await, annotation::METAL3_REBOOT), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_image_is_published_and_a_provisioned_machine_is_not_rebooted_for_it() {
    let mut room = Room::at_once(MetalBoot::Converged).await;
    let before = published(&room, "provisioned").await;
    edit(&room, with_file("/etc/new")).await;
    when_noted(&room, |url| !url.is_empty() && url != before).await;
    room.assert_converged().await;
    assert_eq!(noted(&room.now().await, annotation::METAL3_REBOOT), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_being_installed_is_rebooted_for_a_new_image_only_when_it_is_free_again() {
    let mut room = Room::at_once(MetalBoot::Converged).await;
    let pool = pool_with(&room, |pool| machine(pool, 0).mac(0), "provisioning").await;
    let before = publish(&room).await;
    room.world.fleet(pool, 1, |config| {
        config.install_time = Some(Duration::from_secs(600));
    });
    let name = machine(pool, 0).id().to_string();
    room.world.agent_in(&name, "known-unbound").await;
    room.world.describe("blue", one_host()).await;
    room.world.want(&name, Some("blue")).await.unwrap();
    room.world.agent_in(&name, "installing-in-progress").await;
    edit(&room, with_file("/etc/new")).await;
    let newer = |image: &PreprovisioningImage| {
        let url = image.status.clone().unwrap_or_default().image_url;
        !url.is_empty() && url != before
    };
    let image = room.world.when(&room.world.pool, HOST, "newer", newer).await;
    room.operator().reconciles_again("preprovisioning-image").await;
    let image: PreprovisioningImage = room.world.get(&room.world.pool, &image.name_any()).await;
    assert_eq!(image.annotations()[annotation::PUBLISHED_IMAGE], before);
    assert_eq!(noted(&room.now().await, annotation::METAL3_REBOOT), None);

    room.world.delete_deployment("blue").await;
    is_rebooted(&room).await;
    when_noted(&room, |url| !url.is_empty() && url != before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_not_released_while_its_machine_has_to_be_cleaned() {
    let room = Room::at_once(MetalBoot::Converged).await;
    published(&room, "available").await;
    // The bare metal operator keeps the machine until it is done.
    let kept =
        json!({ "metadata": { "finalizers": [finalizer::BARE_METAL_HOST, "baremetalhost.metal3.io/x"] } });
    room.change(kept).await;
    let images = room.world.api::<PreprovisioningImage>(&room.world.pool);
    let is_kept = async || {
        room.idle().await;
        let image = images.get(HOST).await.unwrap();
        assert!(image.metadata.deletion_timestamp.is_some());
        assert_eq!(image.finalizers(), [finalizer::PREPROVISIONING_IMAGE]);
    };
    images.delete(HOST, &DeleteParams::default()).await.unwrap();
    is_kept().await;
    let hosts = room.world.api::<BareMetalHost>(&room.world.pool);
    hosts.delete(HOST, &DeleteParams::default()).await.unwrap();
    room.when("let go by us", |host| {
        host.finalizers() == ["baremetalhost.metal3.io/x"]
    })
    .await;
    room.status(json!({ "provisioning": { "state": "deprovisioning" } }))
        .await;
    is_kept().await;
    room.status(json!({ "provisioning": { "state": "powering off before delete" } }))
        .await;
    room.world
        .gone::<PreprovisioningImage>(&room.world.pool, HOST)
        .await;
    room.change(json!({ "metadata": { "finalizers": null } })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_a_machine_that_is_not_cleaned_goes_at_once() {
    let room = Room::at_once(MetalBoot::Converged).await;
    published(&room, "available").await;
    room.change(json!({ "spec": { "automatedCleaningMode": "disabled" } }))
        .await;
    let images = room.world.api::<PreprovisioningImage>(&room.world.pool);
    images.delete(HOST, &DeleteParams::default()).await.unwrap();
    room.world
        .gone::<PreprovisioningImage>(&room.world.pool, HOST)
        .await;
}

/// The operator may see pods of the namespace, by the role that ships for Ironic's.
async fn may_see_ironic(room: &Room) {
    let shipped = include_str!("../../../../deploy/components/ironic/role.yaml");
    let mut role: Role = serde_norway::from_str(shipped).unwrap();
    role.metadata.namespace = Some(room.world.pool.clone());
    room.world.create(&room.world.pool, &role).await;
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": { "name": role.name_any() },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role.name_any() },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "muster-operator" }],
    }))
    .unwrap();
    room.world.create(&room.world.pool, &binding).await;
    let operator = room.world.server.connection().await.kube;
    let pods: Api<Pod> = Api::namespaced(operator, &room.world.pool);
    let may = async || pods.list(&ListParams::default()).await.is_ok();
    room.world.until("the right counts", may).await;
}

/// Without a network of its own; there is one for all tests, and none of them changes it.
async fn provisioning(room: &Room) {
    let kind = GroupVersionKind::gvk("metal3.io", "v1alpha1", "Provisioning");
    let all: Api<DynamicObject> = Api::all_with(room.world.kube.clone(), &ApiResource::from_gvk(&kind));
    let object = serde_json::from_value(json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "Provisioning",
        "metadata": { "name": "provisioning-configuration" }, "spec": { "provisioningNetwork": "Disabled" },
    }))
    .unwrap();
    // A run before may have left it.
    let _ = all.create(&PostParams::default(), &object).await;
}

/// The pod that Ironic runs in.
async fn ironic_pod(room: &Room, addresses: &[&str]) {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "metal3", "labels": {
            "k8s-app": "metal3", "baremetal.openshift.io/cluster-baremetal-operator": "metal3-state" } },
        "spec": { "containers": [{ "name": "ironic", "image": "ironic" }] },
    }))
    .unwrap();
    room.world.create(&room.world.pool, &pod).await;
    let all: Vec<Value> = addresses.iter().map(|ip| json!({ "ip": ip })).collect();
    let status = json!({ "status": { "podIP": addresses[0], "podIPs": all } });
    let pods = room.world.api::<Pod>(&room.world.pool);
    pods.patch_status("metal3", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

/// Waits until the agent in the image uses Ironic there.
async fn finds_ironic_at(room: &Room, url: &str) {
    let pool = id_of(&infra_env(room).await);
    let config = async || {
        let row = room.world.hub.infra_env(pool).await.unwrap();
        let config: Value = serde_json::from_str(&row.ignition_config_override).unwrap_or_default();
        let source = config["storage"]["files"][0]["contents"]["source"].as_str();
        let text = source.and_then(|source| source.strip_prefix("data:;base64,"));
        let text = BASE64_STANDARD.decode(text.unwrap_or_default()).unwrap();
        String::from_utf8(text).unwrap()
    };
    let line = format!("api_url = {url}:6385\n");
    room.world
        .until(&line, async || config().await.contains(&line))
        .await;
}

/// An InfraEnv that says which image Ironic's agent has, and a machine with an image.
async fn named_agent(room: &Room) {
    room.world
        .pool_of("lab", |infra_env| {
            infra_env
                .annotations_mut()
                .insert(annotation::IRONIC_AGENT_IMAGE.into(), "registry/ipa:1".into());
        })
        .await;
    room.machine("52:54:00:aa:00:01", json!({})).await;
    make(room, for_iso()).await;
}

/// Waits until the image says what is in the way, and whether that is a right.
async fn when_blind(room: &Room, expected: bool) {
    let right = format!("no right to list pods in namespace {}", room.world.pool);
    let said = |image: &PreprovisioningImage| {
        let conditions = image.status.clone().unwrap_or_default().conditions;
        let blind = conditions
            .iter()
            .any(|condition| condition.message.contains(&right));
        says(image).2 == "IronicAgentIgnitionUpdateFailure" && blind == expected
    };
    room.world.when(&room.world.pool, HOST, &right, said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_secret_ironic_is_found_by_its_pod_and_no_image_changes_while_the_pod_is_gone() {
    let mut room = Room::at_once(MetalBoot::Converged).await;
    named_agent(&room).await;
    // No watch reports any of this: the operator polls for it.
    provisioning(&room).await;
    when_blind(&room, true).await;
    may_see_ironic(&room).await;
    when_blind(&room, false).await;
    ironic_pod(&room, &["192.0.2.7", "2001:db8::7"]).await;
    finds_ironic_at(&room, "https://192.0.2.7").await;
    let only = json!({ "metadata": { "annotations": { annotation::IP_FAMILY: "v6" } } });
    room.world
        .patch::<InfraEnv>(&room.world.pool, "lab", only)
        .await
        .unwrap();
    finds_ironic_at(&room, "https://[2001:db8::7]").await;

    room.clock.advance(Duration::from_secs(61));
    room.reconciled().await;
    when_says(&room, "True", "False", "InfraEnvAvailable").await;
    let before = infra_env(&room).await.status.unwrap().created_time;
    let pods = room.world.api::<Pod>(&room.world.pool);
    pods.delete("metal3", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    room.stop_operator().await;
    room.start_operator().await;
    room.operator().reconciles_again("preprovisioning-image").await;
    assert_eq!(room.operator().requests.writes(), 0);
    assert_eq!(infra_env(&room).await.status.unwrap().created_time, before);

    // It comes back elsewhere.
    ironic_pod(&room, &["2001:db8::8"]).await;
    finds_ironic_at(&room, "https://[2001:db8::8]").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_secret_says_that_ironic_moved_the_image_follows_at_once() {
    let mut room = Room::at_once(MetalBoot::Converged).await;
    let secret = room.ironic().name;
    let config: Secret = serde_json::from_value(json!({
        "metadata": { "name": secret },
        "stringData": { "IRONIC_BASE_URL": "https://one.example.com:6385" },
    }))
    .unwrap();
    room.world.create(&room.world.pool, &config).await;
    named_agent(&room).await;
    finds_ironic_at(&room, "https://one.example.com").await;
    room.clock.advance(Duration::from_secs(61));
    room.reconciled().await;
    let before = when_says(&room, "True", "False", "InfraEnvAvailable")
        .await
        .image_url;
    room.assert_converged().await;
    let config: Secret = room.world.get(&room.world.pool, &secret).await;
    assert_eq!(
        config.labels().get(label::WATCH).map(String::as_str),
        Some("true")
    );
    assert_eq!(
        config.labels().get(label::BACKUP),
        None,
        "elsewhere Ironic is elsewhere"
    );

    let moved = json!({ "stringData": { "IRONIC_BASE_URL": "https://two.example.com:6385" } });
    room.world
        .patch::<Secret>(&room.world.pool, &secret, moved)
        .await
        .unwrap();
    finds_ironic_at(&room, "https://two.example.com").await;
    when_noted(&room, |url| !url.is_empty() && url != before).await;
    is_rebooted(&room).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_names_the_image_of_ironics_agent_for_those_who_do_not() {
    let room = Room::of_site(MetalBoot::Converged, |options| {
        let images = ["x86_64", "arm64"].map(|arch| (arch.to_owned(), format!("site/ipa:{arch}")));
        options.ironic_images = images.into();
    })
    .await;
    let pool = room.world.pool_of("lab", |_| ()).await;
    let config: Secret = serde_json::from_value(json!({
        "metadata": { "name": room.ironic().name },
        "stringData": { "IRONIC_BASE_URL": "https://ironic.example.com:6385" },
    }))
    .unwrap();
    room.world.create(&room.world.pool, &config).await;
    room.machine("52:54:00:aa:00:01", json!({})).await;
    make(&room, for_iso()).await;
    let has_it = async || {
        let row = room.world.hub.infra_env(pool).await.unwrap();
        row.ignition_config_override.contains("site/ipa:x86_64")
    };
    room.world.until("the image of the site", has_it).await;
}
