//! Which disks may be installed to, which one is, and which ones are wiped.

use super::Tenant;
use crate::inventory::{Disk, Inventory};
use crate::requirements::at_least;
use std::net::IpAddr;

pub const GB: i64 = 1_000_000_000;

// Reasons of our own start with one of these, so that they can be taken back when circumstances change.
// Every other reason came from the agent and stays.
const TOO_SMALL: &str = "Too small for installation:";
const WRONG_KIND: &str = "Cannot install to a drive of this type:";
const PATH_OF_MULTIPATH: &str = "Belongs to a multipath device:";
const MIXED_PATHS: &str = "Multipath device cannot be used:";
const ISCSI: &str = "iSCSI drive cannot be used:";
const OURS: [&str; 5] = [TOO_SMALL, WRONG_KIND, PATH_OF_MULTIPATH, MIXED_PATHS, ISCSI];

/// The name under which a disk is chosen, skipped and formatted: the most stable one it has.
pub fn identity(disk: &Disk) -> String {
    [&disk.by_id, &disk.by_path]
        .into_iter()
        .find(|name| !name.is_empty())
        .cloned()
        .unwrap_or_else(|| device(disk))
}

fn device(disk: &Disk) -> String {
    format!("/dev/{}", disk.name)
}

/// The device path shown to people: `/dev/sda`.
pub fn path(disk: &Disk) -> String {
    if disk.path.is_empty() {
        device(disk)
    } else {
        disk.path.clone()
    }
}

/// The disk as a person finds it in the firmware's list: `MODEL SERIAL (sda, /dev/disk/by-id/…)`.
pub fn label(disk: &Disk) -> String {
    let known = |text: &String| !text.is_empty();
    let maker: Vec<&str> = [&disk.model, &disk.serial]
        .into_iter()
        .filter(|text| known(text))
        .map(String::as_str)
        .collect();
    let id = identity(disk);
    let names: Vec<&str> = [&disk.name, &id]
        .into_iter()
        .filter(|text| known(text))
        .map(String::as_str)
        .collect();
    match maker.as_slice() {
        [] => names.join(", "),
        maker => format!("{} ({})", maker.join(" "), names.join(", ")),
    }
}

/// People and clients name disks in several ways.
pub fn find<'a>(inventory: &'a Inventory, wanted: &str) -> Option<&'a Disk> {
    let named = |disk: &&Disk| {
        !wanted.is_empty()
            && (identity(disk) == wanted
                || disk.id == wanted
                || disk.by_path == wanted
                || disk.path == wanted
                || device(disk) == wanted)
    };
    inventory.disks.iter().find(named)
}

/// Decides anew which disks may be installed to. `release` is the cluster's version, unknown for free hosts.
pub fn judge(inventory: &mut Inventory, least_gb: i64, release: Option<&str>) {
    let verdicts: Vec<Vec<String>> = inventory
        .disks
        .iter()
        .map(|disk| objections(inventory, disk, least_gb, release))
        .collect();
    for (disk, ours) in inventory.disks.iter_mut().zip(verdicts) {
        let eligibility = &mut disk.installation_eligibility;
        eligibility.not_eligible_reasons.retain(|reason| !is_ours(reason));
        eligibility.not_eligible_reasons.extend(ours);
        eligibility.eligible = eligibility.not_eligible_reasons.is_empty();
    }
}

fn is_ours(reason: &str) -> bool {
    OURS.iter().any(|start| reason.starts_with(start))
}

/// Whether a disk could be installed to for a role that needs `least_gb`, whatever was decided for it before.
pub fn fits(inventory: &Inventory, disk: &Disk, least_gb: i64, release: Option<&str>) -> bool {
    disk.installation_eligibility
        .not_eligible_reasons
        .iter()
        .all(|reason| is_ours(reason))
        && objections(inventory, disk, least_gb, release).is_empty()
}

/// What stands against a disk, apart from what its agent said, for a role that needs `least_gb`.
pub fn objections(inventory: &Inventory, disk: &Disk, least_gb: i64, release: Option<&str>) -> Vec<String> {
    let mut reasons = Vec::new();
    if disk.size_bytes < least_gb * GB {
        reasons.push(format!(
            "{TOO_SMALL} it has {} GB, {least_gb} GB are needed.",
            disk.size_bytes / GB
        ));
    }
    reasons.extend(wrong_kind(inventory, disk, release));
    if matches!(disk.drive_type.as_str(), "FC" | "iSCSI") && is_path(inventory, disk) {
        reasons.push(format!("{PATH_OF_MULTIPATH} choose that device instead."));
    }
    if disk.drive_type == "Multipath" && !paths_agree(inventory, disk) {
        reasons.push(format!(
            "{MIXED_PATHS} its paths must be all Fibre Channel or all iSCSI."
        ));
    }
    if disk.drive_type == "iSCSI" {
        reasons.extend(iscsi(inventory, disk));
    }
    reasons
}

