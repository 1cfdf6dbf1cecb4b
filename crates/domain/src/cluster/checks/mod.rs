//! Cluster checks: a table with public ids over the cluster's facts and its hosts; they gate the cluster's lifecycle.

mod configuration;
mod hosts;
mod id;
mod networks;
mod vips;

pub use id::CheckId;

use id::CHECKS;

use super::Gates;
use crate::checks::facts::{ClusterFacts, Peer, Settings};
use crate::checks::finding::{self, Change, Status};
use crate::checks::id::Operator;
use std::collections::BTreeMap;

/// The cluster under examination.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub facts: &'a ClusterFacts,
    pub peers: &'a [Peer<'a>],
    /// People added manifests, which the installation applies.
    pub has_manifests: bool,
    pub settings: &'a Settings,
}

impl Subject<'_> {
    /// At least one host has reported its networks.
    fn has_inventories(&self) -> bool {
        self.peers.iter().any(|peer| peer.has_inventory)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    Configuration,
    HostsData,
    Network,
    Operators,
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::HostsData => "hosts-data",
            Self::Network => "network",
            Self::Operators => "operators",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Shown only.
    Nothing,
    Inputs,
    VipsDefined,
    Required,
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
}

fn is_disabled(subject: &Subject<'_>, id: CheckId) -> bool {
    let ignored = &subject.facts.ignored_cluster_checks;
    if ignored.is_empty() {
        return subject.settings.disabled_cluster_checks.contains(id.as_str());
    }
    id.is_ignorable() && (ignored.all || ignored.names(id.as_str()))
}

pub fn run(subject: &Subject<'_>) -> Report {
    let core = CHECKS.iter().filter_map(|(id, category, gate, examine)| {
        let (status, message) = examine(subject).finding(is_disabled(subject, *id))?;
        Some(Finding {
            id: *id,
            category: *category,
            gate: *gate,
            status,
            message,
        })
    });
    let operators = Operator::ALL.iter().map(|operator| Finding {
        id: CheckId::Operator(*operator),
        category: Category::Operators,
        gate: Gate::Required,
        status: Status::Success,
        message: operator.selection(subject.facts),
    });
    Report {
        findings: core.chain(operators).collect(),
    }
}

/// Whether a cluster that fails this check cannot be installed; so with one that is not known here.
pub fn blocks(id: &str) -> bool {
    let known = CHECKS.iter().find(|(known, ..)| known.as_str() == id);
    known.is_none_or(|(_, _, gate, _)| *gate != Gate::Nothing)
}

impl Report {
    pub fn find(&self, id: CheckId) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }

    fn gate_passes(&self, gate: Gate) -> bool {
        self.findings
            .iter()
            .filter(|finding| finding.gate == gate)
            .all(|finding| finding.status.passes())
    }

    pub fn gates(&self) -> Gates {
        Gates {
            inputs: self.gate_passes(Gate::Inputs),
            vips_defined: self.gate_passes(Gate::VipsDefined),
            required: self.gate_passes(Gate::Required),
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

    /// What keeps the cluster back, as one line for `status_info`.
    pub fn complaints(&self) -> String {
        finding::summary(self.findings.iter().map(|finding| finding::Summarized {
            id: finding.id.as_str(),
            status: finding.status,
            blocks: finding.gate != Gate::Nothing,
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
