//! Which disks are eligible, chosen, wiped and skipped.

use super::*;
use crate::inventory::{Cpu, Interface, Iscsi, Route};

fn disk(name: &str, kind: &str, gb: i64) -> Disk {
    Disk {
        name: name.into(),
        drive_type: kind.into(),
        size_bytes: gb * GB,
        ..Disk::default()
    }
}

fn machine(disks: Vec<Disk>) -> Inventory {
    let cpu = Cpu {
        architecture: "x86_64".into(),
        count: 8,
        ..Cpu::default()
    };
    Inventory {
        disks,
        cpu: Some(cpu),
        ..Inventory::default()
    }
}

fn judged(disks: Vec<Disk>, release: Option<&str>) -> Vec<bool> {
    let mut inventory = machine(disks);
    judge(&mut inventory, 100, release);
    inventory
        .disks
        .iter()
        .map(|disk| disk.installation_eligibility.eligible)
        .collect()
}

#[test]
fn size_and_kind_decide() {
    let disks =
        ["HDD", "SSD", "Multipath", "FC", "ODD", "virtual", "ECKD", ""].map(|kind| disk("x", kind, 100));
    assert_eq!(
        judged(disks.to_vec(), Some("4.20")),
        [true, true, true, true, false, false, false, false]
    );
    assert_eq!(judged(vec![disk("sda", "SSD", 99)], None), [false]);
}

#[test]
fn raid_needs_a_release_that_supports_it() {
    let raid = || vec![disk("md0", "RAID", 200)];
    assert_eq!(judged(raid(), Some("4.13.9")), [false]);
    assert_eq!(judged(raid(), Some("4.14.0-rc.1")), [true]);
    assert_eq!(judged(raid(), None), [true]);
}

#[test]
fn our_reasons_go_when_circumstances_change_and_the_agents_stay() {
    let mut inventory = machine(vec![disk("sda", "SSD", 60), disk("sdb", "SSD", 500)]);
    inventory.disks[1].installation_eligibility.not_eligible_reasons = vec!["Disk is removable".into()];
    judge(&mut inventory, 100, None);
    assert!(!inventory.disks[0].installation_eligibility.eligible);
    judge(&mut inventory, 50, None);
    judge(&mut inventory, 50, None);
    assert!(inventory.disks[0].installation_eligibility.eligible);
    assert_eq!(
        inventory.disks[1].installation_eligibility.not_eligible_reasons,
        ["Disk is removable"]
    );
}

#[test]
fn a_path_of_a_multipath_device_is_not_a_disk_of_its_own() {
    let mut path_one = disk("sda", "FC", 200);
    path_one.holders = "dm-0".into();
    let mut path_two = disk("sdb", "FC", 200);
    path_two.holders = "dm-0".into();
    let whole = disk("dm-0", "Multipath", 200);
    assert_eq!(
        judged(vec![path_one.clone(), path_two.clone(), whole.clone()], None),
        [false, false, true]
    );
    path_two.drive_type = "iSCSI".into();
    assert!(!judged(vec![path_one, path_two, whole], None)[2]);
}

#[test]
fn an_iscsi_drive_needs_a_network_of_its_own() {
    let mut remote = disk("sda", "iSCSI", 200);
    let mut inventory = machine(vec![]);
    inventory.interfaces = vec![Interface {
        name: "eth0".into(),
        ipv4_addresses: vec!["10.0.0.5/24".into()],
        ..Interface::default()
    }];
    inventory.routes = vec![Route {
        interface: "eth0".into(),
        destination: "0.0.0.0".into(),
        gateway: "10.0.0.1".into(),
        ..Route::default()
    }];
    for (address, fits) in [(None, false), (Some("10.0.0.5"), false), (Some("10.9.0.5"), true)] {
        remote.iscsi = address.map(|ip| Iscsi {
            host_ip_address: ip.into(),
        });
        inventory.disks = vec![remote.clone()];
        judge(&mut inventory, 100, None);
        assert_eq!(
            inventory.disks[0].installation_eligibility.eligible, fits,
            "{address:?}"
        );
    }
}

