//! Which findings are shown when, in which order, and what they gate.

use super::fixture::{World, cluster};
use crate::checks::{CheckId, Ignored, Installation, News, Operator, Report, Status, stored};
use crate::host;
use crate::inventory::Inventory;
use serde_json::{Value, json};

const FREE_HARDWARE: &str = "has-inventory inventory-not-partially-truncated inventory-not-fully-truncated \
    has-min-cpu-cores has-min-memory has-min-valid-disks has-cpu-cores-for-role has-memory-for-role hostname-valid \
    sufficient-installation-disk-speed compatible-agent no-skip-installation-disk no-skip-missing-disk";
const FREE_NETWORK: &str = "connected media-connected valid-platform-network-settings ntp-synced \
    time-synced-between-host-and-service container-images-available has-default-route no-ip-collisions-in-network";
const BOUND_HARDWARE: &str = "has-inventory inventory-not-partially-truncated inventory-not-fully-truncated \
    has-min-cpu-cores has-min-memory has-min-valid-disks has-cpu-cores-for-role has-memory-for-role hostname-unique \
    hostname-valid sufficient-installation-disk-speed compatible-with-cluster-platform compatible-agent \
    no-skip-installation-disk no-skip-missing-disk";
const BOUND_NETWORK: &str = "connected media-connected machine-cidr-defined belongs-to-machine-cidr \
    belongs-to-majority-group mtu-valid valid-platform-network-settings ntp-synced \
    time-synced-between-host-and-service container-images-available sufficient-network-latency-requirement-for-role \
    sufficient-packet-loss-requirement-for-role has-default-route api-domain-name-resolved-correctly \
    api-int-domain-name-resolved-correctly apps-domain-name-resolved-correctly dns-wildcard-not-configured \
    non-overlapping-subnets no-ip-collisions-in-network";

fn ids(report: &Report, category: &str) -> Vec<String> {
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    let Some(entries) = json[category].as_array() else {
        return vec![];
    };
    entries
        .iter()
        .map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect()
}

fn words(list: &str) -> Vec<&str> {
    list.split_whitespace().collect()
}

#[test]
fn a_free_host_shows_its_21_findings_and_only_those() {
    let report = World::free().run();
    assert_eq!(ids(&report, "hardware"), words(FREE_HARDWARE));
    assert_eq!(ids(&report, "network"), words(FREE_NETWORK));
    assert!(ids(&report, "operators").is_empty());
    assert_eq!(report.findings.len(), 21);
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.status == Status::Success)
    );
}

#[test]
fn a_free_host_without_anything_reported_shows_20() {
    let mut world = World::free();
    world.inventory = None;
    world.reports.ntp_sources = Some(Vec::new());
    let report = world.run();
    let expected = FREE_NETWORK.replace("ntp-synced ", "");
    assert_eq!(
        (ids(&report, "hardware"), ids(&report, "network")),
        (own(FREE_HARDWARE), own(&expected))
    );
}

fn own(list: &str) -> Vec<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_bound_host_shows_cluster_findings_and_all_operators() {
    let report = World::bound().run();
    assert_eq!(ids(&report, "hardware"), words(BOUND_HARDWARE));
    assert_eq!(ids(&report, "network"), words(BOUND_NETWORK));
    let operators: Vec<&str> = Operator::ALL.iter().map(|operator| operator.check_id()).collect();
    assert_eq!(ids(&report, "operators"), operators);
    assert_eq!(operators.len(), 28);
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.status == Status::Success),
        "{report:#?}"
    );
}

#[test]
fn a_host_that_waits_for_its_machine_network_also_shows_the_iscsi_check() {
    let world = World::bound().with(|world| world.facts().machine_networks.clear());
    assert_eq!(
        ids(&world.run(), "network"),
        words(&format!("{BOUND_NETWORK} no-iscsi-nic-belongs-to-machine-cidr"))
    );
}

#[test]
fn a_bound_host_without_inventory_shows_the_usual_findings() {
    let world = World::bound().with(|world| {
        world.inventory = None;
        world.facts().machine_networks.clear();
    });
    let report = world.run();
    assert_eq!(
        (ids(&report, "hardware"), ids(&report, "network")),
        (own(BOUND_HARDWARE), own(BOUND_NETWORK))
    );
    assert_eq!(world.status(CheckId::HasInventory), Some(Status::Failure));
    assert_eq!(world.status(CheckId::HasMinMemory), Some(Status::Pending));
    assert_eq!(world.status(CheckId::HostnameValid), Some(Status::Failure));
    assert_eq!(world.status(CheckId::NetworkLatency), Some(Status::Pending));
}

