//! What the conditions of an AgentClusterInstall say: one row of the matrix for each state of the cluster.

use super::stage::Stage;
use super::tally::{Count, Tally};
use super::{Snapshot, is_held};
use crate::controller::cluster_deployment::snapshot::Row;
use crate::crd::agent_cluster_install::{ProvisionRequirements, condition, reason};
use crate::crd::condition::{Finding, Truth};
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::validation::ValidationsInfo;
use muster_domain::{checks, cluster};
use muster_vocabulary::{PreparationStatus, RoleSet};

/// While the hub has no such cluster.
pub fn absent(why: &str) -> Vec<Finding> {
    let unknown = |type_| Finding::new(type_, Truth::Unknown, reason::NOT_AVAILABLE, why);
    [
        condition::VALIDATED,
        condition::REQUIREMENTS_MET,
        condition::COMPLETED,
        condition::FAILED,
        condition::STOPPED,
    ]
    .map(unknown)
    .into()
}

pub fn findings(snapshot: &Snapshot, row: &Row, needs: &ProvisionRequirements) -> Vec<Finding> {
    let stage = row.stage();
    vec![
        requirements_met(stage, needs, &Tally::of(snapshot, row)),
        validated(stage, &row.view),
        completed(stage, &row.view, is_held(snapshot)),
        failed(stage, &row.view),
        stopped(stage, &row.view),
        prepared(&row.view),
    ]
}

fn requirements_met(stage: Stage, needs: &ProvisionRequirements, tally: &Tally) -> Finding {
    let say = |status, reason: &str, message: &str| {
        Finding::new(condition::REQUIREMENTS_MET, status, reason, message)
    };
    match stage {
        Stage::Insufficient | Stage::PendingForInput => say(
            Truth::False,
            reason::NOT_READY,
            "The cluster is not ready to be installed.",
        ),
        Stage::Ready => agents_suffice(needs, tally),
        Stage::Preparing | Stage::Installing | Stage::Finalizing | Stage::PendingUserAction => say(
            Truth::True,
            reason::ALREADY_INSTALLING,
            "All requirements are met; the cluster is being installed.",
        ),
        Stage::AddingHosts => say(
            Truth::True,
            reason::ALREADY_INSTALLING,
            "The cluster runs and takes on more hosts.",
        ),
        Stage::Installed | Stage::Error => say(
            Truth::True,
            reason::INSTALLATION_STOPPED,
            "The installation of the cluster is over.",
        ),
        Stage::Cancelled | Stage::Other => say(
            Truth::Unknown,
            reason::UNKNOWN_STATUS,
            "The hub cannot tell in this state of the cluster.",
        ),
    }
}

/// Exactly as many hosts of each role as are wanted, all of them approved.
fn agents_suffice(needs: &ProvisionRequirements, tally: &Tally) -> Finding {
    let say =
        |reason: &str, message: String| Finding::new(condition::REQUIREMENTS_MET, false, reason, message);
    let (wanted, found) = (Count::of(needs), tally.found);
    if wanted != found {
        let part = |what: RoleSet, wanted: i64, found: i64| format!("{what}: {found} of {wanted}");
        let parts = [
            part(RoleSet::Masters, wanted.masters, found.masters),
            part(RoleSet::Arbiters, wanted.arbiters, found.arbiters),
            part(RoleSet::Workers, wanted.workers, found.workers),
        ];
        return say(
            reason::INSUFFICIENT_AGENTS,
            format!(
                "The hosts do not match provisionRequirements ({}).",
                parts.join(", ")
            ),
        );
    }
    if !tally.unsynced.is_empty() {
        let names = tally.unsynced.join(", ");
        return say(
            reason::UNSYNCED_AGENTS,
            format!("The specs of some Agents are not in effect: {names}."),
        );
    }
    if tally.approved < wanted.total() {
        return say(
            reason::UNAPPROVED_AGENTS,
            format!("{} of {} Agents are approved.", tally.approved, wanted.total()),
        );
    }
    Finding::new(
        condition::REQUIREMENTS_MET,
        true,
        reason::READY,
        "The cluster can be installed.",
    )
}

/// The cluster can be installed now: the same test as the condition's.
pub fn can_start(needs: &ProvisionRequirements, tally: &Tally) -> bool {
    let total = Count::of(needs).total();
    agents_suffice(needs, tally).status == Truth::True
        && tally.ready.total() == total
        && tally.approved == total
}

fn validated(stage: Stage, view: &ClusterView) -> Finding {
    let say =
        |status, reason: &str, message: String| Finding::new(condition::VALIDATED, status, reason, message);
    let passing = || {
        say(
            Truth::True,
            reason::VALIDATIONS_PASSING,
            "The checks of the cluster pass.".into(),
        )
    };
    match stage {
        Stage::Insufficient => say(
            Truth::False,
            reason::VALIDATIONS_FAILING,
            complaints("Checks of the cluster fail", view),
        ),
        Stage::PendingForInput => say(
            Truth::False,
            reason::VALIDATIONS_USER_PENDING,
            complaints("The cluster waits for input", view),
        ),
        Stage::AddingHosts => passing(),
        Stage::Ready
        | Stage::Preparing
        | Stage::Installing
        | Stage::Finalizing
        | Stage::PendingUserAction
        | Stage::Installed
        | Stage::Error
        | Stage::Cancelled
        | Stage::Other => match view.validations_info.as_str() {
            "" => say(
                Truth::Unknown,
                reason::VALIDATIONS_UNKNOWN,
                "The hub has not checked the cluster yet.".into(),
            ),
            _ => passing(),
        },
    }
}

