//! Inventory, processors, memory and the host's name.

use super::facts::{ClusterFacts, Subject};
use super::finding::Outcome;
use crate::host::hostname;
use crate::inventory::Inventory;
use crate::requirements::{MEMINFO_SLACK_PERCENT, MEMORY_SLACK_MIB};

pub(super) const NO_INVENTORY: &str = "for the host's inventory";

/// Runs the rest of a check once there is an inventory to look at.
pub(super) fn with_inventory<'a>(
    subject: &Subject<'a>,
    judge: impl FnOnce(&'a Inventory) -> Outcome,
) -> Outcome {
    subject
        .inventory
        .map_or_else(|| Outcome::wait(NO_INVENTORY), judge)
}

pub(super) fn has_inventory(subject: &Subject<'_>) -> Outcome {
    match subject.inventory {
        Some(_) => Outcome::pass("The host has reported its inventory."),
        None if subject.inventory_broken => Outcome::fail(
            "The hub cannot read the host's inventory; boot the host from a current discovery image.",
        ),
        None => Outcome::fail(
            "The host has not sent its inventory yet. The hub asks for it at every poll. If it does not come, read the agent's log on the host.",
        ),
    }
}

fn truncated(subject: &Subject<'_>, extent: &str, bad: &str) -> Outcome {
    with_inventory(subject, |inventory| {
        let reasons = inventory
            .truncation
            .as_ref()
            .map(|cut| cut.reasons.join(", "))
            .unwrap_or_default();
        let bad = if reasons.is_empty() {
            bad.to_owned()
        } else {
            format!("{bad} Left out: {reasons}.")
        };
        Outcome::judge(!inventory.is_cut(extent), "The inventory is complete.", bad)
    })
}

pub(super) fn not_partially_truncated(subject: &Subject<'_>) -> Outcome {
    truncated(
        subject,
        "partial",
        "The inventory was too large and parts of it are missing.",
    )
}

pub(super) fn not_fully_truncated(subject: &Subject<'_>) -> Outcome {
    truncated(
        subject,
        "full",
        "The inventory was too large to send; detach devices the cluster does not need and reboot the host.",
    )
}

/// What is missing of the processors, if anything.
pub(super) fn cpu_gap(inventory: &Inventory, needed: i64) -> Option<String> {
    match inventory.cpu_count() {
        Some(has) if has >= needed => None,
        Some(has) => Some(format!(
            "{needed} CPU cores are needed, the host has {has} ({} missing)",
            needed - has
        )),
        None => Some(format!(
            "{needed} CPU cores are needed, the host reports none; reboot it to detect them again"
        )),
    }
}

fn slack_mib(inventory: &Inventory, needed: i64, meminfo_counts: bool) -> i64 {
    let method = inventory
        .memory
        .as_ref()
        .map_or("", |memory| memory.physical_bytes_method.as_str());
    let meminfo = if meminfo_counts && method == "meminfo" {
        needed * MEMINFO_SLACK_PERCENT / 100
    } else {
        0
    };
    MEMORY_SLACK_MIB + meminfo
}

/// What is missing of the memory, if anything. The slack is not mentioned: people buy whole modules.
pub(super) fn memory_gap(inventory: &Inventory, needed: i64, meminfo_counts: bool) -> Option<String> {
    let Some(bytes) = inventory.physical_bytes() else {
        return Some(format!(
            "{needed} MiB of memory are needed, the host reports none; reboot it to detect it again"
        ));
    };
    if bytes >= (needed - slack_mib(inventory, needed, meminfo_counts)) << 20 {
        return None;
    }
    let has = bytes >> 20;
    Some(format!(
        "{needed} MiB of memory are needed, the host has {has} MiB ({} MiB missing)",
        needed - has
    ))
}

fn gap(found: Option<String>, good: String, next: &str) -> Outcome {
    match found {
        None => Outcome::pass(good),
        Some(gap) => Outcome::fail(format!("{gap}; {next}")),
    }
}

pub(super) fn least_cpu(subject: &Subject<'_>) -> Outcome {
    let needed = subject.requirements.roles(subject.release()).least_cpu_cores();
    with_inventory(subject, |inventory| {
        gap(
            cpu_gap(inventory, needed),
            "Enough CPU cores for some role.".into(),
            "use a larger machine.",
        )
    })
}

pub(super) fn least_memory(subject: &Subject<'_>) -> Outcome {
    let needed = subject.requirements.roles(subject.release()).least_ram_mib();
    with_inventory(subject, |inventory| {
        gap(
            memory_gap(inventory, needed, true),
            "Enough memory for some role.".into(),
            "add memory.",
        )
    })
}

pub(super) fn cpu_for_role(subject: &Subject<'_>) -> Outcome {
    let role = subject.profile().as_str();
    with_inventory(subject, |inventory| {
        let found = cpu_gap(inventory, subject.required().cpu_cores);
        gap(
            found,
            format!("Enough CPU cores for role {role}."),
            &format!("choose another role than {role} or a larger machine."),
        )
    })
}

pub(super) fn memory_for_role(subject: &Subject<'_>) -> Outcome {
    let role = subject.profile().as_str();
    with_inventory(subject, |inventory| {
        let found = memory_gap(inventory, subject.required().ram_mib, false);
        gap(
            found,
            format!("Enough memory for role {role}."),
            &format!("choose another role than {role} or add memory."),
        )
    })
}

pub(super) fn hostname_valid(subject: &Subject<'_>) -> Outcome {
    if subject.inventory.is_none() && subject.given_name.is_none_or(str::is_empty) {
        return Outcome::fail("The host's name is not known yet; it comes with the inventory, or set one.");
    }
    let name = subject.name();
    match hostname::validate(name) {
        Ok(()) => Outcome::pass(format!("Hostname {name} can be used.")),
        Err(why) => Outcome::fail(format!(
            "Hostname {name:?} cannot be used: {why}. Set another name for this host."
        )),
    }
}

pub(super) fn hostname_unique(subject: &Subject<'_>, _: &ClusterFacts) -> Outcome {
    with_inventory(subject, |_| {
        let name = subject.name();
        match subject.neighbours.hosts_called(name) {
            0 | 1 => Outcome::pass(format!("No other host of the cluster is called {name}.")),
            several => Outcome::fail(format!(
                "{several} hosts of the cluster are called {name}; give this host another name."
            )),
        }
    })
}
