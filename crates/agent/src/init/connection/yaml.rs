//! Descriptions of networks in YAML (NMState).

use super::{Bond, Bridge, Connection, Controller, Kind, Route, Vlan, ip, network};
use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_norway::Value;
use std::collections::BTreeMap;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Description {
    interfaces: Vec<Interface>,
    routes: Routes,
    dns_resolver: Dns,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Interface {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    state: String,
    mac_address: String,
    mtu: Option<u32>,
    vlan: Option<VlanPart>,
    link_aggregation: BondPart,
    bridge: BridgePart,
    ipv4: Family,
    ipv6: Family,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct VlanPart {
    base_iface: String,
    id: u16,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BondPart {
    mode: String,
    options: BTreeMap<String, Value>,
    #[serde(alias = "slaves", alias = "ports")]
    port: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BridgePart {
    options: BridgeOptions,
    #[serde(alias = "ports")]
    port: Vec<PortPart>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PortPart {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BridgeOptions {
    stp: StpPart,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StpPart {
    enabled: bool,
    #[serde(flatten)]
    times: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Family {
    enabled: Option<bool>,
    dhcp: bool,
    autoconf: bool,
    address: Vec<Address>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Address {
    ip: String,
    prefix_length: u8,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Routes {
    config: Vec<RoutePart>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct RoutePart {
    destination: String,
    next_hop_address: String,
    next_hop_interface: String,
    state: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Dns {
    config: DnsPart,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DnsPart {
    server: Vec<String>,
    search: Vec<String>,
}

/// One description in YAML.
pub fn from_yaml(text: &str) -> anyhow::Result<Vec<Connection>> {
    let all: Description = serde_norway::from_str(text).context("cannot read the description")?;
    let up = all
        .interfaces
        .iter()
        .filter(|interface| !matches!(interface.state.as_str(), "down" | "absent"));
    let mut list = up.clone().map(connection).collect::<anyhow::Result<Vec<_>>>()?;
    for interface in up {
        for (port, controller) in ports(interface) {
            join(&mut list, port, controller);
        }
    }
    for part in all.routes.config.iter().filter(|part| part.state != "absent") {
        let (to, prefix) = network(&part.destination)?;
        let gateway = Some(part.next_hop_address.as_str()).filter(|text| !text.is_empty());
        let gateway = gateway.map(ip).transpose()?.filter(|ip| !ip.is_unspecified());
        let owner = list
            .iter_mut()
            .find(|connection| connection.interface == part.next_hop_interface);
        let owner = owner.with_context(|| {
            format!(
                "a route leaves by {}, which is not described",
                part.next_hop_interface
            )
        })?;
        owner.routes.push(Route { to, prefix, gateway });
    }
    if let Some(first) = list.first_mut() {
        let servers = all.dns_resolver.config.server.iter().map(|text| ip(text));
        first.name_servers = servers.collect::<anyhow::Result<_>>()?;
        first.search = all.dns_resolver.config.search;
    }
    Ok(list)
}

/// The names of what is to be a part of this interface.
fn ports(interface: &Interface) -> Vec<(&str, Controller)> {
    let name = || interface.name.clone();
    match interface.kind.as_str() {
        "bond" => {
            let ports = interface.link_aggregation.port.iter();
            ports
                .map(|port| (port.as_str(), Controller::Bond(name())))
                .collect()
        }
        "linux-bridge" => {
            let ports = interface.bridge.port.iter();
            ports
                .map(|port| (port.name.as_str(), Controller::Bridge(name())))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// A port need not be described: its name is enough.
fn join(list: &mut Vec<Connection>, port: &str, controller: Controller) {
    match list.iter_mut().find(|one| one.interface == port) {
        Some(one) => {
            one.controller = Some(controller);
            one.dhcp = false;
            one.auto6 = false;
        }
        None => list.push(Connection {
            interface: port.to_owned(),
            controller: Some(controller),
            ..Connection::default()
        }),
    }
}

/// Numbers, truths and texts, as the kernel wants to read them.
fn texts(options: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_on) => Some(u8::from(*is_on).to_string()),
        _ => None,
    };
    let pairs = options.iter();
    pairs
        .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
        .collect()
}

/// Two have other names here than in the kernel.
fn bond_options(options: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let kernels = |name: String| match name.as_str() {
        "all_ports_active" => "all_slaves_active".to_owned(),
        "packets_per_port" => "packets_per_slave".to_owned(),
        _ => name,
    };
    let options = texts(options).into_iter();
    options.map(|(name, value)| (kernels(name), value)).collect()
}

fn bridge(part: &BridgePart) -> Bridge {
    let mut options = texts(&part.options.others);
    options.extend(texts(&part.options.stp.times));
    // Here it has another name than in keyfiles.
    if let Some(time) = options.remove("mac-ageing-time") {
        options.insert("ageing-time".into(), time);
    }
    Bridge {
        stp: part.options.stp.enabled,
        options,
    }
}

/// Who neither sets addresses nor forbids them leaves them to routers.
fn is_automatic(ipv6: &Family) -> bool {
    ipv6.enabled != Some(false) && (ipv6.dhcp || ipv6.autoconf || ipv6.address.is_empty())
}

fn connection(interface: &Interface) -> anyhow::Result<Connection> {
    let kind = match interface.kind.as_str() {
        "" | "ethernet" => Kind::Card,
        "vlan" => {
            let part = interface
                .vlan
                .as_ref()
                .context("a tagged network has no number")?;
            Kind::Vlan(Vlan {
                parent: part.base_iface.clone(),
                id: part.id,
            })
        }
        "bond" => Kind::Bond(Bond {
            mode: interface.link_aggregation.mode.clone(),
            options: bond_options(&interface.link_aggregation.options),
        }),
        "linux-bridge" => Kind::Bridge(bridge(&interface.bridge)),
        other => bail!("unknown type of interface {other}"),
    };
    let mut addresses = Vec::new();
    for family in [&interface.ipv4, &interface.ipv6] {
        for address in family.address.iter().filter(|_| family.enabled == Some(true)) {
            addresses.push(network(&format!("{}/{}", address.ip, address.prefix_length))?);
        }
    }
    Ok(Connection {
        interface: interface.name.clone(),
        mac: interface.mac_address.to_ascii_lowercase(),
        kind,
        mtu: interface.mtu,
        addresses,
        dhcp: interface.ipv4.enabled == Some(true) && interface.ipv4.dhcp,
        auto6: is_automatic(&interface.ipv6),
        ..Connection::default()
    })
}
