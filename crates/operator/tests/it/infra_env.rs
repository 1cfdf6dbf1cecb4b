//! InfraEnvs, and mistakes that are easily made.

use crate::world::{PULL_SECRET, World, condition, id_of, named, web_client};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use muster_contract::ClientError;
use muster_operator::crd::infra_env::{IMAGE_CREATED, InfraEnvStatus, Proxy, reason};
use muster_operator::crd::nmstate_config::Interface;
use muster_operator::crd::reference::{ClusterRef, FullRef};
use muster_operator::crd::{InfraEnv, NMStateConfig, keys};
use serde_json::json;

fn status(infra_env: &InfraEnv) -> InfraEnvStatus {
    infra_env.status.clone().unwrap_or_default()
}

fn said(infra_env: &InfraEnv) -> Option<(String, String)> {
    let status = status(infra_env);
    condition(&status.conditions, IMAGE_CREATED).map(|(status, reason, _)| (status.into(), reason.into()))
}

fn has(status: &str, reason: &str) -> impl Fn(&InfraEnv) -> bool {
    let wanted = Some((status.to_owned(), reason.to_owned()));
    move |infra_env| said(infra_env) == wanted
}

fn is_available(infra_env: &InfraEnv) -> bool {
    has("True", reason::AVAILABLE)(infra_env)
}

pub const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK5fZ7RM4rPRmz3yCqBRUGGcbgyWYFXr8nYrVvYyB7Ck me";

async fn available(world: &World, name: &str) -> InfraEnv {
    world.when(&world.pool, name, "available", is_available).await
}

pub fn network(name: &str, rack: &str, mac: &str) -> NMStateConfig {
    let mut config = NMStateConfig::new(name, Default::default());
    config.labels_mut().insert("rack".into(), rack.into());
    config.spec.interfaces = vec![Interface {
        name: "eth0".into(),
        mac_address: mac.into(),
    }];
    config.spec.config = Some(json!({"interfaces": [
        {"name": "eth0", "type": "ethernet", "state": "up", "ipv4": {"enabled": true, "dhcp": true}}]}));
    config
}

