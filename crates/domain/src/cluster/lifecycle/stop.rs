//! An installation is stopped by a person: cancelled where it is, or reset to the start.

use super::super::{Cluster, Install};
use super::{Around, Decision, Draft, Phase};
use crate::host::Effect;
use crate::journal::Severity;
use crate::refusal::Refused;

pub(super) fn cancel(cluster: &Cluster, around: &Around<'_>) -> Result<Decision, Refused> {
    let (phase, written) = match cluster.phase {
        // Nothing was written yet: it may start again at once.
        Phase::Preparing => (Phase::Draft, false),
        Phase::Installing | Phase::BootFix | Phase::Finalizing | Phase::Error => (Phase::Cancelled, true),
        Phase::Draft | Phase::Installed | Phase::AddingHosts | Phase::Cancelled | Phase::Unmonitored => {
            return Err(Refused::conflict(
                "nothing-to-cancel",
                format!(
                    "Cluster {} is {}: there is no installation to cancel.",
                    cluster.name,
                    cluster.status()
                ),
                if cluster.phase == Phase::Cancelled {
                    "It is cancelled already; reset it to start over."
                } else {
                    "Only a running or failed installation can be cancelled."
                },
            ));
        }
    };
    let mut draft = Draft::of(cluster)
        .enter(phase, around)
        .saying("The installation was cancelled.");
    if written {
        draft.cluster.install_completed_at = Some(around.now);
    }
    let text = format!("The installation of cluster {} was cancelled.", cluster.name);
    Ok(draft
        .telling("cluster_installation_canceled", Severity::Info, text)
        .because("the installation was cancelled", around))
}

pub(super) fn reset(cluster: &Cluster, around: &Around<'_>) -> Result<Decision, Refused> {
    match cluster.phase {
        Phase::Preparing
        | Phase::Installing
        | Phase::BootFix
        | Phase::Error
        | Phase::Cancelled
        | Phase::Finalizing => {}
        Phase::Draft | Phase::Installed | Phase::AddingHosts | Phase::Unmonitored => {
            return Err(Refused::conflict(
                "nothing-to-reset",
                format!(
                    "Cluster {} is {}: there is no installation to reset.",
                    cluster.name,
                    cluster.status()
                ),
                if matches!(cluster.phase, Phase::Installed | Phase::AddingHosts) {
                    "Delete the cluster to return its hosts, or unbind single ones."
                } else {
                    "Only an installation that was started can be reset."
                },
            ));
        }
    }
    let mut draft = Draft::of(cluster)
        .enter(Phase::Draft, around)
        .saying("The installation was reset.");
    let row = &mut draft.cluster;
    row.install = Install {
        attempt: cluster.install.attempt,
        ..Install::default()
    };
    row.openshift_cluster_id = None;
    // Its hosts have to be discovered again before the checks can pass.
    row.gates.required = false;
    row.operators
        .iter_mut()
        .for_each(|operator| operator.forget_status());
    if row.single_node() {
        // They were the node's own address, found when the installation started.
        row.api_vips.clear();
        row.ingress_vips.clear();
    }
    draft.effects.push(Effect::DropFiles { cluster: cluster.id });
    let text = format!("The installation of cluster {} was reset.", cluster.name);
    Ok(draft
        .telling("cluster_installation_reset", Severity::Info, text)
        .because("the installation was reset", around))
}
