//! Disks: what they are, how they are named, and whether a system can be written to them.

use super::{Machine, partition};
use muster_contract::v2::agent::inventory::{Disk, DiskEligibility, Iscsi};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;

/// Never disks: memory, files, and network block devices nobody uses.
const NOT_DISKS: [&str; 5] = ["loop", "ram", "zram", "nbd", "mtdblock"];
/// Where discovery images mount the medium they came from.
pub const MEDIA: [&str; 2] = ["/run/media/iso", "/run/initramfs/live"];

pub fn disks(machine: &Machine, min_bytes: i64) -> Vec<Disk> {
    let names = machine.list("sys/block");
    let mounts = Mounts::read(machine);
    let is_disk = |name: &&String| {
        !NOT_DISKS.iter().any(|prefix| name.starts_with(prefix))
            && machine.number(&format!("sys/block/{name}/size")) > 0
    };
    names
        .iter()
        .filter(is_disk)
        .map(|name| disk(machine, &mounts, name, min_bytes))
        .collect()
}

/// The disk that any of its names stands for.
pub fn find(disks: &[Disk], name: &str) -> Option<Disk> {
    let is_it = |disk: &&Disk| {
        [&disk.id, &disk.path, &disk.by_id, &disk.by_path, &disk.name]
            .iter()
            .any(|own| *own == name && !own.is_empty())
    };
    disks.iter().find(is_it).cloned()
}

fn disk(machine: &Machine, mounts: &Mounts, name: &str, min_bytes: i64) -> Disk {
    let of = |file: &str| machine.text(&format!("sys/block/{name}/{file}"));
    let udev = Udev::read(machine, &of("dev"));
    let drive_type = drive_type(machine, name);
    let by_id = link_to(machine, "by-id", name);
    let by_path = link_to(machine, "by-path", name);
    let path = format!("/dev/{}", name.replace('!', "/"));
    let head = head(machine, &path, drive_type);
    let id = [&by_id, &by_path, &path]
        .into_iter()
        .find(|text| !text.is_empty());
    let mut disk = Disk {
        id: id.cloned().unwrap_or_default(),
        name: name.to_owned(),
        by_path,
        wwn: wwn(machine, name, &udev),
        serial: serial(machine, name, &udev),
        model: first([of("device/model"), udev.get("ID_MODEL")]).into(),
        vendor: first([of("device/vendor"), udev.get("ID_VENDOR")]).into(),
        hctl: hctl(machine, name),
        size_bytes: of("size").parse::<i64>().unwrap_or_default() * 512,
        bootable: partition::has_boot_signature(&head),
        // Cards are removable though their slots say otherwise.
        removable: of("removable") == "1" || name.starts_with("mmcblk"),
        has_uuid: !by_id.is_empty(),
        drive_type: drive_type.into(),
        is_installation_media: is_discovery_image(&head)
            || mounts
                .media
                .iter()
                .any(|device| is_part_of(machine, device, name)),
        holders: holders(machine, name).join(","),
        iscsi: iscsi(machine, name, drive_type),
        partition_types: partition_types(&head),
        by_id,
        path,
        installation_eligibility: DiskEligibility::default(),
        smart: Cow::Borrowed(""),
        io_perf: None,
    };
    let reasons = reasons(
        &disk,
        mounts.used.iter().any(|device| is_part_of(machine, device, name)),
        of("ro") == "1",
        min_bytes,
    );
    disk.installation_eligibility = DiskEligibility {
        eligible: reasons.is_empty(),
        not_eligible_reasons: reasons,
    };
    disk
}

/// Why a system cannot be written to this disk, as far as the machine itself knows.
fn reasons(disk: &Disk, is_used: bool, is_read_only: bool, min_bytes: i64) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut add = |applies: bool, reason: &str| {
        if applies {
            reasons.push(reason.to_owned());
        }
    };
    add(disk.removable, "Disk is removable");
    add(
        disk.is_installation_media,
        "Disk is the medium this machine was started from",
    );
    add(
        is_used && !disk.is_installation_media,
        "Disk is in use: it is mounted or holds swap space",
    );
    add(is_read_only, "Disk is read-only");
    add(
        matches!(disk.drive_type.as_ref(), "ODD" | "FDD"),
        "Drive is for exchangeable media",
    );
    let small = format!("Disk has {} bytes, but {min_bytes} are needed", disk.size_bytes);
    add(disk.size_bytes < min_bytes, &small);
    reasons
}

