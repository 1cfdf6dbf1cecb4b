//! What may be done with a host in which state, for everything that does not move its phase.

use super::{Host, Phase, Role, Route};
use crate::checks::Installation;
use crate::cluster::{self, Cluster};
use crate::refusal::Refused;

/// The phases in the few groups that most rules ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseGroup {
    Discovery,
    Binding,
    /// On its way back to the pool.
    Returning,
    Preparing,
    /// Its disk is being written.
    Writing,
    /// The installation waits for a person, or is over.
    Installed,
    Stopped,
}

pub fn group(phase: Phase) -> PhaseGroup {
    match phase {
        Phase::Discovery => PhaseGroup::Discovery,
        Phase::Binding => PhaseGroup::Binding,
        Phase::Unbinding | Phase::ReturnPending | Phase::Reclaiming | Phase::ReclaimRebooting => {
            PhaseGroup::Returning
        }
        Phase::Preparing | Phase::Prepared | Phase::PrepareFailed => PhaseGroup::Preparing,
        Phase::Installing | Phase::InProgress => PhaseGroup::Writing,
        Phase::BootFix | Phase::Installed | Phase::Added => PhaseGroup::Installed,
        Phase::Failed | Phase::Cancelled | Phase::Resetting | Phase::ResetPending => PhaseGroup::Stopped,
    }
}

/// With its installation a cluster gives every host a role. Leaving the choice open does not take it away again: without
/// one the host would never follow.
pub fn has_role_for_good(host: &Host, cluster: Option<&Cluster>) -> bool {
    let begun = cluster.is_some_and(|cluster| cluster.phase == cluster::Phase::Preparing);
    begun && host.role != Role::AutoAssign
}

/// Whether a host may go with its pool: nobody has lent it, and nobody waits for it.
pub fn goes_with_pool(host: &Host) -> Result<(), Refused> {
    let reason = match host {
        Host { cluster: Some(_), .. } => "is lent to a cluster",
        Host {
            moving_to: Some(_), ..
        } => "is on its way to a cluster",
        Host { was_lent: true, .. } => "was lent to a cluster before",
        Host {
            installer_may_run: true,
            ..
        } => "may still be written to by an installer",
        _ => return Ok(()),
    };
    Err(Refused::conflict(
        "host-was-lent",
        format!("{} {reason}.", host.name()),
        "Delete it by itself if nobody needs it, or let it return first.",
    ))
}

/// It has left its cluster and not registered since, wherever it got lost meanwhile. Who had it may not know yet.
pub fn is_coming_back(host: &Host) -> bool {
    group(host.phase) == PhaseGroup::Returning || (host.is_free() && host.returning.is_some())
}

/// Settings are fixed once the installation uses them, and while the host is on its way back. Every way to change one asks
/// here. Those of a free host are for whoever it is lent to next, and go when it comes back from there.
pub fn editable(host: &Host) -> Result<(), Refused> {
    if is_coming_back(host) {
        return Err(Refused::conflict(
            "host-not-editable",
            format!(
                "{} is on its way back to the free pool ({}): you cannot change its settings now.",
                host.name(),
                host.status().word()
            ),
            "Change them when it has registered again.",
        ));
    }
    match group(host.phase) {
        PhaseGroup::Discovery | PhaseGroup::Binding => Ok(()),
        PhaseGroup::Returning
        | PhaseGroup::Preparing
        | PhaseGroup::Writing
        | PhaseGroup::Installed
        | PhaseGroup::Stopped => Err(Refused::conflict(
            "host-not-editable",
            format!(
                "{} is {}: you cannot change its settings now.",
                host.name(),
                host.status().word()
            ),
            "Change them while the host is being discovered or ready.",
        )),
    }
}

/// Whether there is something to stop when its cluster's installation is cancelled or reset. Hosts to whose disks
/// nothing was done, and is not about to be, stay as they are instead of keeping the others from being stopped.
pub fn takes_part(host: &Host) -> bool {
    match group(host.phase) {
        PhaseGroup::Discovery | PhaseGroup::Binding | PhaseGroup::Returning => false,
        PhaseGroup::Preparing | PhaseGroup::Writing | PhaseGroup::Installed => true,
        PhaseGroup::Stopped => host.phase != Phase::ResetPending,
    }
}

