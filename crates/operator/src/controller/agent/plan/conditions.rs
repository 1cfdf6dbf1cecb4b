//! The conditions of an Agent, from the state of its host.

use super::hold::Hold;
use crate::crd::agent::{condition, reason};
use crate::crd::condition::{Finding, Truth};
use muster_contract::v1::host::HostDetail;
use muster_contract::v2::validation::ValidationsInfo;
use muster_domain::checks;
use muster_vocabulary::HostStatus::{self, *};
use muster_vocabulary::{Route, Word};

/// What a condition says: status, reason, message.
type Verdict = (Truth, &'static str, String);

/// All but SpecSynced, in the order in which they are shown. `named`: somebody or the host itself has said its name.
/// `hold`: the host is not offered, whatever its checks say.
pub fn findings(row: &HostDetail, approved: bool, named: bool, hold: Option<Hold>) -> Vec<Finding> {
    let status = &row.host.status;
    let checks = Checks::of(row, named);
    let state = format!("The host is {status}.");
    let unknown = || {
        let unknown = || (Truth::Unknown, reason::UNKNOWN_STATUS, state.clone());
        [unknown(), checks.passing(), unknown(), bound(status)]
    };
    let [requirements, validated, installed, bound] = match status.known() {
        Some(Known | KnownUnbound) => [ready(approved), checks.passing(), not_started(), bound(status)],
        Some(Discovering | Disconnected | DiscoveringUnbound | DisconnectedUnbound) => {
            [not_ready(&state), checks.passing(), not_started(), bound(status)]
        }
        Some(Insufficient | InsufficientUnbound) => {
            let failing = (
                Truth::False,
                reason::VALIDATIONS_FAILING,
                checks.complaints("Checks fail"),
            );
            [not_ready(&state), failing, not_started(), bound(status)]
        }
        Some(PendingForInput) => {
            let pending = (
                Truth::False,
                reason::VALIDATIONS_USER_PENDING,
                checks.complaints("The host waits for input"),
            );
            [not_ready(&state), pending, not_started(), bound(status)]
        }
        Some(
            PreparingForInstallation
            | PreparingSuccessful
            | Installing
            | InstallingInProgress
            | InstallingPendingUserAction,
        ) => {
            let going = (
                Truth::True,
                reason::ALREADY_INSTALLING,
                "The installation has begun.".into(),
            );
            let in_progress = (Truth::False, reason::IN_PROGRESS, progress(row));
            [going, checks.passing(), in_progress, bound(status)]
        }
        Some(Installed | AddedToExistingCluster) => {
            let done = (Truth::True, reason::COMPLETED, "The host is installed.".into());
            [stopped(), checks.passing(), done, bound(status)]
        }
        Some(Error) => {
            let failed = (
                Truth::False,
                reason::FAILED,
                format!("The installation failed: {}", row.host.status_info),
            );
            [stopped(), checks.passing(), failed, bound(status)]
        }
        // Nothing goes on any more, and nothing was installed.
        Some(stopped_at @ (Cancelled | PreparingFailed)) => {
            let what = match stopped_at == Cancelled {
                true => "The installation was cancelled",
                false => "The hub could not prepare the installation",
            };
            let failed = (
                Truth::False,
                reason::FAILED,
                format!("{what}: {}", row.host.status_info),
            );
            [stopped(), checks.passing(), failed, bound(status)]
        }
        Some(Binding) => all(
            reason::BINDING,
            reason::BINDING,
            "The hub is handing the host over to its cluster.",
        ),
        Some(back @ (Unbinding | UnbindingPendingUserAction | Reclaiming | ReclaimingRebooting)) => {
            match back.way_back() {
                Some(Route::AgentRestart) => all(
                    reason::UNBINDING,
                    reason::UNBINDING,
                    "The host is leaving its cluster.",
                ),
                Some(Route::Boot) => all(
                    reason::UNBINDING,
                    reason::UNBINDING_PENDING_USER_ACTION,
                    "Boot the discovery image on the host to bring it back.",
                ),
                // Being bound keeps others from taking the host as long as its old owner holds on to it.
                Some(Route::Reclaim) | None => unknown(),
            }
        }
        Some(Disabled | DisabledUnbound | Resetting | ResettingPendingUserAction) | None => unknown(),
    };
    let said = |type_, (truth, reason, message): Verdict| Finding::new(type_, truth, reason, message);
    let validated = said(condition::VALIDATED, validated);
    vec![
        said(condition::CONNECTED, connected(status)),
        said(condition::REQUIREMENTS_MET, requirements),
        match hold {
            Some(hold) => hold.over(validated),
            None => validated,
        },
        said(condition::INSTALLED, installed),
        said(condition::BOUND, bound),
    ]
}

/// Of a host that the hub does not know.
pub fn unavailable() -> Vec<Finding> {
    let types = [
        condition::CONNECTED,
        condition::REQUIREMENTS_MET,
        condition::VALIDATED,
        condition::INSTALLED,
        condition::BOUND,
    ];
    let text = "The hub does not know this host.";
    types
        .map(|type_| Finding::new(type_, Truth::Unknown, reason::NOT_AVAILABLE, text))
        .into()
}

fn all(most: &'static str, bound: &'static str, text: &str) -> [Verdict; 4] {
    [most, most, most, bound].map(|reason| (Truth::False, reason, text.to_owned()))
}

fn connected(status: &Word<HostStatus>) -> Verdict {
    match status.is(HostStatus::is_disconnected) {
        true => (
            Truth::False,
            reason::DISCONNECTED,
            "The agent of the host has not polled the hub for some time.".into(),
        ),
        false => (
            Truth::True,
            reason::CONNECTED,
            "The agent of the host polls the hub.".into(),
        ),
    }
}

fn bound(status: &Word<HostStatus>) -> Verdict {
    if status.is(HostStatus::is_unbound) {
        (Truth::False, reason::UNBOUND, "The host is free.".into())
    } else {
        (
            Truth::True,
            reason::BOUND,
            "The host belongs to a cluster.".into(),
        )
    }
}

fn ready(approved: bool) -> Verdict {
    if approved {
        (Truth::True, reason::READY, "The host can be installed.".into())
    } else {
        (
            Truth::False,
            reason::NOT_APPROVED,
            "The host waits for approval.".into(),
        )
    }
}

fn not_ready(state: &str) -> Verdict {
    (Truth::False, reason::NOT_READY, state.to_owned())
}

fn not_started() -> Verdict {
    (
        Truth::False,
        reason::NOT_STARTED,
        "The installation has not begun.".into(),
    )
}

fn stopped() -> Verdict {
    (
        Truth::True,
        reason::INSTALLATION_STOPPED,
        "The installation is over.".into(),
    )
}

fn progress(row: &HostDetail) -> String {
    let stage = super::stage(row);
    match stage.is_empty() {
        true => "The hub is preparing the installation.".into(),
        false => format!("The installation is at \"{stage}\"."),
    }
}

struct Checks {
    found: Option<ValidationsInfo>,
    bound: bool,
}

impl Checks {
    fn of(row: &HostDetail, named: bool) -> Self {
        let found = serde_json::from_str::<ValidationsInfo>(&row.host.validations_info).ok();
        // Before anything is known of the hardware nothing is checked, whatever is said: a host that passes is chosen, and
        // whoever chooses it reads its name and addresses.
        let known = named && !row.host.inventory.is_empty();
        Self {
            found: found.filter(|checks| known && !checks.is_empty()),
            bound: row.host.cluster_id.is_some(),
        }
    }

    fn passing(&self) -> Verdict {
        match self.found {
            Some(_) => (
                Truth::True,
                reason::VALIDATIONS_PASSING,
                "All checks pass.".into(),
            ),
            None => (
                Truth::Unknown,
                reason::VALIDATIONS_UNKNOWN,
                "The hub has not checked the host yet.".into(),
            ),
        }
    }

    fn complaints(&self, what: &str) -> String {
        let checks = self.found.iter().flatten().flat_map(|(_, checks)| checks);
        let text = checks::summary(checks.filter_map(|check| {
            Some(checks::Summarized {
                id: &check.id,
                status: check.status.known()?,
                blocks: checks::blocks(&check.id, self.bound),
                message: &check.message,
            })
        }));
        format!("{what}: {text}")
    }
}
