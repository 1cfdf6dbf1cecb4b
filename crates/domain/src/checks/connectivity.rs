//! What the host found when it tried to reach the other hosts of its cluster.

use super::facts::{ClusterFacts, Subject};
use super::finding::Outcome;
use super::hardware::{NO_INVENTORY, with_inventory};
use super::reports::{Connectivity, L3, Mtu, RemoteHost};
use crate::HostId;
use crate::cluster::network::families;
use crate::host::Role;
use crate::networks::Union;
use std::net::IpAddr;

const ALONE: &str = "The host need not reach other hosts before the installation.";

pub(super) fn majority_group(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    if cluster.day_two || cluster.is_single_node() {
        return Outcome::pass(ALONE);
    }
    if subject.inventory.is_none() {
        return Outcome::wait(NO_INVENTORY);
    }
    let groups = &subject.neighbours.groups;
    let least = subject.neighbours.least_group();
    if groups.reporters < least || subject.reports.connectivity.is_none() {
        return Outcome::wait(format!(
            "until {least} hosts of the cluster have tried to reach each other"
        ));
    }
    let keys: Vec<String> = if cluster.manages_networks() {
        cluster
            .machine_networks
            .iter()
            .map(|network| network.to_string())
            .collect()
    } else {
        families(cluster).keys().into_iter().map(str::to_owned).collect()
    };
    if keys.is_empty() {
        return Outcome::wait("for the machine network to be known");
    }
    let outside: Vec<&str> = keys
        .iter()
        .filter(|key| !groups.holds(key, subject.id))
        .map(String::as_str)
        .collect();
    Outcome::judge(
        outside.is_empty(),
        "The host reaches most hosts of the cluster, and they reach it.",
        format!(
            "The host and most other hosts cannot reach each other in {}; check switch ports, VLANs and firewalls between them.",
            outside.join(", ")
        ),
    )
}

pub(super) fn mtu(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    if cluster.day_two {
        return Outcome::pass(ALONE);
    }
    if cluster.is_single_node() {
        return Outcome::Silent;
    }
    with_inventory(subject, |_| {
        let Some(report) = &subject.reports.connectivity else {
            return Outcome::wait("for the host to try large packets");
        };
        let networks = Union::of(cluster.machine_networks.iter().copied());
        let counts = |mtu: &&Mtu| {
            !cluster.manages_networks()
                || cluster.machine_networks.is_empty()
                || mtu
                    .remote_ip_address
                    .parse::<IpAddr>()
                    .is_ok_and(|ip| networks.holds(ip))
        };
        let lost = report
            .remote_hosts
            .iter()
            .flat_map(|remote| &remote.mtu_report)
            .filter(counts);
        match lost.into_iter().find(|mtu| !mtu.mtu_successful) {
            None => Outcome::pass("Packets of full size pass."),
            Some(mtu) => Outcome::fail(format!(
                "Packets of full size from {} do not reach {}; set the same MTU on interfaces and switches along the way.",
                mtu.outgoing_nic, mtu.remote_ip_address
            )),
        }
    })
}

/// The best measurement towards a host: one good path is enough.
fn best(remote: &RemoteHost, value: fn(&L3) -> f64) -> Option<f64> {
    remote
        .l3_connectivity
        .iter()
        .filter(|path| path.successful)
        .map(value)
        .min_by(f64::total_cmp)
}

/// Measurements towards hosts of the same role that are above the limit.
fn above(
    subject: &Subject<'_>,
    report: &Connectivity,
    limit: f64,
    value: fn(&L3) -> f64,
) -> Vec<(String, f64)> {
    let role = subject.effective_role();
    let same_role = |remote: &&RemoteHost| {
        remote
            .host_id
            .parse()
            .is_ok_and(|id: HostId| subject.neighbours.role_of(id) == Some(role))
    };
    let named = |remote: &RemoteHost| remote.host_id.parse().map(|id| subject.neighbours.name_of(id));
    let worse = report.remote_hosts.iter().filter(same_role).filter_map(|remote| {
        let measured = best(remote, value).filter(|measured| *measured > limit)?;
        Some((named(remote).unwrap_or_default(), measured))
    });
    worse.collect()
}

struct Measure {
    limit: Option<f64>,
    value: fn(&L3) -> f64,
    what: &'static str,
    unit: &'static str,
}

fn measured(subject: &Subject<'_>, cluster: &ClusterFacts, measure: &Measure) -> Outcome {
    with_inventory(subject, |_| {
        let fine = || {
            Outcome::pass(format!(
                "{} to the other hosts of its role is within limits.",
                measure.what
            ))
        };
        let undecided = subject.effective_role() == Role::AutoAssign;
        if subject.neighbours.count <= 1 || cluster.day_two || undecided {
            return fine();
        }
        let Some(limit) = measure.limit else { return fine() };
        let Some(report) = &subject.reports.connectivity else {
            return Outcome::wait(format!("for the host to measure {}", measure.what.to_lowercase()));
        };
        let worse = above(subject, report, limit, measure.value);
        if worse.is_empty() {
            return fine();
        }
        let list: Vec<String> = worse
            .iter()
            .map(|(name, value)| format!("{name} {value:.1} {}", measure.unit))
            .collect();
        Outcome::fail(format!(
            "{} is above the limit of {limit} {} for role {}: {}. Check the network between these hosts.",
            measure.what,
            measure.unit,
            subject.effective_role().word(),
            list.join(", ")
        ))
    })
}

pub(super) fn latency(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    let limit = subject.required().network_latency_threshold_ms;
    measured(
        subject,
        cluster,
        &Measure {
            limit,
            value: |path| path.average_rtt_ms.0,
            what: "Latency",
            unit: "ms",
        },
    )
}

pub(super) fn packet_loss(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    let limit = subject.required().packet_loss_percentage;
    let value = |path: &L3| path.packet_loss_percentage.0;
    measured(
        subject,
        cluster,
        &Measure {
            limit,
            value,
            what: "Packet loss",
            unit: "%",
        },
    )
}