#[test]
fn the_most_suitable_disk_comes_first() {
    let mut bootable = disk("sdz", "SSD", 900);
    bootable.bootable = true;
    let mut later = disk("sdc", "HDD", 200);
    later.hctl = "1:0:0:0".into();
    let mut earlier = disk("sdd", "HDD", 200);
    earlier.hctl = "0:0:0:0".into();
    let mut inventory = machine(vec![
        disk("nvme0n1", "SSD", 100),
        disk("sdb", "SSD", 100),
        later,
        earlier,
        bootable,
    ]);
    judge(&mut inventory, 100, None);
    let order: Vec<&str> = eligible(&inventory)
        .iter()
        .map(|disk| disk.name.as_str())
        .collect();
    assert_eq!(order, ["sdz", "sdd", "sdc", "sdb", "nvme0n1"]);
}

#[test]
fn a_chosen_disk_stays_while_it_is_eligible() {
    let mut inventory = machine(vec![disk("sda", "SSD", 100), disk("sdb", "SSD", 200)]);
    judge(&mut inventory, 100, None);
    assert_eq!(choose(&inventory, "/dev/sdb").unwrap().name, "sdb");
    assert_eq!(choose(&inventory, "").unwrap().name, "sda");
    judge(&mut inventory, 150, None);
    assert_eq!(choose(&inventory, "/dev/sda").unwrap().name, "sdb");
    judge(&mut inventory, 500, None);
    assert!(choose(&inventory, "/dev/sda").is_none());
}

#[test]
fn only_a_choice_of_the_owner_is_taken_back_and_then_the_inventory_decides() {
    let mut inventory = machine(vec![disk("sda", "SSD", 100), disk("sdb", "SSD", 200)]);
    judge(&mut inventory, 100, None);
    let mut tenant = Tenant::default();
    note(&mut tenant, find(&inventory, "/dev/sdb"));
    release(&mut tenant, &inventory);
    assert_eq!(tenant.installation_disk_id, "/dev/sdb", "nobody chose it");
    tenant.disk_chosen = true;
    release(&mut tenant, &inventory);
    let names = (&*tenant.installation_disk_id, &*tenant.installation_disk_path);
    assert_eq!((names, tenant.disk_chosen), (("/dev/sda", "/dev/sda"), false));
    tenant.disk_chosen = true;
    release(&mut tenant, &Inventory::default());
    assert_eq!(tenant, Tenant::default(), "nobody knows its disks");
}

#[test]
fn identity_prefers_the_most_stable_name() {
    let mut disk = disk("sda", "SSD", 1);
    assert_eq!(identity(&disk), "/dev/sda");
    disk.by_path = "/dev/disk/by-path/x".into();
    assert_eq!(identity(&disk), "/dev/disk/by-path/x");
    disk.by_id = "/dev/disk/by-id/y".into();
    assert_eq!(identity(&disk), "/dev/disk/by-id/y");
    let inventory = machine(vec![disk]);
    for name in ["/dev/sda", "/dev/disk/by-path/x", "/dev/disk/by-id/y"] {
        assert!(find(&inventory, name).is_some(), "{name}");
    }
    assert!(find(&inventory, "").is_none());
}

#[test]
fn only_local_bootable_disks_are_wiped() {
    let mut disks = vec![
        disk("sda", "SSD", 1),
        disk("mmcblk0", "SSD", 1),
        disk("sdb", "FC", 1),
        disk("sdc", "HDD", 1),
    ];
    for disk in &mut disks {
        disk.bootable = true;
    }
    disks[3].is_installation_media = true;
    disks.push(disk("sdd", "SSD", 1));
    assert_eq!(to_be_formatted(&machine(disks)), ["/dev/sda"]);
}

#[test]
fn the_skip_list_follows_changes_and_names_unknown_disks() {
    let inventory = machine(vec![disk("sda", "SSD", 1), disk("sdb", "SSD", 1)]);
    let list = skip_list(
        &["gone".into()],
        &[("/dev/sda".into(), true), ("/dev/sda".into(), true)],
        &inventory,
    );
    assert_eq!(list.unwrap(), ["gone", "/dev/sda"]);
    let list = skip_list(
        &["gone".into(), "/dev/sda".into()],
        &[("gone".into(), false)],
        &inventory,
    );
    assert_eq!(list.unwrap(), ["/dev/sda"]);
    assert_eq!(
        skip_list(&[], &[("/dev/sdq".into(), true)], &inventory),
        Err("/dev/sdq".into())
    );
}

