//! When a host has arrived where a verb sends it.

use crate::exit::{Failure, Kind, Outcome};
use crate::wait::{self, Seen};
use muster_contract::client::HubClient;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::host::HostView;
use muster_vocabulary::HostStatus::*;
use muster_vocabulary::{CheckStatus, ClusterStatus, Word};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// What a host's state means for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    Yes,
    /// It is where it should be and nothing more will happen by itself, but it is not ready.
    Unready,
    /// It will not arrive any more.
    Failed,
    NotYet,
}

/// Bound to the cluster, and judged with its facts.
pub fn bound(host: &HostView, cluster: Uuid) -> Settled {
    if host.cluster_id != Some(cluster) {
        return Settled::NotYet;
    }
    match host.status.known() {
        Some(Known) => Settled::Yes,
        Some(Insufficient | PendingForInput | Error) => Settled::Unready,
        Some(
            Discovering
            | Disconnected
            | Disabled
            | PreparingForInstallation
            | PreparingFailed
            | PreparingSuccessful
            | Installing
            | InstallingInProgress
            | InstallingPendingUserAction
            | ResettingPendingUserAction
            | Installed
            | Cancelled
            | Resetting
            | AddedToExistingCluster
            | DiscoveringUnbound
            | KnownUnbound
            | DisconnectedUnbound
            | InsufficientUnbound
            | DisabledUnbound
            | Binding
            | Unbinding
            | UnbindingPendingUserAction
            | Reclaiming
            | ReclaimingRebooting,
        )
        | None => Settled::NotYet,
    }
}

/// The same for a cluster that runs: there a host depends on no other, so what is not checked yet soon will be.
pub fn bound_to(host: &HostView, cluster: &ClusterView) -> Settled {
    match bound(host, cluster.id) {
        Settled::Unready if cluster.status == ClusterStatus::AddingHosts && only_waits(host) => {
            Settled::NotYet
        }
        settled => settled,
    }
}

/// Some checks have no outcome yet, and none has failed.
fn only_waits(host: &HostView) -> bool {
    #[derive(serde::Deserialize)]
    struct Check {
        status: Word<CheckStatus>,
    }
    let groups = serde_json::from_str::<BTreeMap<String, Vec<Check>>>(&host.validations_info);
    let checks: Vec<Check> = groups.unwrap_or_default().into_values().flatten().collect();
    checks.iter().any(|check| check.status == CheckStatus::Pending)
        && !checks.iter().any(|check| check.status.is(CheckStatus::complains))
}

/// In the free pool, and judged.
pub fn free(host: &HostView) -> Settled {
    match host.status.known() {
        Some(KnownUnbound) => Settled::Yes,
        Some(InsufficientUnbound | DisabledUnbound) => Settled::Unready,
        Some(
            Discovering
            | Known
            | Disconnected
            | Insufficient
            | Disabled
            | PreparingForInstallation
            | PreparingFailed
            | PreparingSuccessful
            | PendingForInput
            | Installing
            | InstallingInProgress
            | InstallingPendingUserAction
            | ResettingPendingUserAction
            | Installed
            | Cancelled
            | Error
            | Resetting
            | AddedToExistingCluster
            | DiscoveringUnbound
            | DisconnectedUnbound
            | Binding
            | Unbinding
            | UnbindingPendingUserAction
            | Reclaiming
            | ReclaimingRebooting,
        )
        | None => Settled::NotYet,
    }
}

/// Part of its cluster: the installed system runs.
pub fn installed(host: &HostView) -> Settled {
    match host.status.known() {
        Some(AddedToExistingCluster | Installed) => Settled::Yes,
        Some(Error | Cancelled) => Settled::Failed,
        // It was reset, or taken back: nothing is being installed any more.
        Some(Known | Insufficient | PendingForInput) => Settled::Failed,
        Some(
            DiscoveringUnbound | KnownUnbound | DisconnectedUnbound | InsufficientUnbound | DisabledUnbound,
        ) => Settled::Failed,
        Some(
            Discovering
            | Disconnected
            | Disabled
            | PreparingForInstallation
            | PreparingFailed
            | PreparingSuccessful
            | Installing
            | InstallingInProgress
            | InstallingPendingUserAction
            | ResettingPendingUserAction
            | Resetting
            | Binding
            | Unbinding
            | UnbindingPendingUserAction
            | Reclaiming
            | ReclaimingRebooting,
        )
        | None => Settled::NotYet,
    }
}

/// Discovered again by its cluster, and judged.
pub fn discovered(host: &HostView) -> Settled {
    match host.status.known() {
        Some(Known) => Settled::Yes,
        Some(Insufficient | PendingForInput | Disabled) => Settled::Unready,
        Some(
            Discovering
            | Disconnected
            | PreparingForInstallation
            | PreparingFailed
            | PreparingSuccessful
            | Installing
            | InstallingInProgress
            | InstallingPendingUserAction
            | ResettingPendingUserAction
            | Installed
            | Cancelled
            | Error
            | Resetting
            | AddedToExistingCluster
            | DiscoveringUnbound
            | KnownUnbound
            | DisconnectedUnbound
            | InsufficientUnbound
            | DisabledUnbound
            | Binding
            | Unbinding
            | UnbindingPendingUserAction
            | Reclaiming
            | ReclaimingRebooting,
        )
        | None => Settled::NotYet,
    }
}

