//! Which disk is meant by the hints on a BareMetalHost.

use crate::crd::agent::Disk;
use crate::crd::metal3::RootDeviceHints;
use crate::crd::{Agent, BareMetalHost};

/// No host has it: an installation cannot begin, where another disk would have been overwritten.
const NOT_FOUND: &str = "/dev/not-found-by-hints";

const GIGABYTE: i64 = 1_000_000_000;

pub fn choose(host: &BareMetalHost, agent: &mut Agent) {
    let hints = host.spec.root_device_hints.as_ref().map(RootDeviceHints::given);
    let Some(hints) = hints.filter(|hints| *hints != RootDeviceHints::default()) else {
        return;
    };
    let status = agent.status.as_ref();
    let disks = status.map(|status| status.inventory.disks.as_slice());
    let id = pick(
        disks.unwrap_or_default(),
        &hints,
        &agent.spec.installation_disk_id,
    );
    agent.spec.installation_disk_id = id.unwrap_or(NOT_FOUND).to_owned();
    // Only one of the two can be given.
    agent.spec.installation_disk_path.clear();
}

/// The one chosen before stays as long as it fits.
fn pick<'a>(disks: &'a [Disk], hints: &RootDeviceHints, now: &str) -> Option<&'a str> {
    if !can_be_judged(hints) {
        return None;
    }
    let fitting = disks
        .iter()
        .filter(|disk| disk.installation_eligibility.eligible && fits(disk, hints));
    let (many_ways, one_way): (Vec<&Disk>, Vec<&Disk>) =
        fitting.partition(|disk| disk.drive_type == "Multipath");
    let best = if many_ways.is_empty() { one_way } else { many_ways };
    let chosen = best.iter().find(|disk| disk.id == now).or_else(|| best.first());
    chosen.map(|disk| disk.id.as_str())
}

/// Hints that no inventory answers exclude no disk.
fn can_be_judged(hints: &RootDeviceHints) -> bool {
    let known = RootDeviceHints {
        rest: Default::default(),
        ..hints.clone()
    };
    known != RootDeviceHints::default()
}

fn fits(disk: &Disk, hints: &RootDeviceHints) -> bool {
    let RootDeviceHints {
        device_name,
        hctl,
        model,
        vendor,
        serial_number,
        min_size_gigabytes,
        wwn,
        rotational,
        rest: _,
    } = hints;
    let is = |hint: &Option<String>, value: &str| hint.as_deref().is_none_or(|hint| hint == value);
    let contains =
        |hint: &Option<String>, value: &str| hint.as_deref().is_none_or(|hint| value.contains(hint));
    (is(device_name, &disk.path) || is(device_name, &disk.by_path))
        && is(hctl, &disk.hctl)
        && contains(model, &disk.model)
        && contains(vendor, &disk.vendor)
        && is(serial_number, &disk.serial)
        && is(wwn, &disk.wwn)
        && min_size_gigabytes.is_none_or(|least| disk.size_bytes >= least.saturating_mul(GIGABYTE))
        && rotational.is_none_or(|rotational| rotational == (disk.drive_type == "HDD"))
}
