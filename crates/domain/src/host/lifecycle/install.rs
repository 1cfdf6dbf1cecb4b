//! The installation as the host sees it: start, progress, failure, cancel, reset.

use super::super::{Host, Kind, Phase, Progress, Role, Stage, stage};
use super::{Around, Decision, Draft, stay};
use crate::journal::Severity;
use crate::refusal::Refused;

pub(super) fn cancel(host: &Host, around: &Around<'_>) -> Result<Decision, Refused> {
    let why = "the installation was cancelled";
    let said = "The installation was cancelled.";
    Ok(match host.phase {
        Phase::Installing | Phase::InProgress | Phase::BootFix | Phase::Installed | Phase::Failed => {
            with_event(
                Draft::of(host).enter(Phase::Cancelled, around).saying(said),
                "host_installation_cancelled",
            )
            .because(why, around)
        }
        Phase::Preparing | Phase::Prepared | Phase::PrepareFailed => with_event(
            Draft::of(host).enter(Phase::Discovery, around).saying(said),
            "host_installation_cancelled",
        )
        .because(why, around),
        Phase::Discovery if host.status() == super::Status::Known => {
            Draft::of(host).saying(said).because(why, around)
        }
        Phase::Discovery
        | Phase::Binding
        | Phase::Unbinding
        | Phase::ReturnPending
        | Phase::Reclaiming
        | Phase::ReclaimRebooting
        | Phase::Added
        | Phase::Cancelled
        | Phase::Resetting
        | Phase::ResetPending => {
            return Err(Refused::conflict(
                "nothing-to-cancel",
                format!(
                    "{} is {}: there is no installation to cancel.",
                    host.name(),
                    host.status().word()
                ),
                "",
            ));
        }
    })
}

pub(super) fn reset(host: &Host, around: &Around<'_>) -> Result<Decision, Refused> {
    let resets = match host.phase {
        Phase::Resetting
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
        | Phase::ResetPending => true,
        Phase::Discovery => host.status().starts_over_with_cluster(),
        Phase::Binding
        | Phase::Unbinding
        | Phase::ReturnPending
        | Phase::Reclaiming
        | Phase::ReclaimRebooting => false,
    };
    if !resets {
        return Err(Refused::conflict(
            "nothing-to-reset",
            format!("{} is {} and cannot be reset.", host.name(), host.status().word()),
            "Boot it from the discovery image; it is discovered anew then.",
        ));
    }
    let draft = Draft::of(host).enter(Phase::ResetPending, around);
    Ok(with_event(draft, "host_installation_reset").because("the installation was reset", around))
}

pub(super) fn install(host: &Host, around: &Around<'_>) -> Result<Decision, Refused> {
    let adds = around.cluster.is_some_and(|cluster| cluster.adds_hosts);
    if !adds {
        return Err(Refused::conflict(
            "not-a-day-two-host",
            format!(
                "{} does not belong to a cluster that is already running.",
                host.name()
            ),
            "Start the installation of the whole cluster instead.",
        ));
    }
    if host.status() != super::Status::Known {
        return Err(Refused::conflict(
            "host-not-ready",
            format!("{} is {}, not known.", host.name(), host.status().word()),
            "See its validations for what is missing.",
        ));
    }
    let mut draft = Draft::of(host).enter(Phase::Installing, around);
    draft.host.progress = Progress::default();
    if draft.host.role == Role::AutoAssign {
        draft.host.role = draft.host.suggested_role.unwrap_or(Role::Worker);
    }
    Ok(with_event(draft, "host_installation_started").because("the installation starts", around))
}

/// What the plan of the whole cluster makes of this host.
pub(super) fn assigned(
    host: &Host,
    role: Role,
    bootstrap: bool,
    around: &Around<'_>,
) -> Result<Decision, Refused> {
    if host.status() != super::Status::Known {
        return Err(Refused::conflict(
            "host-not-ready",
            format!("{} is {}, not known.", host.name(), host.status().word()),
            "See its validations for what is missing.",
        ));
    }
    let mut draft = Draft::of(host);
    (draft.host.role, draft.host.bootstrap) = (role, bootstrap);
    if host.role != role {
        let text = format!("Host {} becomes a {}.", host.name(), role.word());
        draft
            .journal
            .push(draft.host.entry("host_role_updated", Severity::Info, text));
    }
    if bootstrap && !host.bootstrap {
        let text = format!("Host {} starts the control plane of its cluster.", host.name());
        draft
            .journal
            .push(draft.host.entry("host_bootstrap_set", Severity::Info, text));
    }
    Ok(draft.because("the installation is planned", around))
}

pub(super) fn failed(host: &Host, why: &str, around: &Around<'_>) -> Decision {
    match host.phase {
        Phase::Installing | Phase::InProgress => Draft::of(host)
            .enter(Phase::Failed, around)
            .saying(format!("The installation failed: {why}"))
            .because("the installer reported a failure", around),
        Phase::Discovery
        | Phase::Binding
        | Phase::Unbinding
        | Phase::ReturnPending
        | Phase::Reclaiming
        | Phase::ReclaimRebooting
        | Phase::Preparing
        | Phase::Prepared
        | Phase::PrepareFailed
        | Phase::BootFix
        | Phase::Installed
        | Phase::Added
        | Phase::Failed
        | Phase::Cancelled
        | Phase::Resetting
        | Phase::ResetPending => stay(host, "a late failure of an installation that is over"),
    }
}