#[test]
fn a_single_node_has_no_packets_to_lose() {
    let world = World::bound().with(|world| {
        world.facts().control_plane_count = 1;
        world.facts().user_managed_networking = true;
    });
    assert_eq!(
        ids(&world.run(), "network"),
        words(&BOUND_NETWORK.replace("mtu-valid ", ""))
    );
}

#[test]
fn a_host_that_joins_a_running_cluster_must_fetch_its_configuration() {
    let world = World::bound().with(|world| world.facts().day_two = true);
    let expected = BOUND_NETWORK.replace(
        "belongs-to-majority-group",
        "ignition-downloadable belongs-to-majority-group",
    );
    assert_eq!(ids(&world.run(), "network"), words(&expected));
}

#[test]
fn after_the_reboot_the_agent_is_not_asked_any_more() {
    let world = World::bound().with(|world| {
        world.installation = Installation::Rebooted;
        world.connected = false;
    });
    let report = world.run();
    for gone in [
        "connected",
        "media-connected",
        "ntp-synced",
        "time-synced-between-host-and-service",
    ] {
        assert!(!ids(&report, "network").contains(&gone.to_owned()), "{gone}");
    }
    assert_eq!(world.status(CheckId::CompatibleAgent), None);
    assert!(report.is_connected());
    let started = World::bound().with(|world| world.installation = Installation::Started);
    assert_eq!(started.status(CheckId::Connected), Some(Status::Success));
    assert_eq!(started.status(CheckId::CompatibleAgent), None);
}

#[test]
fn every_id_is_known_by_its_name_and_once() {
    let mut names: Vec<&str> = CheckId::CORE.iter().map(|id| id.as_str()).collect();
    assert_eq!(names.len(), 39, "38 that run and one that is only known");
    assert!(
        names
            .iter()
            .all(|name| CheckId::parse(name).unwrap().as_str() == *name)
    );
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 39);
    assert_eq!(super::super::CHECKS.len(), 38);
    assert!(CheckId::parse("ocs-requirements-satisfied").is_none());
    assert_eq!(
        CheckId::parse("cnv-requirements-satisfied"),
        Some(CheckId::Operator(Operator::Cnv))
    );
}

#[test]
fn a_healthy_host_passes_every_gate() {
    for world in [World::free(), World::bound()] {
        let gates = world.run().gates();
        assert!(
            gates.inventory && gates.min_hardware && gates.inputs && gates.vsphere_disks && gates.sufficient
        );
        assert!(!gates.inventory_fully_truncated);
        assert_eq!(gates.disk_speed, host::Outcome::Unknown);
        // The cluster of this test wants no images; a free host has not been asked.
        let bound = world.cluster.is_some();
        let images = if bound {
            host::Outcome::Passed
        } else {
            host::Outcome::Unknown
        };
        assert_eq!(gates.images, images);
    }
}

#[test]
fn a_bad_name_keeps_a_free_host_back_as_hardware_and_a_bound_one_as_insufficient() {
    let spoil = |world: &mut World| world.name = Some("localhost".into());
    let free = World::free().with(spoil).run().gates();
    assert!(!free.min_hardware);
    let bound = World::bound().with(spoil).run().gates();
    assert!(bound.min_hardware && !bound.sufficient);
}

#[test]
fn a_missing_machine_network_is_missing_input_not_missing_hardware() {
    let gates = World::bound()
        .with(|world| world.facts().machine_networks.clear())
        .run()
        .gates();
    assert!(gates.min_hardware && !gates.inputs);
}

#[test]
fn an_empty_inventory_is_an_inventory_that_fails_honestly() {
    for base in [World::free(), World::bound()] {
        let world = base.with(|world| world.inventory = Some(Inventory::parse("{}").unwrap()));
        let gates = world.run().gates();
        assert!(gates.inventory && !gates.min_hardware);
        assert_eq!(world.status(CheckId::HasMinCpuCores), Some(Status::Failure));
        assert_eq!(world.status(CheckId::HasMinMemory), Some(Status::Failure));
        assert_eq!(world.status(CheckId::HasMinValidDisks), Some(Status::Error));
        assert!(world.run().complaints().contains("reports no disks"));
    }
}

