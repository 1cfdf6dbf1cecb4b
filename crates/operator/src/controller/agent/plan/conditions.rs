//! The conditions of an Agent, from the state of its host.

use super::hold::Hold;
use crate::crd::agent::{condition, reason};
use crate::crd::condition::{Finding, Truth};
use muster_contract::v1::host::HostDetail;
use muster_contract::v2::validation::ValidationsInfo;
use muster_domain::checks;

/// What a condition says: status, reason, message.
type Verdict = (Truth, &'static str, String);

/// All but SpecSynced, in the order in which they are shown. `named`: somebody or the host itself has said its name.
/// `hold`: the host is not offered, whatever its checks say.
pub fn findings(row: &HostDetail, approved: bool, named: bool, hold: Option<Hold>) -> Vec<Finding> {
    let status = &*row.host.status;
    let checks = Checks::of(row, named);
    let state = format!("The host is {status}.");
    let [requirements, validated, installed, bound] = match status {
        "known" | "known-unbound" => [ready(approved), checks.passing(), not_started(), bound(status)],
        "discovering" | "disconnected" | "discovering-unbound" | "disconnected-unbound" => {
            [not_ready(&state), checks.passing(), not_started(), bound(status)]
        }
        "insufficient" | "insufficient-unbound" => {
            let failing = (
                Truth::False,
                reason::VALIDATIONS_FAILING,
                checks.complaints("Checks fail"),
            );
            [not_ready(&state), failing, not_started(), bound(status)]
        }
        "pending-for-input" => {
            let pending = (
                Truth::False,
                reason::VALIDATIONS_USER_PENDING,
                checks.complaints("Something must be decided"),
            );
            [not_ready(&state), pending, not_started(), bound(status)]
        }
        "preparing-for-installation"
        | "preparing-successful"
        | "installing"
        | "installing-in-progress"
        | "installing-pending-user-action" => {
            let going = (
                Truth::True,
                reason::ALREADY_INSTALLING,
                "The installation has begun.".into(),
            );
            let in_progress = (Truth::False, reason::IN_PROGRESS, progress(row));
            [going, checks.passing(), in_progress, bound(status)]
        }
        "installed" | "added-to-existing-cluster" => {
            let done = (Truth::True, reason::COMPLETED, "The host is installed.".into());
            [stopped(), checks.passing(), done, bound(status)]
        }
        "error" => {
            let failed = (
                Truth::False,
                reason::FAILED,
                format!("The installation failed: {}", row.host.status_info),
            );
            [stopped(), checks.passing(), failed, bound(status)]
        }
        // Nothing goes on any more, and nothing was installed.
        "cancelled" | "preparing-failed" => {
            let what = match status {
                "cancelled" => "The installation was cancelled",
                _ => "The installation could not be prepared",
            };
            let failed = (
                Truth::False,
                reason::FAILED,
                format!("{what}: {}", row.host.status_info),
            );
            [stopped(), checks.passing(), failed, bound(status)]
        }
        "binding" => all(
            reason::BINDING,
            reason::BINDING,
            "The host is being handed to its cluster.",
        ),
        "unbinding" => all(
            reason::UNBINDING,
            reason::UNBINDING,
            "The host is on its way back.",
        ),
        "unbinding-pending-user-action" => all(
            reason::UNBINDING,
            reason::UNBINDING_PENDING_USER_ACTION,
            "The host comes back when somebody boots the discovery image on it.",
        ),
        // Disabled, resetting; and reclaiming, where being bound keeps others from
        // taking the host while its old owner still holds on to it.
        _ => {
            let unknown = || (Truth::Unknown, reason::UNKNOWN_STATUS, state.clone());
            [unknown(), checks.passing(), unknown(), bound(status)]
        }
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

fn connected(status: &str) -> Verdict {
    match status {
        "disconnected" | "disconnected-unbound" => (
            Truth::False,
            reason::DISCONNECTED,
            "The host has not been heard of for some time.".into(),
        ),
        _ => (Truth::True, reason::CONNECTED, "The host is heard of.".into()),
    }
}

fn bound(status: &str) -> Verdict {
    if status.ends_with("-unbound") {
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
            "The host waits to be approved.".into(),
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
    match super::stage(row) {
        "" => "The installation is being prepared.".into(),
        stage => format!("The installation is at \"{stage}\"."),
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
                "Nothing was checked yet.".into(),
            ),
        }
    }

    fn complaints(&self, what: &str) -> String {
        let checks = self.found.iter().flatten().flat_map(|(_, checks)| checks);
        let told = checks::told(checks.filter_map(|check| {
            Some(checks::Said {
                id: &check.id,
                status: checks::Status::from_word(&check.status)?,
                blocks: checks::blocks(&check.id, self.bound),
                message: &check.message,
            })
        }));
        format!("{what}: {told}")
    }
}
