//! Lending and returning: bind, unbind, move, release with the cluster, reclaim.

use super::super::returning::{Return, Route, TakenBack, first_phase, route};
use super::super::{
    Digest, Gates, Host, Kind, Logs, Outcome, Phase, Progress, Report, Role, Status, Tenant, rules,
};
use super::{Around, Decision, Draft, stay};
use crate::ClusterId;
use crate::journal::Severity;
use crate::refusal::Refused;

/// Reports that speak of the cluster or were made on its behalf.
pub(super) const TENANT_REPORTS: [Report; 9] = [
    Report::Inventory,
    Report::Connectivity,
    Report::NtpSources,
    Report::ImagesStatus,
    Report::DomainNameResolutions,
    Report::ApiVipConnectivity,
    Report::TangConnectivity,
    Report::FreeAddresses,
    Report::Validations,
];

pub(super) fn bind(host: &Host, to: ClusterId, around: &Around<'_>) -> Result<Decision, Refused> {
    if let Some(cluster) = host.cluster {
        return Err(Refused::conflict(
            "host-is-bound",
            format!("{} is bound to cluster {cluster} already.", host.name()),
            "Unbind it first, or move it.",
        ));
    }
    match host.phase {
        Phase::Discovery => {}
        Phase::Unbinding | Phase::ReturnPending | Phase::Reclaiming | Phase::ReclaimRebooting => {
            return Err(Refused::conflict(
                "host-is-returning",
                format!(
                    "{} is still on its way back to the free pool ({}).",
                    host.name(),
                    host.status().word()
                ),
                "Wait until it is known-unbound, or use move, which waits for you.",
            ));
        }
        Phase::Binding
        | Phase::Preparing
        | Phase::Prepared
        | Phase::PrepareFailed
        | Phase::Installing
        | Phase::InProgress
        | Phase::BootFix
        | Phase::Installed
        | Phase::Added
        | Phase::Failed
        | Phase::Cancelled
        | Phase::Resetting
        | Phase::ResetPending => {
            return Err(Refused::conflict(
                "host-has-lost-its-cluster",
                format!(
                    "{} is {} although it has no cluster.",
                    host.name(),
                    host.status().word()
                ),
                "Delete the host; it registers anew when it boots the discovery image.",
            ));
        }
    }
    ready_to_lend(host)?;
    let mut draft = Draft::of(host).enter(Phase::Binding, around);
    lend(&mut draft, to);
    Ok(draft.because("lent to the cluster; the agent registers again under it", around))
}

fn ready_to_lend(host: &Host) -> Result<(), Refused> {
    let (reason, next_action) = match host.status() {
        Status::KnownUnbound => return Ok(()),
        Status::DiscoveringUnbound => (
            "has not reported its hardware yet",
            "Wait for its first inventory report.",
        ),
        Status::InsufficientUnbound => (
            "does not meet the minimum for any role",
            "See its validations for what is missing.",
        ),
        Status::DisconnectedUnbound => ("is not connected", "Boot it from the discovery image."),
        Status::DisabledUnbound
        | Status::Discovering
        | Status::Known
        | Status::Disconnected
        | Status::Insufficient
        | Status::Disabled
        | Status::PreparingForInstallation
        | Status::PreparingFailed
        | Status::PreparingSuccessful
        | Status::PendingForInput
        | Status::Installing
        | Status::InstallingInProgress
        | Status::InstallingPendingUserAction
        | Status::ResettingPendingUserAction
        | Status::Installed
        | Status::Cancelled
        | Status::Error
        | Status::Resetting
        | Status::AddedToExistingCluster
        | Status::Binding
        | Status::Unbinding
        | Status::UnbindingPendingUserAction
        | Status::Reclaiming
        | Status::ReclaimingRebooting => ("is not free", "Unbind it first."),
    };
    Err(Refused::conflict(
        "host-not-ready",
        format!("{} {reason}.", host.name()),
        next_action,
    ))
}

fn lend(draft: &mut Draft<'_>, to: ClusterId) {
    let host = &mut draft.host;
    host.cluster = Some(to);
    host.was_lent = true;
    host.moving_to = None;
    host.returning = None;
    host.progress = Progress::default();
    host.bootstrap = false;
    host.gates = Gates::default();
    // Its hardware is measured anew when it registers; until then people still know it by its name.
    host.digest = Digest {
        hostname: std::mem::take(&mut host.digest.hostname),
        ..Digest::default()
    };
    draft.forget.extend([Report::Inventory, Report::ImagesStatus]);
    let text = format!("Host {} was bound to the cluster.", draft.host.name());
    draft
        .journal
        .push(draft.host.entry("host_bind_succeeded", Severity::Info, text));
}

