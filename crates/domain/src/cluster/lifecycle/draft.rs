//! A cluster that is put together, changed, deleted, or opened for more hosts.

use super::super::{Cluster, Gates, Kind};
use super::{Around, Decision, Draft, Phase, stay, words};
use crate::journal::Severity;
use crate::refusal::{Class, Refused};

pub(super) fn measured(cluster: &Cluster, gates: Gates, complaints: &str, around: &Around<'_>) -> Decision {
    match cluster.phase {
        Phase::Draft => {
            let mut draft = Draft::of(cluster);
            draft.cluster.gates = gates;
            let text = words::measured(&draft.cluster, complaints);
            draft.saying(text).because("the checks ran", around)
        }
        // Findings are frozen once the installation has begun.
        Phase::Preparing
        | Phase::Installing
        | Phase::Finalizing
        | Phase::Installed
        | Phase::AddingHosts
        | Phase::BootFix
        | Phase::Error
        | Phase::Cancelled
        | Phase::Unmonitored => stay(cluster, "findings do not move this phase"),
    }
}

pub(super) fn update(cluster: &Cluster) -> Result<Decision, Refused> {
    if cluster.accepts_hosts() {
        return Ok(stay(cluster, "settings may change"));
    }
    Err(Refused::conflict(
        "cluster-not-editable",
        format!(
            "Cluster {} is {}: its settings are fixed now.",
            cluster.name,
            cluster.status()
        ),
        "Cancel and reset the installation to change them.",
    ))
}

pub(super) fn delete(cluster: &Cluster) -> Result<Decision, Refused> {
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
            let mut decision = stay(cluster, "deleted");
            decision
                .journal
                .push(cluster.entry("cluster_deregistered", Severity::Info, text));
            Ok(decision)
        }
    }
}

pub(super) fn add_hosts(cluster: &Cluster, around: &Around<'_>) -> Result<Decision, Refused> {
    if cluster.phase != Phase::Installed || cluster.kind != Kind::Cluster {
        return Err(Refused::new(
            Class::Invalid,
            "cluster-not-installed",
            format!(
                "Cluster {} is {}; only an installed cluster can take on more hosts.",
                cluster.name,
                cluster.status()
            ),
            "Install it first.",
        ));
    }
    let mut draft = Draft::of(cluster).enter(Phase::AddingHosts, around);
    draft.cluster.kind = Kind::AddHostsCluster;
    Ok(draft.because("takes on more hosts", around))
}