fn wrong_kind(inventory: &Inventory, disk: &Disk, release: Option<&str>) -> Option<String> {
    let reached = |wanted| release.is_none_or(|release| at_least(release, wanted));
    let architecture = inventory.architecture();
    let fits = match disk.drive_type.as_str() {
        "HDD" | "SSD" | "Multipath" => true,
        "RAID" => reached("4.14"),
        "iSCSI" => reached("4.15"),
        "FC" => matches!(architecture, "x86_64" | "s390x"),
        "ECKD" | "ECKD (ESE)" | "FBA" => architecture == "s390x",
        _ => false,
    };
    (!fits).then(|| {
        let kind = if disk.drive_type.is_empty() {
            "unknown"
        } else {
            &disk.drive_type
        };
        match disk.drive_type.as_str() {
            "RAID" => format!("{WRONG_KIND} {kind} needs OpenShift 4.14 or newer."),
            "iSCSI" => format!("{WRONG_KIND} {kind} needs OpenShift 4.15 or newer."),
            _ => format!("{WRONG_KIND} {kind}."),
        }
    })
}

fn holders(disk: &Disk) -> impl Iterator<Item = &str> {
    disk.holders
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

fn is_path(inventory: &Inventory, disk: &Disk) -> bool {
    let multipath = |name: &str| {
        inventory
            .disks
            .iter()
            .any(|other| other.drive_type == "Multipath" && other.name == name)
    };
    holders(disk).any(multipath)
}

fn paths_agree(inventory: &Inventory, multipath: &Disk) -> bool {
    let paths = inventory
        .disks
        .iter()
        .filter(|disk| holders(disk).any(|name| name == multipath.name));
    let mut kinds = paths.map(|disk| disk.drive_type.as_str());
    match kinds.next() {
        Some(first @ ("FC" | "iSCSI")) => kinds.all(|kind| kind == first),
        Some(_) => false,
        // The agent did not list the paths: nothing speaks against the device.
        None => true,
    }
}

fn iscsi(inventory: &Inventory, disk: &Disk) -> Option<String> {
    let address = disk
        .iscsi
        .as_ref()
        .and_then(|iscsi| iscsi.host_ip_address.parse::<IpAddr>().ok());
    let Some(address) = address else {
        return Some(format!(
            "{ISCSI} the address the host reaches it from is unknown."
        ));
    };
    default_route_addresses(inventory).contains(&address).then(|| {
        format!("{ISCSI} it is reached through the interface of the default route; give it its own network.")
    })
}

fn default_route_addresses(inventory: &Inventory) -> Vec<IpAddr> {
    let routed = |name: &str| {
        inventory
            .routes
            .iter()
            .any(|route| route.is_default() && route.interface == name)
    };
    let interfaces = inventory
        .interfaces
        .iter()
        .filter(|interface| routed(&interface.name));
    interfaces
        .flat_map(|interface| interface.addresses().map(|net| net.addr()).collect::<Vec<_>>())
        .collect()
}

/// Eligible disks, the most suitable first.
pub fn eligible(inventory: &Inventory) -> Vec<&Disk> {
    let mut disks: Vec<&Disk> = inventory
        .disks
        .iter()
        .filter(|disk| disk.installation_eligibility.eligible)
        .collect();
    disks.sort_by(|a, b| preference(a).cmp(&preference(b)));
    disks
}

/// Disks the firmware boots from come first; NVMe is kept for data; then the cheapest kind, the smallest, the
/// first on its controller.
fn preference(disk: &Disk) -> (bool, bool, &str, i64, &str) {
    (
        !disk.bootable,
        disk.name.starts_with("nvme"),
        &disk.drive_type,
        disk.size_bytes,
        &disk.hctl,
    )
}

/// The disk to install to: the current one while it may be used, else the most suitable.
pub fn choose<'a>(inventory: &'a Inventory, current: &str) -> Option<&'a Disk> {
    let disks = eligible(inventory);
    disks
        .iter()
        .find(|disk| !current.is_empty() && identity(disk) == current)
        .or(disks.first())
        .copied()
}

/// Notes the disk to install to, under all its names.
pub fn note(tenant: &mut Tenant, disk: Option<&Disk>) {
    tenant.installation_disk_id = disk.map(identity).unwrap_or_default();
    tenant.installation_disk_path = disk.map(path).unwrap_or_default();
    tenant.installation_disk_label = disk.map(label).unwrap_or_default();
}

/// The owner takes the choice back: the disk follows the inventory again. One that nobody chose stays.
pub fn release(tenant: &mut Tenant, inventory: &Inventory) {
    if std::mem::take(&mut tenant.disk_chosen) {
        note(tenant, choose(inventory, ""));
    }
}

/// Disks whose boot sectors would compete with the new system's; they are wiped during installation.
pub fn to_be_formatted(inventory: &Inventory) -> Vec<String> {
    let wiped = |disk: &&Disk| {
        disk.bootable
            && !disk.removable
            && !disk.name.starts_with("mmcblk")
            && !disk.is_installation_media
            && !matches!(disk.drive_type.as_str(), "FC" | "iSCSI" | "LVM" | "Multipath")
    };
    inventory.disks.iter().filter(wiped).map(identity).collect()
}

/// The skip list after a person's changes (`true` = leave the disk alone). The error names a disk the host does
/// not have.
pub fn skip_list(
    current: &[String],
    changes: &[(String, bool)],
    inventory: &Inventory,
) -> Result<Vec<String>, String> {
    let mut list = current.to_vec();
    for (wanted, skip) in changes {
        let id = match (find(inventory, wanted), skip) {
            (Some(disk), _) => identity(disk),
            // A disk that is gone can always be taken off the list.
            (None, false) if list.contains(wanted) => wanted.clone(),
            (None, _) => return Err(wanted.clone()),
        };
        list.retain(|held| *held != id);
        if *skip {
            list.push(id);
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests;
