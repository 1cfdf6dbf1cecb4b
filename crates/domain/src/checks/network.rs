//! Reachability of the host itself, its addresses and its routes.

use super::facts::{ClusterFacts, Installation, Subject};
use super::finding::Outcome;
use super::hardware::with_inventory;
use crate::cluster::network::{families, is_link_local};
use crate::networks::first_overlap;
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::IpAddr;

pub(super) fn connected(subject: &Subject<'_>) -> Outcome {
    Outcome::judge(
        subject.connected,
        "The host polls regularly.",
        "The host has gone silent; check its power, its network and that it runs the discovery image.",
    )
}

pub(super) fn media_connected(subject: &Subject<'_>) -> Outcome {
    Outcome::judge(
        subject.media_connected,
        "The host can read its discovery media.",
        "The host cannot read its discovery media any more; attach it again and reboot the host.",
    )
}

pub(super) fn machine_cidr_defined(_: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    if cluster.day_two || cluster.user_managed_networking {
        return Outcome::pass("The cluster needs no machine network for this.");
    }
    Outcome::judge(
        !cluster.machine_networks.is_empty(),
        "The machine network is known.",
        "The machine network is not known; set the cluster's API and ingress addresses, or the network itself.",
    )
}

pub(super) fn belongs_to_machine_cidr(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    if cluster.day_two {
        return Outcome::pass("The cluster runs already; any network that reaches it will do.");
    }
    let networks = &cluster.machine_networks;
    if networks.is_empty() {
        return match cluster.user_managed_networking {
            true => {
                Outcome::pass("You manage the network of this cluster yourself; it needs no machine network.")
            }
            false => Outcome::wait("for the machine network to be known"),
        };
    }
    with_inventory(subject, |inventory| {
        let mut own: Vec<IpAddr> = inventory.addresses().map(|address| address.addr()).collect();
        own.sort_unstable();
        let has_address_in = |network: &&IpNet| {
            let first = own.partition_point(|ip| *ip < network.network());
            own.get(first).is_some_and(|ip| network.contains(ip))
        };
        let outside: Vec<String> = networks
            .iter()
            .filter(|network| !has_address_in(network))
            .map(IpNet::to_string)
            .collect();
        let fine = outside.is_empty()
            || cluster.user_managed_load_balancer && outside.len() < networks.len()
            || cluster.user_managed_networking && !cluster.is_single_node();
        Outcome::judge(
            fine,
            "The host has an address in the machine network.",
            format!(
                "The host has no address in {}; give one of its interfaces an address there, or change the machine network.",
                outside.join(", ")
            ),
        )
    })
}

pub(super) fn ignition_downloadable(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    if !cluster.day_two {
        return Outcome::Silent;
    }
    match &subject.reports.api_vip_connectivity {
        // Installed before the cluster began to take on more hosts.
        None if subject.installation == Installation::Rebooted => Outcome::Silent,
        None => Outcome::wait("for the host to fetch its configuration from the cluster"),
        Some(report) if report.is_success => {
            Outcome::pass("The host can fetch its configuration from the cluster.")
        }
        Some(report) => {
            let why = if report.download_error.is_empty() {
                "no answer"
            } else {
                &report.download_error
            };
            Outcome::fail(format!(
                "The host cannot fetch its configuration from {}: {why}. Check that the name resolves and the port is open from the host.",
                if report.url.is_empty() {
                    "the cluster"
                } else {
                    &report.url
                }
            ))
        }
    }
}

pub(super) fn default_route(subject: &Subject<'_>) -> Outcome {
    with_inventory(subject, |inventory| {
        Outcome::judge(
            inventory.routes.iter().any(crate::inventory::Route::is_default),
            "The host has a default route.",
            "The host has no default route; add a gateway to its network configuration or DHCP.",
        )
    })
}

/// Two interfaces in one network answer for each other; packets then take turns at getting lost.
pub(super) fn no_overlapping_subnets(subject: &Subject<'_>, cluster: &ClusterFacts) -> Outcome {
    with_inventory(subject, |inventory| {
        let used = families(cluster);
        let counts = |network: &IpNet| !is_link_local(network) && used.include(network);
        let all = &inventory.interfaces;
        let mut first_called: HashMap<&str, usize> = HashMap::new();
        let mut networks: Vec<(usize, IpNet)> = Vec::new();
        for (at, interface) in all.iter().enumerate() {
            let owner = *first_called.entry(&interface.name).or_insert(at);
            let own = interface
                .addresses()
                .map(|address| address.trunc())
                .filter(counts);
            networks.extend(own.map(|network| (owner, network)));
        }
        match first_overlap(&networks) {
            None => Outcome::pass("Each interface is in a network of its own."),
            Some((one, two)) => {
                let ((owner, network), (another, second)) = (networks[one], networks[two]);
                let (name, other) = (&all[owner].name, &all[another].name);
                Outcome::fail(format!(
                    "{name} ({network}) and {other} ({second}) are in overlapping networks; bond them or use only one."
                ))
            }
        }
    })
}

pub(super) fn no_ip_collisions(subject: &Subject<'_>) -> Outcome {
    let nothing = || Outcome::pass("No other machine answers for the host's addresses.");
    let (Some(cluster), Some(inventory)) = (subject.cluster, subject.inventory) else {
        return nothing();
    };
    if cluster.day_two || cluster.ip_collisions.is_empty() {
        return nothing();
    }
    let shared = inventory.addresses().find_map(|address| {
        let ip = address.addr().to_string();
        cluster.ip_collisions.get(&ip).map(|macs| (ip, macs.join(", ")))
    });
    match shared {
        None => nothing(),
        Some((ip, macs)) => Outcome::fail(format!(
            "Several machines ({macs}) answer for {ip}; give each its own address."
        )),
    }
}
