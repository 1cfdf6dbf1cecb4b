//! The virtual addresses of API and ingress: set, inside the machine network, and nobody else's.

use super::Subject;
use super::networks::NO_HOSTS;
use crate::checks::facts::{ClusterFacts, Verification, Vip};
use crate::checks::finding::Outcome;
use crate::cluster::network::network_around;
use ipnet::IpNet;
use std::net::IpAddr;

const NOT_NEEDED: &str = "The cluster needs no virtual addresses.";

fn are_needed(facts: &ClusterFacts) -> bool {
    !facts.user_managed_networking && !facts.is_single_node()
}

fn defined(subject: &Subject<'_>, vips: &[Vip], what: &str) -> Outcome {
    let facts = subject.facts;
    if !are_needed(facts) {
        return Outcome::pass(NOT_NEEDED);
    }
    if facts.vip_dhcp_allocation && facts.machine_networks.is_empty() {
        return Outcome::wait("for the machine network; a host asks DHCP for the address once it is set");
    }
    if facts.vip_dhcp_allocation && vips.is_empty() {
        return Outcome::wait(format!("for the {what} address from DHCP"));
    }
    Outcome::judge(
        !vips.is_empty(),
        format!("The {what} address is set."),
        format!(
            "The {what} address is not set; choose a free address of the machine network and set {what}_vips."
        ),
    )
}

pub(super) fn api_defined(subject: &Subject<'_>) -> Outcome {
    defined(subject, &subject.facts.api_vips, "api")
}

pub(super) fn ingress_defined(subject: &Subject<'_>) -> Outcome {
    defined(subject, &subject.facts.ingress_vips, "ingress")
}

pub(super) fn api_valid(subject: &Subject<'_>) -> Outcome {
    valid(subject, &subject.facts.api_vips, "api")
}

pub(super) fn ingress_valid(subject: &Subject<'_>) -> Outcome {
    valid(subject, &subject.facts.ingress_vips, "ingress")
}

fn valid(subject: &Subject<'_>, vips: &[Vip], what: &str) -> Outcome {
    if !are_needed(subject.facts) {
        return Outcome::pass(NOT_NEEDED);
    }
    if vips.is_empty() {
        return Outcome::wait(format!("for the {what} address to be set"));
    }
    if !subject.has_inventories() {
        return Outcome::wait(NO_HOSTS);
    }
    match vips.iter().find_map(|vip| fault(subject, vip)) {
        None => Outcome::pass(format!(
            "The {what} address is in the machine network and not in use."
        )),
        Some(fault) => Outcome::fail(format!("The {what} address {fault}")),
    }
}

fn fault(subject: &Subject<'_>, vip: &Vip) -> Option<String> {
    let facts = subject.facts;
    let ip = vip.ip;
    let Some(network) = facts
        .machine_networks
        .iter()
        .find(|network| network.contains(&ip))
    else {
        return Some(format!(
            "{ip} is outside the machine network; choose another address or change the network."
        ));
    };
    if is_reserved(ip, network) {
        return Some(format!(
            "{ip} is the network's or the broadcast address of {network}; choose another."
        ));
    }
    // An outside load balancer answers for its addresses, may share one, and is in use by definition.
    if facts.user_managed_load_balancer {
        return None;
    }
    let shared = facts.api_vips.iter().any(|api| {
        facts
            .ingress_vips
            .iter()
            .any(|ingress| api.ip == ingress.ip && api.ip == ip)
    });
    if shared {
        return Some(format!(
            "{ip} is used for both API and ingress; give each its own."
        ));
    }
    let holder = subject
        .peers
        .iter()
        .find(|peer| peer.addresses().any(|address| address.addr() == ip));
    if let Some(holder) = holder {
        return Some(format!(
            "{ip} is the own address of host {}; choose a free one.",
            super::hosts::name(holder)
        ));
    }
    is_taken(subject, vip, network)
        .then(|| format!("{ip} answers already, so something else uses it; choose a free address."))
}

/// Networks of two or fewer addresses have none to spare for these purposes.
fn is_reserved(ip: IpAddr, network: &IpNet) -> bool {
    match (ip, network) {
        (IpAddr::V4(ip), IpNet::V4(network)) => {
            network.prefix_len() < 31 && (ip == network.network() || ip == network.broadcast())
        }
        (IpAddr::V6(ip), IpNet::V6(network)) => network.prefix_len() < 127 && ip == network.network(),
        (IpAddr::V4(_), IpNet::V6(_)) | (IpAddr::V6(_), IpNet::V4(_)) => false,
    }
}

/// A test of the very address decides; without one, an address missing from a list of free ones is taken.
fn is_taken(subject: &Subject<'_>, vip: &Vip, network: &IpNet) -> bool {
    match vip.verification {
        Verification::Failed => true,
        Verification::Succeeded => false,
        Verification::Unverified => {
            let mut lists = subject
                .peers
                .iter()
                .flat_map(|peer| peer.free_addresses)
                .filter(|list| {
                    list.network
                        .parse::<IpNet>()
                        .is_ok_and(|listed| listed.trunc() == network.trunc())
                })
                .peekable();
            let text = vip.ip.to_string();
            lists.peek().is_some() && !lists.any(|list| list.free_addresses.contains(&text))
        }
    }
}

pub(super) fn machine_network_agrees(subject: &Subject<'_>) -> Outcome {
    let facts = subject.facts;
    if !are_needed(facts) || facts.user_managed_load_balancer {
        return Outcome::pass("The machine network need not follow from virtual addresses.");
    }
    if facts.machine_networks.is_empty() || facts.api_vips.is_empty() || facts.ingress_vips.is_empty() {
        return Outcome::wait("until the machine network and the API and ingress addresses are set");
    }
    if !subject.has_inventories() {
        return Outcome::wait(NO_HOSTS);
    }
    for vip in facts.api_vips.iter().chain(&facts.ingress_vips) {
        match network_around(vip.ip, subject.peers) {
            None => {
                return Outcome::fail(format!(
                    "No host is in a network with {}; choose addresses from a network the hosts are in.",
                    vip.ip
                ));
            }
            Some(around)
                if !facts
                    .machine_networks
                    .iter()
                    .any(|network| network.trunc() == around) =>
            {
                return Outcome::fail(format!(
                    "{} is in {around} on the hosts, but the machine network is {}; make them agree.",
                    vip.ip,
                    facts
                        .machine_networks
                        .iter()
                        .map(IpNet::to_string)
                        .collect::<Vec<_>>()
                        .join(", ")
                ));
            }
            Some(_) => {}
        }
    }
    Outcome::pass("The machine network is the one the virtual addresses are in.")
}
