//! How far a cluster is, in one line, and whether that is where it should get to.

use crate::exit::{Failure, Kind, Outcome};
use crate::output::short;
use crate::wait::{self, Seen};
use muster_contract::client::HubClient;
use muster_contract::v1::change::Change;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::host::HostView;
use muster_vocabulary::ClusterStatus::{self, *};
use muster_vocabulary::{HostStatus, OperatorStatus, PreparationStatus};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// More hosts than this are counted by stage instead of named.
const NAMED: usize = 6;

/// What a cluster's state means for a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    Done,
    /// It will not get there any more.
    Failed(Why),
    NotYet,
}

/// Why it will not get there, and what to do; the hub knows that when the text is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    pub cause: String,
    pub next: &'static str,
}

impl Why {
    fn told_by_hub(cause: String) -> Self {
        Self { cause, next: "" }
    }
}

/// Installed, and working.
pub fn installed(cluster: &ClusterView) -> Stand {
    let info = &cluster.status_info;
    let preparation = &cluster.last_installation_preparation;
    match cluster.status.known() {
        Some(Installed | AddingHosts) => Stand::Done,
        Some(Error) => Stand::Failed(Why::told_by_hub(format!("the installation failed: {info}"))),
        Some(Cancelled) => Stand::Failed(Why::told_by_hub(format!(
            "the installation was cancelled: {info}"
        ))),
        Some(PreparingForInstallation | Installing | Finalizing | InstallingPendingUserAction) => {
            Stand::NotYet
        }
        // Back where it began, or never left.
        Some(PendingForInput | Insufficient | Ready | Unmonitored)
            if preparation.status == PreparationStatus::Failed =>
        {
            Stand::Failed(Why {
                cause: format!("the preparation failed: {}", preparation.reason),
                next: "fix that, then install it again",
            })
        }
        Some(PendingForInput | Insufficient | Ready | Unmonitored) => Stand::Failed(Why {
            cause: format!("it is {}: no installation is under way", cluster.status),
            next: "start one with `muster cluster install`",
        }),
        None => Stand::NotYet,
    }
}

/// Complete, with hosts that are good enough: it can be installed.
pub fn ready(cluster: &ClusterView) -> Stand {
    match cluster.status.known() {
        Some(Ready) => Stand::Done,
        Some(Insufficient | PendingForInput) | None => Stand::NotYet,
        Some(
            PreparingForInstallation
            | Installing
            | InstallingPendingUserAction
            | Finalizing
            | Installed
            | AddingHosts
            | Error
            | Cancelled
            | Unmonitored,
        ) => Stand::Failed(Why::told_by_hub(format!(
            "it is {}, past being ready",
            cluster.status
        ))),
    }
}

/// No longer under way: cancelled, or ready again when nothing was written yet.
pub fn cancelled(cluster: &ClusterView) -> Stand {
    match cluster.status.known().map(ClusterStatus::is_underway) {
        Some(false) => Stand::Done,
        Some(true) | None => Stand::NotYet,
    }
}

/// As before the installation: its hosts are discovered again, and it can be installed.
pub fn reset(cluster: &ClusterView) -> Stand {
    match cluster.status == Ready {
        true => Stand::Done,
        false => Stand::NotYet,
    }
}

/// Waits until a cluster is where a verb sends it.
pub async fn wait(
    hub: &HubClient,
    from: i64,
    timeout: Duration,
    id: Uuid,
    judge: impl Fn(&ClusterView) -> Stand,
) -> Outcome<ClusterView> {
    let look = async || {
        let now = hub.cluster(id).await?;
        match judge(&now) {
            Stand::Done => Ok(Seen::Done(now)),
            Stand::NotYet => Ok(Seen::NotYet(line(&now))),
            Stand::Failed(why) => {
                Err(Failure::other(format!("cluster/{}: {}", now.name, why.cause)).next(why.next))
            }
        }
    };
    let concerns = |change: &Change| change.id == id || change.cluster_id == Some(id);
    let outcome = wait::until(hub, from, timeout, concerns, look).await;
    match outcome {
        Ok(now) => Ok(now),
        Err(failure) if failure.kind == Kind::TimedOut || failure.next.is_none() => {
            Err(with_reason(hub, id, failure).await)
        }
        Err(failure) => Err(failure),
    }
}

