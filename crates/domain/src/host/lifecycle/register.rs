//! An agent registers: which of the 18 phases it finds its host in decides what that means.

use super::super::event::ClusterState;
use super::super::{Gates, Host, Kind, Logs, Media, Phase, Progress, Report, Role, Stage, rules};
use super::{Around, Decision, Draft, lending, stay};
use crate::journal::Severity;
use crate::refusal::Refused;

/// What a new boot of the discovery image makes stale.
const STALE_AFTER_BOOT: [Report; 3] = [Report::Inventory, Report::ImagesStatus, Report::NtpSources];

pub(super) fn registered(host: &Host, agent_version: &str, around: &Around<'_>) -> Result<Decision, Refused> {
    let rebooted = host.progress.stage == Some(Stage::Rebooting);
    Ok(match host.phase {
        Phase::Discovery | Phase::Binding | Phase::ResetPending | Phase::PrepareFailed => fresh_start(
            host,
            agent_version,
            around,
            "the agent registered and is discovered anew",
        ),
        Phase::Unbinding | Phase::ReturnPending | Phase::Reclaiming | Phase::ReclaimRebooting => fresh_start(
            host,
            agent_version,
            around,
            "the machine runs the discovery image again: it is free",
        ),
        Phase::Preparing | Phase::Prepared => back_before_preparing(host, agent_version, around),
        Phase::Resetting if rebooted => stay(host, "the reboot that the reset waits for is still to come"),
        Phase::Resetting => fresh_start(host, agent_version, around, "reset and discovered anew"),
        Phase::InProgress if boots_wrong_device(host) => wrong_boot(host, around),
        Phase::Installing | Phase::InProgress if around.hub_was_down => {
            stay(host, "the agent lost the hub, not its installation")
        }
        Phase::Installing | Phase::InProgress => unexpected_restart(host, around),
        Phase::Added if boots_wrong_device(host) => wrong_boot(host, around),
        Phase::BootFix | Phase::Added => return Err(boot_from_disk(host)),
        Phase::Failed => {
            let mut draft = Draft::of(host);
            draft.host.registered_at = around.now;
            draft.because("a failed host keeps its agent, for its logs", around)
        }
        Phase::Cancelled => {
            return Err(Refused::try_again(
                "installation-cancelled",
                format!("The installation of {} was cancelled.", host.name()),
                "Reset the cluster, or unbind the host, before it registers again.",
            ));
        }
        Phase::Installed => {
            return Err(Refused::try_again(
                "installed-and-bound",
                format!("{} is installed and part of a cluster.", host.name()),
                "Boot it from its disk, or unbind it first to return it to the free pool.",
            ));
        }
    })
}

/// A machine nobody knows yet. Where its image belongs to a cluster, it joins that one at once, in the role that such a
/// cluster has for it.
pub(super) fn arrived(host: &Host, agent_version: &str, around: &Around<'_>) -> Result<Decision, Refused> {
    if host.revision > 0 {
        return registered(host, agent_version, around);
    }
    let mut draft = Draft::of(host);
    draft.host.agent_version = agent_version.into();
    if let Some(cluster) = around.cluster.filter(|_| host.cluster.is_some()) {
        join(&mut draft.host, cluster);
    }
    let text = format!("Host {} registered.", draft.host.name());
    let entry = draft
        .host
        .entry("host_registration_succeeded", Severity::Info, text);
    draft.journal.push(entry);
    Ok(draft.because("registered for the first time", around))
}

fn join(host: &mut Host, cluster: ClusterState) {
    if cluster.adds_hosts {
        host.kind = Kind::AddToExistingClusterHost;
        host.role = Role::Worker;
        host.suggested_role = Some(Role::Worker);
        host.tenant.machine_config_pool = Role::Worker.word().into();
    } else if cluster.single_node {
        host.role = Role::Master;
        host.suggested_role = Some(Role::Master);
        host.bootstrap = true;
    }
}