fn drive_type(machine: &Machine, name: &str) -> &'static str {
    let device = std::fs::canonicalize(machine.path(&format!("sys/block/{name}/device"))).unwrap_or_default();
    let device = device.to_string_lossy().into_owned();
    let mapper = machine.text(&format!("sys/block/{name}/dm/uuid"));
    let rotates = machine.text(&format!("sys/block/{name}/queue/rotational"));
    match name {
        _ if name.starts_with("sr") => "ODD",
        _ if name.starts_with("fd") => "FDD",
        _ if name.starts_with("md") => "RAID",
        _ if name.starts_with("dasd") => "ECKD",
        _ if mapper.starts_with("mpath-") => "Multipath",
        _ if mapper.starts_with("LVM-") => "LVM",
        _ if name.starts_with("dm-") => "virtual",
        _ if device.contains("/session") => "iSCSI",
        _ if device.contains("/rport-") => "FC",
        _ if rotates == "1" => "HDD",
        _ if rotates == "0" => "SSD",
        _ => "Unknown",
    }
}

fn first<const N: usize>(texts: [String; N]) -> String {
    texts
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// What udev found out, where it runs.
struct Udev(String);

impl Udev {
    fn read(machine: &Machine, numbers: &str) -> Self {
        Self(machine.text(&format!("run/udev/data/b{numbers}")))
    }

    fn get(&self, name: &str) -> String {
        let mut lines = self.0.lines().filter_map(|line| line.strip_prefix("E:"));
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_default().trim().to_owned()
    }
}

fn serial(machine: &Machine, name: &str, udev: &Udev) -> String {
    let of = |file: &str| machine.text(&format!("sys/block/{name}/{file}"));
    // SCSI: page 0x80 of the vital product data, four bytes of header and then the number.
    let page = std::fs::read(machine.path(&format!("sys/block/{name}/device/vpd_pg80"))).unwrap_or_default();
    let page = String::from_utf8_lossy(page.get(4..).unwrap_or_default());
    let page = page
        .trim_matches(|c: char| c.is_whitespace() || c == '\0')
        .to_owned();
    first([
        udev.get("ID_SERIAL_SHORT"),
        of("serial"),
        of("device/serial"),
        page,
        udev.get("ID_SERIAL"),
    ])
}

fn wwn(machine: &Machine, name: &str, udev: &Udev) -> String {
    let of = |file: &str| machine.text(&format!("sys/block/{name}/{file}"));
    let kernel = first([of("wwid"), of("device/wwid")]);
    let kernel = match kernel.split_once('.') {
        Some(("naa", number)) => format!("0x{number}"),
        Some(("eui", _)) => kernel,
        // Other kinds are made up from vendor and model.
        Some(_) | None => String::new(),
    };
    first([udev.get("ID_WWN_WITH_EXTENSION"), udev.get("ID_WWN"), kernel])
}

/// Host, channel, target and unit of SCSI disks.
fn hctl(machine: &Machine, name: &str) -> String {
    let device = machine
        .link_name(&format!("sys/block/{name}/device"))
        .unwrap_or_default();
    let parts: Vec<&str> = device.split(':').collect();
    let is_one = parts.len() == 4 && parts.iter().all(|part| part.parse::<u32>().is_ok());
    if is_one { device } else { String::new() }
}

/// The link in /dev/disk that names this disk; a world wide name is the steadiest.
fn link_to(machine: &Machine, kind: &str, name: &str) -> String {
    let directory = format!("dev/disk/{kind}");
    let links = machine.list(&directory);
    let mut mine: Vec<&String> = links
        .iter()
        .filter(|link| machine.link_name(&format!("{directory}/{link}")).as_deref() == Some(name))
        .collect();
    mine.sort_by_key(|link| !link.starts_with("wwn-"));
    mine.first()
        .map(|link| format!("/{directory}/{link}"))
        .unwrap_or_default()
}

fn partitions(machine: &Machine, name: &str) -> Vec<String> {
    let inside = machine.list(&format!("sys/block/{name}"));
    inside
        .into_iter()
        .filter(|entry| machine.exists(&format!("sys/block/{name}/{entry}/partition")))
        .collect()
}

/// What is built on the disk or its partitions: volumes, arrays, paths.
fn holders(machine: &Machine, name: &str) -> Vec<String> {
    let mut found = machine.list(&format!("sys/block/{name}/holders"));
    for part in partitions(machine, name) {
        found.extend(machine.list(&format!("sys/block/{name}/{part}/holders")));
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a device is this disk, a partition of it, or something built on top of either.
fn is_part_of(machine: &Machine, device: &str, disk: &str) -> bool {
    device == disk
        || partitions(machine, disk).iter().any(|part| part == device)
        || holders(machine, disk)
            .iter()
            .any(|holder| holder != disk && is_part_of(machine, device, holder))
}

fn iscsi(machine: &Machine, name: &str, drive_type: &str) -> Option<Iscsi> {
    if drive_type != "iSCSI" {
        return None;
    }
    let device = std::fs::canonicalize(machine.path(&format!("sys/block/{name}/device"))).ok()?;
    let session = device.ancestors().find(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("session"))
    })?;
    let name = session.file_name()?.to_string_lossy();
    let connection = format!("{}:0", name.replace("session", "connection"));
    let file = format!("sys/class/iscsi_connection/{connection}/local_address");
    Some(Iscsi {
        host_ip_address: machine.text(&file),
    })
}

/// The first bytes of the disk, as far as we may read them. Drives without a medium are not asked.
fn head(machine: &Machine, path: &str, drive_type: &str) -> Vec<u8> {
    let mut head = Vec::new();
    if !matches!(drive_type, "ODD" | "FDD")
        && let Ok(file) = File::open(machine.path(path))
    {
        let _ = file.take(64 * 1024).read_to_end(&mut head);
    }
    head
}

/// Muster's own image runs from memory and mounts nothing, but its name is on the medium: an ISO says so at byte 32768.
fn is_discovery_image(head: &[u8]) -> bool {
    let volume = head.get(32768..).unwrap_or_default();
    volume.get(1..6) == Some(b"CD001") && volume.get(40..56) == Some(b"MUSTER-DISCOVERY")
}

fn partition_types(head: &[u8]) -> String {
    let mut kinds: Vec<String> = partition::read(head)
        .iter()
        .map(|part| partition::kind_name(&part.kind).to_owned())
        .collect();
    kinds.dedup();
    kinds.join(",")
}

/// Devices that are in use, by their kernel names.
struct Mounts {
    used: Vec<String>,
    media: Vec<String>,
}

impl Mounts {
    fn read(machine: &Machine) -> Self {
        let (mut used, mut media) = (Vec::new(), Vec::new());
        for line in machine.text("proc/mounts").lines() {
            let mut words = line.split(' ');
            let (source, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let Some(device) = kernel_name(machine, source) else {
                continue;
            };
            if MEDIA.contains(&target) {
                media.push(device.clone());
            }
            used.push(device);
        }
        let swaps = machine.text("proc/swaps");
        used.extend(
            swaps
                .lines()
                .skip(1)
                .filter_map(|line| kernel_name(machine, line.split_ascii_whitespace().next()?)),
        );
        Self { used, media }
    }
}

/// `/dev/mapper/x` and `/dev/disk/…` are links to what the kernel calls it.
fn kernel_name(machine: &Machine, source: &str) -> Option<String> {
    let rest = source.strip_prefix("/dev/")?;
    if !rest.contains('/') {
        return Some(rest.to_owned());
    }
    Some(
        machine
            .link_name(source)
            .unwrap_or_else(|| rest.replace('/', "!")),
    )
}