/// As many disks, network cards and routes as an inventory may have, with every drive beyond the network.
fn crowded() -> Inventory {
    let mut inventory = machine(Vec::new());
    let drive = |n: usize| Disk {
        iscsi: Some(Iscsi {
            host_ip_address: format!("10.0.{}.{}", n / 256, n % 256),
        }),
        ..disk(&format!("sd{n}"), "iSCSI", 200)
    };
    let card = |n: usize| Interface {
        name: format!("eth{n}"),
        ipv4_addresses: vec![format!("10.{}.{}.{}/32", 1 + n / 65536, n / 256 % 256, n % 256)],
        ..Interface::default()
    };
    let route = |n: usize| Route {
        interface: format!("other{n}"),
        destination: "0.0.0.0".into(),
        gateway: "10.0.0.1".into(),
        ..Route::default()
    };
    inventory.disks = (0..4096).map(drive).collect();
    inventory.interfaces = (0..4096).map(card).collect();
    inventory.routes = (0..16 * 1024).map(route).collect();
    inventory
}

#[test]
fn drives_cards_and_routes_are_not_multiplied() {
    let mut inventory = crowded();
    judge(&mut inventory, 100, None);
    assert_eq!(eligible(&inventory).len(), 4096);
    inventory.interfaces[4095].ipv4_addresses[0] = "10.0.0.7/24".into();
    inventory.routes[16_383].interface = "eth4095".into();
    judge(&mut inventory, 100, None);
    assert_eq!(eligible(&inventory).len(), 4095);
    assert!(!inventory.disks[7].installation_eligibility.eligible);
}

#[test]
fn paths_and_multipath_devices_are_not_multiplied() {
    let whole = |n: usize| disk(&format!("dm-{n}"), "Multipath", 200);
    // As long as a text may be.
    let many: String = (0..2300).map(|n| format!("x{n},")).collect();
    let holders = |n: usize| format!("{many}{}", if n < 1024 { "dm-7" } else { "dm-8" });
    let path = |n: usize| Disk {
        holders: holders(n),
        ..disk(&format!("sd{n}"), if n == 5 { "iSCSI" } else { "FC" }, 200)
    };
    let disks = (0..2048).map(whole).chain((0..2048).map(path)).collect();
    let judged = judged(disks, None);
    let fit: Vec<usize> = (0..4096).filter(|n| judged[*n]).collect();
    let expected: Vec<usize> = (0..2048).filter(|n| *n != 7).collect();
    assert_eq!(fit, expected);
}

#[test]
fn a_long_skip_list_and_many_disks_are_not_multiplied() {
    const MANY: usize = 40_000;
    let disks = (0..MANY).map(|n| disk(&format!("sd{n}"), "SSD", 1)).collect();
    let inventory = machine(disks);
    let named = |n: usize| format!("/dev/sd{n}");
    let all: Vec<(String, bool)> = (0..MANY).map(|n| (named(n), true)).collect();
    let list = skip_list(&[], &all, &inventory).unwrap();
    assert!(list.iter().eq(all.iter().map(|(name, _)| name)));
    let none: Vec<(String, bool)> = (0..MANY).rev().map(|n| (named(n), false)).collect();
    assert!(skip_list(&list, &none, &inventory).unwrap().is_empty());
}

#[test]
fn a_disk_of_many_is_the_one_that_looking_for_it_finds() {
    let mut inventory = machine(vec![
        disk("sda", "SSD", 1),
        disk("sdb", "SSD", 2),
        disk("", "SSD", 3),
    ]);
    inventory.disks[0].by_id = "/dev/disk/by-id/y".into();
    inventory.disks[1].id = "/dev/disk/by-id/y".into();
    inventory.disks[1].path = "/dev/sda".into();
    inventory.disks[1].by_path = "/dev/disk/by-path/x".into();
    let by_name = ByName::of(&inventory);
    for (name, size) in [
        ("/dev/disk/by-id/y", Some(1)),
        ("/dev/disk/by-path/x", Some(2)),
        ("/dev/sda", Some(1)),
        ("/dev/sdb", Some(2)),
        ("/dev/", Some(3)),
        ("sda", None),
        ("", None),
    ] {
        let size = size.map(|gb| gb * GB);
        assert_eq!(find(&inventory, name).map(|disk| disk.size_bytes), size, "{name}");
        assert_eq!(by_name.find(name).map(|disk| disk.size_bytes), size, "{name}");
    }
}
