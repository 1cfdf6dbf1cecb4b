//! Network interfaces with their addresses.

use super::Machine;
use muster_contract::v2::agent::inventory::Interface;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

/// The kernel's flags and the words clients know them by.
const FLAGS: [(u32, &str); 6] = [
    (0x1, "up"),
    (0x2, "broadcast"),
    (0x8, "loopback"),
    (0x10, "pointtopoint"),
    (0x1000, "multicast"),
    (0x40, "running"),
];
const LOOPBACK: u32 = 0x8;

pub fn interfaces(machine: &Machine) -> Vec<Interface> {
    let names = machine.list("sys/class/net");
    let v4 = machine.addresses();
    let v6 = parse_v6(&machine.text("proc/net/if_inet6"));
    let mut found = Vec::new();
    for name in names
        .iter()
        .filter(|name| machine.exists(&format!("sys/class/net/{name}/address")))
    {
        let of = |file: &str| machine.text(&format!("sys/class/net/{name}/{file}"));
        let flags = u32::from_str_radix(of("flags").trim_start_matches("0x"), 16).unwrap_or_default();
        if flags & LOOPBACK != 0 {
            continue;
        }
        let mine = v4.iter().filter(|address| address.interface == *name);
        found.push(Interface {
            mac_address: of("address"),
            r#type: kind(machine, name),
            mtu: of("mtu").parse().unwrap_or_default(),
            // Links that are down, and some virtual ones, tell -1 or nothing.
            speed_mbps: of("speed").parse().unwrap_or(0).max(0),
            has_carrier: of("carrier") == "1",
            ipv4_addresses: mine
                .filter_map(|address| match address.address {
                    IpAddr::V4(ip) => Some(format!("{ip}/{}", address.prefix)),
                    IpAddr::V6(_) => None,
                })
                .collect(),
            ipv6_addresses: v6
                .iter()
                .filter(|(interface, ip, _)| interface == name && !ip.is_unicast_link_local())
                .map(|(_, ip, prefix)| format!("{ip}/{prefix}"))
                .collect(),
            flags: FLAGS
                .iter()
                .filter(|(bit, _)| flags & bit != 0)
                .map(|(_, word)| Cow::Borrowed(*word))
                .collect(),
            vendor: of("device/vendor").into(),
            product: of("device/device").into(),
            biosdevname: Cow::Borrowed(""),
            client_id: String::new(),
            name: name.clone(),
        });
    }
    found
}

fn kind(machine: &Machine, name: &str) -> Cow<'static, str> {
    let has = |file: &str| machine.exists(&format!("sys/class/net/{name}/{file}"));
    let event = machine.text(&format!("sys/class/net/{name}/uevent"));
    let device = event.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
    match device {
        Some("vlan") => "vlan".into(),
        Some("bond") => "bond".into(),
        Some("bridge") => "bridge".into(),
        _ if has("bonding") => "bond".into(),
        _ if has("bridge") => "bridge".into(),
        _ if machine.exists(&format!("proc/net/vlan/{name}")) => "vlan".into(),
        _ if has("device") => "physical".into(),
        _ => "device".into(),
    }
}

fn parse_v6(text: &str) -> Vec<(String, Ipv6Addr, u8)> {
    text.lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [address, _, prefix, _, _, name] = words[..] else {
                return None;
            };
            let ip = Ipv6Addr::from(u128::from_str_radix(address, 16).ok()?);
            Some((name.to_owned(), ip, u8::from_str_radix(prefix, 16).ok()?))
        })
        .collect()
}
