//! Facts change: a check-in, lost media, new findings. Only some phases move by them.

use super::super::{Gates, Host, Logs, Media, Outcome, Phase, Report, Role, Status, words};
use super::{Around, Decision, Draft, stay};
use crate::cluster;
use crate::journal::Severity;

pub(super) fn checked_in(host: &Host, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(host);
    draft.host.checked_in_at = around.now;
    draft.host.connected = true;
    draft.host.connection_timed_out = false;
    draft.because("the agent asked for work", around)
}

/// Nothing writes to the disk any more: a host on its way back may be lent again.
pub(super) fn installer_stopped(host: &Host, around: &Around<'_>) -> Decision {
    if !host.installer_may_run {
        return stay(host, "no installer was known to run");
    }
    let mut draft = Draft::of(host);
    draft.host.installer_may_run = false;
    draft.because("the installer was stopped", around)
}

pub(super) fn media_lost(host: &Host, around: &Around<'_>) -> Decision {
    if host.media == Media::Disconnected {
        return stay(host, "known already");
    }
    let phase = match host.phase {
        Phase::Discovery | Phase::Binding | Phase::Unbinding => Phase::Discovery,
        Phase::Preparing
        | Phase::Prepared
        | Phase::PrepareFailed
        | Phase::Installing
        | Phase::InProgress
        | Phase::Failed => Phase::Failed,
        // These do not run from the media any more, or wait for another boot anyway.
        Phase::ReturnPending
        | Phase::Reclaiming
        | Phase::ReclaimRebooting
        | Phase::BootFix
        | Phase::Installed
        | Phase::Added
        | Phase::Cancelled
        | Phase::Resetting
        | Phase::ResetPending => return stay(host, "this phase does not need the media"),
    };
    let mut draft = Draft::of(host).enter(phase, around).saying(words::MEDIA_LOST);
    draft.host.media = Media::Disconnected;
    let text = format!("Host {} cannot read its discovery media any more.", host.name());
    draft
        .journal
        .push(draft.host.entry("host_media_disconnected", Severity::Error, text));
    draft.because("the discovery media was lost", around)
}

pub(super) fn media_back(host: &Host, around: &Around<'_>) -> Decision {
    match host.media {
        Media::Unset | Media::Connected => stay(host, "the media was never lost"),
        Media::Disconnected => {
            let mut draft = Draft::of(host);
            draft.host.media = Media::Connected;
            draft.because("the discovery media can be read again", around)
        }
    }
}

pub(super) fn measured(host: &Host, gates: Gates, complaints: &str, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(host);
    draft.host.gates = gates;
    let cluster = around.cluster.map(|state| state.phase);
    let preparing = cluster == Some(cluster::Phase::Preparing);
    match host.phase {
        Phase::Discovery => in_discovery(draft, complaints, preparing, around),
        Phase::Preparing if !preparing => draft
            .enter(Phase::Discovery, around)
            .because("the cluster is not preparing any more", around),
        Phase::Preparing | Phase::PrepareFailed if gates.disk_speed == Outcome::Failed => draft
            .enter(Phase::Discovery, around)
            .saying(complaint(Status::Insufficient, complaints))
            .because("the installation disk is too slow", around),
        Phase::Preparing if gates.images == Outcome::Failed => draft
            .enter(Phase::PrepareFailed, around)
            .saying(complaint(Status::PreparingFailed, complaints))
            .because("container images cannot be pulled", around),
        Phase::Preparing if gates.disk_speed == Outcome::Passed && gates.images == Outcome::Passed => draft
            .enter(Phase::Prepared, around)
            .because("all tests before the installation passed", around),
        Phase::Preparing => draft.because("some tests are still running", around),
        Phase::Prepared if cluster == Some(cluster::Phase::Installing) => draft
            .enter(Phase::Installing, around)
            .because("the cluster installs", around),
        Phase::Prepared | Phase::PrepareFailed if !preparing => draft
            .enter(Phase::Discovery, around)
            .because("the cluster is not preparing any more", around),
        Phase::Prepared | Phase::PrepareFailed => draft.because("the cluster is still preparing", around),
        Phase::Installing | Phase::InProgress | Phase::Installed | Phase::BootFix | Phase::ResetPending
            if cluster == Some(cluster::Phase::Error)
                && !around.cluster.is_some_and(|state| state.adds_hosts) =>
        {
            draft
                .enter(Phase::Failed, around)
                .saying("The installation of the cluster failed, and with it this host's.")
                .because("the cluster failed", around)
        }
        Phase::Binding
        | Phase::Unbinding
        | Phase::ReturnPending
        | Phase::Reclaiming
        | Phase::ReclaimRebooting
        | Phase::Installing
        | Phase::InProgress
        | Phase::BootFix
        | Phase::Installed
        | Phase::Added
        | Phase::Failed
        | Phase::Cancelled
        | Phase::Resetting
        | Phase::ResetPending => draft.because("findings do not move this phase", around),
    }
}

fn in_discovery(mut draft: Draft<'_>, complaints: &str, preparing: bool, around: &Around<'_>) -> Decision {
    let status = draft.host.status();
    if status == Status::Known && preparing && draft.host.role != Role::AutoAssign {
        return begin_preparing(draft, around);
    }
    if status.is_held_up() {
        draft.info = Some(complaint(status, complaints));
    } else if status != draft.before.status() || draft.host.status_info.starts_with("The installation was") {
        draft.info = Some(words::of(&draft.host).into());
    }
    draft.because("the checks ran", around)
}

/// Images that could not be pulled the last time are tried again: somebody may have put the registry right.
fn begin_preparing(draft: Draft<'_>, around: &Around<'_>) -> Decision {
    let mut draft = draft.enter(Phase::Preparing, around);
    draft.host.logs = Logs::default();
    if draft.host.gates.images == Outcome::Failed {
        draft.host.gates.images = Outcome::Unknown;
        draft.forget.push(Report::ImagesStatus);
    }
    draft.because("the cluster prepares its installation", around)
}

fn complaint(status: Status, complaints: &str) -> String {
    match complaints {
        "" => words::status_text(status).into(),
        complaints => format!("{} {complaints}", words::status_text(status)),
    }
}
