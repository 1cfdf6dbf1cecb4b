//! The only place a cluster changes phase.

pub use super::event::{Around, Decision, Event};
pub use super::phase::{Phase, status};

use super::{Cluster, Gates};
use crate::journal::Severity;
use crate::refusal::Refused;
use jiff::Timestamp;

pub fn next<'a>(cluster: &Cluster, event: &Event, around: impl Into<Around<'a>>) -> Result<Decision, Refused> {
    let now = around.into().now;
    match event {
        Event::Measured { gates } => Ok(measured(cluster, *gates, now)),
        Event::Update => update(cluster),
        Event::Delete => delete(cluster),
        Event::AddHosts => add_hosts(cluster, now),
        Event::Install
        | Event::FilesMade { .. }
        | Event::Counted { .. }
        | Event::Cancel
        | Event::Reset
        | Event::FinalizingStage { .. }
        | Event::OperatorReported { .. }
        | Event::IngressCert
        | Event::LogsProgress { .. }
        | Event::Due => Ok(settle(cluster, cluster.clone(), now, "nothing happens yet")),
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
            effects: Vec::new(),
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
                effects: Vec::new(),
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
        effects: Vec::new(),
        why,
    }
}