async fn with_reason(hub: &HubClient, id: Uuid, failure: Failure) -> Failure {
    match hub.explain_cluster(id).await {
        Ok(told) if !told.next_action.is_empty() => failure.next(told.next_action),
        Ok(_) | Err(_) => failure,
    }
}

/// `cluster/demo installing 34%: master-0 Rebooting, master-1 Writing image to disk`.
pub fn line(cluster: &ClusterView) -> String {
    let progress = cluster.progress.clone().unwrap_or_default();
    let mut text = format!(
        "cluster/{} {} {}%",
        cluster.name, cluster.status, progress.total_percentage
    );
    if cluster.status == Finalizing && !progress.finalizing_stage.is_empty() {
        text += &format!(", {}", progress.finalizing_stage);
    }
    let parts = match waiting_for(cluster) {
        operators if cluster.status == Finalizing && !operators.is_empty() => operators,
        _ => host_parts(cluster.hosts.as_deref().unwrap_or_default()),
    };
    match parts.is_empty() {
        true => text,
        false => format!("{text}: {}", parts.join(", ")),
    }
}

/// Operators that are not there yet.
fn waiting_for(cluster: &ClusterView) -> Vec<String> {
    let operators = cluster.monitored_operators.as_deref().unwrap_or_default();
    operators
        .iter()
        .filter(|operator| operator.status != OperatorStatus::Available)
        .map(|operator| match operator.status.is_empty() {
            true => format!("{} not reported", operator.name),
            false => format!("{} {}", operator.name, operator.status),
        })
        .collect()
}

fn host_parts(hosts: &[HostView]) -> Vec<String> {
    if hosts.len() <= NAMED {
        let mut parts: Vec<String> = hosts
            .iter()
            .map(|host| format!("{} {}", host_name(host), word(host)))
            .collect();
        parts.sort();
        return parts;
    }
    let mut counts = BTreeMap::<&str, usize>::new();
    hosts
        .iter()
        .for_each(|host| *counts.entry(word(host)).or_default() += 1);
    counts
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect()
}

/// A stage where the installer writes, the status where somebody is needed or nothing was reported.
fn word(host: &HostView) -> &str {
    let stage = host.progress.as_ref().map(|progress| &progress.current_stage);
    match stage {
        Some(stage) if host.status.is(HostStatus::is_writing) && !stage.is_empty() => stage.as_str(),
        Some(_) | None => host.status.as_str(),
    }
}

