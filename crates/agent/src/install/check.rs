//! Everything that must be true before a disk is written to.

use super::report::{Ended, patiently};
use crate::collect::{self, find_disk};
use crate::steps::Context;
use anyhow::{Context as _, anyhow, ensure};
use muster_contract::v2::agent::args::InstallArgs;
use muster_contract::v2::agent::inventory::{Disk, Inventory};
use muster_contract::v2::host::HostView;
use muster_vocabulary::HostStatus;

/// The disk to write to, when the hub still wants it and it is the one that was planned. Asked when the order comes,
/// and again in the moment before the first byte: the hub may have changed its mind, and disks may have changed their
/// names. The installation waits for a hub that does not answer; only its answer can end an installation.
pub fn disk(context: &Context, order: &InstallArgs) -> Result<Disk, Ended> {
    let ids = context.ids;
    if order.host_id != ids.host || order.infra_env_id != ids.infra_env {
        return Err(Ended::Failed(anyhow!("the order is for another host")));
    }
    let host = patiently(context, false, || context.hub.host(ids)).map_err(|ended| match ended {
        Ended::Failed(error) => Ended::Failed(error.context("the hub does not confirm the order")),
        unwanted @ Ended::Unwanted(_) => unwanted,
    })?;
    confirm(&host, order)?;
    let here = collect::inventory(&context.machine, 0);
    Ok(choose(&here.disks, &host, order)?)
}

/// The hub may have changed its mind since it gave the order.
pub fn confirm(host: &HostView, order: &InstallArgs) -> anyhow::Result<()> {
    ensure!(
        host.cluster_id == Some(order.cluster_id),
        "this host is no longer bound to the cluster of the order"
    );
    ensure!(
        host.status.is(HostStatus::is_writing),
        "the hub does not install this host: it is {}",
        host.status
    );
    Ok(())
}

/// Names such as /dev/sda move between boots, so the disk is compared with the one the hub chose.
pub fn choose(here: &[Disk], host: &HostView, order: &InstallArgs) -> anyhow::Result<Disk> {
    let wanted = &order.boot_device;
    let inventory: Inventory = serde_json::from_str(&host.inventory).unwrap_or_default();
    let planned = find_disk(&inventory.disks, wanted)
        .with_context(|| format!("the hub's inventory of this host has no disk {wanted}"))?;
    let chosen = &host.installation_disk_id;
    ensure!(
        chosen.is_empty() || *chosen == planned.id,
        "the order names {wanted}, but the disk chosen for this host is {chosen}"
    );
    let disk = find_disk(here, wanted).with_context(|| format!("this machine has no disk {wanted}"))?;
    for (what, planned, found) in [
        ("serial number", &planned.serial, &disk.serial),
        ("world wide name", &planned.wwn, &disk.wwn),
    ] {
        ensure!(
            planned == found,
            "{wanted} is another disk than planned: its {what} is {found:?} instead of {planned:?}"
        );
    }
    ensure!(
        planned.size_bytes == disk.size_bytes,
        "{wanted} is another disk than planned: it has {} bytes instead of {}",
        disk.size_bytes,
        planned.size_bytes
    );
    ensure!(
        disk.holders.is_empty(),
        "{wanted} is part of {}, which runs",
        disk.holders
    );
    let reasons = &disk.installation_eligibility.not_eligible_reasons;
    ensure!(
        reasons.is_empty(),
        "{wanted} cannot be written to: {}",
        reasons.join("; ")
    );
    Ok(disk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_contract::v2::agent::inventory::DiskEligibility;
    use uuid::Uuid;

    fn disk_here(serial: &str) -> Disk {
        Disk {
            id: "/dev/disk/by-id/x".into(),
            path: "/dev/sda".into(),
            serial: serial.into(),
            size_bytes: 1000,
            installation_eligibility: DiskEligibility {
                eligible: true,
                ..DiskEligibility::default()
            },
            ..Disk::default()
        }
    }

    fn host() -> HostView {
        let inventory = Inventory {
            disks: vec![disk_here("S1")],
            ..Inventory::default()
        };
        HostView {
            cluster_id: Some(Uuid::from_u128(1)),
            status: HostStatus::Installing.into(),
            inventory: serde_json::to_string(&inventory).unwrap(),
            installation_disk_id: "/dev/disk/by-id/x".into(),
            ..HostView::default()
        }
    }

    fn order() -> InstallArgs {
        InstallArgs {
            cluster_id: Uuid::from_u128(1),
            boot_device: "/dev/sda".into(),
            ..InstallArgs::default()
        }
    }

    fn refusal(here: &Disk, host: &HostView) -> String {
        choose(std::slice::from_ref(here), host, &order())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_planned_disk_is_taken() {
        assert_eq!(
            choose(&[disk_here("S1")], &host(), &order()).unwrap().path,
            "/dev/sda"
        );
    }

    #[test]
    fn another_serial_number_is_refused() {
        assert!(refusal(&disk_here("S2"), &host()).contains("serial number is \"S2\""));
        assert!(refusal(&disk_here(""), &host()).contains("another disk"));
    }

    #[test]
    fn foreign_used_and_resized_disks_are_refused() {
        let held = Disk {
            holders: "dm-0".into(),
            ..disk_here("S1")
        };
        assert!(refusal(&held, &host()).contains("dm-0"));
        let mut used = disk_here("S1");
        used.installation_eligibility.not_eligible_reasons = vec!["Disk is in use".into()];
        assert!(refusal(&used, &host()).contains("in use"));
        let grown = Disk {
            size_bytes: 2000,
            ..disk_here("S1")
        };
        assert!(refusal(&grown, &host()).contains("2000 bytes"));
        let other = HostView {
            installation_disk_id: "/dev/disk/by-id/y".into(),
            ..host()
        };
        assert!(refusal(&disk_here("S1"), &other).contains("chosen"));
        let gone = HostView {
            inventory: String::new(),
            ..host()
        };
        assert!(refusal(&disk_here("S1"), &gone).contains("no disk"));
    }

    #[test]
    fn a_host_that_was_taken_away_is_not_written_to() {
        let free = HostView {
            cluster_id: None,
            ..host()
        };
        assert!(
            confirm(&free, &order())
                .unwrap_err()
                .to_string()
                .contains("no longer bound")
        );
        let moved = HostView {
            cluster_id: Some(Uuid::from_u128(2)),
            ..host()
        };
        assert!(confirm(&moved, &order()).is_err());
        let cancelled = HostView {
            status: HostStatus::Cancelled.into(),
            ..host()
        };
        assert!(
            confirm(&cancelled, &order())
                .unwrap_err()
                .to_string()
                .contains("cancelled")
        );
        let going = HostView {
            status: HostStatus::InstallingInProgress.into(),
            ..host()
        };
        assert!(confirm(&going, &order()).is_ok());
    }
}
