//! Which disks may be installed to, which one is, and which ones are wiped.

use super::Tenant;
use crate::inventory::{Disk, Interface, Inventory};
use crate::requirements::at_least;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
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
fn names(disk: &Disk) -> impl Iterator<Item = Cow<'_, str>> {
    [&disk.by_id, &disk.id, &disk.by_path, &disk.path]
        .into_iter()
        .filter(|name| !name.is_empty())
        .map(|name| Cow::from(name.as_str()))
        .chain([Cow::from(device(disk))])
}

/// The first disk of that name.
pub fn find<'a>(inventory: &'a Inventory, wanted: &str) -> Option<&'a Disk> {
    let named = |disk: &&Disk| names(disk).any(|name| name == wanted);
    inventory.disks.iter().find(named)
}

/// The disks of an inventory under all their names, for those who look for many.
pub struct ByName<'a>(HashMap<Cow<'a, str>, &'a Disk>);

impl<'a> ByName<'a> {
    pub fn of(inventory: &'a Inventory) -> Self {
        let mut disks = HashMap::new();
        for disk in &inventory.disks {
            for name in names(disk) {
                disks.entry(name).or_insert(disk);
            }
        }
        Self(disks)
    }

    /// The same disk that [`find`] finds.
    pub fn find(&self, wanted: &str) -> Option<&'a Disk> {
        self.0.get(wanted).copied()
    }
}

/// Decides anew which disks may be installed to. `release` is the cluster's version, unknown for free hosts.
pub fn judge(inventory: &mut Inventory, least_gb: i64, release: Option<&str>) {
    let judge = Judge::of(inventory);
    let verdicts: Vec<Vec<String>> = inventory
        .disks
        .iter()
        .map(|disk| judge.objections(disk, least_gb, release))
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

/// What else an inventory tells about its disks, gathered once: each disk would have to look through all of it.
pub struct Judge<'a> {
    pub inventory: &'a Inventory,
    multipath: HashMap<&'a str, Paths<'a>>,
    /// Of the addresses that iSCSI drives are reached from, those on an interface of the default route.
    on_default_route: HashSet<IpAddr>,
}

/// What kind the paths of a multipath device are.
#[derive(Clone, Copy)]
enum Paths<'a> {
    /// The agent did not list them: nothing speaks against the device.
    Unknown,
    All(&'a str),
    Mixed,
}

impl<'a> Paths<'a> {
    fn and(self, kind: &'a str) -> Self {
        match self {
            Self::Unknown => Self::All(kind),
            Self::All(first) if first == kind => self,
            Self::All(_) | Self::Mixed => Self::Mixed,
        }
    }

    fn agree(self) -> bool {
        match self {
            Self::Unknown | Self::All("FC" | "iSCSI") => true,
            Self::All(_) | Self::Mixed => false,
        }
    }
}

impl<'a> Judge<'a> {
    pub fn of(inventory: &'a Inventory) -> Self {
        Self {
            inventory,
            multipath: multipath(inventory),
            on_default_route: on_default_route(inventory),
        }
    }

    /// Whether a disk could be installed to for a role that needs `least_gb`, whatever was decided for it before.
    pub fn fits(&self, disk: &Disk, least_gb: i64, release: Option<&str>) -> bool {
        disk.installation_eligibility
            .not_eligible_reasons
            .iter()
            .all(|reason| is_ours(reason))
            && self.objections(disk, least_gb, release).is_empty()
    }

    /// What stands against a disk, apart from what its agent said, for a role that needs `least_gb`.
    pub fn objections(&self, disk: &Disk, least_gb: i64, release: Option<&str>) -> Vec<String> {
        let mut reasons = Vec::new();
        if disk.size_bytes < least_gb * GB {
            reasons.push(format!(
                "{TOO_SMALL} it has {} GB, {least_gb} GB are needed.",
                disk.size_bytes / GB
            ));
        }
        reasons.extend(wrong_kind(self.inventory, disk, release));
        if matches!(disk.drive_type.as_str(), "FC" | "iSCSI") && self.is_path(disk) {
            reasons.push(format!("{PATH_OF_MULTIPATH} choose that device instead."));
        }
        if disk.drive_type == "Multipath" && !self.paths_agree(disk) {
            reasons.push(format!(
                "{MIXED_PATHS} its paths must be all Fibre Channel or all iSCSI."
            ));
        }
        if disk.drive_type == "iSCSI" {
            reasons.extend(self.iscsi(disk));
        }
        reasons
    }

    fn is_path(&self, disk: &Disk) -> bool {
        holders(disk).any(|name| self.multipath.contains_key(name))
    }

    fn paths_agree(&self, multipath: &Disk) -> bool {
        self.multipath
            .get(multipath.name.as_str())
            .is_none_or(|paths| paths.agree())
    }

    fn iscsi(&self, disk: &Disk) -> Option<String> {
        let Some(address) = iscsi_address(disk) else {
            return Some(format!(
                "{ISCSI} the address the host reaches it from is unknown."
            ));
        };
        self.on_default_route.contains(&address).then(|| {
            format!(
                "{ISCSI} it is reached through the interface of the default route; give it its own network."
            )
        })
    }
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

/// Multipath devices by their names. Paths name the device that holds them.
fn multipath(inventory: &Inventory) -> HashMap<&str, Paths<'_>> {
    let devices = inventory
        .disks
        .iter()
        .filter(|disk| disk.drive_type == "Multipath");
    let mut known: HashMap<&str, Paths<'_>> = devices
        .map(|device| (device.name.as_str(), Paths::Unknown))
        .collect();
    for disk in &inventory.disks {
        for holder in holders(disk) {
            if let Some(paths) = known.get_mut(holder) {
                *paths = paths.and(&disk.drive_type);
            }
        }
    }
    known
}

fn iscsi_address(disk: &Disk) -> Option<IpAddr> {
    disk.iscsi.as_ref()?.host_ip_address.parse().ok()
}

fn on_default_route(inventory: &Inventory) -> HashSet<IpAddr> {
    let drives = inventory.disks.iter().filter(|disk| disk.drive_type == "iSCSI");
    let asked: HashSet<IpAddr> = drives.filter_map(iscsi_address).collect();
    if asked.is_empty() {
        return asked;
    }
    let defaults = inventory.routes.iter().filter(|route| route.is_default());
    let routed: HashSet<&str> = defaults.map(|route| route.interface.as_str()).collect();
    let interfaces = inventory
        .interfaces
        .iter()
        .filter(|interface| routed.contains(interface.name.as_str()));
    let addresses = interfaces.flat_map(Interface::addresses).map(|net| net.addr());
    addresses.filter(|address| asked.contains(address)).collect()
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
    let disks = ByName::of(inventory);
    // What is skipped anew goes to the end of the list.
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, id) in current.iter().enumerate() {
        places.entry(id.clone()).or_insert(place);
    }
    for (place, (wanted, skip)) in (current.len()..).zip(changes) {
        let id = match (disks.find(wanted), skip) {
            (Some(disk), _) => identity(disk),
            // A disk that is gone can always be taken off the list.
            (None, false) if places.contains_key(wanted) => wanted.clone(),
            (None, _) => return Err(wanted.clone()),
        };
        if *skip {
            places.insert(id, place);
        } else {
            places.remove(&id);
        }
    }
    let mut list: Vec<(String, usize)> = places.into_iter().collect();
    list.sort_by_key(|(_, place)| *place);
    Ok(list.into_iter().map(|(id, _)| id).collect())
}

#[cfg(test)]
mod tests;
