//! The installation disk: size, kind, speed, encryption, and what must not be wiped.

use super::facts::{ClusterFacts, Subject};
use super::finding::Outcome;
use super::hardware::with_inventory;
use super::reports::DiskSpeed;
use crate::cluster::DiskEncryptionMode;
use crate::host::disks::{ByName, Judge};
use crate::host::{self, disks};
use crate::inventory::{Disk, Inventory};

/// Why no disk can be used, largest first, if none can.
pub(super) fn disk_gap(judge: &Judge<'_>, least_gb: i64, release: Option<&str>) -> Option<String> {
    let all = &judge.inventory.disks;
    if all.iter().any(|disk| judge.fits(disk, least_gb, release)) {
        return None;
    }
    let largest = all.iter().max_by_key(|disk| disk.size_bytes)?;
    let gb = largest.size_bytes / disks::GB;
    let missing = (least_gb - gb).max(0);
    let why = match missing {
        0 => judge
            .objections(largest, least_gb, release)
            .into_iter()
            .chain(
                largest
                    .installation_eligibility
                    .not_eligible_reasons
                    .iter()
                    .cloned(),
            )
            .next()
            .unwrap_or_default(),
        missing => format!("{missing} GB missing"),
    };
    Some(format!(
        "a disk of {least_gb} GB is needed, the largest ({}) has {gb} GB ({why})",
        disks::path(largest)
    ))
}

pub(super) fn least_disks(subject: &Subject<'_>) -> Outcome {
    with_inventory(subject, |inventory| {
        if inventory.disks.is_empty() {
            return Outcome::broken(
                "The host reports no disks at all; check its controller and cabling, then reboot it.",
            );
        }
        match disk_gap(&Judge::of(inventory), subject.least_disk_gb(), subject.release()) {
            None => Outcome::pass("The host has a disk to install to."),
            Some(gap) => Outcome::fail(format!(
                "The host has no disk to install to: {gap}; attach a suitable disk."
            )),
        }
    })
}

fn measured<'a>(subject: &Subject<'a>) -> Option<&'a DiskSpeed> {
    let info = subject.reports.disks_info.get(subject.installation_disk_id)?;
    info.disk_speed.as_ref().filter(|speed| speed.tested)
}

pub(super) fn speed(subject: &Subject<'_>) -> Outcome {
    if subject.installation_disk_id.is_empty() {
        return Outcome::broken("The host has no installation disk to measure; attach a suitable disk.");
    }
    match measured(subject) {
        None if subject.disk_speed_skipped => Outcome::pass(
            "The agent does not measure the installation disk: the disk is kept as it is, or the test is \
             switched off.",
        ),
        None => {
            Outcome::pass("The agent measures the installation disk when the hub prepares the installation.")
        }
        Some(speed) if speed.exit_code == 0 => Outcome::pass("The installation disk is fast enough."),
        Some(speed) => Outcome::fail(format!(
            "The speed test of the installation disk ended with code {}; choose another disk or repeat the test.",
            speed.exit_code
        )),
    }
}

pub(super) fn speed_outcome(subject: &Subject<'_>) -> host::Outcome {
    match measured(subject) {
        // A test that never runs has nothing to say against the disk.
        None if subject.disk_speed_skipped => host::Outcome::Passed,
        None => host::Outcome::Unknown,
        Some(speed) if speed.exit_code == 0 => host::Outcome::Passed,
        Some(_) => host::Outcome::Failed,
    }
}

pub(super) fn installation_disk_not_skipped(subject: &Subject<'_>) -> Outcome {
    let chosen = subject.installation_disk_id;
    let skipped = !chosen.is_empty() && subject.skip_formatting.iter().any(|id| id == chosen);
    Outcome::judge(
        !skipped,
        "The installation disk may be formatted.",
        format!(
            "{chosen} is both the installation disk and on the list of disks to leave alone; change one of them."
        ),
    )
}

