//! Which addresses of a network nobody has, and whether addresses that must be free are.

use super::{Context, json};
use crate::probe::arp::{self, parse_mac};
use crate::probe::ping;
use crate::sys::IfAddress;
use crate::sys::packet::Mac;
use anyhow::Context as _;
use muster_contract::v2::agent::args::VipArg;
use muster_contract::v2::agent::replies::{FreeNetworkAddresses, VerifiedVip};
use muster_vocabulary::VipVerification;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

/// Larger networks take too long and say too much.
const LARGEST: u8 = 22;

/// An interface with an address in the network asked about.
struct Place {
    interface: String,
    mac: Mac,
    own: Ipv4Addr,
}

fn contains(network: Ipv4Addr, prefix: u8, ip: Ipv4Addr) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
    network.to_bits() & mask == ip.to_bits() & mask
}

fn v4(address: &IfAddress) -> Option<Ipv4Addr> {
    match address.address {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

fn place(context: &Context, of: impl Fn(&IfAddress, Ipv4Addr) -> bool) -> Option<Place> {
    let addresses = context.machine.addresses();
    let found = addresses
        .iter()
        .find(|address| v4(address).is_some_and(|ip| of(address, ip)))?;
    let mac = context
        .machine
        .text(&format!("sys/class/net/{}/address", found.interface));
    Some(Place {
        interface: found.interface.clone(),
        mac: parse_mac(&mac)?,
        own: v4(found)?,
    })
}

pub fn free(context: &Context, networks: Vec<String>) -> anyhow::Result<String> {
    let mut found = Vec::new();
    for network in networks {
        let free_addresses = free_in(context, &network)?;
        found.push(FreeNetworkAddresses {
            network,
            free_addresses,
        });
    }
    json(&found)
}

fn free_in(context: &Context, network: &str) -> anyhow::Result<Vec<String>> {
    let (base, prefix) = parse(network).with_context(|| format!("{network} is not an IPv4 network"))?;
    anyhow::ensure!(
        (LARGEST..=30).contains(&prefix),
        "{network} has the wrong size: the agent scans /{LARGEST} to /30"
    );
    let place = place(context, |_, ip| contains(base, prefix, ip))
        .with_context(|| format!("no interface has an address in {network}"))?;
    let all = hosts(base, prefix);
    let taken = arp::scan(&place.interface, place.mac, place.own, &all)
        .with_context(|| format!("cannot ask neighbours on {}", place.interface))?;
    let own: HashSet<Ipv4Addr> = context.machine.addresses().iter().filter_map(v4).collect();
    let is_free = |ip: &&Ipv4Addr| !taken.contains_key(ip) && !own.contains(ip);
    Ok(all.iter().filter(is_free).map(ToString::to_string).collect())
}

fn parse(network: &str) -> Option<(Ipv4Addr, u8)> {
    let (base, prefix) = network.split_once('/')?;
    Some((
        base.parse().ok()?,
        prefix.parse().ok().filter(|prefix| *prefix <= 32)?,
    ))
}

/// All but the network's own address and the broadcast one.
fn hosts(base: Ipv4Addr, prefix: u8) -> Vec<Ipv4Addr> {
    let size = 1u32 << (32 - u32::from(prefix));
    let first = base.to_bits() & !(size - 1);
    (1..size.saturating_sub(1))
        .map(|offset| Ipv4Addr::from(first + offset))
        .collect()
}

pub fn verify_vips(context: &Context, vips: Vec<VipArg>) -> anyhow::Result<String> {
    let verified: Vec<VerifiedVip> = vips
        .into_iter()
        .map(|arg| VerifiedVip {
            verification: verify(context, &arg.vip).into(),
            vip: arg.vip,
            vip_type: arg.vip_type,
        })
        .collect();
    json(&verified)
}

/// An address that somebody answers for is not free. Where we cannot look, we do not know.
fn verify(context: &Context, vip: &str) -> VipVerification {
    let word = |taken: bool| match taken {
        true => VipVerification::Failed,
        false => VipVerification::Succeeded,
    };
    match vip.parse() {
        Ok(IpAddr::V4(vip)) => {
            let Some(place) = place(context, |address, ip| contains(ip, address.prefix, vip)) else {
                return VipVerification::Unverified;
            };
            let asked = arp::scan(&place.interface, place.mac, Ipv4Addr::UNSPECIFIED, &[vip]);
            asked.map_or_else(|_| by_ping(vip.into()), |found| word(!found.is_empty()))
        }
        Ok(vip @ IpAddr::V6(_)) => by_ping(vip),
        Err(_) => VipVerification::Unverified,
    }
}

fn by_ping(vip: IpAddr) -> VipVerification {
    match ping::echo(vip, None) {
        Ok(echo) if echo.received > 0 => VipVerification::Failed,
        Ok(_) => VipVerification::Succeeded,
        Err(_) => VipVerification::Unverified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_taken_apart_into_their_hosts() {
        let (base, prefix) = parse("192.0.2.64/29").unwrap();
        let all: Vec<String> = hosts(base, prefix).iter().map(ToString::to_string).collect();
        assert_eq!(
            all,
            [
                "192.0.2.65",
                "192.0.2.66",
                "192.0.2.67",
                "192.0.2.68",
                "192.0.2.69",
                "192.0.2.70"
            ]
        );
        assert!(contains(base, prefix, "192.0.2.71".parse().unwrap()));
        assert!(!contains(base, prefix, "192.0.2.72".parse().unwrap()));
        assert!(contains(base, 0, "10.0.0.1".parse().unwrap()));
        assert_eq!(parse("192.0.2.0/33"), None);
        assert_eq!(parse("2001:db8::/64"), None);
    }
}