#[test]
fn the_site_and_the_owner_can_switch_checks_off() {
    let spoil = |world: &mut World| {
        world.reports.ntp_sources = Some(Vec::new());
        world.settings.disabled_host_checks.insert("ntp-synced".into());
    };
    assert_eq!(
        World::bound().with(spoil).status(CheckId::NtpSynced),
        Some(Status::Disabled)
    );
    let owner = World::bound().with(spoil).with(|world| {
        world.facts().ignored_host_checks.ids = vec!["mtu-valid".into()];
    });
    assert_eq!(
        owner.status(CheckId::NtpSynced),
        Some(Status::Failure),
        "the owner's list replaces the site's"
    );
    assert_eq!(owner.status(CheckId::MtuValid), Some(Status::Disabled));
    let all = World::bound().with(|world| world.facts().ignored_host_checks.all = true);
    assert_eq!(all.status(CheckId::HasMinMemory), Some(Status::Disabled));
    assert_eq!(
        all.status(CheckId::HostnameValid),
        Some(Status::Success),
        "never ignored"
    );
    assert!(all.run().gates().sufficient);
}

#[test]
fn the_history_hears_of_what_changed_and_not_of_first_sights() {
    let before = World::free().run();
    let after = World::free().with(|world| world.connected = false).run();
    let old = stored(&before.to_json());
    assert!(before.changes(&old).is_empty());
    let changes = after.changes(&old);
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].id, &changes[0].news), ("connected", &News::Broke));
    assert_eq!(before.changes(&stored(&after.to_json()))[0].news, News::Fixed);
    let bound = World::bound()
        .with(|world| world.facts().machine_networks.clear())
        .run();
    assert!(
        bound.changes(&old).is_empty(),
        "cluster findings are seen for the first time"
    );
}

#[test]
fn a_stored_report_says_nothing_a_client_cannot_parse() {
    let json: Value = serde_json::from_str(&World::bound().run().to_json()).unwrap();
    let categories: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(categories, ["hardware", "network", "operators"]);
    for entry in json["hardware"].as_array().unwrap() {
        assert_eq!(entry.as_object().unwrap().len(), 3);
        assert!(!entry["message"].as_str().unwrap().is_empty());
    }
    assert_eq!(cluster().release(), Some("4.20.1"));
}

#[test]
fn a_test_that_is_ignored_holds_nobody_up() {
    use crate::host::Outcome::{Failed, Passed, Unknown};
    let slow = |exit_code: Option<i64>| {
        World::bound().with(|world| {
            world.wanted_images = vec!["registry.example.com/image:1".into()];
            if let Some(exit_code) = exit_code {
                let speed = json!({ "/dev/disk/by-id/one": { "path": "/dev/disk/by-id/one",
                    "disk_speed": { "tested": true, "exit_code": exit_code, "speed_ms": 50 } } });
                let image = json!({ "registry.example.com/image:1": { "name": "registry.example.com/image:1",
                    "result": "failure" } });
                world.reports.disks_info = serde_json::from_value(speed).unwrap();
                world.reports.images_status = serde_json::from_value(image).unwrap();
            }
        })
    };
    for (exit_code, expected) in [(None, Unknown), (Some(1), Failed)] {
        let gates = slow(exit_code).run().gates();
        assert_eq!((gates.disk_speed, gates.images), (expected, expected));
        for (id, other) in [
            ("sufficient-installation-disk-speed", (Passed, expected)),
            ("container-images-available", (expected, Passed)),
        ] {
            let by_owner = slow(exit_code).with(|world| {
                world.facts().ignored_host_checks = Ignored::parse(&json!([id]).to_string()).unwrap();
            });
            let by_site = slow(exit_code).with(|world| {
                world.settings.disabled_host_checks = [id.to_owned()].into();
            });
            for world in [by_owner, by_site] {
                let gates = world.run().gates();
                assert_eq!((gates.disk_speed, gates.images), other, "{id}");
                assert!(gates.sufficient || other.0 == Failed, "{id}");
            }
        }
    }
}
