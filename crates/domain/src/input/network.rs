//! The networks of a cluster: pods, services, machines; sizes, prefixes and overlaps.

use ipnet::IpNet;

use super::address;
use super::error::{Checked, Invalid};
use crate::networks::first_overlap;

/// A pod or service network, or one host's share, needs at least 2^7 addresses.
const LEAST_HOST_BITS: u8 = 7;
/// One machine needs less: 2^4 addresses.
const LEAST_HOST_BITS_SINGLE_NODE: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodNetwork {
    pub cidr: IpNet,
    /// Prefix of the part each host gets.
    pub host_prefix: u8,
}

/// Pod networks as given: CIDR text and host prefix (0 or absent = the family's default).
pub fn cluster_networks(items: &[(String, Option<i64>)]) -> Checked<Vec<PodNetwork>> {
    let networks = items.iter().enumerate().map(|(index, (cidr, prefix))| {
        let cidr = sized(&format!("cluster_networks.{index}.cidr"), cidr, LEAST_HOST_BITS)?;
        let host_prefix = host_prefix(&format!("cluster_networks.{index}.host_prefix"), cidr, *prefix)?;
        Ok(PodNetwork { cidr, host_prefix })
    });
    networks.collect()
}

pub fn service_networks(items: &[String]) -> Checked<Vec<IpNet>> {
    list("service_networks", items, LEAST_HOST_BITS)
}

pub fn machine_networks(items: &[String], single_node: bool) -> Checked<Vec<IpNet>> {
    list(
        "machine_networks",
        items,
        if single_node {
            LEAST_HOST_BITS_SINGLE_NODE
        } else {
            LEAST_HOST_BITS
        },
    )
}

/// The old scalar fields (`cluster_network_cidr` and its like) obey the same rules.
pub fn scalar(field: &str, cidr: &str) -> Checked<IpNet> {
    sized(field, cidr, LEAST_HOST_BITS)
}

/// The share of one host when none is given.
pub fn default_host_prefix(cidr: IpNet) -> u8 {
    match cidr {
        IpNet::V4(_) => 23,
        IpNet::V6(_) => 64,
    }
}

fn list(field: &str, items: &[String], bits: u8) -> Checked<Vec<IpNet>> {
    items
        .iter()
        .enumerate()
        .map(|(index, cidr)| sized(&format!("{field}.{index}.cidr"), cidr, bits))
        .collect()
}

fn sized(field: &str, text: &str, bits: u8) -> Checked<IpNet> {
    let net = address::network(field, text)?;
    let longest = net.max_prefix_len() - bits;
    if net.prefix_len() < 1 || net.prefix_len() > longest {
        return Err(Invalid::rule(
            field,
            format!("has the prefix length {}", net.prefix_len()),
            format!("use a network between /1 and /{longest}"),
        ));
    }
    if net.addr().is_unspecified() {
        return Err(Invalid::rule(
            field,
            "is the unspecified network",
            "name a real network",
        ));
    }
    Ok(net)
}

fn host_prefix(field: &str, cidr: IpNet, prefix: Option<i64>) -> Checked<u8> {
    let Some(wanted) = prefix.filter(|prefix| *prefix != 0) else {
        return Ok(
            default_host_prefix(cidr).clamp(cidr.prefix_len(), cidr.max_prefix_len() - LEAST_HOST_BITS)
        );
    };
    let longest = cidr.max_prefix_len() - LEAST_HOST_BITS;
    match u8::try_from(wanted) {
        Ok(prefix) if (cidr.prefix_len()..=longest).contains(&prefix) => Ok(prefix),
        Ok(_) | Err(_) => Err(Invalid::rule(
            field,
            format!("is {wanted}, which does not cut {cidr} into useful parts"),
            format!("use {} to {longest}", cidr.prefix_len().max(1)),
        )),
    }
}

/// Names every network by its field, so that the error can name the two that collide.
pub fn no_overlap(cluster: &[PodNetwork], service: &[IpNet], machine: &[IpNet]) -> Checked {
    let mut all: Vec<(String, IpNet)> = Vec::new();
    all.extend(
        cluster
            .iter()
            .enumerate()
            .map(|(i, net)| (format!("cluster_networks.{i}.cidr"), net.cidr)),
    );
    all.extend(
        service
            .iter()
            .enumerate()
            .map(|(i, net)| (format!("service_networks.{i}.cidr"), *net)),
    );
    all.extend(
        machine
            .iter()
            .enumerate()
            .map(|(i, net)| (format!("machine_networks.{i}.cidr"), *net)),
    );
    match first_overlap(&all) {
        None => Ok(()),
        Some((earlier, later)) => {
            let ((other_field, other), (field, net)) = (&all[earlier], &all[later]);
            Err(Invalid::rule(
                field,
                format!("is {net} and overlaps {other} of `{other_field}`"),
                "choose networks that share no address",
            ))
        }
    }
}
