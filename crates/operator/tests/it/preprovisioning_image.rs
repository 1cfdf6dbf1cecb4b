//! What Ironic's agent boots on machines of the converged flow.

use crate::metal::{HOST, Room, method, noted};
use crate::world::id_of;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use kube::{Resource, ResourceExt};
use muster_operator::MetalBoot;
use muster_operator::controller::preprovisioning_image::ironic;
use muster_operator::crd::InfraEnv;
use muster_operator::crd::keys::{annotation, finalizer, label};
use muster_operator::crd::metal3::{BareMetalHost, PreprovisioningImage, PreprovisioningImageStatus};
use serde_json::{Value, json};
use std::time::Duration;

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
    let told = when_says(&room, "False", "True", "IronicAgentIgnitionUpdateFailure").await;
    let message = &told.conditions[0].message;
    assert!(
        message.contains(&room.ironic().to_string()) && message.contains("IRONIC_BASE_URL"),
        "{message}"
    );
    assert_eq!(told.image_url, "", "nothing is claimed that is not there");

    let config: Secret = serde_json::from_value(json!({
        "metadata": { "name": room.ironic().name },
        "stringData": { "IRONIC_BASE_URL": "https://ironic.example.com:6385", "IRONIC_AGENT_IMAGE": "registry/ipa:1" },
    }))
    .unwrap();
    room.world.create(&room.world.pool, &config).await;
    room.looked_at().await;
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
    room.looked_at().await;
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
    // And only now is the machine told to deploy.
    room.status(json!({ "provisioning": { "state": "available" }, "operationalStatus": "OK" }))
        .await;
    room.when("deployed", |host| method(host) == Some(START)).await;
    room.assert_settled().await;
    assert_eq!(id_of(&infra_env(&room).await), pool);
}

fn noted_on(infra_env: &InfraEnv, annotation: &str) -> Option<String> {
    infra_env.annotations().get(annotation).cloned()
}

/// A machine in a state, with an image that is published; the image's address.
async fn published(room: &Room, state: &str) -> String {
    room.world
        .pool_of("lab", |infra_env| {
            infra_env.spec.ignition_config_override = OWN_AGENT.into();
        })
        .await;
    room.machine(
        "52:54:00:aa:00:01",
        json!({ "customDeploy": { "method": START } }),
    )
    .await;
    room.status(json!({ "provisioning": { "state": state }, "operationalStatus": "OK" }))
        .await;
    make(room, for_iso()).await;
    when_says(room, "False", "False", "WaitingForInfraEnvImageToCoolDown").await;
    room.clock.advance(Duration::from_secs(61));
    room.looked_at().await;
    when_says(room, "True", "False", "InfraEnvAvailable")
        .await
        .image_url
}

/// The image becomes another; its address.
async fn regenerated(room: &Room, before: &str) -> String {
    let full = json!({ "spec": { "imageType": "full-iso" } });
    room.world
        .patch::<InfraEnv>(&room.world.pool, "lab", full)
        .await
        .unwrap();
    let newer = |image: &PreprovisioningImage| {
        let url = image.status.clone().unwrap_or_default().image_url;
        let noted = image.annotations().get(annotation::PUBLISHED_IMAGE);
        !url.is_empty() && url != before && noted == Some(&url)
    };
    let image = room.world.when(&room.world.pool, HOST, "newer", newer).await;
    image.status.unwrap().image_url
}

#[tokio::test(flavor = "multi_thread")]
async fn d3_a_new_image_is_published_and_a_machine_that_is_not_provisioned_is_rebooted_for_it() {
    let mut room = Room::at_once(MetalBoot::Converged).await;
    let before = published(&room, "inspecting").await;
    assert_eq!(
        noted(&room.now().await, annotation::METAL3_REBOOT),
        None,
        "it boots the first anyway"
    );
    let after = regenerated(&room, &before).await;
    assert_eq!(after, infra_env(&room).await.status.unwrap().iso_download_url);
    let host = room.now().await;
    assert_eq!(
        noted(&host, annotation::METAL3_REBOOT),
        Some(r#"{"force": true}"#)
    );
    // The bare metal operator has rebooted it; nobody asks again.
    room.annotate(json!({ annotation::METAL3_REBOOT: null })).await;
    room.assert_settled().await;
    assert_eq!(noted(&room.now().await, annotation::METAL3_REBOOT), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn d4_a_new_image_is_published_and_a_provisioned_machine_is_not_rebooted_for_it() {
    let mut room = Room::at_once(MetalBoot::Converged).await;
    let before = published(&room, "provisioned").await;
    regenerated(&room, &before).await;
    room.assert_settled().await;
    assert_eq!(noted(&room.now().await, annotation::METAL3_REBOOT), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn toy_23_an_image_is_not_released_while_its_machine_has_to_be_cleaned() {
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
