//! Routes of both families. Destinations have no prefix length: that is how clients know them.

use super::Machine;
use muster_contract::v2::agent::inventory::Route;
use std::net::{Ipv4Addr, Ipv6Addr};

/// As the kernel counts families; clients read them so.
const FAMILY_V4: i64 = 2;
const FAMILY_V6: i64 = 10;
const UP: u32 = 0x1;
/// Routes that refuse, and routes to this machine itself.
const REJECT: u32 = 0x200;
const LOCAL: u32 = 0x8000_0000;

pub fn routes(machine: &Machine) -> Vec<Route> {
    let mut routes: Vec<Route> = machine
        .text("proc/net/route")
        .lines()
        .skip(1)
        .filter_map(v4)
        .collect();
    routes.extend(machine.text("proc/net/ipv6_route").lines().filter_map(v6));
    routes
}

fn v4(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [interface, destination, gateway, flags, _, _, metric, ..] = words[..] else {
        return None;
    };
    let ip = |hex: &str| {
        u32::from_str_radix(hex, 16)
            .ok()
            .map(|bits| Ipv4Addr::from(bits.to_le_bytes()))
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    if flags & UP == 0 || flags & REJECT != 0 {
        return None;
    }
    let (destination, gateway) = (ip(destination)?, ip(gateway)?);
    Some(Route {
        interface: interface.to_owned(),
        gateway: if gateway.is_unspecified() {
            String::new()
        } else {
            gateway.to_string()
        },
        destination: destination.to_string(),
        family: FAMILY_V4,
        metric: metric.parse().ok()?,
    })
}

fn v6(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [destination, _, _, _, gateway, metric, _, _, flags, interface] = words[..] else {
        return None;
    };
    let ip = |hex: &str| u128::from_str_radix(hex, 16).ok().map(Ipv6Addr::from);
    let flags = u32::from_str_radix(flags, 16).ok()?;
    let (destination, gateway) = (ip(destination)?, ip(gateway)?);
    let is_ours = flags & UP != 0 && flags & (REJECT | LOCAL) == 0 && interface != "lo";
    if !is_ours || destination.is_multicast() {
        return None;
    }
    Some(Route {
        interface: interface.to_owned(),
        gateway: if gateway.is_unspecified() {
            String::new()
        } else {
            gateway.to_string()
        },
        destination: destination.to_string(),
        family: FAMILY_V6,
        metric: i64::from_str_radix(metric, 16).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_route_has_a_bare_destination() {
        let route = v4("eth0\t00000000\t0202000A\t0003\t0\t0\t100\t00000000\t0\t0\t0").unwrap();
        assert_eq!(
            (route.destination.as_str(), route.gateway.as_str()),
            ("0.0.0.0", "10.0.2.2")
        );
        assert_eq!((route.family, route.metric), (2, 100));
        let net = v4("eth0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0").unwrap();
        assert_eq!((net.destination.as_str(), net.gateway.as_str()), ("10.0.2.0", ""));
    }

    #[test]
    fn routes_of_the_other_family_are_read_without_local_ones() {
        let zero = "00000000000000000000000000000000";
        let default = format!(
            "{zero} 00 {zero} 00 fe800000000000000000000000000002 00000400 00000001 00000000 00450003     eth0"
        );
        let route = v6(&default).unwrap();
        assert_eq!(
            (route.destination.as_str(), route.gateway.as_str()),
            ("::", "fe80::2")
        );
        assert_eq!((route.family, route.metric), (10, 1024));
        let local = format!("{zero} 80 {zero} 00 {zero} 00000000 00000001 00000000 80200001       lo");
        assert!(v6(&local).is_none());
    }
}
