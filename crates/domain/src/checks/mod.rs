//! Host checks: a table with public ids, run over plain facts; the findings gate the host's lifecycle.

pub mod facts;
pub mod finding;
pub mod id;
pub mod reports;
pub mod verdict;

mod connectivity;
mod disks;
pub mod domain_names;
mod hardware;
mod network;
mod platform;
mod time;

pub use facts::{ClusterFacts, Installation, Neighbours, Peer, Settings, Subject};
pub use finding::{Change, Ignored, News, Outcome, Status, Summarized, stored, summary};
use id::{CHECKS, Check, Run, Until};
pub use id::{CheckId, Operator};
pub use reports::Reports;
pub use time::{Skew, skew};

use crate::host;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    Hardware,
    Network,
    Operators,
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Network => "network",
            Self::Operators => "operators",
        }
    }
}

/// What a finding holds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Shown only.
    Nothing,
    MinHardware,
    Inputs,
    Sufficient,
    /// Asked for by its id.
    ById,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub id: CheckId,
    pub category: Category,
    pub gate: Gate,
    pub status: Status,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub findings: Vec<Finding>,
    pub bound: bool,
    pub disk_speed: host::Outcome,
    pub images: host::Outcome,
}

impl Check {
    fn examine(&self, subject: &Subject<'_>) -> Outcome {
        let over = match (self.until, subject.installation) {
            (Until::Ever, _) | (_, Installation::NotStarted) => false,
            (Until::Reboot, Installation::Started) => false,
            (Until::Reboot | Until::InstallationStarts, Installation::Rebooted) => true,
            (Until::InstallationStarts, Installation::Started) => true,
        };
        match (over, self.run, subject.cluster) {
            (true, _, _) | (false, Run::Bound(_), None) => Outcome::Silent,
            (false, Run::Always(run), _) => run(subject),
            (false, Run::Bound(run), Some(cluster)) => run(subject, cluster),
        }
    }
}

/// Owner's choice wins over the site's; some checks cannot be ignored by an owner.
fn is_disabled(subject: &Subject<'_>, id: CheckId) -> bool {
    let ignored = subject
        .cluster
        .map(|cluster| &cluster.ignored_host_checks)
        .filter(|list| !list.is_empty());
    match ignored {
        Some(list) => id.is_ignorable() && (list.all || list.names(id.as_str())),
        None => subject.settings.disabled_host_checks.contains(id.as_str()),
    }
}

pub fn run(subject: &Subject<'_>) -> Report {
    let core = CHECKS.iter().filter_map(|check| {
        let (status, message) = check.examine(subject).finding(is_disabled(subject, check.id))?;
        Some(Finding {
            id: check.id,
            category: check.category,
            gate: check.gate,
            status,
            message,
        })
    });
    let operators = subject
        .cluster
        .into_iter()
        .flat_map(|cluster| Operator::ALL.iter().map(move |one| operator(*one, cluster)));
    Report {
        findings: core.chain(operators).collect(),
        bound: subject.cluster.is_some(),
        disk_speed: unless_disabled(subject, CheckId::InstallationDiskSpeed, disks::speed_outcome),
        images: unless_disabled(
            subject,
            CheckId::ContainerImagesAvailable,
            platform::images_outcome,
        ),
    }
}

/// A test that does not count is not waited for either.
fn unless_disabled(
    subject: &Subject<'_>,
    id: CheckId,
    outcome: fn(&Subject<'_>) -> host::Outcome,
) -> host::Outcome {
    if is_disabled(subject, id) {
        host::Outcome::Passed
    } else {
        outcome(subject)
    }
}

/// Whether a host that fails this check stays where it is: a free host out of the pool, a bound one out of the
/// installation. A check that is not known here is another version's, and does until that is known better.
pub fn blocks(id: &str, bound: bool) -> bool {
    match (
        CHECKS.iter().find(|check| check.id.as_str() == id),
        CheckId::parse(id),
    ) {
        (Some(check), _) => holds_up(check.id, check.gate, bound),
        (None, Some(id)) => holds_up(id, Gate::Sufficient, bound),
        (None, None) => true,
    }
}

fn holds_up(id: CheckId, gate: Gate, bound: bool) -> bool {
    match (gate, bound) {
        (Gate::MinHardware | Gate::ById, _) | (Gate::Inputs | Gate::Sufficient, true) => true,
        // The last tests before the installation end with it.
        (Gate::Nothing, true) => id == CheckId::ContainerImagesAvailable,
        (Gate::Inputs | Gate::Sufficient, false) => {
            matches!(id, CheckId::HostnameValid | CheckId::InventoryNotFullyTruncated)
        }
        (Gate::Nothing, false) => false,
    }
}

fn operator(operator: Operator, cluster: &ClusterFacts) -> Finding {
    Finding {
        id: CheckId::Operator(operator),
        category: Category::Operators,
        gate: Gate::Sufficient,
        status: Status::Success,
        message: operator.selection(cluster),
    }
}

impl Report {
    pub fn find(&self, id: CheckId) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }

    /// A check that is not shown passes.
    pub fn passes(&self, id: CheckId) -> bool {
        self.find(id).is_none_or(|finding| finding.status.passes())
    }

    fn gate_passes(&self, gate: Gate) -> bool {
        self.findings
            .iter()
            .filter(|finding| finding.gate == gate)
            .all(|finding| finding.status.passes())
    }

    pub fn is_connected(&self) -> bool {
        self.passes(CheckId::Connected)
    }

    pub fn is_media_connected(&self) -> bool {
        self.passes(CheckId::MediaConnected)
    }

    pub fn gates(&self) -> host::Gates {
        let cut = self.find(CheckId::InventoryNotFullyTruncated);
        host::Gates {
            inventory: self.passes(CheckId::HasInventory) && self.passes(CheckId::InventoryNotFullyTruncated),
            inventory_fully_truncated: cut.is_some_and(|finding| finding.status == Status::Failure),
            min_hardware: self.gate_passes(Gate::MinHardware)
                && (self.bound || self.passes(CheckId::HostnameValid)),
            inputs: self.gate_passes(Gate::Inputs),
            vsphere_disks: self.passes(CheckId::VsphereDiskUuidEnabled),
            sufficient: self.gate_passes(Gate::Sufficient),
            disk_speed: self.disk_speed,
            images: self.images,
        }
    }

    /// The value of `validations_info`.
    pub fn to_json(&self) -> String {
        finding::to_json(self.findings.iter().map(|finding| {
            let line = finding::Line {
                id: finding.id.as_str(),
                status: finding.status,
                message: &finding.message,
            };
            (finding.category.as_str(), line)
        }))
    }

    /// What keeps the host back, as one line for `status_info`.
    pub fn complaints(&self) -> String {
        finding::summary(self.findings.iter().map(|finding| finding::Summarized {
            id: finding.id.as_str(),
            status: finding.status,
            blocks: holds_up(finding.id, finding.gate, self.bound),
            message: &finding.message,
        }))
    }

    /// News since the stored findings, for the history.
    pub fn changes(&self, old: &BTreeMap<String, Status>) -> Vec<Change> {
        let new = self.findings.iter();
        finding::compare(
            old,
            new.map(|new| (new.id.as_str(), new.status, new.message.as_str())),
        )
    }
}

#[cfg(test)]
mod tests;