/// The name given to it, the name it has, or the first part of its id.
pub fn host_name(host: &HostView) -> String {
    // A host that reported nothing yet is called by its id.
    if !host.requested_hostname.is_empty() && host.requested_hostname.parse::<Uuid>().is_err() {
        return host.requested_hostname.clone();
    }
    #[derive(serde::Deserialize)]
    struct Inventory {
        hostname: String,
    }
    match serde_json::from_str::<Inventory>(&host.inventory) {
        Ok(inventory) if !inventory.hostname.is_empty() => inventory.hostname,
        Ok(_) | Err(_) => short(host.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_contract::v2::cluster::{ClusterProgressView, PreparationView};
    use muster_contract::v2::host::HostProgressView;
    use muster_contract::v2::operator::MonitoredOperatorView;

    fn cluster(status: &'static str) -> ClusterView {
        ClusterView {
            name: "demo".into(),
            status: status.into(),
            status_info: "info".into(),
            ..ClusterView::default()
        }
    }

    fn host(name: &str, status: &'static str, stage: &'static str) -> HostView {
        HostView {
            requested_hostname: name.into(),
            status: status.into(),
            progress: Some(HostProgressView {
                current_stage: stage.into(),
                ..HostProgressView::default()
            }),
            ..HostView::default()
        }
    }

    #[test]
    fn a_cluster_that_is_ready_again_tells_why_its_preparation_failed() {
        let failed = ClusterView {
            last_installation_preparation: PreparationView {
                status: "failed".into(),
                reason: "no program".into(),
            },
            ..cluster("ready")
        };
        let why = |cluster| match installed(cluster) {
            Stand::Failed(why) => why.cause,
            other => panic!("{other:?}"),
        };
        assert_eq!(why(&failed), "the preparation failed: no program");
        assert_eq!(
            why(&cluster("ready")),
            "it is ready: no installation is under way"
        );
    }

    #[test]
    fn only_working_clusters_count_as_installed() {
        assert_eq!(installed(&cluster("installed")), Stand::Done);
        assert!(matches!(installed(&cluster("error")), Stand::Failed(why) if why.cause.ends_with("info")));
        assert!(matches!(installed(&cluster("cancelled")), Stand::Failed(_)));
        for underway in [
            "preparing-for-installation",
            "installing",
            "finalizing",
            "installing-pending-user-action",
        ] {
            assert_eq!(installed(&cluster(underway)), Stand::NotYet, "{underway}");
        }
    }

    #[test]
    fn a_reset_is_done_when_the_cluster_can_be_installed_again() {
        assert_eq!(reset(&cluster("cancelled")), Stand::NotYet);
        assert_eq!(reset(&cluster("insufficient")), Stand::NotYet);
        assert_eq!(reset(&cluster("ready")), Stand::Done);
    }

    #[test]
    fn nobody_waits_for_a_running_cluster_to_become_ready() {
        assert_eq!(ready(&cluster("pending-for-input")), Stand::NotYet);
        assert!(matches!(ready(&cluster("installing")), Stand::Failed(_)));
    }

    #[test]
    fn a_host_that_reported_nothing_yet_is_named_by_the_first_part_of_its_id() {
        let id = "68093fef-941d-4ffd-8ba4-fd04e0289865";
        let silent = HostView {
            id: id.parse().unwrap(),
            ..host(id, "discovering", "")
        };
        assert_eq!(host_name(&silent), "68093fef");
    }

    #[test]
    fn few_hosts_are_named_and_many_are_counted() {
        let progress = Some(ClusterProgressView {
            total_percentage: 34,
            ..ClusterProgressView::default()
        });
        let few = ClusterView {
            progress: progress.clone(),
            hosts: Some(vec![
                host("b", "installing-pending-user-action", "Rebooting"),
                host("a", "installing-in-progress", "Rebooting"),
            ]),
            ..cluster("installing")
        };
        assert_eq!(
            line(&few),
            "cluster/demo installing 34%: a Rebooting, b installing-pending-user-action"
        );
        let many = ClusterView {
            progress,
            hosts: Some(vec![host("x", "installing-in-progress", "Rebooting"); 9]),
            ..cluster("installing")
        };
        assert_eq!(line(&many), "cluster/demo installing 34%: 9 Rebooting");
    }

    #[test]
    fn the_last_phase_tells_what_it_waits_for() {
        let operator = |name: &'static str, status: &'static str| MonitoredOperatorView {
            name: name.into(),
            status: status.into(),
            ..MonitoredOperatorView::default()
        };
        let finalizing = ClusterView {
            progress: Some(ClusterProgressView {
                total_percentage: 85,
                finalizing_stage: "Waiting for cluster operators".into(),
                ..ClusterProgressView::default()
            }),
            monitored_operators: Some(vec![
                operator("console", "progressing"),
                operator("cvo", "available"),
            ]),
            ..cluster("finalizing")
        };
        assert_eq!(
            line(&finalizing),
            "cluster/demo finalizing 85%, Waiting for cluster operators: console progressing"
        );
    }
}