/// What fails and what is waited for, in the words of the checks.
fn complaints(what: &str, view: &ClusterView) -> String {
    let all = validations(view);
    let text = checks::summary(all.values().flatten().filter_map(|check| {
        Some(checks::Summarized {
            id: &check.id,
            status: check.status.known()?,
            blocks: cluster::checks::blocks(&check.id),
            message: &check.message,
        })
    }));
    match text.is_empty() {
        true => format!("{what}."),
        false => format!("{what}: {text}"),
    }
}

pub fn validations(view: &ClusterView) -> ValidationsInfo {
    serde_json::from_str(&view.validations_info).unwrap_or_default()
}

fn completed(stage: Stage, view: &ClusterView, held: bool) -> Finding {
    let say =
        |status, reason: &str, message: &str| Finding::new(condition::COMPLETED, status, reason, message);
    match stage {
        Stage::Ready if held => say(
            Truth::False,
            reason::ON_HOLD,
            "The installation is on hold. It starts when neither holdInstallation nor the pause of the \
             ClusterDeployment is set.",
        ),
        Stage::Insufficient | Stage::PendingForInput | Stage::Ready => say(
            Truth::False,
            reason::NOT_STARTED,
            "The installation has not begun.",
        ),
        Stage::Preparing | Stage::Installing | Stage::Finalizing | Stage::PendingUserAction => {
            say(Truth::False, reason::IN_PROGRESS, &progress(view))
        }
        Stage::Installed | Stage::AddingHosts => {
            say(Truth::True, reason::COMPLETED, "The cluster is installed.")
        }
        Stage::Error => say(
            Truth::False,
            reason::FAILED,
            &format!("The installation failed: {}", view.status_info),
        ),
        Stage::Cancelled | Stage::Other => say(
            Truth::Unknown,
            reason::UNKNOWN_STATUS,
            "The hub cannot tell in this state of the cluster.",
        ),
    }
}

/// The hub's words, and how far the cluster's own operators are when that is known.
fn progress(view: &ClusterView) -> String {
    let mut operators = view.monitored_operators.iter().flatten();
    let version = operators.find(|operator| operator.name == "cvo" && !operator.status.is_empty());
    match version {
        Some(cvo) if cvo.status_info.is_empty() => {
            format!("{}. Cluster version: {}", view.status_info, cvo.status)
        }
        Some(cvo) => format!(
            "{}. Cluster version: {}: {}",
            view.status_info, cvo.status, cvo.status_info
        ),
        None => view.status_info.clone().into_owned(),
    }
}

fn failed(stage: Stage, view: &ClusterView) -> Finding {
    let not = || {
        Finding::new(
            condition::FAILED,
            false,
            reason::NOT_FAILED,
            "The installation has not failed.",
        )
    };
    match stage {
        Stage::Error => Finding::new(
            condition::FAILED,
            true,
            reason::FAILED,
            format!("The installation failed: {}", view.status_info),
        ),
        Stage::Insufficient
        | Stage::PendingForInput
        | Stage::Ready
        | Stage::Preparing
        | Stage::Installing
        | Stage::Finalizing
        | Stage::PendingUserAction
        | Stage::Installed
        | Stage::AddingHosts
        | Stage::Cancelled
        | Stage::Other => not(),
    }
}

fn stopped(stage: Stage, view: &ClusterView) -> Finding {
    let say =
        |status: bool, reason: &str, message: &str| Finding::new(condition::STOPPED, status, reason, message);
    match stage {
        Stage::Installed | Stage::AddingHosts => say(
            true,
            reason::COMPLETED,
            "The installation is over: the cluster is installed.",
        ),
        Stage::Error => say(
            true,
            reason::FAILED,
            &format!("The installation is over: it failed. {}", view.status_info),
        ),
        Stage::Cancelled => say(
            true,
            reason::CANCELLED,
            "The installation is over: it was cancelled.",
        ),
        Stage::Insufficient
        | Stage::PendingForInput
        | Stage::Ready
        | Stage::Preparing
        | Stage::Installing
        | Stage::Finalizing
        | Stage::PendingUserAction
        | Stage::Other => say(false, reason::NOT_STOPPED, "The installation is not over."),
    }
}

/// The reasons are sentences: that is how they are known.
fn prepared(view: &ClusterView) -> Finding {
    let say = |status: bool, reason: &str, message: &str| {
        Finding::new(condition::LAST_PREPARATION_FAILED, status, reason, message)
    };
    let last = &view.last_installation_preparation;
    match last.status.known() {
        Some(PreparationStatus::Failed) => say(true, reason::PREPARATION_FAILED, &last.reason),
        Some(PreparationStatus::Success) => say(false, reason::PREPARATION_NOT_FAILING, ""),
        Some(PreparationStatus::NotStarted) | None => say(false, reason::PREPARATION_NEVER, ""),
    }
}