pub fn rack(value: &str) -> LabelSelector {
    LabelSelector {
        match_labels: Some([("rack".to_owned(), value.to_owned())].into()),
        match_expressions: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_infra_env_without_a_cluster_gets_an_image_and_stays_quiet() {
    let mut world = World::start().await;
    world.infra_env("lab", |_| ()).await;
    let infra_env = available(&world, "lab").await;
    let row = world.hub.infra_env(id_of(&infra_env)).await.unwrap();
    assert_eq!((row.name.as_str(), row.cluster_id), ("lab", None));
    let latest = world.hub.openshift_versions(&Default::default()).await.unwrap();
    let latest = latest.0.iter().find(|(_, version)| version.default);
    let latest = latest.unwrap().0;
    assert!(
        latest.starts_with(&row.openshift_version),
        "{latest} {}",
        row.openshift_version
    );
    let status = status(&infra_env);
    let links = world.hub.infra_env_links(row.id).await.unwrap();
    assert_eq!(status.iso_download_url, links.iso);
    assert!(status.created_time.is_some());
    assert!(
        infra_env
            .finalizers()
            .iter()
            .any(|name| name == keys::finalizer::INFRA_ENV)
    );
    let selector = status.agent_label_selector.unwrap().match_labels.unwrap();
    assert_eq!(selector["infraenvs.agent-install.openshift.io"], "lab");
    let boot = status.boot_artifacts.unwrap();
    for link in [
        &boot.initrd,
        &boot.kernel,
        &boot.rootfs,
        &boot.ipxe_script,
        &boot.discovery_ignition_url,
    ] {
        assert!(link.starts_with("http://"), "{link}");
    }
    let script = web_client()
        .get(&boot.ipxe_script)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(script.starts_with("#!ipxe"), "{script}");
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_infra_env_can_ask_for_an_older_operating_system() {
    let world = World::start().await;
    world
        .infra_env("lab", |infra_env| infra_env.spec.os_image_version = "4.18".into())
        .await;
    let infra_env = available(&world, "lab").await;
    let row = world.hub.infra_env(id_of(&infra_env)).await.unwrap();
    assert_eq!(row.openshift_version, "4.18");
    let boot = status(&infra_env).boot_artifacts.unwrap();
    assert!(boot.kernel.contains("4.18"), "{}", boot.kernel);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_reach_the_hub_and_leave_it_again() {
    let mut world = World::start().await;
    world
        .infra_env("lab", |infra_env| {
            infra_env.spec.proxy = Some(Proxy {
                http_proxy: "http://proxy.example.com:3128".into(),
                ..Proxy::default()
            });
            infra_env.spec.additional_ntp_sources = vec!["a.example.com".into(), "b.example.com".into()];
            infra_env.spec.image_type = "full-iso".into();
            infra_env.spec.ssh_authorized_key = KEY.into();
            infra_env.spec.ignition_config_override = r#"{"ignition":{"version":"3.2.0"}}"#.into();
            infra_env.spec.kernel_arguments =
                serde_json::from_value(json!([{"operation": "append", "value": "console=ttyS0"}])).unwrap();
        })
        .await;
    let id = id_of(&available(&world, "lab").await);
    let row = world.hub.infra_env(id).await.unwrap();
    assert_eq!(row.additional_ntp_sources, "a.example.com,b.example.com");
    assert_eq!(
        row.proxy.unwrap().http_proxy.as_deref(),
        Some("http://proxy.example.com:3128")
    );
    assert_eq!(row.r#type, "full-iso");
    assert_eq!(row.ssh_authorized_key, KEY);
    assert!(row.ignition_config_override.contains("3.2.0"));
    assert!(row.kernel_arguments.unwrap().contains("ttyS0"));
    let emptied = json!({"spec": {"proxy": null, "additionalNTPSources": null, "kernelArguments": null,
        "sshAuthorizedKey": null, "ignitionConfigOverride": null}});
    world
        .patch::<InfraEnv>(&world.pool, "lab", emptied)
        .await
        .unwrap();
    world
        .until("the hub has forgotten them", async || {
            let row = world.hub.infra_env(id).await.unwrap();
            let proxy = row.proxy.unwrap_or_default();
            row.additional_ntp_sources.is_empty()
                && proxy.http_proxy.is_none()
                && row.kernel_arguments.is_none()
                && row.ssh_authorized_key.is_empty()
                && row.ignition_config_override.is_empty()
        })
        .await;
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_image_is_as_old_as_what_is_in_it_and_its_address_changes_with_that() {
    let mut world = World::start().await;
    world.infra_env("lab", |_| ()).await;
    let before = status(&available(&world, "lab").await);
    let patch = json!({"spec": {"additionalNTPSources": ["ntp.example.com"]}});
    // Times have no fractions: the second of the creation must be over to see a difference.
    world
        .until("a second went by", async || {
            jiff::Timestamp::now().as_second() > before.created_time.as_ref().unwrap().0.as_second()
        })
        .await;
    world.patch::<InfraEnv>(&world.pool, "lab", patch).await.unwrap();
    let after = world
        .when(&world.pool, "lab", "a newer image", |infra_env: &InfraEnv| {
            status(infra_env).created_time > before.created_time
        })
        .await;
    assert!(after.cool_down_left(jiff::Timestamp::now()).unwrap().as_secs() > 0);
    let after = status(&after);
    assert_ne!(after.iso_download_url, before.iso_download_url);
    let initrd = |status: &InfraEnvStatus| status.boot_artifacts.clone().unwrap().initrd;
    assert_ne!(initrd(&after), initrd(&before));

    // Neither this nor a restart, of the hub or of the operator, changes the image.
    let elsewhere =
        json!({ "spec": { "agentLabels": { "rack": "7" }, "ipxeScriptType": "BootOrderControl" } });
    world
        .patch::<InfraEnv>(&world.pool, "lab", elsewhere)
        .await
        .unwrap();
    let asked = |infra_env: &InfraEnv| {
        let script = status(infra_env).boot_artifacts.unwrap().ipxe_script;
        script.contains("boot-order-control")
    };
    world.when(&world.pool, "lab", "another script", asked).await;
    world.house.close().await;
    world.house.reopen().await;
    world.assert_converged().await;
    let last = status(&available(&world, "lab").await);
    assert_eq!(
        (last.iso_download_url, last.created_time),
        (after.iso_download_url, after.created_time)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_are_chosen_by_label_within_the_namespace_and_followed() {
    let world = World::start().await;
    world
        .create(&world.pool, &network("mine", "a", "52:54:00:00:00:0A"))
        .await;
    world
        .create(&world.clusters, &network("elsewhere", "a", "52:54:00:00:00:0b"))
        .await;
    world
        .infra_env("lab", |infra_env| {
            infra_env.spec.nm_state_config_label_selector = Some(rack("a"))
        })
        .await;
    let infra_env = available(&world, "lab").await;
    let id = id_of(&infra_env);
    let networks = async || world.hub.infra_env(id).await.unwrap().static_network_config;
    let first = networks().await.to_lowercase();
    assert!(
        first.contains("52:54:00:00:00:0a") && !first.contains("0b\""),
        "{first}"
    );
    assert!(
        !status(&infra_env)
            .debug_info
            .unwrap()
            .static_network_download_url
            .is_empty()
    );
    world
        .create(&world.pool, &network("later", "a", "52:54:00:00:00:0c"))
        .await;
    world
        .until("a new one reaches the hub", async || {
            networks().await.contains("52:54:00:00:00:0c")
        })
        .await;
    let moved = json!({"metadata": {"labels": {"rack": "b"}}});
    world
        .patch::<NMStateConfig>(&world.pool, "later", moved)
        .await
        .unwrap();
    world
        .until("one that no longer fits is dropped", async || {
            !networks().await.contains("0c")
        })
        .await;
    world.delete::<NMStateConfig>(&world.pool, "mine").await;
    world
        .until("the last one is dropped", async || networks().await.is_empty())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_selector_chooses_no_network() {
    let world = World::start().await;
    world
        .create(&world.pool, &network("any", "a", "52:54:00:00:00:01"))
        .await;
    world
        .infra_env("lab", |infra_env| {
            infra_env.spec.nm_state_config_label_selector = Some(LabelSelector::default());
        })
        .await;
    let id = id_of(&available(&world, "lab").await);
    assert_eq!(world.hub.infra_env(id).await.unwrap().static_network_config, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_pull_secret_is_labelled_and_its_rotation_reaches_the_hub() {
    let world = World::start().await;
    world.infra_env("lab", |_| ()).await;
    let infra_env = available(&world, "lab").await;
    let secret: Secret = world.get(&world.pool, "lab-pull").await;
    assert_eq!(secret.labels()[keys::label::WATCH], "true");
    assert_eq!(secret.labels()[keys::label::BACKUP], "true");
    let before = world.hub.infra_env(id_of(&infra_env)).await.unwrap().updated_at;
    let rotated = PULL_SECRET.replace("registry.example.com", "other.example.com");
    let patch = json!({"stringData": {".dockerconfigjson": rotated}});
    world
        .patch::<Secret>(&world.pool, "lab-pull", patch)
        .await
        .unwrap();
    world
        .until("the hub has the new one", async || {
            world.hub.infra_env(id_of(&infra_env)).await.unwrap().updated_at > before
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_that_comes_late_is_found() {
    let world = World::start().await;
    world
        .infra_env("lab", |infra_env| {
            infra_env.spec.pull_secret_ref.name = "late".into()
        })
        .await;
    let infra_env = world
        .when(&world.pool, "lab", "failed", has("False", reason::FAILED))
        .await;
    assert_eq!(status(&infra_env).iso_download_url, "");
    // No watch reports a secret without the label: the operator polls for it.
    world.pull_secret(&world.pool, "late", PULL_SECRET).await;
    available(&world, "lab").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_reported_in_the_hubs_words_and_mended_by_a_change() {
    let world = World::start().await;
    world
        .infra_env("lab", |infra_env| {
            infra_env.spec.ssh_authorized_key = "no key".into()
        })
        .await;
    let infra_env = world
        .when(&world.pool, "lab", "failed", has("False", reason::FAILED))
        .await;
    let status = status(&infra_env);
    let (_, _, message) = condition(&status.conditions, IMAGE_CREATED).unwrap();
    assert!(message.contains("`sshAuthorizedKey`"), "{message}");
    let patch = json!({"spec": {"sshAuthorizedKey": null}});
    world.patch::<InfraEnv>(&world.pool, "lab", patch).await.unwrap();
    available(&world, "lab").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_infra_env_waits_for_its_cluster() {
    let world = World::start().await;
    let cluster = ClusterRef {
        name: "missing".into(),
        namespace: world.clusters.clone(),
    };
    world
        .infra_env("lab", |infra_env| infra_env.spec.cluster_ref = Some(cluster))
        .await;
    let waiting = has("Unknown", reason::MISSING_CLUSTER);
    let infra_env = world
        .when(&world.pool, "lab", "waiting for the cluster", waiting)
        .await;
    assert!(matches!(
        world.hub.infra_env(id_of(&infra_env)).await,
        Err(ClientError::NotFound(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn mirrors_of_registries_reach_the_image() {
    let world = World::start().await;
    let map = ConfigMap {
        metadata: named("mirrors"),
        data: Some(
            [(
                "registries.conf".to_owned(),
                "unqualified-search-registries = []".to_owned(),
            )]
            .into(),
        ),
        ..ConfigMap::default()
    };
    world.create(&world.pool, &map).await;
    let reference = FullRef {
        namespace: world.pool.clone(),
        name: "mirrors".into(),
    };
    world
        .infra_env("lab", |infra_env| {
            infra_env.spec.mirror_registry_ref = Some(reference)
        })
        .await;
    let infra_env = available(&world, "lab").await;
    let row = world.hub.infra_env(id_of(&infra_env)).await.unwrap();
    assert!(
        row.ignition_config_override
            .contains("/etc/containers/registries.conf")
    );
    let map: ConfigMap = world.get(&world.pool, "mirrors").await;
    assert_eq!(map.labels()[keys::label::WATCH], "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_infra_env_goes_at_once_with_its_hosts() {
    let mut world = World::start().await;
    world.infra_env("lab", |_| ()).await;
    let id = id_of(&available(&world, "lab").await);
    world.fleet(id, 2, |_| ());
    world
        .until("hosts have registered", async || {
            world.hub.hosts(id).await.unwrap().len() == 2
        })
        .await;
    world.delete::<InfraEnv>(&world.pool, "lab").await;
    world.gone::<InfraEnv>(&world.pool, "lab").await;
    assert!(matches!(
        world.hub.infra_env(id).await,
        Err(ClientError::NotFound(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_made_anew_with_its_annotation_keeps_its_id() {
    let world = World::start().await;
    world.infra_env("lab", |_| ()).await;
    let first = available(&world, "lab").await;
    let id = id_of(&first);
    world.delete::<InfraEnv>(&world.pool, "lab").await;
    world.gone::<InfraEnv>(&world.pool, "lab").await;
    let mut restored = InfraEnv::new("lab", first.spec.clone());
    restored
        .annotations_mut()
        .insert(keys::annotation::INFRA_ENV_ID.into(), id.to_string());
    world.create(&world.pool, &restored).await;
    let again = available(&world, "lab").await;
    assert_ne!(again.uid(), first.uid());
    assert_eq!(
        status(&again).iso_download_url,
        status(&first).iso_download_url,
        "running hosts find it again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_with_the_same_id_does_not_touch_the_original() {
    let world = World::start().await;
    world.infra_env("lab", |_| ()).await;
    let original = available(&world, "lab").await;
    let mut copy = InfraEnv::new("copy", original.spec.clone());
    copy.annotations_mut().insert(
        keys::annotation::INFRA_ENV_ID.into(),
        id_of(&original).to_string(),
    );
    world.create(&world.pool, &copy).await;
    world
        .when(&world.pool, "copy", "refused", has("False", reason::FAILED))
        .await;
    world.delete::<InfraEnv>(&world.pool, "copy").await;
    world.gone::<InfraEnv>(&world.pool, "copy").await;
    assert!(world.hub.infra_env(id_of(&original)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_in_the_hub_is_put_right() {
    let world = World::start().await;
    world.infra_env("lab", |_| ()).await;
    let id = id_of(&available(&world, "lab").await);
    let update = muster_contract::v2::infra_env::UpdateInfraEnv {
        additional_ntp_sources: Some("drift.example.com".into()),
        ..Default::default()
    };
    world.hub.update_infra_env(id, &update).await.unwrap();
    world
        .until("the object's word counts", async || {
            world
                .hub
                .infra_env(id)
                .await
                .unwrap()
                .additional_ntp_sources
                .is_empty()
        })
        .await;
}
