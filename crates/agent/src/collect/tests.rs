//! Inventories of captured machines.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

/// A tree from lines: `path = content`, `path -> target` for links.
fn tree(text: &str) -> (tempfile::TempDir, Machine) {
    let root = tempfile::tempdir().unwrap();
    for line in text
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some((path, target)) = line.split_once(" -> ") {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        } else if let Some((path, content)) = line.split_once(" = ") {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content.replace("\\n", "\n").replace("\\t", "\t")).unwrap();
        } else {
            fs::create_dir_all(root.path().join(line.trim())).unwrap();
        }
    }
    let machine = Machine::at(root.path());
    (root, machine)
}

fn captured(name: &str) -> (tempfile::TempDir, Machine, Inventory) {
    let path = format!("{}/tests/machines/{name}.tree", env!("CARGO_MANIFEST_DIR"));
    let (root, machine) = tree(&fs::read_to_string(path).unwrap());
    let inventory = inventory(&machine, 0);
    (root, machine, inventory)
}

#[test]
fn a_rack_server_is_read_whole() {
    let (_root, _machine, found) = captured("rack-server");
    assert_eq!(found.hostname, "rack-7");
    assert_eq!(found.tpm_version, "2.0");
    let boot = found.boot.unwrap();
    assert_eq!(
        (boot.current_boot_mode.as_str(), boot.secure_boot_state.as_ref()),
        ("uefi", "Unknown")
    );
    assert_eq!(
        (boot.pxe_interface.as_str(), boot.device_type.as_ref()),
        ("eno1", "ephemeral")
    );
    let cpu = found.cpu.unwrap();
    assert_eq!(
        (cpu.count, cpu.model_name.as_ref(), cpu.frequency),
        (2, "Example CPU 9000", 3900.0)
    );
    assert!(cpu.flags.contains(&"vmx".into()));
    let memory = found.memory.unwrap();
    assert_eq!(
        (memory.physical_bytes, memory.usable_bytes),
        (2 * 0x800_0000, 263_921_664)
    );
    assert_eq!(memory.physical_bytes_method, "ghw");
    let vendor = found.system_vendor.unwrap();
    assert_eq!(
        (vendor.manufacturer.as_ref(), vendor.serial_number.as_str()),
        ("Example Inc.", "SRV0042")
    );
    assert!(!vendor.r#virtual);
    assert_eq!(found.gpus.len(), 1);
    assert_eq!(
        (found.gpus[0].vendor_id.as_ref(), found.gpus[0].address.as_str()),
        ("10de", "0000:3b:00.0")
    );
}

#[test]
fn disks_have_steady_names_and_reasons() {
    let (_root, _machine, found) = captured("rack-server");
    let names: Vec<&str> = found.disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["nvme0n1", "sda", "sdb", "sr0"]);
    let [nvme, sda, sdb, sr0] = &found.disks[..] else {
        panic!("four disks")
    };
    assert_eq!(sda.id, "/dev/disk/by-id/wwn-0x5000c500aabbccdd");
    assert_eq!(sda.by_path, "/dev/disk/by-path/pci-0000:00:17.0-ata-1");
    assert_eq!(
        (sda.serial.as_str(), sda.wwn.as_str(), sda.hctl.as_str()),
        ("ZA1B2C3D", "0x5000c500aabbccdd", "0:0:0:0")
    );
    assert_eq!(
        (sda.drive_type.as_ref(), sda.size_bytes),
        ("HDD", 1_000_204_886_016)
    );
    assert!(sda.installation_eligibility.eligible);
    assert_eq!(
        (nvme.serial.as_str(), nvme.drive_type.as_ref()),
        ("S5XYNG0", "SSD")
    );
    assert_eq!(
        nvme.installation_eligibility.not_eligible_reasons,
        ["Disk is in use: it is mounted or holds swap space"]
    );
    assert_eq!(nvme.holders, "dm-0");
    assert!(sdb.is_installation_media && sdb.removable);
    assert_eq!(sdb.installation_eligibility.not_eligible_reasons.len(), 2);
    assert_eq!(sr0.drive_type, "ODD");
    assert!(!sr0.installation_eligibility.eligible);
}