pub(super) fn unbind(host: &Host, around: &Around<'_>) -> Result<Decision, Refused> {
    may_leave(host, around)?;
    Ok(give_back(host, TakenBack::LetGo, around, "taken back"))
}

/// The cluster goes away: no phase may hold its host back, or the host would belong to nobody.
pub(super) fn release(host: &Host, around: &Around<'_>) -> Result<Decision, Refused> {
    must_be_lent(host)?;
    let mut decision = give_back(host, TakenBack::LetGo, around, "its cluster is deleted");
    if rules::is_being_installed(host) {
        let text = format!("The installation of host {} was cancelled.", host.name());
        let told = host.entry("host_installation_cancelled", Severity::Info, text);
        decision.journal.insert(0, told);
    }
    Ok(decision)
}

pub(super) fn reclaim(host: &Host, around: &Around<'_>) -> Result<Decision, Refused> {
    may_leave(host, around)?;
    Ok(give_back(host, TakenBack::InBand, around, "taken back in-band"))
}

/// A host in discovery changes hands in one step; one with a written disk must come back first.
pub(super) fn move_to(host: &Host, to: ClusterId, around: &Around<'_>) -> Result<Decision, Refused> {
    if host.cluster == Some(to) {
        return Err(Refused::conflict(
            "host-is-there",
            format!("{} belongs to that cluster already.", host.name()),
            "",
        ));
    }
    if host.is_free() && host.phase == Phase::Discovery {
        return bind(host, to, around);
    }
    if host.is_free() {
        let mut draft = Draft::of(host);
        draft.host.moving_to = Some(to);
        return Ok(draft.because("on its way back; it will be lent again when it is ready", around));
    }
    if host.status().is_measured() && host.gates.min_hardware {
        let mut draft = Draft::of(host).enter(Phase::Binding, around);
        draft.host.since = around.now;
        let left = leave(&mut draft, around);
        lend(&mut draft, to);
        draft.journal.insert(0, left);
        return Ok(draft.because("changes hands at once: nothing is written to its disk", around));
    }
    let mut decision = unbind(host, around)?;
    decision.host.moving_to = Some(to);
    decision.why = "taken back first; it will be lent again when it is ready";
    Ok(decision)
}

/// Only the target can end a move. Whatever keeps the host itself is a matter of time: whenever it is ready again, this is
/// asked again.
pub(super) fn finish_move(
    host: &Host,
    to: ClusterId,
    refused: Option<&Refused>,
    around: &Around<'_>,
) -> Result<Decision, Refused> {
    if host.moving_to != Some(to) {
        return Ok(stay(host, "nobody wants that move any more"));
    }
    if host.status() != Status::KnownUnbound {
        return Ok(stay(
            host,
            "the host is not ready yet; the move goes on when it is",
        ));
    }
    match refused {
        Some(why) => Ok(move_abandoned(host, why, around)),
        None => bind(host, to, around),
    }
}

pub(super) fn move_abandoned(host: &Host, why: &Refused, around: &Around<'_>) -> Decision {
    let Some(to) = host.moving_to else {
        return stay(host, "no move under way");
    };
    let mut draft = Draft::of(host);
    draft.host.moving_to = None;
    let text = format!(
        "Host {} stays free: it cannot move to cluster {to}: {why}",
        host.name()
    );
    let mut entry = draft.host.entry("host_bind_failed", Severity::Error, text);
    entry.cluster = Some(to);
    entry.props = serde_json::json!({ "code": why.code }).to_string();
    draft.journal.push(entry);
    draft.because("the target of the move cannot take it any more", around)
}

pub(super) fn reclaim_ready(host: &Host, around: &Around<'_>) -> Decision {
    match host.phase {
        Phase::Reclaiming => Draft::of(host)
            .enter(Phase::ReclaimRebooting, around)
            .because("the discovery image is in place; the machine may reboot", around),
        Phase::Discovery
        | Phase::Binding
        | Phase::Unbinding
        | Phase::ReturnPending
        | Phase::ReclaimRebooting
        | Phase::Preparing
        | Phase::Prepared
        | Phase::PrepareFailed
        | Phase::Installing
        | Phase::InProgress
        | Phase::BootFix
        | Phase::Installed
        | Phase::Added
        | Phase::Failed
        | Phase::Cancelled
        | Phase::Resetting
        | Phase::ResetPending => stay(host, "a late reply of a reclaim that is over"),
    }
}

