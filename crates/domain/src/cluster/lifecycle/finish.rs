//! The cluster's own voice: finalizing stages, operators, certificate and logs; and the end when it fails.

use super::super::{Cluster, Finalizing, FinalizingStage, Operator, OperatorStatus};
use super::{Around, Decision, Draft, Phase, stay};
use crate::host::LogsInfo;
use crate::journal::Severity;
use crate::refusal::{Class, Refused};

pub(super) fn stage(
    cluster: &Cluster,
    stage: FinalizingStage,
    around: &Around<'_>,
) -> Result<Decision, Refused> {
    // The cluster may be proven to work before its controller has said its last word.
    if !cluster.phase.is_installing() && cluster.phase != Phase::Installed {
        return Err(Refused::new(
            Class::Invalid,
            "not-finalizing",
            format!(
                "Cluster {} is {}: \"{}\" is not expected now.",
                cluster.name,
                cluster.status(),
                stage.word()
            ),
            "Report it while the cluster is installing or finalizing.",
        ));
    }
    let reached = cluster.install.finalizing.map(|finalizing| finalizing.stage);
    if reached.is_some_and(|reached| stage <= reached) {
        return Ok(stay(cluster, "that stage was reached already"));
    }
    let mut draft = Draft::of(cluster);
    draft.cluster.install.finalizing = Some(Finalizing {
        stage,
        started_at: around.now,
        timed_out: false,
    });
    let text = format!("Cluster {}: {}", cluster.name, stage.word());
    Ok(draft
        .telling("cluster_finalizing_stage_updated", Severity::Info, text)
        .because("the cluster reported a stage", around))
}

pub(super) fn operator(
    cluster: &Cluster,
    name: &str,
    status: OperatorStatus,
    version: &str,
    info: &str,
    around: &Around<'_>,
) -> Result<Decision, Refused> {
    let Some(at) = cluster
        .operators
        .iter()
        .position(|operator| operator.name == name)
    else {
        return Err(Refused::new(
            Class::Missing,
            "operator-not-found",
            format!("Cluster {} has no operator {name}.", cluster.name),
            "Report one of its monitored operators.",
        ));
    };
    match cluster.phase {
        Phase::Installing | Phase::Finalizing | Phase::BootFix | Phase::Installed | Phase::AddingHosts => {}
        Phase::Draft | Phase::Preparing | Phase::Error | Phase::Cancelled | Phase::Unmonitored => {
            return Ok(stay(cluster, "a late report of an installation that is over"));
        }
    }
    let known = &cluster.operators[at];
    if known.status == status && known.version == version && known.status_info == info {
        return Ok(stay(cluster, "the same report again"));
    }
    let mut draft = Draft::of(cluster);
    let changed = known.status != status;
    let row = &mut draft.cluster.operators[at];
    row.status = status;
    row.version = version.into();
    row.status_info = info.into();
    row.status_updated_at = Some(around.now);
    if cluster.phase.is_installing() {
        advance(&mut draft.cluster);
    }
    if changed {
        let text = format!(
            "Cluster {}: operator {name} is {}. {info}",
            cluster.name,
            status.word()
        );
        draft = draft.telling("cluster_operator_status", Severity::Info, text.trim_end());
    }
    Ok(draft.because("an operator's status changed", around))
}

/// Percentages only grow, even when an operator has second thoughts.
fn advance(cluster: &mut Cluster) {
    let all = cluster.operators.len();
    let there = cluster.operators.iter().filter(|operator| is_final(operator));
    if let Some(share) = (there.count() * 100).checked_div(all) {
        let progress = &mut cluster.install.progress;
        progress.finalizing = progress.finalizing.max(i64::try_from(share).unwrap_or_default());
        progress.weigh();
    }
}

/// What belongs to every cluster must work; what was chosen on top may also have failed.
fn is_final(operator: &Operator) -> bool {
    if operator.builtin {
        operator.status == OperatorStatus::Available
    } else {
        operator.status.is_final()
    }
}

pub(super) fn operators_final(cluster: &Cluster) -> bool {
    cluster.operators.iter().all(is_final)
}

pub(super) fn failed_operators(cluster: &Cluster) -> Vec<String> {
    let failed = cluster
        .operators
        .iter()
        .filter(|operator| operator.status == OperatorStatus::Failed);
    failed.map(|operator| operator.name.clone()).collect()
}

pub(super) fn ingress_cert(cluster: &Cluster, around: &Around<'_>) -> Result<Decision, Refused> {
    match cluster.phase {
        Phase::Finalizing | Phase::Installed => {}
        Phase::Draft
        | Phase::Preparing
        | Phase::Installing
        | Phase::AddingHosts
        | Phase::BootFix
        | Phase::Error
        | Phase::Cancelled
        | Phase::Unmonitored => {
            return Err(Refused::new(
                Class::Invalid,
                "not-finalizing",
                format!(
                    "Cluster {} is {}: its ingress certificate is not expected now.",
                    cluster.name,
                    cluster.status()
                ),
                "Send it while the cluster is finalizing.",
            ));
        }
    }
    if cluster.install.has_kubeconfig {
        return Ok(stay(cluster, "the certificate is there already"));
    }
    let mut draft = Draft::of(cluster);
    draft.cluster.install.has_kubeconfig = true;
    Ok(draft.because("the ingress certificate is in the kubeconfig", around))
}

pub(super) fn logs(cluster: &Cluster, state: LogsInfo, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(cluster);
    draft.cluster.install.logs.advance(state, around.now);
    draft.because("the controller's logs are on their way", around)
}

pub(super) fn logs_uploaded(cluster: &Cluster, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(cluster);
    draft.cluster.install.logs.collected_at = Some(around.now);
    let text = format!("Cluster {}: logs of its controller were stored.", cluster.name);
    draft
        .telling("cluster_logs_uploaded", Severity::Info, text)
        .because("the controller's logs are stored", around)
}

/// The end of an attempt that cannot succeed any more.
pub(super) fn fail(cluster: &Cluster, why: String, because: &'static str, around: &Around<'_>) -> Decision {
    let mut draft = Draft::of(cluster).enter(Phase::Error, around);
    draft.cluster.install_completed_at = Some(around.now);
    let text = format!("The installation of cluster {} failed. {why}", cluster.name);
    draft
        .saying(why)
        .telling("cluster_installation_failed", Severity::Critical, text)
        .because(because, around)
}