#[test]
fn a_virtual_machine_without_udev_still_has_its_disk() {
    let (_root, machine, found) = captured("virtual-machine");
    assert!(found.system_vendor.unwrap().r#virtual);
    assert_eq!(found.tpm_version, "none");
    let disk = &found.disks[0];
    assert_eq!((disk.id.as_str(), disk.serial.as_str()), ("/dev/vda", "disk-one"));
    assert!(disk.installation_eligibility.eligible);
    assert_eq!(found.boot.unwrap().current_boot_mode, "bios");
    let small = inventory(&machine, 100 << 30);
    assert!(!small.disks[0].installation_eligibility.eligible);
    assert!(find_disk(&small.disks, "/dev/vda").is_some());
    assert!(find_disk(&small.disks, "").is_none());
}

#[test]
fn interfaces_have_their_addresses_and_kinds() {
    let (_root, _machine, found) = captured("rack-server");
    let of = |name: &str| found.interfaces.iter().find(|nic| nic.name == name).unwrap();
    let kinds: Vec<(&str, &str)> = found
        .interfaces
        .iter()
        .map(|nic| (nic.name.as_str(), nic.r#type.as_ref()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("bond0", "bond"),
            ("bond0.7", "vlan"),
            ("eno1", "physical"),
            ("veth1", "device")
        ]
    );
    let eno1 = of("eno1");
    assert_eq!(eno1.ipv4_addresses, ["192.0.2.10/24"]);
    assert_eq!(eno1.ipv6_addresses, ["2001:db8::10/64"]);
    assert_eq!(
        (eno1.mtu, eno1.speed_mbps, eno1.has_carrier),
        (1500, 25_000, true)
    );
    assert_eq!(eno1.flags, ["up", "broadcast", "multicast"]);
    assert_eq!(
        (eno1.vendor.as_ref(), eno1.product.as_ref()),
        ("0x8086", "0x159b")
    );
    assert_eq!(of("veth1").speed_mbps, 0);
    let routes: Vec<(&str, i64)> = found
        .routes
        .iter()
        .map(|route| (route.destination.as_str(), route.family))
        .collect();
    assert_eq!(routes, [("0.0.0.0", 2), ("192.0.2.0", 2)]);
}

#[test]
fn the_machine_the_tests_run_on_can_be_read() {
    let found = inventory(&Machine::at(std::path::Path::new("/")), 0);
    assert!(found.cpu.unwrap().count > 0);
    assert!(found.memory.unwrap().usable_bytes > 0);
}

#[test]
fn an_empty_tree_gives_an_empty_inventory_and_no_panic() {
    let (_root, _machine, found) = {
        let (root, machine) = tree("");
        let found = inventory(&machine, 0);
        (root, machine, found)
    };
    assert!(found.disks.is_empty() && found.interfaces.is_empty());
}

#[test]
fn a_stick_with_our_own_image_is_no_disk_to_install_to() {
    let (root, machine) = tree("sys/block/sda/size = 2097152\nsys/block/sda/removable = 0\n");
    let mut bytes = vec![0; 64 * 1024];
    bytes[32769..32774].copy_from_slice(b"CD001");
    bytes[32808..32824].copy_from_slice(b"MUSTER-SYSTEM   ");
    fs::create_dir_all(root.path().join("dev")).unwrap();
    fs::write(root.path().join("dev/sda"), &bytes).unwrap();
    assert!(!inventory(&machine, 0).disks[0].is_installation_media);
    bytes[32808..32824].copy_from_slice(b"MUSTER-DISCOVERY");
    fs::write(root.path().join("dev/sda"), &bytes).unwrap();
    let disk = &inventory(&machine, 0).disks[0];
    assert!(disk.is_installation_media && !disk.installation_eligibility.eligible);
}