pub(super) fn skipped_disks_present(subject: &Subject<'_>) -> Outcome {
    with_inventory(subject, |inventory| {
        let there = ByName::of(inventory);
        let missing = subject.skip_formatting.iter().find(|id| there.find(id).is_none());
        match missing {
            None => Outcome::pass("The host has every disk that must not be formatted."),
            Some(id) => Outcome::fail(format!(
                "{id} must not be formatted but is not in the host any more; attach it or take it off the list."
            )),
        }
    })
}

pub(super) fn vsphere_uuids(subject: &Subject<'_>, _: &ClusterFacts) -> Outcome {
    let Some(inventory) = subject.inventory.filter(|inventory| inventory.is_vmware()) else {
        return Outcome::Silent;
    };
    let (least, release) = (subject.least_disk_gb(), subject.release());
    let judge = Judge::of(inventory);
    let bare = |disk: &&Disk| !disk.has_uuid && judge.fits(disk, least, release);
    match inventory.disks.iter().find(bare) {
        None => Outcome::pass("The virtual disks show their UUIDs."),
        Some(disk) => Outcome::fail(format!(
            "{} has no UUID; set disk.EnableUUID to TRUE in the virtual machine's settings and restart it.",
            disks::path(disk)
        )),
    }
}

pub(super) fn encryption(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    let wish = &cluster.disk_encryption;
    // A running cluster tells its encryption with the ignition it hands out.
    if cluster.day_two || !wish.is_on() {
        return Outcome::Silent;
    }
    with_inventory(subject, |inventory| {
        match (wish.covers(subject.effective_role()), wish.mode.known()) {
            (None, _) => {
                Outcome::wait("for the host's role, on which it depends whether the disk is encrypted")
            }
            (Some(false), _) => Outcome::Silent,
            (Some(true), Some(DiskEncryptionMode::Tang)) => tang(subject),
            (Some(true), Some(DiskEncryptionMode::Tpmv2) | None) => tpm(inventory),
        }
    })
}

fn tpm(inventory: &Inventory) -> Outcome {
    Outcome::judge(
        inventory.tpm_version == "2.0",
        "The host has a TPM 2.0 to encrypt the disk with.",
        "Disk encryption needs a TPM 2.0 and the host has none; enable it in the firmware or turn \
         encryption off.",
    )
}

fn tang(subject: &Subject<'_>) -> Outcome {
    match &subject.reports.tang_connectivity {
        None => Outcome::wait("for the host to try the Tang servers"),
        Some(report) => {
            let cause = match report.error.as_str() {
                "" => String::new(),
                error => format!(" ({error})"),
            };
            Outcome::judge(
                report.is_success,
                "The host reaches the Tang servers.",
                format!(
                    "The host cannot reach every Tang server{cause}; check their addresses and the network."
                ),
            )
        }
    }
}

pub(super) fn no_iscsi_in_machine_cidr(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    let Some(inventory) = subject.inventory else {
        return Outcome::Silent;
    };
    if cluster.day_two {
        return Outcome::Silent;
    }
    if cluster.machine_networks.is_empty() {
        let optional = cluster.user_managed_networking;
        return if optional {
            Outcome::Silent
        } else {
            Outcome::wait("for the machine network to be known")
        };
    }
    let chosen =
        disks::find(inventory, subject.installation_disk_id).filter(|disk| disk.drive_type == "iSCSI");
    let Some(address) = chosen.and_then(|disk| disk.iscsi.as_ref()?.host_ip_address.parse().ok()) else {
        return Outcome::Silent;
    };
    let inside = cluster
        .machine_networks
        .iter()
        .find(|network| network.contains::<&std::net::IpAddr>(&address));
    match inside {
        None => Outcome::pass("The iSCSI drive is reached outside the machine network."),
        Some(network) => Outcome::fail(format!(
            "The installation disk is reached by iSCSI through {address}, inside the machine network {network}; give iSCSI its own network."
        )),
    }
}