/// The stage of an installation; empty when there is none.
pub fn stage(host: &HostView) -> String {
    match &host.progress {
        Some(progress) if !progress.current_stage.is_empty() => match progress.installation_percentage {
            0 => progress.current_stage.to_string(),
            percent => format!("{} ({percent}%)", progress.current_stage),
        },
        Some(_) | None => String::new(),
    }
}

/// Waits until a host has settled, and says why when it is not ready there.
pub async fn wait(
    hub: &HubClient,
    from: i64,
    timeout: Duration,
    host: (Uuid, Uuid, &str),
    judge: impl Fn(&HostView) -> Settled,
) -> Outcome<HostView> {
    let (infra_env, id, name) = host;
    let look = async || {
        let now = hub.host(infra_env, id).await?;
        Ok(match judge(&now) {
            Settled::Yes | Settled::Unready | Settled::Failed => Seen::Done(now),
            Settled::NotYet => Seen::NotYet(line(&now, name)),
        })
    };
    let concerns = |change: &muster_contract::v1::change::Change| change.id == id;
    let outcome = wait::until(hub, from, timeout, concerns, look).await;
    match outcome {
        Ok(now) => match judge(&now) {
            Settled::Unready => {
                say_why(hub, &now, name).await;
                Ok(now)
            }
            Settled::Failed => {
                let failure = Failure::other(format!("host/{name} is {}: {}", now.status, now.status_info));
                Err(with_reason(hub, infra_env, id, failure).await)
            }
            Settled::Yes | Settled::NotYet => Ok(now),
        },
        Err(failure) if failure.kind == Kind::TimedOut => Err(with_reason(hub, infra_env, id, failure).await),
        Err(failure) => Err(failure),
    }
}

fn line(host: &HostView, name: &str) -> String {
    let stage = stage(host);
    let about = if stage.is_empty() {
        host.status_info.as_ref()
    } else {
        &stage
    };
    format!("host/{name} is {}: {about}", host.status)
}

/// The host is where it was sent, so this is a note and not an error.
async fn say_why(hub: &HubClient, host: &HostView, name: &str) {
    eprintln!("note: host/{name} is {}: {}", host.status, host.status_info);
    if let Ok(told) = hub.explain_host(host.infra_env_id, host.id).await {
        for blocker in &told.blockers {
            eprintln!("  {}: {}", blocker.code, blocker.reason);
        }
        if !told.next_action.is_empty() {
            eprintln!("next: {}", told.next_action);
        }
    }
}

async fn with_reason(hub: &HubClient, infra_env: Uuid, id: Uuid, failure: Failure) -> Failure {
    match hub.explain_host(infra_env, id).await {
        Ok(told) if !told.next_action.is_empty() => failure.next(told.next_action),
        Ok(_) | Err(_) => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(status: &'static str, cluster: Option<u128>) -> HostView {
        HostView {
            status: status.into(),
            cluster_id: cluster.map(Uuid::from_u128),
            ..HostView::default()
        }
    }

    #[test]
    fn a_host_known_in_the_old_cluster_has_not_arrived_in_the_new_one() {
        let new = Uuid::from_u128(2);
        assert_eq!(bound(&host("known", Some(1)), new), Settled::NotYet);
        assert_eq!(bound(&host("known-unbound", None), new), Settled::NotYet);
        assert_eq!(bound(&host("binding", Some(2)), new), Settled::NotYet);
        assert_eq!(bound(&host("pending-for-input", Some(2)), new), Settled::Unready);
        assert_eq!(bound(&host("known", Some(2)), new), Settled::Yes);
    }

    #[test]
    fn a_host_of_a_running_cluster_has_not_settled_before_it_was_checked() {
        let judge = |cluster: &'static str, checks: &str| {
            let cluster = ClusterView {
                id: Uuid::from_u128(1),
                status: cluster.into(),
                ..ClusterView::default()
            };
            let host = HostView {
                validations_info: checks.into(),
                ..host("insufficient", Some(1))
            };
            bound_to(&host, &cluster)
        };
        let waits = r#"{"network":[{"status":"pending"},{"status":"success"}]}"#;
        let fails = r#"{"network":[{"status":"pending"}],"hardware":[{"status":"failure"}]}"#;
        assert_eq!(judge("adding-hosts", waits), Settled::NotYet);
        assert_eq!(judge("adding-hosts", fails), Settled::Unready);
        // There it may wait for hosts that are bound later.
        assert_eq!(judge("insufficient", waits), Settled::Unready);
    }

    #[test]
    fn an_installation_that_ended_without_a_node_has_failed() {
        let judge = |status| installed(&host(status, Some(1)));
        assert_eq!(judge("added-to-existing-cluster"), Settled::Yes);
        for underway in [
            "installing",
            "installing-in-progress",
            "installing-pending-user-action",
        ] {
            assert_eq!(judge(underway), Settled::NotYet, "{underway}");
        }
        for over in ["error", "cancelled", "known", "discovering-unbound"] {
            assert_eq!(judge(over), Settled::Failed, "{over}");
        }
    }

    #[test]
    fn a_host_that_waits_for_a_person_is_not_free_yet() {
        assert_eq!(
            free(&host("unbinding-pending-user-action", None)),
            Settled::NotYet
        );
        assert_eq!(free(&host("discovering-unbound", None)), Settled::NotYet);
        assert_eq!(free(&host("known-unbound", None)), Settled::Yes);
    }
}
