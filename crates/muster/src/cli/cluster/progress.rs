//! How far a cluster is, in one line, and whether that is where it should get to.

use crate::cli::host::settle::{self, Settled};
use crate::exit::{Failure, Kind, Outcome};
use crate::output::short;
use crate::wait::{self, Seen};
use muster_contract::client::HubClient;
use muster_contract::v1::change::Change;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::host::HostView;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// More hosts than this are counted by stage instead of named.
const NAMED: usize = 6;

/// What a cluster's state means for a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    Done,
    /// It will not get there any more; the text says why.
    Failed(String),
    NotYet,
}

/// Installed, and working.
pub fn installed(cluster: &ClusterView) -> Stand {
    match cluster.status.as_ref() {
        "installed" | "adding-hosts" => Stand::Done,
        "error" => Stand::Failed(format!("the installation failed: {}", cluster.status_info)),
        "cancelled" => Stand::Failed(format!("the installation was cancelled: {}", cluster.status_info)),
        "preparing-for-installation" | "installing" | "finalizing" | "installing-pending-user-action" => {
            Stand::NotYet
        }
        // Back where it began.
        status => match cluster.last_installation_preparation.status.as_ref() {
            "failed" => Stand::Failed(format!(
                "the preparation failed: {}",
                cluster.last_installation_preparation.reason
            )),
            _ => Stand::Failed(format!("it is {status} again: the installation was stopped")),
        },
    }
}

pub fn cancelled(cluster: &ClusterView) -> Stand {
    match cluster.status.as_ref() {
        "preparing-for-installation" | "installing" | "finalizing" | "installing-pending-user-action" => {
            Stand::NotYet
        }
        // Cancelled, or already reset by somebody else.
        _ => Stand::Done,
    }
}

/// Put together again: its hosts are discovered and judged as before the installation.
pub fn reset(cluster: &ClusterView) -> Stand {
    let is_draft = matches!(
        cluster.status.as_ref(),
        "ready" | "insufficient" | "pending-for-input"
    );
    let hosts = cluster.hosts.as_deref().unwrap_or_default();
    let settled = hosts
        .iter()
        .all(|host| settle::discovered(host) != Settled::NotYet);
    match is_draft && settled {
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
            Stand::Failed(why) => Err(Failure::other(format!("cluster/{}: {why}", now.name))),
        }
    };
    let concerns = |change: &Change| change.id == id || change.cluster_id == Some(id);
    let outcome = wait::until(hub, from, timeout, concerns, look).await;
    match outcome {
        Ok(now) => Ok(now),
        Err(failure) if matches!(failure.kind, Kind::TimedOut | Kind::Other) => {
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
    if cluster.status == "finalizing" && !progress.finalizing_stage.is_empty() {
        text += &format!(", {}", progress.finalizing_stage);
    }
    let parts = match waiting_for(cluster) {
        operators if cluster.status == "finalizing" && !operators.is_empty() => operators,
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
        .filter(|operator| operator.status != "available")
        .map(|operator| match operator.status.as_ref() {
            "" => format!("{} not heard of", operator.name),
            status => format!("{} {status}", operator.name),
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
    let stage = host
        .progress
        .as_ref()
        .map(|progress| progress.current_stage.as_ref());
    match (host.status.as_ref(), stage) {
        ("installing" | "installing-in-progress", Some(stage)) if !stage.is_empty() => stage,
        (status, _) => status,
    }
}

/// The name given to it, the name it has, or the first part of its id.
pub fn host_name(host: &HostView) -> String {
    if !host.requested_hostname.is_empty() {
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
        assert_eq!(
            installed(&failed),
            Stand::Failed("the preparation failed: no program".into())
        );
        assert!(matches!(installed(&cluster("ready")), Stand::Failed(_)));
    }

    #[test]
    fn only_working_clusters_count_as_installed() {
        assert_eq!(installed(&cluster("installed")), Stand::Done);
        assert!(matches!(installed(&cluster("error")), Stand::Failed(why) if why.ends_with("info")));
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
    fn a_reset_is_done_when_all_hosts_are_discovered_again() {
        let with = |status| ClusterView {
            hosts: Some(vec![host("a", "known", ""), host("b", status, "")]),
            ..cluster("ready")
        };
        assert_eq!(reset(&with("resetting-pending-user-action")), Stand::NotYet);
        assert_eq!(reset(&with("insufficient")), Stand::Done);
        assert_eq!(reset(&cluster("cancelled")), Stand::NotYet);
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