pub(super) fn reclaim_failed(host: &Host, why: &str, around: &Around<'_>) -> Decision {
    match host.phase {
        Phase::Reclaiming | Phase::ReclaimRebooting => needs_a_boot(host, around)
            .saying(format!(
                "The host could not fetch the discovery image ({why}); boot it by hand to return it."
            ))
            .because("the in-band way back failed; a person has to boot it", around),
        Phase::Discovery
        | Phase::Binding
        | Phase::Unbinding
        | Phase::ReturnPending
        | Phase::Preparing
        | Phase::Prepared
        | Phase::PrepareFailed
        | Phase::Installing
        | Phase::InProgress
        | Phase::BootFix
        | Phase::Installed
        | Phase::Added
        | Phase::Failed
        | Phase::Cancelled
        | Phase::Resetting
        | Phase::ResetPending => stay(host, "a late reply of a reclaim that is over"),
    }
}

/// The way back by itself ended: somebody has to boot the machine.
pub(super) fn needs_a_boot<'a>(host: &'a Host, around: &Around<'_>) -> Draft<'a> {
    let route = Route::Boot;
    let mut draft = Draft::of(host).enter(first_phase(host, route), around);
    if let Some(returning) = &mut draft.host.returning {
        returning.route = route;
    }
    draft
}

fn give_back(host: &Host, taken: TakenBack, around: &Around<'_>, why: &'static str) -> Decision {
    let route = route(host, taken);
    let mut draft = Draft::of(host).enter(first_phase(host, route), around);
    let left = leave(&mut draft, around);
    draft.host.returning = Some(Return::of(host, route, around.now));
    draft.journal.push(left);
    draft.because(why, around)
}

/// Clears every trace of the borrower. The entry about it is filed under the old cluster as well.
fn leave(draft: &mut Draft<'_>, around: &Around<'_>) -> crate::journal::Entry {
    let name = draft.host.name();
    let mut entry = draft.host.entry(
        "host_unbind_succeeded",
        Severity::Info,
        format!("Host {name} was unbound from its cluster; nothing of the cluster's settings is left on it."),
    );
    entry.cluster = draft.before.cluster;
    let host = &mut draft.host;
    host.cluster = None;
    host.moving_to = None;
    host.kind = Kind::Host;
    clear(host);
    host.bootstrap = false;
    host.progress = Progress::default();
    host.connection_timed_out = false;
    host.logs = Logs::default();
    host.installer_version = String::new();
    host.gates = Gates {
        disk_speed: Outcome::Unknown,
        images: Outcome::Unknown,
        ..Gates::default()
    };
    host.updated_at = around.now;
    draft.forget.extend(TENANT_REPORTS);
    entry
}

/// What a borrower chose for the host.
pub(super) fn clear(host: &mut Host) {
    host.role = Role::AutoAssign;
    host.suggested_role = None;
    host.tenant = Tenant::default();
}

fn must_be_lent(host: &Host) -> Result<(), Refused> {
    if host.is_free() {
        Err(not_lent(host))
    } else {
        Ok(())
    }
}

/// Nobody takes a host out of the middle of its installation, or while it is being reset.
fn may_leave(host: &Host, around: &Around<'_>) -> Result<(), Refused> {
    must_be_lent(host)?;
    match host.phase {
        Phase::Discovery
        | Phase::Binding
        | Phase::Installed
        | Phase::Added
        | Phase::Failed
        | Phase::Cancelled
        | Phase::ResetPending => Ok(()),
        Phase::Preparing
        | Phase::Prepared
        | Phase::PrepareFailed
        | Phase::Installing
        | Phase::InProgress
        | Phase::BootFix => Err(installing(host, around)),
        Phase::Resetting => Err(resetting(host)),
        Phase::Unbinding | Phase::ReturnPending | Phase::Reclaiming | Phase::ReclaimRebooting => {
            Err(not_lent(host))
        }
    }
}

fn not_lent(host: &Host) -> Refused {
    Refused::conflict(
        "host-is-free",
        format!("{} is not bound to a cluster.", host.name()),
        "There is nothing to undo.",
    )
}

fn installing(host: &Host, around: &Around<'_>) -> Refused {
    // A cluster that runs has no installation of its own that could be cancelled.
    let joins = around.cluster.as_ref().is_some_and(|cluster| cluster.adds_hosts);
    Refused::conflict(
        "host-is-installing",
        format!("{} is being installed ({}).", host.name(), host.status().word()),
        if joins {
            "Reset the host or delete it: either stops its installation."
        } else {
            "Cancel the installation of its cluster first."
        },
    )
}

fn resetting(host: &Host) -> Refused {
    Refused::conflict(
        "host-is-resetting",
        format!("{} is being reset.", host.name()),
        "Wait a moment; resetting ends by itself within minutes.",
    )
}
