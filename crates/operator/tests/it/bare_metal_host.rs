//! Machines with a power controller: their way to discovery, into clusters and back to the pool.

use crate::described::one_host;
use crate::lent::{machine, says, state, word};
use crate::metal::{HOST, HardwareDetails, MetalOperator, Room, image, method, noted};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use muster_operator::MetalBoot;
use muster_operator::crd::keys::{annotation, finalizer, label};
use muster_operator::crd::metal3::{BareMetalHost, PreprovisioningImage};
use muster_operator::crd::{Agent, InfraEnv};
use muster_simfleet::Power;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const OURS: &str = "assisted-service-controller";
const START: &str = "start_assisted_install";
/// What a machine goes through that gets its live image anew.
const BOOTED_ANEW: [&str; 5] = [
    "deprovisioning",
    "available",
    "provisioning",
    "provisioned",
    "boot",
];

fn is_detached(host: &BareMetalHost) -> bool {
    noted(host, annotation::METAL3_PAUSED) == Some(OURS)
}

/// The machine is switched on for the first time; the name of its Agent.
async fn switch_on(room: &mut Room, metal: &MetalOperator, pool: Uuid) -> String {
    let remote = room.world.fleet(pool, 1, |config| {
        config.first_index = 0;
        config.return_boots = None;
    });
    metal.remote.set(remote).unwrap();
    let name = machine(pool, 0).id().to_string();
    room.world.agent_in(&name, "known-unbound").await;
    name
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_a_live_image_is_lent_by_its_annotation_and_fetched_back() {
    let mut room = Room::start(MetalBoot::LiveImage).await;
    let metal = MetalOperator::start(&room);
    let pool = room.world.pool_of("lab", |_| ()).await;
    let mac = machine(pool, 0).mac(0).to_uppercase();
    room.machine(&mac, json!({})).await;
    room.annotate(json!({
        annotation::BMAC_HOSTNAME: "rack-one", annotation::BMAC_ROLE: "master",
        annotation::BMAC_CLUSTER_REFERENCE: format!("{}/blue", room.world.clusters),
    }))
    .await;
    let booted = room.when("booted", |host| host.state() == "provisioned").await;
    metal
        .has_done(&["registering", "available", "provisioning", "provisioned", "boot"])
        .await;
    let infra_env: InfraEnv = room.world.get(&room.world.pool, "lab").await;
    let url = infra_env.status.unwrap().iso_download_url;
    assert_eq!(image(&booted), Some(url.as_str()));
    assert_eq!(booted.finalizers(), [finalizer::BARE_METAL_HOST]);
    assert_eq!(booted.labels()[label::BACKUP], "true");
    assert_eq!(
        booted.spec.rest["bootMode"], "UEFI",
        "what is not known here stays"
    );

    let name = switch_on(&mut room, &metal, pool).await;
    room.world
        .agent_when(&name, "approved", |agent| {
            agent.spec.approved
                && agent
                    .labels()
                    .get(label::BARE_METAL_HOST)
                    .is_some_and(|name| name == HOST)
        })
        .await;
    assert_eq!(room.world.agent(&name).await.spec.cluster_deployment_name, None);
    // It was not inspected, so what it is made of comes from its agent.
    let known = room
        .when("has its hardware details", |host| {
            noted(host, annotation::METAL3_HARDWARE_DETAILS).is_some()
        })
        .await;
    let details = noted(&known, annotation::METAL3_HARDWARE_DETAILS).unwrap();
    if let Err(error) = HardwareDetails::read(details) {
        panic!("the bare metal operator refuses this: {error}: {details}");
    }
    let details: Value = serde_json::from_str(details).unwrap();
    assert_eq!(details["hostname"], "rack-one");
    assert!(details["ramMebibytes"].as_i64() > Some(0) && details["nics"][0]["mac"].is_string());
    room.world.describe("blue", one_host()).await;
    room.world.install_in("blue", "adding-hosts").await;
    let row = room.world.hub.host(pool, name.parse().unwrap()).await.unwrap();
    assert_eq!(
        (row.requested_hostname.as_str(), row.role.as_str()),
        ("rack-one", "master")
    );
    room.when("detached", is_detached).await;
    // Neither booted nor deprovisioned.
    metal.has_done(&["detached"]).await;

    let id = room.world.cluster_id("blue").await;
    room.world.delete_deployment("blue").await;
    room.world.cluster_is_gone("blue", id).await;
    let agent = room.world.agent_in(&name, "known-unbound").await;
    assert_eq!(agent.spec.cluster_deployment_name, None);
    assert_eq!(says(&agent, "Bound"), word("False", "Unbound"));
    let back = room
        .when("converged", |host| {
            noted(host, annotation::BMAC_RETURN_BEGUN).is_none()
        })
        .await;
    metal
        .has_done(&[
            "OK",
            "deprovisioning",
            "available",
            "provisioning",
            "provisioned",
            "boot",
        ])
        .await;
    assert_eq!(image(&back), Some(url.as_str()));
    for gone in [annotation::METAL3_DETACHED, annotation::METAL3_PAUSED] {
        assert_eq!(noted(&back, gone), None, "{gone}");
    }
    let row = room.world.hub.host(pool, name.parse().unwrap()).await.unwrap();
    assert_eq!(row.cluster_id, None);
    // The operator polls for a cluster that is not there.
    room.annotate(json!({ annotation::BMAC_CLUSTER_REFERENCE: null }))
        .await;
    room.world
        .agent_when(&name, "offered", |agent| says(agent, "Validated").0 == "True")
        .await;
    room.assert_converged().await;
    assert!(metal.diary().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_in_the_converged_flow_is_fetched_back_and_then_all_is_quiet() {
    let mut room = Room::without_images(MetalBoot::Converged).await;
    let metal = MetalOperator::start(&room);
    let pool = room.world.pool_of("lab", |_| ()).await;
    room.machine(&machine(pool, 0).mac(0), json!({})).await;
    preprovisioning_image(&room, "InfraEnvAvailable").await;
    let booted = room.when("booting", |host| host.state() == "provisioning").await;
    assert_eq!(method(&booted), Some(START));
    metal
        .has_done(&["registering", "available", "provisioning", "boot"])
        .await;

    let name = switch_on(&mut room, &metal, pool).await;
    room.world.describe("blue", one_host()).await;
    room.world.want(&name, Some("blue")).await.unwrap();
    room.world.install_in("blue", "adding-hosts").await;
    let host = room.reconciled().await;
    assert_eq!(noted(&host, annotation::METAL3_DETACHED), None);
    // The agent has ended, and with it the deploy step.
    room.status(json!({ "provisioning": { "state": "provisioned" } }))
        .await;
    room.when("detached", is_detached).await;
    metal.has_done(&["detached"]).await;

    let id = room.world.cluster_id("blue").await;
    room.world.delete_deployment("blue").await;
    room.world.cluster_is_gone("blue", id).await;
    let agent = room.world.agent_in(&name, "known-unbound").await;
    assert_eq!(says(&agent, "Bound"), word("False", "Unbound"));
    let back = room
        .when("converged", |host| {
            noted(host, annotation::BMAC_RETURN_BEGUN).is_none()
        })
        .await;
    metal
        .has_done(&["OK", "deprovisioning", "available", "provisioning", "boot"])
        .await;
    assert_eq!(method(&back), Some(START));
    for gone in [annotation::METAL3_DETACHED, annotation::METAL3_PAUSED] {
        assert_eq!(noted(&back, gone), None, "{gone}");
    }
    room.world
        .agent_when(&name, "offered", |agent| says(agent, "Validated").0 == "True")
        .await;
    room.assert_converged().await;
    assert!(metal.diary().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deploy_step_is_not_set_for_an_image_that_is_not_of_the_infra_env() {
    let room = Room::without_images(MetalBoot::Converged).await;
    let metal = MetalOperator::start(&room);
    room.world.pool_of("lab", |_| ()).await;
    room.machine("52:54:00:aa:00:01", json!({})).await;
    room.when("registered", |host| host.state() == "available").await;
    assert_eq!(method(&room.reconciled().await), None, "there is no image at all");
    // Ready, and an image of the bare metal operator's own.
    preprovisioning_image(&room, "ImageSuccess").await;
    let waits = room.reconciled().await;
    assert_eq!((method(&waits), image(&waits)), (None, None));
    assert_eq!(waits.spec.automated_cleaning_mode, None);
    metal.has_done(&["registering", "available"]).await;
    preprovisioning_image(&room, "InfraEnvAvailable").await;
    room.when("deployed", |host| method(host) == Some(START)).await;
    metal.has_done(&["provisioning", "boot"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deploy_step_that_was_written_before_is_kept_where_others_boot_live_images() {
    let mut room = Room::start(MetalBoot::LiveImage).await;
    room.world.pool_of("lab", |_| ()).await;
    let preset = json!({ "customDeploy": { "method": START } });
    room.machine("52:54:00:aa:00:01", preset).await;
    room.status(json!({ "provisioning": { "state": "available" }, "operationalStatus": "OK" }))
        .await;
    let host = room.reconciled().await;
    assert_eq!((method(&host), image(&host)), (Some(START), None));
    assert_eq!(noted(&host, annotation::METAL3_INSPECT), None);
    room.status(json!({ "provisioning": { "state": "provisioned" } }))
        .await;
    room.when("detached", |host| {
        noted(host, annotation::METAL3_DETACHED) == Some(OURS)
    })
    .await;
    room.assert_converged().await;
    // Both at once is a mistake, and an event says so.
    let both = json!({
        "metadata": { "annotations": { annotation::METAL3_DETACHED: null } },
        "spec": { "image": { "url": "http://elsewhere/x.iso", "format": "live-iso" } },
    });
    room.change(both).await;
    let events: Api<Event> = Api::namespaced(room.world.kube.clone(), &room.world.pool);
    let of_host = ListParams::default().fields(&format!("regarding.name={HOST}"));
    let warned = async || {
        let found = events.list(&of_host).await.unwrap().items;
        let mut notes = found.iter().map(|event| event.note.clone().unwrap_or_default());
        notes.any(|note| note.contains("spec.image, or customDeploy"))
    };
    room.world.until("there is an event", warned).await;
}

/// As the bare metal operator makes it, with an image of this reason.
async fn preprovisioning_image(room: &Room, reason: &str) {
    let api = room.world.api::<PreprovisioningImage>(&room.world.pool);
    if api.get_opt(HOST).await.unwrap().is_none() {
        let mut fresh = PreprovisioningImage::new(HOST, Default::default());
        fresh.labels_mut().insert(label::INFRA_ENV.into(), "lab".into());
        room.world.create(&room.world.pool, &fresh).await;
    }
    let status = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": reason,
        "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    api.patch_status(HOST, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_stopped_during_its_installation_is_fetched_back_too() {
    let mut room = Room::start(MetalBoot::LiveImage).await;
    let metal = MetalOperator::start(&room);
    let pool = room.world.pool_of("lab", |_| ()).await;
    room.machine(&machine(pool, 0).mac(0), json!({})).await;
    room.when("booted", |host| host.state() == "provisioned").await;
    let remote = room.world.fleet(pool, 1, |config| {
        config.first_index = 0;
        config.return_boots = None;
        config.install_time = Some(Duration::from_secs(60));
    });
    metal.remote.set(remote).unwrap();
    let name = machine(pool, 0).id().to_string();
    room.world.agent_in(&name, "known-unbound").await;
    room.world.describe("blue", one_host()).await;
    room.world.want(&name, Some("blue")).await.unwrap();
    room.world.agent_in(&name, "installing-in-progress").await;
    metal.diary();
    // It cannot come back by itself, and was never detached.
    metal.remote.get().unwrap().power(0, Power::Off);
    let id = room.world.cluster_id("blue").await;
    room.world.delete_deployment("blue").await;
    room.world.cluster_is_gone("blue", id).await;
    let agent = room
        .world
        .agent_when(&name, "free", |agent| {
            state(agent) == "known-unbound" && says(agent, "Bound") == word("False", "Unbound")
        })
        .await;
    assert_eq!(agent.spec.cluster_deployment_name, None);
    // Once, and not again while it is on its way.
    metal.has_done(&BOOTED_ANEW).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_machine_keeps_what_it_boots_when_the_image_becomes_another() {
    let room = Room::start(MetalBoot::LiveImage).await;
    room.world.pool_of("lab", |_| ()).await;
    room.machine("52:54:00:aa:00:01", json!({})).await;
    room.status(json!({ "provisioning": { "state": "available" }, "operationalStatus": "OK" }))
        .await;
    let booted = room.when("booted", |host| image(host).is_some()).await;
    room.annotate(json!({ annotation::METAL3_DETACHED: OURS })).await;
    room.status(json!({ "provisioning": { "state": "provisioned" } }))
        .await;
    let other = json!({ "spec": { "imageType": "full-iso" } });
    room.world
        .patch::<InfraEnv>(&room.world.pool, "lab", other)
        .await
        .unwrap();
    let before = image(&booted).unwrap().to_owned();
    let newer = |infra_env: &InfraEnv| {
        let url = infra_env.status.as_ref().map(|status| &status.iso_download_url);
        url.is_some_and(|url| *url != before && !url.is_empty())
    };
    room.world
        .when::<InfraEnv>(&room.world.pool, "lab", "another image", newer)
        .await;
    assert_eq!(image(&room.reconciled().await), Some(before.as_str()));
    room.annotate(json!({ annotation::METAL3_DETACHED: null })).await;
    room.when("given back", |host| image(host).is_none()).await;
    room.status(json!({ "provisioning": { "state": "available" } }))
        .await;
    room.when("booted anew", |host| image(host).is_some_and(|url| url != before))
        .await;
}

/// Something else is in the image from now on; its address, as soon as the InfraEnv shows it.
async fn edited(room: &Room, path: &str, before: &str) -> String {
    let config = json!({ "ignition": { "version": "3.1.0" }, "storage": { "files": [{ "path": path }] } });
    let patch = json!({ "spec": { "ignitionConfigOverride": config.to_string() } });
    let pool = &room.world.pool;
    room.world.patch::<InfraEnv>(pool, "lab", patch).await.unwrap();
    let newer = |infra_env: &InfraEnv| {
        let url = infra_env.status.as_ref().map(|status| &status.iso_download_url);
        url.is_some_and(|url| url != before && !url.is_empty())
    };
    let infra_env = room.world.when(pool, "lab", "another image", newer).await;
    infra_env.status.unwrap().iso_download_url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_live_image_reaches_a_free_machine_and_none_that_is_installed_or_being_installed() {
    let mut room = Room::start(MetalBoot::LiveImage).await;
    let metal = MetalOperator::start(&room);
    let pool = room.world.pool_of("lab", |_| ()).await;
    room.machine(&machine(pool, 0).mac(0), json!({})).await;
    let booted = room.when("booted", |host| host.state() == "provisioned").await;
    let first = image(&booted).unwrap().to_owned();
    let remote = room.world.fleet(pool, 1, |config| {
        config.first_index = 0;
        config.return_boots = None;
        config.install_time = Some(Duration::from_secs(20));
    });
    metal.remote.set(remote).unwrap();
    let name = machine(pool, 0).id().to_string();
    room.world.agent_in(&name, "known-unbound").await;
    room.idle().await;
    metal.diary();

    let second = edited(&room, "/etc/second", &first).await;
    metal.has_done(&BOOTED_ANEW).await;
    assert_eq!(image(&room.now().await), Some(second.as_str()));
    room.world.agent_in(&name, "known-unbound").await;
    room.idle().await;

    room.world.describe("blue", one_host()).await;
    room.world.want(&name, Some("blue")).await.unwrap();
    room.world.agent_in(&name, "installing-in-progress").await;
    let third = edited(&room, "/etc/third", &second).await;
    assert_eq!(image(&room.reconciled().await), Some(second.as_str()));
    room.world.install_in("blue", "adding-hosts").await;
    room.when("detached", is_detached).await;
    metal.has_done(&["detached"]).await;
    edited(&room, "/etc/fourth", &third).await;
    room.idle().await;
    assert_eq!(image(&room.now().await), Some(second.as_str()));
    assert!(metal.diary().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_paused_only_when_it_was_let_go_and_with_its_whole_status() {
    let mut room = Room::start(MetalBoot::Converged).await;
    room.world.pool_of("lab", |_| ()).await;
    room.machine(
        "52:54:00:aa:00:01",
        json!({ "customDeploy": { "method": START } }),
    )
    .await;
    let newer = json!({ "fieldOfTomorrow": { "deep": [1, { "x": "y" }] } });
    room.status(
        json!({ "provisioning": { "state": "provisioned", "ID": "n-1" }, "operationalStatus": "OK",
        "hardware": newer }),
    )
    .await;
    room.when("detached", |host| {
        noted(host, annotation::METAL3_DETACHED) == Some(OURS)
    })
    .await;
    let host = room.reconciled().await;
    assert_eq!(noted(&host, annotation::METAL3_PAUSED), None);
    assert_eq!(noted(&host, annotation::METAL3_STATUS), None);
    room.status(json!({ "operationalStatus": "detached" })).await;
    let host = room.when("detached", is_detached).await;
    let saved: Value = serde_json::from_str(noted(&host, annotation::METAL3_STATUS).unwrap()).unwrap();
    assert_eq!(saved, host.status.unwrap().0);
    assert_eq!(saved["operationalStatus"], "detached");
    assert_eq!(saved["hardware"], newer);
    room.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_pause_is_left_alone() {
    let room = Room::start(MetalBoot::Converged).await;
    room.world.pool_of("lab", |_| ()).await;
    room.machine(
        "52:54:00:aa:00:01",
        json!({ "customDeploy": { "method": START } }),
    )
    .await;
    room.annotate(json!({ annotation::METAL3_PAUSED: "by me" })).await;
    assert_eq!(
        noted(&room.reconciled().await, annotation::METAL3_PAUSED),
        Some("by me")
    );
    room.status(json!({ "provisioning": { "state": "provisioned" }, "operationalStatus": "detached" }))
        .await;
    let host = room.reconciled().await;
    assert_eq!(noted(&host, annotation::METAL3_PAUSED), Some("by me"));
    assert_eq!(noted(&host, annotation::METAL3_STATUS), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_from_a_backup_gets_its_status_back_and_is_not_touched() {
    let mut room = Room::start(MetalBoot::Converged).await;
    room.world.pool_of("lab", |_| ()).await;
    room.machine(
        "52:54:00:aa:00:01",
        json!({ "customDeploy": { "method": START } }),
    )
    .await;
    room.status(
        json!({ "provisioning": { "state": "provisioned" }, "operationalStatus": "detached",
        "fieldOfTomorrow": 1 }),
    )
    .await;
    let lent = room.when("detached", is_detached).await;
    room.stop_operator().await;
    room.change(json!({ "metadata": { "finalizers": null } })).await;
    let api = room.world.api::<BareMetalHost>(&room.world.pool);
    api.delete(HOST, &DeleteParams::default()).await.unwrap();
    room.world.gone::<BareMetalHost>(&room.world.pool, HOST).await;
    // Backups bring back everything but the status.
    let mut restored = BareMetalHost::new(HOST, lent.spec.clone());
    restored.metadata.labels = lent.metadata.labels.clone();
    restored.metadata.annotations = lent.metadata.annotations.clone();
    room.world.create(&room.world.pool, &restored).await;
    let metal = MetalOperator::start(&room);
    room.start_operator().await;
    let host = room
        .when("detached again", |host| {
            is_detached(host) && host.state() == "provisioned"
        })
        .await;
    assert_eq!(host.status, lent.status);
    metal.has_done(&["restored"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_image_cools_down_for_a_minute() {
    let room = Room::at_once(MetalBoot::LiveImage).await;
    room.world.pool_of("lab", |_| ()).await;
    room.machine("52:54:00:aa:00:01", json!({})).await;
    room.status(json!({ "provisioning": { "state": "available" }, "operationalStatus": "OK" }))
        .await;
    for _ in 0..2 {
        let host = room.reconciled().await;
        assert_eq!(
            image(&host),
            None,
            "nobody is booted from an image that may change in a moment"
        );
        assert_eq!(noted(&host, annotation::METAL3_INSPECT), Some("disabled"));
        assert!(!host.spec.online);
    }
    room.clock.advance(Duration::from_secs(60));
    room.reconciled().await;
    let host = room.when("booted", |host| image(host).is_some()).await;
    assert!(host.spec.online);
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_that_fit_no_disk_stop_the_host_instead_of_choosing_another_disk() {
    let mut room = Room::start(MetalBoot::LiveImage).await;
    let pool = room.world.pool_of("lab", |_| ()).await;
    let name = room.world.free_host(pool).await;
    let agent = room.world.agent(&name).await;
    let disks = agent.status.unwrap().inventory.disks;
    let wanted = disks
        .iter()
        .rfind(|disk| disk.installation_eligibility.eligible)
        .unwrap();
    room.machine(
        &machine(pool, 0).mac(0),
        json!({ "rootDeviceHints": { "minSizeGigabytes": 1_000_000 } }),
    )
    .await;
    room.status(json!({ "provisioning": { "state": "available" }, "operationalStatus": "OK" }))
        .await;
    let refused = |agent: &Agent| {
        agent.spec.installation_disk_id == "/dev/not-found-by-hints"
            && says(agent, "SpecSynced") == word("False", "InputError")
    };
    room.world.agent_when(&name, "refused", refused).await;
    room.change(
        json!({ "spec": { "rootDeviceHints": { "minSizeGigabytes": null, "deviceName": wanted.path } } }),
    )
    .await;
    let chosen = |agent: &Agent| {
        agent.spec.installation_disk_id == wanted.id && says(agent, "SpecSynced") == word("True", "SyncOK")
    };
    room.world.agent_when(&name, "chosen", chosen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_one_event_and_credentials_for_fencing_are_copied() {
    let mut room = Room::start(MetalBoot::LiveImage).await;
    let pool = room.world.pool_of("lab", |_| ()).await;
    let name = room.world.free_host(pool).await;
    room.machine(&machine(pool, 0).mac(0), json!({})).await;
    room.status(json!({ "provisioning": { "state": "available" }, "operationalStatus": "OK" }))
        .await;
    room.annotate(json!({
        annotation::BMAC_CREATE_FENCING_SECRET: "true", annotation::BMAC_CLUSTER_REFERENCE: "no-namespace",
    }))
    .await;
    let events: Api<Event> = Api::namespaced(room.world.kube.clone(), &room.world.pool);
    let of_host = ListParams::default().fields(&format!("regarding.name={HOST}"));
    let warnings = async || {
        let mut found = events.list(&of_host).await.unwrap().items;
        found.retain(|event| event.note.as_deref().unwrap_or_default().contains("no-namespace"));
        found
    };
    room.world
        .until("there is an event", async || warnings().await.len() == 1)
        .await;
    room.reconciled().await;
    room.reconciled().await;
    let found = warnings().await;
    assert_eq!((found.len(), &found[0].series), (1, &None), "and not again");
    let credentials: Secret = serde_json::from_value(json!({
        "metadata": { "name": "rack-1-bmc" }, "stringData": { "username": "root", "password": "hunter2" },
    }))
    .unwrap();
    // No watch reports a Secret without the label: the operator polls for it.
    room.world.create(&room.world.pool, &credentials).await;
    let secret = format!("{name}-fencing-credentials");
    let named = |agent: &Agent| agent.spec.fencing_credentials_secret_ref == secret;
    room.world.agent_when(&name, "fenced", named).await;
    let has = |password: &'static str| {
        move |secret: &Secret| {
            let data = secret.data.as_ref();
            data.and_then(|data| data.get("password"))
                .is_some_and(|found| found.0 == password.as_bytes())
        }
    };
    let copy = room
        .world
        .when(&room.world.pool, &secret, "copied", has("hunter2"))
        .await;
    assert_eq!(copy.owner_references()[0].kind, "Agent");
    let newer = json!({ "stringData": { "password": "hunter3" } });
    room.world
        .patch::<Secret>(&room.world.pool, "rack-1-bmc", newer)
        .await
        .unwrap();
    room.world
        .when(&room.world.pool, &secret, "copied anew", has("hunter3"))
        .await;
    // Whoever changes the copy or deletes it gets it back.
    let wrong = json!({ "stringData": { "password": "wrong" } });
    room.world
        .patch::<Secret>(&room.world.pool, &secret, wrong)
        .await
        .unwrap();
    room.world
        .when(&room.world.pool, &secret, "mended", has("hunter3"))
        .await;
    let secrets = room.world.api::<Secret>(&room.world.pool);
    secrets.delete(&secret, &DeleteParams::default()).await.unwrap();
    let is_back = async || secrets.get_opt(&secret).await.unwrap().is_some();
    room.world.until("made anew", is_back).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_machine_is_let_go_and_takes_its_agent_along_when_that_is_wanted() {
    let mut room = Room::start(MetalBoot::Converged).await;
    let pool = room.world.pool_of("lab", |_| ()).await;
    let name = room.world.free_host(pool).await;
    let mac = machine(pool, 0).mac(0);
    let api = room.world.api::<BareMetalHost>(&room.world.pool);
    room.machine(&mac, json!({})).await;
    room.when("kept", |host| !host.finalizers().is_empty()).await;
    api.delete(HOST, &DeleteParams::default()).await.unwrap();
    room.world.gone::<BareMetalHost>(&room.world.pool, HOST).await;
    assert!(
        room.world
            .agent(&name)
            .await
            .metadata
            .deletion_timestamp
            .is_none()
    );

    room.machine(&mac, json!({ "customDeploy": { "method": START } }))
        .await;
    room.annotate(json!({ annotation::BMAC_REMOVE_ON_DELETE: "true" }))
        .await;
    room.world
        .agent_when(&name, "approved", |agent| agent.spec.approved)
        .await;
    api.delete(HOST, &DeleteParams::default()).await.unwrap();
    room.world.gone::<BareMetalHost>(&room.world.pool, HOST).await;
    room.world.gone::<Agent>(&room.world.pool, &name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_none_of_ours_is_not_touched() {
    let mut room = Room::start(MetalBoot::LiveImage).await;
    room.world.pool_of("lab", |_| ()).await;
    room.machine("52:54:00:aa:00:01", json!({})).await;
    room.when("kept", |host| !host.finalizers().is_empty()).await;
    room.change(json!({ "metadata": { "labels": { label::INFRA_ENV: null } } }))
        .await;
    room.when("let go", |host| host.finalizers().is_empty()).await;
    room.status(json!({ "provisioning": { "state": "available" }, "operationalStatus": "OK" }))
        .await;
    let before = room.now().await;
    room.assert_converged().await;
    assert_eq!(room.now().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_somebody_else_runs_is_left_as_it_is_when_it_is_labelled() {
    let room = Room::start(MetalBoot::LiveImage).await;
    let metal = MetalOperator::start(&room);
    room.world.pool_of("lab", |_| ()).await;
    let theirs = json!({ "online": true, "image": { "url": "http://elsewhere/disk.img", "checksum": "none" },
        "consumerRef": { "kind": "Metal3Machine", "name": "worker-0", "namespace": "theirs" } });
    room.machine("52:54:00:aa:00:01", theirs).await;
    room.when("running", |host| host.state() == "provisioned").await;
    let is_noted = async |text: &str| {
        let events: Api<Event> = Api::namespaced(room.world.kube.clone(), &room.world.pool);
        let of_host = ListParams::default().fields(&format!("regarding.name={HOST}"));
        let found = events.list(&of_host).await.unwrap().items;
        let mut notes = found.iter().map(|event| event.note.clone().unwrap_or_default());
        notes.any(|note| note.contains(text))
    };
    room.world
        .until("there is an event", async || is_noted("spec.consumerRef").await)
        .await;
    let kept = room.reconciled().await;
    assert_eq!(image(&kept), Some("http://elsewhere/disk.img"));
    for nothing in [annotation::METAL3_DETACHED, annotation::METAL3_INSPECT] {
        assert_eq!(noted(&kept, nothing), None, "{nothing}");
    }
    metal
        .has_done(&["registering", "available", "provisioning", "provisioned", "boot"])
        .await;

    // Its owner gives it up.
    room.change(json!({ "spec": { "image": null, "consumerRef": null } }))
        .await;
    room.when("booted", |host| {
        host.state() == "provisioned" && image(host).is_some_and(|url| !url.contains("elsewhere"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_site_wants_no_pauses_machines_are_detached_only() {
    let mut room = Room::of_site(MetalBoot::Converged, |options| options.pause_provisioned = false).await;
    room.world.pool_of("lab", |_| ()).await;
    room.machine(
        "52:54:00:aa:00:01",
        json!({ "customDeploy": { "method": START } }),
    )
    .await;
    room.status(json!({ "provisioning": { "state": "provisioned" }, "operationalStatus": "detached" }))
        .await;
    room.when("detached", |host| {
        noted(host, annotation::METAL3_DETACHED) == Some(OURS)
    })
    .await;
    let host = room.reconciled().await;
    assert_eq!(noted(&host, annotation::METAL3_PAUSED), None);
    assert_eq!(noted(&host, annotation::METAL3_STATUS), None);
    room.assert_converged().await;
}
