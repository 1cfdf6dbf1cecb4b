//! An inventory as large as one may be is read once per check, not once per entry.

use super::fixture::World;
use crate::checks::{CheckId, Status, reports, verdict};
use crate::inventory::{Disk, Interface, Iscsi, Route};
use crate::requirements::Requirements;

const DISKS: usize = 4096;
const INTERFACES: usize = 4096;
const ROUTES: usize = 16 * 1024;
/// Of one interface; together half a million.
const ADDRESSES: usize = 128;

/// Drives that nothing can be installed to, cards with addresses of their own, routes over another.
fn crowded() -> World {
    let mut world = World::bound();
    let machine = world.machine();
    let drive = |n: usize| Disk {
        name: format!("sd{n}"),
        drive_type: "iSCSI".into(),
        iscsi: Some(Iscsi {
            host_ip_address: "10.255.0.1".into(),
        }),
        ..Disk::default()
    };
    let card = |n: usize| Interface {
        name: format!("eth{n}"),
        ipv4_addresses: (0..ADDRESSES)
            .map(|m| format!("10.{}.{}.{}/32", n / 128, n % 128, m))
            .collect(),
        ..Interface::default()
    };
    let route = |n: usize| Route {
        interface: format!("other{n}"),
        destination: "0.0.0.0".into(),
        gateway: "10.0.0.1".into(),
        ..Route::default()
    };
    machine.disks = (0..DISKS).map(drive).collect();
    machine.interfaces.extend((1..INTERFACES).map(card));
    machine.routes = (0..ROUTES).map(route).collect();
    world.skip = (0..DISKS).map(|n| format!("/dev/sd{n}")).collect();
    world
}

#[test]
fn disks_cards_and_routes_are_not_multiplied() {
    let mut world = crowded();
    world.machine().system_vendor.as_mut().unwrap().manufacturer = "VMware, Inc.".into();
    let report = world.run();
    let of = |id| report.find(id).map(|finding| finding.status);
    assert_eq!(of(CheckId::HasMinValidDisks), Some(Status::Failure));
    assert_eq!(of(CheckId::VsphereDiskUuidEnabled), Some(Status::Success));
    assert_eq!(of(CheckId::NoSkipMissingDisk), Some(Status::Success));
    let verdicts = verdict::verdicts(world.inventory.as_ref(), &Requirements::default(), None);
    assert!(verdicts.iter().all(|verdict| !verdict.fits));
}

#[test]
fn addresses_are_not_multiplied_with_each_other_or_with_networks() {
    let mut world = crowded();
    // As many as a cluster may have, and the host is in each of them.
    world.facts().machine_networks = (0..256)
        .map(|n| {
            format!("10.{}.{}.0/25", 31 - n / 128, 127 - n % 128)
                .parse()
                .unwrap()
        })
        .collect();
    let report = world.run();
    let of = |id| report.find(id).map(|finding| finding.status);
    assert_eq!(of(CheckId::NonOverlappingSubnets), Some(Status::Success));
    assert_eq!(of(CheckId::BelongsToMachineCidr), Some(Status::Success));

    world
        .facts()
        .machine_networks
        .push("10.200.0.0/24".parse().unwrap());
    let last = world.machine().interfaces.last_mut().unwrap();
    last.ipv4_addresses[0] = "10.0.0.77/9".into();
    let report = world.run();
    let told = |id| report.find(id).map(|finding| finding.message.clone()).unwrap();
    assert_eq!(
        told(CheckId::NonOverlappingSubnets),
        "eth1 (10.0.1.0/32) and eth4095 (10.0.0.0/9) are in overlapping networks; bond them or use only one."
    );
    assert!(told(CheckId::BelongsToMachineCidr).contains("no address in 10.200.0.0/24;"));
}

#[test]
fn measured_paths_are_not_multiplied_with_networks() {
    let mut world = World::bound();
    world.facts().machine_networks = (0..256)
        .map(|n| format!("10.{n}.0.0/16").parse().unwrap())
        .collect();
    let lost = |n: usize| reports::Mtu {
        remote_ip_address: format!("11.0.{}.{}", n / 256, n % 256),
        ..reports::Mtu::default()
    };
    let remote = reports::RemoteHost {
        mtu_report: (0..16 * 1024).map(lost).collect(),
        ..reports::RemoteHost::default()
    };
    world.reports.connectivity = Some(reports::Connectivity {
        remote_hosts: vec![remote; 16],
    });
    assert_eq!(world.status(CheckId::MtuValid), Some(Status::Success));
    let report = world.reports.connectivity.as_mut().unwrap();
    report.remote_hosts[15].mtu_report[7].remote_ip_address = "10.77.0.1".into();
    assert_eq!(world.status(CheckId::MtuValid), Some(Status::Failure));
}
