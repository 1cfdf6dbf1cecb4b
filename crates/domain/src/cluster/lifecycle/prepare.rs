//! The start of an installation: files are made and hosts tested; nothing is written to a disk yet.

use super::super::{Cluster, Install, Preparation, PreparationStatus, Status};
use super::{Around, Decision, Draft, Phase, stay};
use crate::host::Effect;
use crate::journal::Severity;
use crate::refusal::Refused;
use muster_vocabulary::CheckStatus;

/// Refuses unless everything an installation needs is there.
pub fn must_be_ready(cluster: &Cluster) -> Result<(), Refused> {
    match cluster.status() {
        Status::Ready => Ok(()),
        Status::PendingForInput
        | Status::Insufficient
        | Status::PreparingForInstallation
        | Status::Installing
        | Status::InstallingPendingUserAction
        | Status::Finalizing
        | Status::Installed
        | Status::AddingHosts
        | Status::Error
        | Status::Cancelled
        | Status::Unmonitored => Err(not_ready(cluster)),
    }
}

pub(super) fn install(cluster: &Cluster, around: &Around<'_>) -> Result<Decision, Refused> {
    must_be_ready(cluster)?;
    let mut draft = Draft::of(cluster).enter(Phase::Preparing, around);
    let attempt = cluster.install.attempt + 1;
    let row = &mut draft.cluster;
    row.install = Install {
        attempt,
        preparation: Preparation {
            status: PreparationStatus::NotStarted,
            reason: "The hub is making the files.".into(),
        },
        ..Install::default()
    };
    row.install_started_at = Some(around.now);
    row.install_completed_at = None;
    row.operators
        .iter_mut()
        .for_each(|operator| operator.forget_status());
    draft.effects.push(Effect::MakeFiles {
        cluster: cluster.id,
        attempt,
    });
    let text = format!("Cluster {}: the hub is preparing the installation.", cluster.name);
    Ok(draft
        .telling("cluster_prepare_installation_started", Severity::Info, text)
        .because("the installation starts", around))
}

fn not_ready(cluster: &Cluster) -> Refused {
    let (code, next_action) = match cluster.phase {
        Phase::Draft => (
            "cluster-not-ready",
            "See its validations for what is missing; `explain` says what to do about each.",
        ),
        Phase::Preparing | Phase::Installing | Phase::Finalizing | Phase::BootFix => (
            "cluster-is-installing",
            "Wait until it is done, or cancel the installation.",
        ),
        Phase::Installed => (
            "cluster-is-installed",
            "Let it take on more hosts, or delete it and create another.",
        ),
        Phase::AddingHosts => (
            "cluster-is-installed",
            "Install its new hosts one by one instead.",
        ),
        Phase::Error | Phase::Cancelled => ("cluster-needs-reset", "Reset the cluster first."),
        Phase::Unmonitored => (
            "cluster-not-installable",
            "This cluster is only a placeholder for an image that works without the hub.",
        ),
    };
    let failing = failing(&cluster.validations);
    let detail = match failing.as_slice() {
        [] => String::new(),
        ids if cluster.phase == Phase::Draft => format!(" Not passing: {}.", ids.join(", ")),
        _ => String::new(),
    };
    Refused::conflict(
        code,
        format!(
            "Cluster {} is {}, not ready.{detail}",
            cluster.name,
            cluster.status()
        ),
        next_action,
    )
}

/// The ids of checks that do not pass, from the stored findings.
fn failing(validations: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Finding {
        id: String,
        status: CheckStatus,
    }
    let findings: std::collections::BTreeMap<String, Vec<Finding>> =
        serde_json::from_str(validations).unwrap_or_default();
    let all = findings.into_values().flatten();
    all.filter(|finding| !finding.status.passes())
        .map(|finding| finding.id)
        .collect()
}

pub(super) fn files_made(
    cluster: &Cluster,
    attempt: u32,
    outcome: &Result<(), String>,
    around: &Around<'_>,
) -> Decision {
    let preparation = &cluster.install.preparation;
    if attempt != cluster.install.attempt
        || cluster.phase != Phase::Preparing
        || preparation.status != PreparationStatus::NotStarted
    {
        return stay(cluster, "a result that nobody waits for any more");
    }
    match outcome {
        Ok(()) => {
            let mut draft = Draft::of(cluster);
            draft.cluster.install.preparation = Preparation {
                status: PreparationStatus::Success,
                reason: "The hub has made the files.".into(),
            };
            draft.because("the hub has made the files", around)
        }
        Err(why) => fail(
            cluster,
            format!("The hub could not make the cluster's files: {why}"),
            around,
        ),
    }
}

/// Back to the start with a reason; nothing was written to any disk.
pub(super) fn fail(cluster: &Cluster, why: String, around: &Around<'_>) -> Decision {
    failed(cluster, why, around).because("the preparation failed", around)
}

/// The same when a host is lost: until the checks run again the cluster is not ready, for they passed with it.
pub(super) fn fail_short(cluster: &Cluster, why: String, around: &Around<'_>) -> Decision {
    let mut draft = failed(cluster, why, around);
    draft.cluster.gates.required = false;
    draft.because("a host was lost while preparing", around)
}

fn failed<'a>(cluster: &'a Cluster, why: String, around: &Around<'_>) -> Draft<'a> {
    let text = format!("Cluster {}: the installation did not start. {why}", cluster.name);
    back(cluster, why, around).telling("prepare_installation_failed", Severity::Warning, text)
}

pub(super) fn time_out(cluster: &Cluster, around: &Around<'_>) -> Decision {
    let minutes = around.timers.preparation.as_mins();
    let why = match cluster.install.preparation.status {
        PreparationStatus::Success => {
            format!(
                "Not all hosts finished their tests within {minutes} minutes; see the hosts' status, then install again."
            )
        }
        PreparationStatus::NotStarted | PreparationStatus::Failed => {
            format!(
                "The hub did not make the files within {minutes} minutes; see its log, then install again."
            )
        }
    };
    let text = format!(
        "Cluster {}: preparing the installation took too long. {why}",
        cluster.name
    );
    back(cluster, why, around)
        .telling("installation_preparing_timed_out", Severity::Warning, text)
        .because("preparing took too long", around)
}

fn back<'a>(cluster: &'a Cluster, why: String, around: &Around<'_>) -> Draft<'a> {
    let mut draft = Draft::of(cluster).enter(Phase::Draft, around);
    draft.cluster.install.preparation = Preparation {
        status: PreparationStatus::Failed,
        reason: why,
    };
    draft
}
