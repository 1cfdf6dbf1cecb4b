//! When the clock must evaluate a host again, and why some phases may last for ever.

use super::event::{Around, Timers};
use super::{Host, LogsInfo, Phase, Stage, stage};
use crate::cluster;
use jiff::{SignedDuration, Timestamp};

/// How long a phase may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Something happens by itself at the latest then; the text says what.
    Limited(&'static str),
    /// It may last for ever; the text says why that is right, and who ends it.
    Endless(&'static str),
}

pub fn patience(phase: Phase) -> Patience {
    match phase {
        Phase::Discovery => {
            Patience::Limited("silent for 3 minutes: disconnected, until it boots again or is deleted")
        }
        Phase::Binding => {
            Patience::Limited("silent for 3 minutes, or 15 minutes without registering: disconnected")
        }
        Phase::Unbinding => {
            Patience::Limited("silent for 3 minutes, or 15 minutes without registering: disconnected-unbound")
        }
        Phase::ReturnPending => Patience::Endless(
            "waits for a person or a BMC to boot the discovery image; may be deleted at any time",
        ),
        Phase::Reclaiming => Patience::Limited("60 minutes: unbinding-pending-user-action"),
        Phase::ReclaimRebooting => Patience::Limited("60 minutes: unbinding-pending-user-action"),
        Phase::Preparing => {
            Patience::Limited("17 minutes: preparing-failed; silent for 3 minutes: disconnected")
        }
        Phase::Prepared => {
            Patience::Limited("silent for 3 minutes: disconnected; the cluster's own limit ends the waiting")
        }
        Phase::PrepareFailed => Patience::Limited(
            "silent for 3 minutes: disconnected; known again when the cluster stops preparing",
        ),
        Phase::Installing => Patience::Limited("20 minutes without progress, or silent for 3: error"),
        Phase::InProgress => {
            Patience::Limited("each stage has its own limit: error, or boot order to be fixed")
        }
        Phase::BootFix => Patience::Limited("60 minutes: error, if the cluster can do without the host"),
        Phase::Installed => Patience::Endless("works for its cluster; unbind, cancel or delete end it"),
        Phase::Added => Patience::Endless("works for its cluster; unbind, reset or delete end it"),
        Phase::Failed => Patience::Endless("waits for a person: reset, unbind or delete"),
        Phase::Cancelled => Patience::Endless("waits for a person: reset, unbind or delete"),
        Phase::Resetting => Patience::Limited("3 minutes: resetting-pending-user-action"),
        Phase::ResetPending => {
            Patience::Endless("waits for a person to boot the discovery image; unbind or delete end it too")
        }
    }
}

/// When [`super::Event::Due`] should be sent next; `None` when only others can move the host.
pub fn of(host: &Host, around: &Around<'_>) -> Option<Timestamp> {
    let timers = around.timers;
    let silence = host.checked_in_at + silence_limit(host, timers);
    match host.phase {
        Phase::Discovery => host.connected.then_some(silence),
        Phase::Binding | Phase::Unbinding => Some(silence.min(host.since + timers.rebind)),
        Phase::Preparing => Some(silence.min(host.since + timers.preparation)),
        Phase::Prepared | Phase::PrepareFailed => Some(silence),
        Phase::Installing => {
            let start = host.since + timers.install_start;
            Some(if host.connection_timed_out {
                start
            } else {
                start.min(silence)
            })
        }
        Phase::InProgress => in_progress(host, around, silence),
        Phase::BootFix => may_fail_alone(host, around).then_some(host.since + timers.boot_fix),
        Phase::Reclaiming | Phase::ReclaimRebooting => Some(host.since + timers.reclaim),
        Phase::Resetting => Some(host.since + timers.reset),
        Phase::Failed | Phase::Cancelled => logs_due(host, timers),
        Phase::ReturnPending | Phase::Installed | Phase::Added | Phase::ResetPending => None,
    }
}

/// Its cluster is still being installed and reaches its goal without this host.
pub(super) fn may_fail_alone(host: &Host, around: &Around<'_>) -> bool {
    host.is_spare()
        && around.cluster.is_some_and(|cluster| {
            cluster.can_do_without
                && !matches!(
                    cluster.phase,
                    cluster::Phase::Installed | cluster::Phase::AddingHosts
                )
        })
}

fn in_progress(host: &Host, around: &Around<'_>, silence: Timestamp) -> Option<Timestamp> {
    let gone = host.progress.stage.is_some_and(Stage::agent_is_gone);
    let stage = stage_end(host, around);
    let silence = (!gone && !host.connection_timed_out).then_some(silence);
    match (stage, silence) {
        (Some(stage), Some(silence)) => Some(stage.min(silence)),
        (stage, silence) => stage.or(silence),
    }
}

fn stage_end(host: &Host, around: &Around<'_>) -> Option<Timestamp> {
    if host.progress.timed_out {
        return None;
    }
    let pace = around.cluster.map(|cluster| cluster.pace()).unwrap_or_default();
    let since = host.progress.updated_at.unwrap_or(host.since);
    host.progress.stage.map(|stage| since + stage::limit(stage, pace))
}

pub(super) fn stage_is_over(host: &Host, around: &Around<'_>) -> bool {
    stage_end(host, around).is_some_and(|end| end <= around.now)
}

pub(super) fn silence_limit(host: &Host, timers: &Timers) -> SignedDuration {
    if host.bootstrap {
        timers.bootstrap_silence
    } else {
        timers.silence
    }
}

/// Silence counts only while an agent is expected to poll.
pub(super) fn is_silent(host: &Host, timers: &Timers, now: Timestamp) -> bool {
    !host.progress.stage.is_some_and(Stage::agent_is_gone)
        && host.checked_in_at + silence_limit(host, timers) <= now
}

pub(super) fn logs_due(host: &Host, timers: &Timers) -> Option<Timestamp> {
    let began = host.logs.started_at.unwrap_or(host.since);
    match host.logs.info {
        LogsInfo::Requested => Some(began + timers.log_pending),
        LogsInfo::Collecting => Some(began + timers.log_collection),
        LogsInfo::None | LogsInfo::Completed | LogsInfo::Timeout => None,
    }
}
