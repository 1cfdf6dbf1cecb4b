//! Each check: what passes, what fails, what waits, what stays silent.

use super::fixture::{NOW, World, neighbours, reaching};
use crate::checks::CheckId::{self, *};
use crate::checks::Status::{self, *};
use crate::checks::reports::{
    ApiVipConnectivity, DiskInfo, DiskSpeed, DomainResolutions, ImageStatus, Resolution, TangConnectivity,
};
use crate::cluster::PlatformType;
use crate::host::{self, Role, disks};
use crate::inventory::{Interface, Iscsi, Memory, Number, Truncation};

type Case = (CheckId, Option<Status>, &'static str, fn(&mut World));

fn check(base: fn() -> World, cases: &[Case]) {
    for (id, expected, why, spoil) in cases {
        let world = base().with(spoil);
        let report = world.run();
        assert_eq!(
            world.status(*id),
            *expected,
            "{}: {why}: {:?}",
            id.as_str(),
            report.find(*id)
        );
    }
}

#[test]
fn presence_and_inventory() {
    check(
        World::free,
        &[
            (Connected, Some(Failure), "silent", |w| w.connected = false),
            (MediaConnected, Some(Failure), "media lost", |w| w.media = false),
            (HasInventory, Some(Failure), "none", |w| w.inventory = None),
            (HasInventory, Some(Failure), "unreadable", |w| {
                w.inventory = None;
                w.broken = true;
            }),
            (InventoryNotPartiallyTruncated, Some(Failure), "cut", |w| {
                cut(w, "partial")
            }),
            (InventoryNotFullyTruncated, Some(Success), "cut in part", |w| {
                cut(w, "partial")
            }),
            (InventoryNotFullyTruncated, Some(Failure), "cut", |w| {
                cut(w, "full")
            }),
            (InventoryNotFullyTruncated, Some(Pending), "none", |w| {
                w.inventory = None
            }),
        ],
    );
    let world = World::free().with(|w| cut(w, "full"));
    let gates = world.run().gates();
    assert!(gates.inventory_fully_truncated && !gates.inventory);
}

fn cut(world: &mut World, extent: &str) {
    world.machine().truncation = Some(Truncation {
        extent: extent.into(),
        reasons: vec!["smart".into()],
    });
}

fn cores(world: &mut World, count: i64) {
    world.machine().cpu.as_mut().unwrap().count = count;
}

fn memory(world: &mut World, mib: i64, method: &str) {
    world.machine().memory = Some(Memory {
        physical_bytes: mib << 20,
        physical_bytes_method: method.into(),
        ..Memory::default()
    });
}

#[test]
fn processors_and_memory() {
    check(
        World::bound,
        &[
            (HasMinCpuCores, Some(Success), "enough for a worker", |w| {
                cores(w, 2)
            }),
            (HasMinCpuCores, Some(Failure), "too few for anything", |w| {
                cores(w, 1)
            }),
            (HasMinCpuCores, Some(Failure), "not reported", |w| {
                w.machine().cpu = None
            }),
            (HasCpuCoresForRole, Some(Failure), "too few for a master", |w| {
                cores(w, 2)
            }),
            (HasCpuCoresForRole, Some(Success), "enough for a worker", |w| {
                cores(w, 2);
                w.role = Role::Worker;
            }),
            (
                HasCpuCoresForRole,
                Some(Failure),
                "too few for the suggested master",
                |w| {
                    cores(w, 2);
                    w.role = Role::AutoAssign;
                    w.suggested = Some(Role::Master);
                },
            ),
            (
                HasCpuCoresForRole,
                Some(Success),
                "no role yet: measured as a worker",
                |w| {
                    cores(w, 2);
                    w.role = Role::AutoAssign;
                },
            ),
            (HasCpuCoresForRole, Some(Failure), "single node", |w| {
                cores(w, 6);
                w.facts().control_plane_count = 1;
            }),
            (HasCpuCoresForRole, Some(Success), "newer single node", |w| {
                cores(w, 6);
                w.facts().control_plane_count = 1;
                w.facts().release = "4.22.0".into();
            }),
            (HasMinMemory, Some(Success), "100 MiB of slack", |w| {
                memory(w, 8192 - 100, "dmidecode")
            }),
            (HasMinMemory, Some(Failure), "one MiB below the slack", |w| {
                memory(w, 8192 - 101, "dmidecode")
            }),
            (HasMinMemory, Some(Success), "2 % more with meminfo", |w| {
                memory(w, 8192 - 100 - 163, "meminfo")
            }),
            (HasMinMemory, Some(Failure), "below both", |w| {
                memory(w, 8192 - 100 - 164, "meminfo")
            }),
            (HasMinMemory, Some(Failure), "not reported", |w| {
                w.machine().memory = None
            }),
            (HasMemoryForRole, Some(Success), "slack", |w| {
                memory(w, 16384 - 100, "meminfo")
            }),
            (HasMemoryForRole, Some(Failure), "no meminfo slack", |w| {
                memory(w, 16384 - 101, "meminfo")
            }),
            (HasMemoryForRole, Some(Pending), "no inventory", |w| {
                w.inventory = None
            }),
        ],
    );
}

fn disk_gb(world: &mut World, gb: i64) {
    world.machine().disks[0].size_bytes = gb * disks::GB;
}

#[test]
fn disks_and_their_speed() {
    check(
        World::free,
        &[
            (HasMinValidDisks, Some(Success), "60 GB will do while free", |w| {
                disk_gb(w, 60)
            }),
            (HasMinValidDisks, Some(Failure), "40 GB never", |w| disk_gb(w, 40)),
            (HasMinValidDisks, Some(Error), "no disks", |w| {
                w.machine().disks.clear()
            }),
            (HasMinValidDisks, Some(Pending), "no inventory", |w| {
                w.inventory = None
            }),
            (HasMinValidDisks, Some(Failure), "the agent says no", |w| {
                w.machine().disks[0].installation_eligibility.not_eligible_reasons =
                    vec!["Disk is removable".into()];
            }),
            (InstallationDiskSpeed, Some(Error), "no disk chosen", |w| {
                w.disk.clear()
            }),
            (InstallationDiskSpeed, Some(Success), "not measured", |_| {}),
            (InstallationDiskSpeed, Some(Success), "measured", |w| {
                measured(w, 0)
            }),
            (InstallationDiskSpeed, Some(Failure), "failed", |w| measured(w, 1)),
            (NoSkipInstallationDisk, Some(Failure), "skipped", |w| {
                w.skip = vec![w.disk.clone()]
            }),
            (
                NoSkipInstallationDisk,
                Some(Success),
                "another one skipped",
                |w| w.skip = vec!["x".into()],
            ),
            (NoSkipMissingDisk, Some(Failure), "gone", |w| {
                w.skip = vec!["x".into()]
            }),
            (NoSkipMissingDisk, Some(Success), "there", |w| {
                w.skip = vec!["/dev/sda".into()]
            }),
            (NoSkipMissingDisk, Some(Pending), "no inventory", |w| {
                w.inventory = None
            }),
            (VsphereDiskUuidEnabled, None, "free", vmware),
            (DiskEncryption, None, "free", |_| {}),
            (NoIscsiNicInMachineCidr, None, "free", |_| {}),
        ],
    );
    check(
        World::bound,
        &[
            (
                HasMinValidDisks,
                Some(Failure),
                "60 GB will not do for a master",
                |w| disk_gb(w, 60),
            ),
            (
                HasMinValidDisks,
                Some(Success),
                "60 GB will do for an arbiter",
                |w| {
                    disk_gb(w, 60);
                    w.role = Role::Arbiter;
                },
            ),
            (VsphereDiskUuidEnabled, None, "not VMware", |_| {}),
            (VsphereDiskUuidEnabled, Some(Failure), "no UUID", vmware),
            (VsphereDiskUuidEnabled, Some(Success), "UUID", |w| {
                vmware(w);
                w.machine().disks[0].has_uuid = true;
            }),
        ],
    );
}

fn vmware(world: &mut World) {
    world.machine().system_vendor.as_mut().unwrap().manufacturer = "VMware, Inc.".into();
}

fn measured(world: &mut World, exit_code: i64) {
    let speed = DiskSpeed {
        tested: true,
        exit_code,
        speed_ms: 3,
    };
    let info = DiskInfo {
        disk_speed: Some(speed),
        path: world.disk.clone(),
    };
    world.reports.disks_info.insert(world.disk.clone(), info);
}

#[test]
fn preparation_gates_follow_the_measurements() {
    let outcome = |spoil: fn(&mut World)| World::bound().with(spoil).run().gates();
    assert_eq!(outcome(|w| measured(w, 0)).disk_speed, host::Outcome::Passed);
    assert_eq!(outcome(|w| measured(w, 1)).disk_speed, host::Outcome::Failed);
    assert_eq!(outcome(|_| {}).disk_speed, host::Outcome::Unknown);
    assert_eq!(
        outcome(|w| w.disk_speed_skipped = true).disk_speed,
        host::Outcome::Passed,
        "nobody waits for a test that is left out"
    );
    assert_eq!(
        outcome(|w| image(w, "a", "success", 5.0)).images,
        host::Outcome::Passed
    );
    assert_eq!(
        outcome(|w| image(w, "a", "failure", 0.0)).images,
        host::Outcome::Failed
    );
    let waiting = outcome(|w| {
        image(w, "a", "success", 5.0);
        w.wanted_images = vec!["a".into(), "b".into()];
    });
    assert_eq!(waiting.images, host::Outcome::Unknown);
    let none_wanted = outcome(|w| w.wanted_images.clear());
    assert_eq!(none_wanted.images, host::Outcome::Passed);
}

fn image(world: &mut World, name: &str, result: &str, rate: f64) {
    let status = ImageStatus {
        name: name.into(),
        result: result.into(),
        size_bytes: Number(1e9),
        download_rate: Number(rate),
        time: Number(1.0),
        error: String::new(),
    };
    world.reports.images_status.insert(name.into(), status);
}

#[test]
fn names_agents_images_and_platforms() {
    check(
        World::free,
        &[
            (HostnameValid, Some(Failure), "placeholder", |w| {
                w.machine().hostname = "localhost".into()
            }),
            (HostnameValid, Some(Success), "given", |w| {
                w.machine().hostname = "localhost".into();
                w.name = Some("node-7".into());
            }),
            (HostnameValid, Some(Failure), "no inventory", |w| {
                w.inventory = None
            }),
            (HostnameUnique, None, "free", |_| {}),
            (CompatibleAgent, Some(Success), "upgrades off", |_| {}),
            (CompatibleAgent, Some(Success), "same", |w| {
                w.settings.wanted_agent = Some("agent:1".into())
            }),
            (CompatibleAgent, Some(Failure), "other", |w| {
                w.settings.wanted_agent = Some("agent:2".into())
            }),
            (ContainerImagesAvailable, Some(Success), "fast enough", |w| {
                image(w, "a", "success", 0.001)
            }),
            (ContainerImagesAvailable, Some(Failure), "too slow", |w| {
                image(w, "a", "success", 0.0001)
            }),
            (ContainerImagesAvailable, Some(Failure), "failed", |w| {
                image(w, "a", "failure", 9.0)
            }),
            (ValidPlatformNetworkSettings, None, "OpenStack, free", openstack),
            (ValidPlatformNetworkSettings, Some(Pending), "no inventory", |w| {
                w.inventory = None
            }),
            (CompatibleWithClusterPlatform, None, "free", |_| {}),
        ],
    );
    check(
        World::bound,
        &[
            (HostnameUnique, Some(Failure), "shared", |w| {
                w.neighbours = neighbours(|peers| peers[1].name = "node-1");
            }),
            (
                HostnameUnique,
                Some(Success),
                "shared with a host whose name is not known",
                |w| {
                    w.neighbours = neighbours(|peers| {
                        peers[1].name = "node-1";
                        peers[1].has_inventory = false;
                    });
                },
            ),
            (
                ValidPlatformNetworkSettings,
                Some(Failure),
                "OpenStack",
                openstack,
            ),
            (
                ValidPlatformNetworkSettings,
                Some(Success),
                "OpenStack, own networking",
                |w| {
                    openstack(w);
                    w.facts().user_managed_networking = true;
                },
            ),
            (
                CompatibleWithClusterPlatform,
                Some(Failure),
                "not a VMware machine",
                |w| {
                    w.facts().platform = PlatformType::Vsphere;
                },
            ),
            (
                CompatibleWithClusterPlatform,
                Some(Success),
                "VMware machine",
                |w| {
                    vmware(w);
                    w.facts().platform = PlatformType::Vsphere;
                },
            ),
            (CompatibleWithClusterPlatform, Some(Failure), "not Nutanix", |w| {
                w.facts().platform = PlatformType::Nutanix
            }),
            (
                CompatibleWithClusterPlatform,
                Some(Pending),
                "no inventory",
                |w| w.inventory = None,
            ),
        ],
    );
}

fn openstack(world: &mut World) {
    world.machine().system_vendor.as_mut().unwrap().product_name = "OpenStack Compute".into();
}

#[test]
fn clocks() {
    check(
        World::free,
        &[
            (NtpSynced, None, "free, none configured", |w| {
                w.reports.ntp_sources = Some(Vec::new())
            }),
            (NtpSynced, Some(Failure), "free, configured", |w| {
                w.reports.ntp_sources = Some(Vec::new());
                w.ntp_configured = true;
            }),
            (TimeSynced, Some(Pending), "never told", |w| w.clock = 0),
            (TimeSynced, Some(Success), "20 min behind", |w| {
                w.clock = NOW - 1200
            }),
            (TimeSynced, Some(Failure), "more behind", |w| w.clock = NOW - 1201),
            (TimeSynced, Some(Success), "60 min ahead", |w| {
                w.clock = NOW + 3600
            }),
            (TimeSynced, Some(Failure), "more ahead", |w| w.clock = NOW + 3601),
        ],
    );
    check(
        World::bound,
        &[
            (NtpSynced, Some(Failure), "bound, unsynced", |w| {
                w.reports.ntp_sources.as_mut().unwrap()[0].source_state = "error".into()
            }),
            (NtpSynced, Some(Pending), "bound, has not answered yet", |w| {
                w.reports.ntp_sources = None
            }),
        ],
    );
}

#[test]
fn networks_and_addresses() {
    check(
        World::free,
        &[
            (HasDefaultRoute, Some(Failure), "none", |w| {
                w.machine().routes.clear()
            }),
            (HasDefaultRoute, Some(Pending), "no inventory", |w| {
                w.inventory = None
            }),
            (NoIpCollisions, Some(Success), "free", |_| {}),
            (MachineCidrDefined, None, "free", |_| {}),
            (NonOverlappingSubnets, None, "free", |_| {}),
        ],
    );
    check(
        World::bound,
        &[
            (MachineCidrDefined, Some(Failure), "unset", |w| {
                w.facts().machine_networks.clear()
            }),
            (MachineCidrDefined, Some(Success), "own networking", |w| {
                w.facts().machine_networks.clear();
                w.facts().user_managed_networking = true;
            }),
            (BelongsToMachineCidr, Some(Pending), "unset", |w| {
                w.facts().machine_networks.clear()
            }),
            (BelongsToMachineCidr, Some(Failure), "outside", |w| {
                outside(w, "10.9.0.0/24")
            }),
            (BelongsToMachineCidr, Some(Failure), "outside one of two", |w| {
                w.facts().machine_networks.push("fd00::/64".parse().unwrap());
            }),
            (
                BelongsToMachineCidr,
                Some(Success),
                "one is enough behind a load balancer of one's own",
                |w| {
                    w.facts().machine_networks.push("10.9.0.0/24".parse().unwrap());
                    w.facts().user_managed_load_balancer = true;
                },
            ),
            (
                BelongsToMachineCidr,
                Some(Success),
                "joins a running cluster",
                |w| {
                    outside(w, "10.9.0.0/24");
                    w.facts().day_two = true;
                },
            ),
            (IgnitionDownloadable, None, "day 1", |_| {}),
            (IgnitionDownloadable, Some(Pending), "not tried", |w| {
                w.facts().day_two = true
            }),
            (IgnitionDownloadable, Some(Success), "worked", |w| {
                ignition(w, true)
            }),
            (IgnitionDownloadable, Some(Failure), "failed", |w| {
                ignition(w, false)
            }),
            (NonOverlappingSubnets, Some(Failure), "same network twice", |w| {
                second_nic(w, "192.168.111.9/24")
            }),
            (
                NonOverlappingSubnets,
                Some(Failure),
                "one inside the other",
                |w| second_nic(w, "192.168.0.9/16"),
            ),
            (
                NonOverlappingSubnets,
                Some(Success),
                "one inside the other on one interface",
                |w| {
                    let own = &mut w.machine().interfaces[0].ipv4_addresses;
                    own.extend(["192.168.111.9/24".into(), "192.168.0.9/16".into()]);
                },
            ),
            (
                NonOverlappingSubnets,
                Some(Failure),
                "inside that of another interface, which has a smaller one besides",
                |w| {
                    second_nic(w, "192.168.0.9/16");
                    let own = &mut w.machine().interfaces[0].ipv4_addresses;
                    *own = vec!["192.0.0.1/8".into(), "192.100.0.1/16".into()];
                },
            ),
            (NonOverlappingSubnets, Some(Success), "apart", |w| {
                second_nic(w, "10.5.0.9/16")
            }),
            (
                NonOverlappingSubnets,
                Some(Success),
                "a family the cluster does not use",
                |w| {
                    second_nic(w, "fd00::1/64");
                    second_nic(w, "fd00::2/64");
                },
            ),
            (NoIpCollisions, Some(Failure), "shared address", |w| {
                collide(w, "192.168.111.1")
            }),
            (NoIpCollisions, Some(Success), "somebody else's", |w| {
                collide(w, "192.168.111.2")
            }),
            (NoIscsiNicInMachineCidr, None, "local disk", |_| {}),
            (NoIscsiNicInMachineCidr, Some(Failure), "inside", |w| {
                iscsi(w, "192.168.111.1")
            }),
            (NoIscsiNicInMachineCidr, Some(Success), "outside", |w| {
                iscsi(w, "10.5.0.1")
            }),
            (NoIscsiNicInMachineCidr, Some(Pending), "network unknown", |w| {
                w.facts().machine_networks.clear()
            }),
        ],
    );
}

fn outside(world: &mut World, network: &str) {
    world.facts().machine_networks = vec![network.parse().unwrap()];
}

fn ignition(world: &mut World, is_success: bool) {
    world.facts().day_two = true;
    world.reports.api_vip_connectivity = Some(ApiVipConnectivity {
        is_success,
        ..ApiVipConnectivity::default()
    });
}

fn second_nic(world: &mut World, address: &str) {
    let name = format!("eth{}", world.machine().interfaces.len());
    let mut nic = Interface {
        name,
        ..Interface::default()
    };
    let list = if address.contains(':') {
        &mut nic.ipv6_addresses
    } else {
        &mut nic.ipv4_addresses
    };
    list.push(address.into());
    world.machine().interfaces.push(nic);
}

fn collide(world: &mut World, ip: &str) {
    world
        .facts()
        .ip_collisions
        .insert(ip.into(), vec!["a".into(), "b".into()]);
}

fn iscsi(world: &mut World, address: &str) {
    let disk = &mut world.machine().disks[0];
    disk.drive_type = "iSCSI".into();
    disk.iscsi = Some(Iscsi {
        host_ip_address: address.into(),
    });
}

#[test]
fn other_hosts() {
    check(
        World::bound,
        &[
            (BelongsToMajorityGroup, Some(Pending), "not tried", |w| {
                w.reports.connectivity = None
            }),
            (BelongsToMajorityGroup, Some(Pending), "too few hosts", |w| {
                w.neighbours = neighbours(|peers| peers.truncate(2));
            }),
            (
                BelongsToMajorityGroup,
                Some(Success),
                "two that fence each other",
                |w| {
                    w.neighbours = neighbours(|peers| {
                        peers.truncate(2);
                        peers.iter_mut().for_each(|peer| peer.has_fencing = true);
                    });
                },
            ),
            (BelongsToMajorityGroup, Some(Failure), "another network", |w| {
                outside(w, "10.9.0.0/24")
            }),
            (
                BelongsToMajorityGroup,
                Some(Success),
                "own networking: any network",
                |w| {
                    outside(w, "10.9.0.0/24");
                    w.facts().user_managed_networking = true;
                },
            ),
            (BelongsToMajorityGroup, Some(Success), "single node", |w| {
                w.facts().control_plane_count = 1
            }),
            (BelongsToMajorityGroup, Some(Success), "joins", |w| {
                w.facts().day_two = true
            }),
            (MtuValid, Some(Pending), "not tried", |w| {
                w.reports.connectivity = None
            }),
            (MtuValid, Some(Failure), "lost", |w| lose(w, "192.168.111.2")),
            (MtuValid, Some(Success), "lost outside the machine network", |w| {
                lose(w, "10.1.1.1")
            }),
            (MtuValid, Some(Failure), "lost anywhere, own networking", |w| {
                lose(w, "10.1.1.1");
                w.facts().user_managed_networking = true;
            }),
            (NetworkLatency, Some(Failure), "too slow", |w| slow(w, 101.0)),
            (NetworkLatency, Some(Success), "at the limit", |w| slow(w, 100.0)),
            (NetworkLatency, Some(Success), "slow to another role", |w| {
                slow(w, 101.0);
                w.neighbours = neighbours(|peers| peers.iter_mut().for_each(|peer| peer.role = Role::Worker));
            }),
            (NetworkLatency, Some(Success), "role open", |w| {
                w.role = Role::AutoAssign;
                w.reports.connectivity = None;
            }),
            (NetworkLatency, Some(Pending), "not tried", |w| {
                w.reports.connectivity = None
            }),
            (NetworkLatency, Some(Success), "alone", |w| {
                w.neighbours = neighbours(|peers| peers.truncate(1));
                w.reports.connectivity = None;
            }),
            (PacketLoss, Some(Failure), "a master may lose nothing", |w| {
                loss(w, 1.0)
            }),
            (PacketLoss, Some(Success), "a worker may lose a tenth", |w| {
                loss(w, 10.0);
                w.role = Role::Worker;
                w.neighbours = neighbours(|peers| peers.iter_mut().for_each(|peer| peer.role = Role::Worker));
            }),
        ],
    );
    check(
        World::free,
        &[
            (BelongsToMajorityGroup, None, "free", |_| {}),
            (MtuValid, None, "free", |_| {}),
        ],
    );
    check(
        World::free,
        &[
            (NetworkLatency, None, "free", |_| {}),
            (PacketLoss, None, "free", |_| {}),
        ],
    );
}

fn lose(world: &mut World, ip: &str) {
    let mut report = reaching(1, 3);
    report.remote_hosts[0].mtu_report[0].mtu_successful = false;
    report.remote_hosts[0].mtu_report[0].remote_ip_address = ip.into();
    world.reports.connectivity = Some(report);
}

fn slow(world: &mut World, ms: f64) {
    let mut report = reaching(1, 3);
    report.remote_hosts[0].l3_connectivity[0].average_rtt_ms = Number(ms);
    world.reports.connectivity = Some(report);
}

fn loss(world: &mut World, percent: f64) {
    let mut report = reaching(1, 3);
    report.remote_hosts[0].l3_connectivity[0].packet_loss_percentage = Number(percent);
    world.reports.connectivity = Some(report);
}

fn unresolved(world: &mut World) {
    for answer in &mut world.reports.domain_resolutions.as_mut().unwrap().resolutions {
        answer.ipv4_addresses.clear();
    }
}

#[test]
fn domain_names() {
    for id in [ApiDomainName, ApiIntDomainName, AppsDomainName] {
        check(
            World::bound,
            &[
                (id, Some(Success), "the cluster answers itself", unresolved),
                (id, Some(Failure), "own networking", |w| {
                    unresolved(w);
                    w.facts().user_managed_networking = true;
                }),
                (id, Some(Success), "own networking, resolved", |w| {
                    w.facts().user_managed_networking = true
                }),
                (id, Some(Pending), "not tried", |w| {
                    w.reports.domain_resolutions = None;
                    w.facts().user_managed_networking = true;
                }),
                (id, Some(Error), "no base domain", |w| {
                    w.facts().base_domain.clear();
                    w.facts().user_managed_networking = true;
                }),
                (id, Some(Success), "a single node answers itself", |w| {
                    unresolved(w);
                    w.facts().user_managed_networking = true;
                    w.facts().control_plane_count = 1;
                }),
                (id, Some(Failure), "unless the site switched that off", |w| {
                    unresolved(w);
                    w.facts().user_managed_networking = true;
                    w.facts().control_plane_count = 1;
                    w.settings.single_node_dns = false;
                }),
            ],
        );
        check(World::free, &[(id, None, "free", |_| {})]);
    }
    check(
        World::bound,
        &[
            (DnsWildcardNotConfigured, Some(Failure), "wildcard", |w| {
                w.reports.domain_resolutions = Some(DomainResolutions {
                    resolutions: vec![Resolution {
                        domain_name: "validateNoWildcardDNS.blue.example.com".into(),
                        ipv4_addresses: vec!["10.0.0.1".into()],
                        ..Resolution::default()
                    }],
                });
            }),
            (DnsWildcardNotConfigured, Some(Pending), "not tried", |w| {
                w.reports.domain_resolutions = None
            }),
            (DnsWildcardNotConfigured, Some(Success), "joins", |w| {
                w.reports.domain_resolutions = None;
                w.facts().day_two = true;
            }),
            (ReleaseDomainName, None, "never evaluated", |_| {}),
        ],
    );
}

fn encrypt(world: &mut World, enable_on: &str, mode: &str) {
    world.facts().disk_encryption.enable_on = enable_on.into();
    world.facts().disk_encryption.mode = mode.into();
}

#[test]
fn disk_encryption() {
    check(
        World::bound,
        &[
            (DiskEncryption, None, "off", |w| encrypt(w, "none", "tpmv2")),
            (DiskEncryption, Some(Success), "TPM", |w| {
                encrypt(w, "all", "tpmv2")
            }),
            (DiskEncryption, Some(Failure), "no TPM", |w| {
                encrypt(w, "masters,workers", "tpmv2");
                w.machine().tpm_version = "none".into();
            }),
            (DiskEncryption, None, "not for this role", |w| {
                encrypt(w, "workers", "tpmv2")
            }),
            (DiskEncryption, Some(Pending), "role open", |w| {
                encrypt(w, "workers", "tpmv2");
                w.role = Role::AutoAssign;
            }),
            (DiskEncryption, Some(Pending), "Tang not tried", |w| {
                encrypt(w, "all", "tang")
            }),
            (DiskEncryption, Some(Success), "Tang reached", |w| tang(w, true)),
            (DiskEncryption, Some(Failure), "Tang not reached", |w| {
                tang(w, false)
            }),
        ],
    );
}

fn tang(world: &mut World, is_success: bool) {
    encrypt(world, "all", "tang");
    world.reports.tang_connectivity = Some(TangConnectivity {
        is_success,
        ..TangConnectivity::default()
    });
}
