//! What a person reads as `status_info`: one sentence per state, with the next action where there is one.

use super::super::{Cluster, PreparationStatus, Status};

/// The usual text of a status; where the text depends on the occasion, the lifecycle gives it.
pub fn status_text(status: Status) -> &'static str {
    match status {
        Status::PendingForInput => "The cluster needs more settings; see its validations.",
        Status::Insufficient => "Not ready for installation yet; see its validations.",
        Status::Ready => "Ready to be installed.",
        Status::PreparingForInstallation => {
            "Making the cluster's files and testing its hosts for the last time."
        }
        Status::Installing => "The hosts are being installed.",
        Status::InstallingPendingUserAction => {
            "A host did not boot from its disk; see its status, fix its boot order and reboot it."
        }
        Status::Finalizing => "The hosts are installed; the cluster is starting its services.",
        Status::Installed => "Installed.",
        Status::AddingHosts => "Running; more hosts can join.",
        Status::Error => "The installation failed; see the events, then reset the cluster to try again.",
        Status::Cancelled => "The installation was cancelled.",
        Status::Unmonitored => "",
    }
}

/// The same, with the reason why the last attempt did not get beyond its preparation.
pub(super) fn of(cluster: &Cluster) -> String {
    after_failure(cluster, status_text(cluster.status()))
}

/// The same after a round of checks: what keeps it back is said instead of where to look it up.
pub(super) fn measured(cluster: &Cluster, complaints: &str) -> String {
    let text = status_text(cluster.status());
    match text.strip_suffix(SEE_CHECKS) {
        Some(text) if !complaints.is_empty() => after_failure(cluster, &format!("{text}. {complaints}.")),
        Some(_) | None => after_failure(cluster, text),
    }
}

const SEE_CHECKS: &str = "; see its validations.";

fn after_failure(cluster: &Cluster, text: &str) -> String {
    let failed = cluster.install.preparation.status == PreparationStatus::Failed;
    if failed && cluster.phase == super::Phase::Draft {
        return format!(
            "{text} The last attempt to install it failed: {}",
            cluster.install.preparation.reason
        );
    }
    text.into()
}