pub(super) fn progressed(
    host: &Host,
    stage: Stage,
    info: &str,
    around: &Around<'_>,
) -> Result<Decision, Refused> {
    if host.is_free() {
        return Err(Refused::new(
            crate::refusal::Class::Invalid,
            "host-is-free",
            format!(
                "{} is not bound to a cluster, so it cannot report installation progress.",
                host.name()
            ),
            "",
        ));
    }
    let (single_node, adds) = around.cluster.map_or((false, false), |cluster| {
        (cluster.single_node, cluster.adds_hosts)
    });
    // A day-2 host reports nothing after its reboot, so the reboot is the end of it, unless somebody follows its node.
    let joins = adds || host.kind == Kind::AddToExistingClusterHost;
    let last = joins && stage == Stage::Rebooting && !host.followed;
    let told_stage = if last { Stage::Done } else { stage };
    if host.progress.stage == Some(told_stage) {
        return Ok(more_info(host, info, around));
    }
    match host.phase {
        Phase::Installing | Phase::InProgress | Phase::BootFix => {}
        Phase::Failed if recovers(host, stage) => {}
        Phase::Discovery
        | Phase::Binding
        | Phase::Unbinding
        | Phase::ReturnPending
        | Phase::Reclaiming
        | Phase::ReclaimRebooting
        | Phase::Preparing
        | Phase::Prepared
        | Phase::PrepareFailed
        | Phase::Installed
        | Phase::Added
        | Phase::Failed
        | Phase::Cancelled
        | Phase::Resetting
        | Phase::ResetPending => {
            return Err(Refused::conflict(
                "not-installing",
                format!(
                    "{} is {}, not installing; the hub ignores \"{}\".",
                    host.name(),
                    host.status().word(),
                    stage.word()
                ),
                "",
            ));
        }
    }
    if stage == Stage::Failed {
        return Ok(Draft::of(host)
            .enter(Phase::Failed, around)
            .saying(format!("Failed - {info}"))
            .because("the installer reported a failure", around));
    }
    let order = stage::order(host, single_node);
    let index = position(host, order, stage)?;
    Ok(new_stage(
        host,
        told_stage,
        info,
        percentage(order, index, told_stage),
        around,
    ))
}

/// A node that came up after all: its disk was written, only the time was over, and whoever follows it sees it work.
fn recovers(host: &Host, stage: Stage) -> bool {
    let joins = host.kind == Kind::AddToExistingClusterHost && host.followed;
    let runs_from_disk = host.progress.stage.is_some_and(Stage::agent_is_gone);
    joins && stage == Stage::Done && runs_from_disk && host.progress.timed_out
}

fn percentage(order: &[Stage], index: Option<usize>, stage: Stage) -> i64 {
    match index {
        _ if stage == Stage::Done => 100,
        Some(index) => ((index + 1) * 100 / order.len()) as i64,
        None => 0,
    }
}

fn position(host: &Host, order: &[Stage], stage: Stage) -> Result<Option<usize>, Refused> {
    let index = order.iter().position(|&known| known == stage);
    let Some(current) = host.progress.stage else {
        return Ok(index);
    };
    let Some(at) = index else {
        return Err(Refused::conflict(
            "stage-unknown-for-role",
            format!("\"{}\" is not a stage of {}'s role.", stage.word(), host.name()),
            "",
        ));
    };
    if order
        .iter()
        .position(|&known| known == current)
        .is_some_and(|was| at < was)
    {
        return Err(Refused::conflict(
            "stage-goes-back",
            format!(
                "{} has passed \"{}\" already; it is in \"{}\".",
                host.name(),
                stage.word(),
                current.word()
            ),
            "",
        ));
    }
    Ok(index)
}

fn more_info(host: &Host, info: &str, around: &Around<'_>) -> Decision {
    if host.progress.info == info {
        return stay(host, "the same report again");
    }
    let mut draft = Draft::of(host);
    draft.host.progress.info = info.into();
    draft.host.progress.updated_at = Some(around.now);
    draft.because("more about the same stage", around)
}

fn new_stage(host: &Host, stage: Stage, info: &str, percentage: i64, around: &Around<'_>) -> Decision {
    let joins = host.kind == Kind::AddToExistingClusterHost
        || around.cluster.is_some_and(|cluster| cluster.adds_hosts);
    let added = stage == Stage::Done && joins;
    let phase = if added {
        Phase::Added
    } else if stage == Stage::Done {
        Phase::Installed
    } else {
        // After a boot order was fixed, any stage shows that the host came up from its disk.
        Phase::InProgress
    };
    let mut draft = Draft::of(host).enter(phase, around);
    // Whoever reboots or runs from its disk has no installer any more.
    draft.host.installer_may_run &= !stage.agent_is_gone();
    draft.host.progress = Progress {
        stage: Some(stage),
        info: info.into(),
        percentage,
        started_at: Some(around.now),
        updated_at: Some(around.now),
        timed_out: false,
    };
    let text = format!("Host {}: {} ({percentage} %) {info}", host.name(), stage.word());
    draft.journal.push(
        draft
            .host
            .entry("host_install_progress_updated", Severity::Info, text.trim_end()),
    );
    let draft = if phase == Phase::InProgress {
        draft.saying(stage.word())
    } else if host.phase == Phase::Failed {
        draft.saying("The host has recovered: its node came up after the time for it was over.")
    } else {
        draft
    };
    draft.because("the installer reported a stage", around)
}

fn with_event<'a>(mut draft: Draft<'a>, name: &str) -> Draft<'a> {
    let text = match name {
        "host_installation_started" => format!("The installation of host {} starts.", draft.host.name()),
        "host_installation_reset" => format!("The installation of host {} was reset.", draft.host.name()),
        _ => format!("The installation of host {} was cancelled.", draft.host.name()),
    };
    draft.journal.push(draft.host.entry(name, Severity::Info, text));
    draft
}