fn fresh_start(host: &Host, agent_version: &str, around: &Around<'_>, why: &'static str) -> Decision {
    let mut draft = Draft::of(host).enter(Phase::Discovery, around);
    draft.host.since = around.now;
    arrive(&mut draft.host, agent_version, around);
    draft.host.progress = Progress::default();
    draft.host.connection_timed_out = false;
    draft.host.bootstrap = false;
    draft.host.logs = Logs::default();
    draft.host.gates = Gates::default();
    draft.host.digest = super::super::Digest::default();
    if rules::is_coming_back(host) {
        // Whatever was written on it or reported on its way, nothing of it reaches the next borrower.
        lending::clear(&mut draft.host);
        draft.forget.extend(lending::TENANT_REPORTS);
    } else {
        draft.forget.extend(STALE_AFTER_BOOT);
    }
    if let Some(returned) = draft.host.returning.take() {
        let mut receipt = draft
            .host
            .entry("host_returned", Severity::Info, returned.receipt(around.now));
        receipt.props = returned.props(around.now);
        draft.journal.push(receipt);
    }
    draft.because(why, around)
}

/// The tests before the installation start over, but the hardware is known already.
fn back_before_preparing(host: &Host, agent_version: &str, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(host).enter(Phase::Discovery, around);
    arrive(&mut draft.host, agent_version, around);
    draft.host.progress = Progress::default();
    draft.host.logs = Logs::default();
    draft.forget.extend([Report::ImagesStatus, Report::NtpSources]);
    draft.because("the agent restarted while preparing", around)
}

fn arrive(host: &mut Host, agent_version: &str, around: &Around<'_>) {
    if !agent_version.is_empty() {
        host.agent_version = agent_version.into();
    }
    host.registered_at = around.now;
    host.checked_in_at = around.now;
    host.connected = true;
    if host.media == Media::Disconnected {
        host.media = Media::Connected;
    }
    let adds = around.cluster.is_some_and(|cluster| cluster.adds_hosts) && host.cluster.is_some();
    host.kind = if adds {
        Kind::AddToExistingClusterHost
    } else {
        Kind::Host
    };
}

fn boots_wrong_device(host: &Host) -> bool {
    let stage = host.progress.stage;
    stage == Some(Stage::Rebooting)
        || (host.kind == Kind::AddToExistingClusterHost && stage == Some(Stage::Done))
}

fn wrong_boot(host: &Host, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(host).enter(Phase::BootFix, around);
    draft.host.registered_at = around.now;
    draft.host.checked_in_at = around.now;
    // It is another boot than the one in which the installer ran.
    draft.host.installer_may_run = false;
    draft
        .saying(format!(
            "The host booted the discovery image although {} was just installed; set that disk first in the boot order and reboot.",
            disk_name(host)
        ))
        .because("the machine booted the discovery image instead of its disk", around)
}

fn unexpected_restart(host: &Host, around: &Around<'_>) -> Decision {
    let stage = host
        .progress
        .stage
        .map_or("the start of the installation", Stage::word);
    let mut draft = Draft::of(host).enter(Phase::Failed, around);
    draft.host.registered_at = around.now;
    draft
        .saying(format!(
            "The host restarted unexpectedly during \"{stage}\". Reset the cluster to try again, or unbind the host."
        ))
        .because("the machine restarted in the middle of its installation", around)
}

fn boot_from_disk(host: &Host) -> Refused {
    Refused::try_again(
        "boot-from-disk",
        format!(
            "{} must boot from {}, not from the discovery image.",
            host.name(),
            disk_name(host)
        ),
        "Set the disk first in the boot order and reboot, or unbind the host to return it to the free pool.",
    )
}

fn disk_name(host: &Host) -> String {
    let tenant = &host.tenant;
    let names = [&tenant.installation_disk_label, &tenant.installation_disk_path];
    match names.into_iter().find(|name| !name.is_empty()) {
        None => "its installation disk".into(),
        Some(name) => format!("its installation disk {name}"),
    }
}