/// There is an installation to stop: its last tests run, its disk is being written, or a person must fix its boot order.
pub fn is_being_installed(host: &Host) -> bool {
    matches!(group(host.phase), PhaseGroup::Preparing | PhaseGroup::Writing) || host.phase == Phase::BootFix
}

/// A machine whose disk is being written must not be forgotten half-way: its installation is cancelled first, with its
/// cluster. One that joins a cluster that runs is stopped as it goes: there is nothing else that could be cancelled.
pub fn deletable(host: &Host, cluster: Option<&Cluster>) -> Result<(), Refused> {
    let stops_with_cluster = cluster.is_some_and(|cluster| cluster.phase.can_be_cancelled());
    match group(host.phase) {
        PhaseGroup::Writing if !stops_with_cluster => Ok(()),
        PhaseGroup::Writing => Err(Refused::conflict(
            "host-is-installing",
            format!("{} is being installed ({}).", host.name(), host.status().word()),
            "Cancel the installation of its cluster first.",
        )),
        PhaseGroup::Discovery
        | PhaseGroup::Binding
        | PhaseGroup::Returning
        | PhaseGroup::Preparing
        | PhaseGroup::Installed
        | PhaseGroup::Stopped => Ok(()),
    }
}

/// Its installer runs beside an agent that the hub can still tell to stop it.
pub fn is_writing(host: &Host) -> bool {
    group(host.phase) == PhaseGroup::Writing && host.installer_may_run && !host.agent_is_gone()
}

/// A late inventory of a host that must register again says nothing about what it registers as; one that arrives while
/// the last tests run must not change what they are about.
pub fn takes_inventory(host: &Host) -> bool {
    !is_coming_back(host) && matches!(host.phase, Phase::Discovery | Phase::InProgress)
}

/// Other reports are kept as long as the host belongs to whom they were made for. One that got lost on its way back may
/// still answer what the last borrower's agent was asked.
pub fn takes_reports(host: &Host) -> bool {
    let has_registered = match group(host.phase) {
        PhaseGroup::Binding | PhaseGroup::Returning => false,
        PhaseGroup::Discovery
        | PhaseGroup::Preparing
        | PhaseGroup::Writing
        | PhaseGroup::Installed
        | PhaseGroup::Stopped => true,
    };
    has_registered && !is_coming_back(host)
}

/// The tests of disk and images are made for a cluster; a late answer says nothing about a host that left it.
pub fn takes_tests(host: &Host) -> bool {
    takes_reports(host) && !host.is_free()
}

/// An agent that registers again in the middle of the last tests keeps what it reported.
pub fn keeps_reports_on_register(host: &Host) -> bool {
    matches!(host.phase, Phase::Preparing | Phase::Prepared)
}

/// Whether a registration of this host means another boot of its machine: its agent was gone, or silent. An agent that
/// was there a moment ago was told to register again, or restarted.
pub fn has_booted(host: &Host) -> bool {
    let comes_back = host.route().is_some_and(|route| match route {
        Route::Boot | Route::Reclaim => true,
        Route::AgentRestart => false,
    });
    comes_back || !host.connected || host.agent_is_gone() || host.booted_version.is_empty()
}

/// A host that must register again has nothing to be measured by until it does.
pub fn is_measured(host: &Host) -> bool {
    group(host.phase) != PhaseGroup::Binding
}

/// Of a host that was installed with its cluster the findings stay as they were, though its reports still tell of the
/// cluster.
pub fn is_judged(host: &Host) -> bool {
    is_measured(host) && host.phase != Phase::Installed
}

/// How far the installation is, as far as checks care: by what the installer said, also after it was stopped.
pub fn installation(host: &Host) -> Installation {
    match host.progress.stage {
        Some(stage) if stage.agent_is_gone() => Installation::Rebooted,
        Some(_) => Installation::Started,
        None => Installation::NotStarted,
    }
}
