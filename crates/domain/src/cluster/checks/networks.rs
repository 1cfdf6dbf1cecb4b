//! The cluster's networks: set, of the right size and kind, and apart from each other.

use super::Subject;
use crate::checks::facts::{ClusterFacts, PodNetwork};
use crate::checks::finding::Outcome;
use crate::cluster::NetworkType;
use crate::networks::overlap;
use ipnet::IpNet;

pub(super) const NO_HOSTS: &str = "for a host to report its networks";
const UNSET: &str = "until machine, cluster and service network are all set";

/// Hosts of a cluster that leaves networking to its users may be in any network, except a single node.
fn needs_machine_network(facts: &ClusterFacts) -> bool {
    !facts.user_managed_networking || facts.is_single_node()
}

pub(super) fn machine_defined(subject: &Subject<'_>) -> Outcome {
    let facts = subject.facts;
    if !needs_machine_network(facts) || !facts.machine_networks.is_empty() {
        return Outcome::pass("The machine network is known or not needed.");
    }
    if !subject.has_inventories() {
        return Outcome::wait(NO_HOSTS);
    }
    Outcome::fail(
        "The machine network is not known; set the API and ingress addresses, or the network itself.",
    )
}

pub(super) fn cluster_defined(subject: &Subject<'_>) -> Outcome {
    Outcome::judge(
        !subject.facts.cluster_networks.is_empty(),
        "The cluster network is set.",
        "The cluster network (addresses of pods) is not set; set cluster_networks.",
    )
}

pub(super) fn service_defined(subject: &Subject<'_>) -> Outcome {
    Outcome::judge(
        !subject.facts.service_networks.is_empty(),
        "The service network is set.",
        "The service network is not set; set service_networks.",
    )
}

/// The three lists with their names; `None` while one that is needed is empty.
fn lists(facts: &ClusterFacts) -> Option<Vec<(&'static str, Vec<IpNet>)>> {
    let pods: Vec<IpNet> = facts
        .cluster_networks
        .iter()
        .map(|network| network.cidr)
        .collect();
    let machine_missing = needs_machine_network(facts) && facts.machine_networks.is_empty();
    if machine_missing || pods.is_empty() || facts.service_networks.is_empty() {
        return None;
    }
    let all = [
        ("machine network", facts.machine_networks.clone()),
        ("cluster network", pods),
        ("service network", facts.service_networks.clone()),
    ];
    Some(
        all.into_iter()
            .filter(|(_, networks)| !networks.is_empty())
            .collect(),
    )
}

pub(super) fn no_overlap(subject: &Subject<'_>) -> Outcome {
    let Some(lists) = lists(subject.facts) else {
        return Outcome::wait(UNSET);
    };
    // Several machine networks of one family are fine when somebody else balances the load between them.
    let counted = lists
        .iter()
        .filter(|(name, _)| subject.facts.manages_networks() || *name != "machine network");
    let mut counts = counted.map(|(_, networks)| networks.len());
    if let Some(first) = counts.next()
        && counts.any(|count| count != first)
    {
        return Outcome::broken(
            "Machine, cluster and service network differ in how many networks they list; list one of each per address family.",
        );
    }
    for (at, (name, networks)) in lists.iter().enumerate() {
        for (other, seconds) in &lists[at + 1..] {
            let clash = networks
                .iter()
                .flat_map(|a| seconds.iter().map(move |b| (a, b)))
                .find(|(a, b)| overlap(a, b));
            if let Some((a, b)) = clash {
                return Outcome::fail(format!(
                    "The {name} {a} and the {other} {b} overlap; change one of them."
                ));
            }
        }
    }
    Outcome::pass("The networks do not overlap.")
}

fn family_list(networks: &[IpNet]) -> Vec<&'static str> {
    let mut list: Vec<&str> = networks
        .iter()
        .map(|network| if network.addr().is_ipv4() { "IPv4" } else { "IPv6" })
        .collect();
    list.dedup();
    list
}

pub(super) fn same_families(subject: &Subject<'_>) -> Outcome {
    let Some(lists) = lists(subject.facts) else {
        return Outcome::wait(UNSET);
    };
    let described: Vec<String> = lists
        .iter()
        .map(|(name, networks)| format!("{name}: {}", family_list(networks).join(", ")))
        .collect();
    let first = lists.first().map(|(_, networks)| family_list(networks));
    let same = lists
        .iter()
        .all(|(_, networks)| Some(family_list(networks)) == first);
    Outcome::judge(
        same,
        "All networks use the same address families.",
        format!(
            "The networks use different address families ({}); list the same families in the same order.",
            described.join("; ")
        ),
    )
}

pub(super) fn prefix(subject: &Subject<'_>) -> Outcome {
    let networks = &subject.facts.cluster_networks;
    if networks.is_empty() {
        return Outcome::wait("for the cluster network to be set");
    }
    let hosts = if subject.facts.is_single_node() {
        1
    } else {
        subject.peers.len().max(4)
    };
    match networks.iter().find_map(|network| prefix_fault(network, hosts)) {
        None => Outcome::pass("The cluster network has room for every host."),
        Some(fault) => Outcome::fail(fault),
    }
}

/// Each host takes a slice of 2^(bits − host_prefix) addresses; there must be a slice for each host.
fn prefix_fault(network: &PodNetwork, hosts: usize) -> Option<String> {
    // A slice must hold at least 128 addresses for a node's pods.
    let longest = i64::from(network.cidr.max_prefix_len()) - 7;
    let prefix = network.host_prefix;
    if !(1..=longest).contains(&prefix) {
        return Some(format!(
            "The host prefix /{prefix} of {} must be between /1 and /{longest}.",
            network.cidr
        ));
    }
    let spare_bits = prefix - i64::from(network.cidr.prefix_len());
    let slices = u32::try_from(spare_bits).map_or(0, |bits| 1usize.checked_shl(bits).unwrap_or(usize::MAX));
    (slices < hosts).then(|| {
        format!(
            "The cluster network {} has room for {slices} hosts with a host prefix of /{prefix}, and {hosts} are needed; use a larger network or a longer prefix.",
            network.cidr
        )
    })
}

pub(super) fn network_type(subject: &Subject<'_>) -> Outcome {
    let facts = subject.facts;
    let pods = facts.cluster_networks.iter().map(|network| network.cidr);
    let all = pods
        .chain(facts.machine_networks.iter().copied())
        .chain(facts.service_networks.iter().copied());
    let uses_v6 = all.into_iter().any(|network| matches!(network, IpNet::V6(_)));
    match facts.network_type.known() {
        Some(NetworkType::OpenShiftSDN) if uses_v6 => {
            Outcome::fail("OpenShiftSDN knows IPv4 only; use OVNKubernetes or remove the IPv6 networks.")
        }
        Some(NetworkType::OpenShiftSDN) if facts.is_single_node() => {
            Outcome::fail("A single node cannot run OpenShiftSDN; use OVNKubernetes.")
        }
        Some(NetworkType::OVNKubernetes) if facts.vip_dhcp_allocation => Outcome::fail(
            "OVNKubernetes cannot use addresses from DHCP for the API and ingress; turn vip_dhcp_allocation off and set them.",
        ),
        Some(
            NetworkType::OpenShiftSDN
            | NetworkType::OVNKubernetes
            | NetworkType::CiscoACI
            | NetworkType::Cilium
            | NetworkType::Calico
            | NetworkType::None,
        )
        | None => Outcome::pass("The network type suits the cluster."),
    }
}
