//! A deadline passed: every phase that waits has one, and this is what happens then.

use super::super::deadline::{is_silent, may_fail_alone, stage_is_over};
use super::super::{Host, LogsInfo, Phase, Stage, words};
use super::lending::needs_a_boot;
use super::{Around, Decision, Draft, stay};
use crate::cluster;
use crate::journal::Severity;

pub(super) fn due(host: &Host, around: &Around<'_>) -> Decision {
    let silent = is_silent(host, around.timers, around.now);
    let over = |limit| host.since + limit <= around.now;
    match host.phase {
        Phase::Discovery if silent && host.connected => {
            let mut draft = Draft::of(host);
            draft.host.connected = false;
            draft.because("silent for too long", around)
        }
        Phase::Binding | Phase::Unbinding if silent => lost(host, words::status_text(host_silent(host)), around),
        Phase::Binding | Phase::Unbinding if over(around.timers.rebind) => lost(
            host,
            "The agent was told to register again and did not; reboot the host into the discovery image.",
            around,
        ),
        Phase::Preparing | Phase::Prepared | Phase::PrepareFailed if silent => {
            lost(host, words::status_text(host_silent(host)), around)
        }
        Phase::Preparing if over(around.timers.preparation) => Draft::of(host)
            .enter(Phase::PrepareFailed, around)
            .saying("The tests before the installation took too long; check the host's network and disks, then install again.")
            .because("preparing took too long", around),
        Phase::Installing if over(around.timers.install_start) => Draft::of(host)
            .enter(Phase::Failed, around)
            .saying("The installer did not start in time; see the host's logs, then reset the cluster to try again.")
            .because("no progress after the install step", around),
        // Reported once: after that only the stage's own limit counts.
        Phase::Installing | Phase::InProgress
            if silent && !host.connection_timed_out && !around.hub_was_down =>
        {
            connection_lost(host, around)
        }
        Phase::InProgress if stage_is_over(host, around) => stage_over(host, around),
        Phase::BootFix if over(around.timers.boot_fix) && may_fail_alone(host, around) => Draft::of(host)
            .enter(Phase::Failed, around)
            .saying("Nobody fixed the boot order in time; the cluster goes on without this host.")
            .because("the wrong boot order was not fixed", around),
        Phase::Reclaiming | Phase::ReclaimRebooting if over(around.timers.reclaim) => needs_a_boot(host, around)
            .saying("The host did not come back by itself; boot the discovery image by hand to return it.")
            .because("the in-band way back took too long", around),
        Phase::Resetting if over(around.timers.reset) => {
            Draft::of(host).enter(Phase::ResetPending, around).because("resetting took too long", around)
        }
        Phase::Failed | Phase::Cancelled if logs_over(host, around) => {
            let mut draft = Draft::of(host);
            draft.host.logs.info = LogsInfo::Timeout;
            draft.because("the logs did not arrive in time", around)
        }
        Phase::Discovery
        | Phase::Binding
        | Phase::Unbinding
        | Phase::ReturnPending
        | Phase::Reclaiming
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
        | Phase::ResetPending => stay(host, "nothing is due yet"),
    }
}

fn host_silent(host: &Host) -> super::Status {
    if host.is_free() {
        super::Status::DisconnectedUnbound
    } else {
        super::Status::Disconnected
    }
}

/// The host is still lent (or free); it is only not there.
fn lost(host: &Host, info: &str, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(host).enter(Phase::Discovery, around).saying(info);
    draft.host.connected = false;
    draft.because("silent for too long", around)
}

fn connection_lost(host: &Host, around: &Around<'_>) -> Decision {
    if around.cluster.is_some_and(|cluster| cluster.soft_timeouts) {
        let mut draft = Draft::of(host);
        draft.host.connection_timed_out = true;
        draft.host.connected = false;
        return draft.because("silent while installing; the cluster's policy is to wait", around);
    }
    let mut draft = Draft::of(host).enter(Phase::Failed, around);
    draft.host.connected = false;
    draft
        .saying("The host stopped answering in the middle of its installation; check its power and network, then reset the cluster.")
        .because("silent while installing", around)
}

fn stage_over(host: &Host, around: &Around<'_>) -> Decision {
    let Some(stage) = host.progress.stage else {
        return stay(host, "no stage yet");
    };
    if waits_for_others(stage, around) {
        let mut draft = Draft::of(host);
        draft.host.progress.updated_at = Some(around.now);
        return draft.because("waits for another host that a person must fix", around);
    }
    if stage == Stage::Rebooting {
        return Draft::of(host)
            .enter(Phase::BootFix, around)
            .saying("The host did not come up from its disk in time; check its boot order and console.")
            .because("the reboot took too long", around);
    }
    if around.cluster.is_some_and(|cluster| cluster.soft_timeouts) {
        let mut draft = Draft::of(host);
        draft.host.progress.timed_out = true;
        let text = format!(
            "Host {} takes longer than expected in \"{}\".",
            host.name(),
            stage.word()
        );
        draft
            .journal
            .push(draft.host.entry("host_stage_timed_out", Severity::Warning, text));
        return draft.because("slow; the cluster's policy is to wait", around);
    }
    let mut draft = Draft::of(host).enter(Phase::Failed, around);
    draft.host.progress.timed_out = true;
    draft
        .saying(format!(
            "\"{}\" took too long; see the host's logs, then reset the cluster to try again.",
            stage.word()
        ))
        .because("a stage took too long", around)
}

/// While somebody must fix a boot order, whoever waits for that host does not fail because of it: neither those who
/// start the control plane nor those who have joined it and wait for the rest.
fn waits_for_others(stage: Stage, around: &Around<'_>) -> bool {
    (stage.waits_for_others() || stage.agent_is_gone())
        && around
            .cluster
            .is_some_and(|cluster| cluster.phase == cluster::Phase::BootFix)
}

fn logs_over(host: &Host, around: &Around<'_>) -> bool {
    super::super::deadline::logs_due(host, around.timers).is_some_and(|at| at <= around.now)
}
