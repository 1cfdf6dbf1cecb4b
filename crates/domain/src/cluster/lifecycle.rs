//! The only place a cluster changes phase.

use super::{Cluster, Gates};
use crate::journal::{Entry, Severity};
use crate::refusal::Refused;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Being put together; the gates say whether input is missing, hosts are, or nothing is.
    Draft,
    Preparing,
    Installing,
    Finalizing,
    Installed,
    /// Runs, and takes on more hosts.
    AddingHosts,
    /// A host did not boot its disk: a person must look.
    BootFix,
    Error,
    Cancelled,
    /// Nobody watches it: a placeholder.
    Unmonitored,
}

impl Phase {
    pub const ALL: [Phase; 10] = [
        Self::Draft,
        Self::Preparing,
        Self::Installing,
        Self::Finalizing,
        Self::Installed,
        Self::AddingHosts,
        Self::BootFix,
        Self::Error,
        Self::Cancelled,
        Self::Unmonitored,
    ];

    pub fn accepts_hosts(self) -> bool {
        match self {
            Self::Draft | Self::AddingHosts => true,
            Self::Preparing
            | Self::Installing
            | Self::Finalizing
            | Self::Installed
            | Self::BootFix
            | Self::Error
            | Self::Cancelled
            | Self::Unmonitored => false,
        }
    }
}

/// The status word of the wire.
pub fn status(cluster: &Cluster) -> &'static str {
    match cluster.phase {
        Phase::Draft => draft_status(cluster.gates, cluster.vip_dhcp_allocation),
        Phase::Preparing => "preparing-for-installation",
        Phase::Installing => "installing",
        Phase::Finalizing => "finalizing",
        Phase::Installed => "installed",
        Phase::AddingHosts => "adding-hosts",
        Phase::BootFix => "installing-pending-user-action",
        Phase::Error => "error",
        Phase::Cancelled => "cancelled",
        Phase::Unmonitored => "unmonitored",
    }
}

fn draft_status(gates: Gates, vip_dhcp: bool) -> &'static str {
    match (vip_dhcp, gates.vips_defined, gates.inputs, gates.required) {
        (false, false, _, _) | (_, _, false, _) => "pending-for-input",
        (true, false, true, _) | (_, true, true, false) => "insufficient",
        (_, true, true, true) => "ready",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The checks ran.
    Measured { gates: Gates },
    /// Somebody wants to change its settings.
    Update,
    /// Somebody wants it gone.
    Delete,
    /// It is installed and shall take on more hosts.
    AddHosts,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub cluster: Cluster,
    pub journal: Vec<Entry>,
    pub why: &'static str,
}

pub fn next(cluster: &Cluster, event: &Event, now: Timestamp) -> Result<Decision, Refused> {
    match event {
        Event::Measured { gates } => Ok(measured(cluster, *gates, now)),
        Event::Update => update(cluster),
        Event::Delete => delete(cluster),
        Event::AddHosts => add_hosts(cluster, now),
    }
}

fn measured(cluster: &Cluster, gates: Gates, now: Timestamp) -> Decision {
    let mut next = cluster.clone();
    match cluster.phase {
        Phase::Draft => next.gates = gates,
        // Findings are frozen once the installation has begun.
        Phase::Preparing
        | Phase::Installing
        | Phase::Finalizing
        | Phase::Installed
        | Phase::AddingHosts
        | Phase::BootFix
        | Phase::Error
        | Phase::Cancelled
        | Phase::Unmonitored => {}
    }
    settle(cluster, next, now, "the checks ran")
}

fn update(cluster: &Cluster) -> Result<Decision, Refused> {
    if cluster.accepts_hosts() {
        return Ok(Decision {
            cluster: cluster.clone(),
            journal: Vec::new(),
            why: "settings may change",
        });
    }
    Err(Refused::conflict(
        "cluster-not-editable",
        format!(
            "Cluster {} is {}: its settings are fixed now.",
            cluster.name,
            status(cluster)
        ),
        "Cancel and reset the installation to change them.",
    ))
}

fn delete(cluster: &Cluster) -> Result<Decision, Refused> {
    match cluster.phase {
        Phase::Installing => Err(Refused::conflict(
            "cluster-is-installing",
            format!("Cluster {} is being installed.", cluster.name),
            "Cancel the installation first.",
        )),
        Phase::Draft
        | Phase::Preparing
        | Phase::Finalizing
        | Phase::Installed
        | Phase::AddingHosts
        | Phase::BootFix
        | Phase::Error
        | Phase::Cancelled
        | Phase::Unmonitored => {
            let text = format!(
                "Cluster {} was deleted; its borrowed hosts go back to their pools.",
                cluster.name
            );
            let journal = vec![cluster.entry("cluster_deregistered", Severity::Info, text)];
            Ok(Decision {
                cluster: cluster.clone(),
                journal,
                why: "deleted",
            })
        }
    }
}

fn add_hosts(cluster: &Cluster, now: Timestamp) -> Result<Decision, Refused> {
    if cluster.phase != Phase::Installed || cluster.kind != super::Kind::Cluster {
        return Err(Refused::new(
            crate::refusal::Class::Invalid,
            "cluster-not-installed",
            format!(
                "Cluster {} is {}; only an installed cluster can take on more hosts.",
                cluster.name,
                status(cluster)
            ),
            "",
        ));
    }
    let mut next = cluster.clone();
    next.kind = super::Kind::AddHostsCluster;
    next.phase = Phase::AddingHosts;
    next.since = now;
    Ok(settle(cluster, next, now, "takes on more hosts"))
}

/// The standing text of a status.
pub fn standing_text(status: &str) -> &'static str {
    match status {
        "pending-for-input" => "More about the cluster must be said; see its validations.",
        "insufficient" => "Not ready for installation yet; see its validations.",
        "ready" => "Ready to be installed.",
        "adding-hosts" => "Running; more hosts can join.",
        _ => "",
    }
}

fn settle(before: &Cluster, mut next: Cluster, now: Timestamp, why: &'static str) -> Decision {
    let (from, to) = (status(before), status(&next));
    let mut journal = Vec::new();
    if from != to {
        next.status_updated_at = now;
        next.updated_at = now;
        next.status_info = standing_text(to).into();
        let text = format!("Cluster {}: {from} -> {to} ({})", next.name, next.status_info);
        journal.push(next.entry("cluster_status_updated", Severity::Info, text));
    }
    Decision {
        cluster: next,
        journal,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_asks_for_input_before_it_complains_about_hosts() {
        let gates = |vips_defined, inputs, required| Gates {
            inputs,
            vips_defined,
            required,
        };
        assert_eq!(draft_status(gates(false, true, true), false), "pending-for-input");
        assert_eq!(draft_status(gates(true, false, true), false), "pending-for-input");
        assert_eq!(draft_status(gates(true, true, false), false), "insufficient");
        assert_eq!(draft_status(gates(true, true, true), false), "ready");
        // Addresses that come by DHCP are waited for, not asked for.
        assert_eq!(draft_status(gates(false, true, true), true), "insufficient");
        assert_eq!(draft_status(gates(false, false, true), true), "pending-for-input");
    }
}
