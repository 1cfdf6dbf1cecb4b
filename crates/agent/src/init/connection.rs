//! Static network settings: read from NetworkManager's keyfiles and from descriptions in YAML (NMState), as far as
//! cards, tagged networks, addresses, routes and name servers go.

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The settings of one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connection {
    /// Empty when only the MAC is named.
    pub interface: String,
    /// In small letters; empty when only the interface is named.
    pub mac: String,
    pub vlan: Option<Vlan>,
    pub mtu: Option<u32>,
    pub addresses: Vec<(IpAddr, u8)>,
    pub routes: Vec<Route>,
    /// Ask for an IPv4 address.
    pub dhcp: bool,
    pub name_servers: Vec<IpAddr>,
    pub search: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vlan {
    pub parent: String,
    pub id: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub to: IpAddr,
    pub prefix: u8,
    pub gateway: Option<IpAddr>,
}

impl Route {
    fn default_by(gateway: IpAddr) -> Self {
        let to = match gateway {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self {
            to,
            prefix: 0,
            gateway: Some(gateway),
        }
    }
}

fn network(text: &str) -> anyhow::Result<(IpAddr, u8)> {
    let (ip, prefix) = text.trim().split_once('/').unwrap_or((text.trim(), ""));
    let ip: IpAddr = ip.parse().with_context(|| format!("{text} is not an address"))?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let prefix = if prefix.is_empty() { most } else { prefix.parse()? };
    ensure!(prefix <= most, "{text} is not a network");
    Ok((ip, prefix))
}

fn ip(text: &str) -> anyhow::Result<IpAddr> {
    text.trim()
        .parse()
        .with_context(|| format!("{text} is not an address"))
}

type Sections = BTreeMap<String, BTreeMap<String, String>>;

fn sections(text: &str) -> Sections {
    let mut all = Sections::new();
    let mut name = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name = section.to_owned();
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with(['#', ';'])) {
            let section = all.entry(name.clone()).or_default();
            section.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    all
}

/// One `*.nmconnection` file.
pub fn from_keyfile(text: &str) -> anyhow::Result<Connection> {
    let all = sections(text);
    let get = |section: &str, key: &str| {
        let value = all.get(section).and_then(|section| section.get(key));
        value.map(String::as_str).unwrap_or_default()
    };
    let kind = get("connection", "type");
    let mut this = Connection {
        interface: get("connection", "interface-name").to_owned(),
        ..Connection::default()
    };
    match kind {
        "" | "ethernet" | "802-3-ethernet" => {
            for section in ["ethernet", "802-3-ethernet"] {
                this.mac
                    .push_str(&get(section, "mac-address").to_ascii_lowercase());
                this.mtu = this.mtu.or(get(section, "mtu").parse().ok());
            }
        }
        "vlan" => {
            let (parent, id) = (get("vlan", "parent").to_owned(), get("vlan", "id").parse()?);
            this.vlan = Some(Vlan { parent, id });
            if this.interface.is_empty() {
                this.interface = get("vlan", "interface-name").to_owned();
            }
            ensure!(!this.interface.is_empty(), "a tagged network has no name");
        }
        other => bail!("interfaces of type {other} are not known here"),
    }
    ensure!(
        !(this.interface.is_empty() && this.mac.is_empty()),
        "it names neither an interface nor a MAC"
    );
    for section in ["ipv4", "ipv6"] {
        this.read_family(section, all.get(section).unwrap_or(&BTreeMap::new()))?;
    }
    Ok(this)
}

impl Connection {
    fn read_family(&mut self, family: &str, keys: &BTreeMap<String, String>) -> anyhow::Result<()> {
        let method = keys.get("method").map_or("auto", String::as_str);
        self.dhcp |= family == "ipv4" && method == "auto";
        for (key, value) in keys {
            let plain = key.trim_end_matches(|c: char| c.is_ascii_digit());
            match (key.as_str(), plain) {
                (_, "address" | "addresses") => {
                    for item in value.split(';').filter(|item| !item.trim().is_empty()) {
                        let (address, gateway) = item.split_once(',').unwrap_or((item, ""));
                        self.addresses.push(network(address)?);
                        if !gateway.trim().is_empty() {
                            self.routes.push(Route::default_by(ip(gateway)?));
                        }
                    }
                }
                ("gateway", _) => self.routes.push(Route::default_by(ip(value)?)),
                (_, "route") => {
                    let mut parts = value.split(',');
                    let (to, prefix) = network(parts.next().unwrap_or_default())?;
                    let gateway = parts.next().map(str::trim).filter(|text| !text.is_empty());
                    let gateway = gateway.map(ip).transpose()?.filter(|ip| !ip.is_unspecified());
                    self.routes.push(Route { to, prefix, gateway });
                }
                ("dns", _) => {
                    for server in value.split([';', ',']).filter(|item| !item.trim().is_empty()) {
                        self.name_servers.push(ip(server)?);
                    }
                }
                ("dns-search", _) => {
                    let names = value.split([';', ',']).filter(|item| !item.is_empty());
                    self.search.extend(names.map(str::to_owned));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// As NetworkManager would keep it. Cards are named by their MAC, because systems name them differently.
    pub fn to_keyfile(&self) -> String {
        let mut text = String::new();
        let kind = if self.vlan.is_some() { "vlan" } else { "ethernet" };
        let id = if self.interface.is_empty() {
            &self.mac
        } else {
            &self.interface
        };
        let _ = writeln!(text, "[connection]\nid={id}\ntype={kind}\nautoconnect=true");
        match &self.vlan {
            Some(vlan) => {
                let _ = writeln!(text, "interface-name={}", self.interface);
                let _ = writeln!(text, "\n[vlan]\nid={}\nparent={}", vlan.id, vlan.parent);
                if let Some(mtu) = self.mtu {
                    let _ = writeln!(text, "\n[ethernet]\nmtu={mtu}");
                }
            }
            None => {
                if self.mac.is_empty() {
                    let _ = writeln!(text, "interface-name={}", self.interface);
                }
                let _ = writeln!(text, "\n[ethernet]");
                if !self.mac.is_empty() {
                    let _ = writeln!(text, "mac-address={}", self.mac.to_ascii_uppercase());
                }
                if let Some(mtu) = self.mtu {
                    let _ = writeln!(text, "mtu={mtu}");
                }
            }
        }
        for is_v4 in [true, false] {
            self.write_family(&mut text, is_v4);
        }
        text
    }

    fn write_family(&self, text: &mut String, is_v4: bool) {
        let addresses: Vec<_> = self
            .addresses
            .iter()
            .filter(|(ip, _)| ip.is_ipv4() == is_v4)
            .collect();
        let method = match (addresses.is_empty(), is_v4) {
            (false, _) => "manual",
            (true, true) if self.dhcp => "auto",
            (true, true) => "disabled",
            (true, false) => "auto",
        };
        let name = if is_v4 { "ipv4" } else { "ipv6" };
        let _ = writeln!(text, "\n[{name}]\nmethod={method}");
        for (at, (ip, prefix)) in addresses.iter().enumerate() {
            let _ = writeln!(text, "address{}={ip}/{prefix}", at + 1);
        }
        let routes = self.routes.iter().filter(|route| route.to.is_ipv4() == is_v4);
        for (at, route) in routes.enumerate() {
            let gateway = route.gateway.map(|ip| format!(",{ip}")).unwrap_or_default();
            let _ = writeln!(text, "route{}={}/{}{gateway}", at + 1, route.to, route.prefix);
        }
        let servers = self.name_servers.iter().filter(|ip| ip.is_ipv4() == is_v4);
        let servers: String = servers.map(|ip| format!("{ip};")).collect();
        if !servers.is_empty() {
            let _ = writeln!(text, "dns={servers}");
        }
        if is_v4 && !self.search.is_empty() {
            let _ = writeln!(text, "dns-search={};", self.search.join(";"));
        }
    }
}

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
#[serde(default, rename_all = "kebab-case")]
struct Family {
    enabled: bool,
    dhcp: bool,
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
    let all: Description = serde_norway::from_str(text).context("the description cannot be read")?;
    let up = all
        .interfaces
        .iter()
        .filter(|interface| !matches!(interface.state.as_str(), "down" | "absent"));
    let mut list = up.map(connection).collect::<anyhow::Result<Vec<_>>>()?;
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

fn connection(interface: &Interface) -> anyhow::Result<Connection> {
    let vlan = match interface.kind.as_str() {
        "" | "ethernet" => None,
        "vlan" => {
            let part = interface
                .vlan
                .as_ref()
                .context("a tagged network has no number")?;
            Some(Vlan {
                parent: part.base_iface.clone(),
                id: part.id,
            })
        }
        other => bail!("interfaces of type {other} are not known here"),
    };
    let mut addresses = Vec::new();
    for family in [&interface.ipv4, &interface.ipv6] {
        for address in family.address.iter().filter(|_| family.enabled) {
            addresses.push(network(&format!("{}/{}", address.ip, address.prefix_length))?);
        }
    }
    Ok(Connection {
        interface: interface.name.clone(),
        mac: interface.mac_address.to_ascii_lowercase(),
        vlan,
        mtu: interface.mtu,
        addresses,
        dhcp: interface.ipv4.enabled && interface.ipv4.dhcp,
        ..Connection::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "
interfaces:
- name: eth0
  type: ethernet
  state: up
  mac-address: 52:54:00:AA:00:01
  mtu: 9000
  ipv4:
    enabled: true
    dhcp: false
    address:
    - ip: 192.0.2.5
      prefix-length: 24
  ipv6:
    enabled: true
    address:
    - ip: 2001:db8::5
      prefix-length: 64
- name: eth0.100
  type: vlan
  state: up
  vlan: {base-iface: eth0, id: 100}
  ipv4: {enabled: true, dhcp: true}
- name: eth1
  state: down
routes:
  config:
  - destination: 0.0.0.0/0
    next-hop-address: 192.0.2.1
    next-hop-interface: eth0
  - destination: ::/0
    next-hop-address: 2001:db8::1
    next-hop-interface: eth0
dns-resolver:
  config: {server: [192.0.2.53, '2001:db8::53'], search: [example.com]}
";

    #[test]
    fn a_description_is_read_whole() {
        let list = from_yaml(YAML).unwrap();
        let [card, tagged] = &list[..] else {
            panic!("{list:?}")
        };
        assert_eq!(
            (card.interface.as_str(), card.mac.as_str(), card.mtu),
            ("eth0", "52:54:00:aa:00:01", Some(9000))
        );
        assert_eq!(
            card.addresses,
            [(ip("192.0.2.5").unwrap(), 24), (ip("2001:db8::5").unwrap(), 64)]
        );
        assert_eq!(card.routes.len(), 2);
        assert_eq!(card.routes[0], Route::default_by(ip("192.0.2.1").unwrap()));
        assert_eq!(
            (card.name_servers.len(), card.search.len(), card.dhcp),
            (2, 1, false)
        );
        assert_eq!(
            tagged.vlan,
            Some(Vlan {
                parent: "eth0".into(),
                id: 100
            })
        );
        assert!(tagged.dhcp);
    }

    #[test]
    fn what_is_written_as_a_keyfile_is_read_back() {
        for connection in from_yaml(YAML).unwrap() {
            let back = from_keyfile(&connection.to_keyfile()).unwrap();
            let expected = Connection {
                // Cards are named by their MAC alone.
                interface: if connection.vlan.is_some() {
                    connection.interface.clone()
                } else {
                    String::new()
                },
                ..connection
            };
            assert_eq!(back, expected);
        }
    }

    #[test]
    fn keyfiles_of_network_manager_are_read() {
        let text = "[connection]\nid=eth0\nuuid=x\ntype=ethernet\ninterface-name=eth0\n\n[ipv4]\n\
            address1=192.0.2.5/24,192.0.2.1\naddress2=192.0.2.6/24\ndns=192.0.2.53;\ndns-search=a.example;b.example;\n\
            method=manual\nroute1=198.51.100.0/24,192.0.2.9,100\nroute1_options=table=254\n\n[ipv6]\nmethod=disabled\n";
        let found = from_keyfile(text).unwrap();
        assert_eq!(found.addresses.len(), 2);
        assert_eq!(found.routes.len(), 2, "{:?}", found.routes);
        assert_eq!(found.search, ["a.example", "b.example"]);
        assert!(!found.dhcp);
        let auto =
            from_keyfile("[connection]\ntype=ethernet\n[ethernet]\nmac-address=52:54:00:AA:00:01\n").unwrap();
        assert!(auto.dhcp);
    }

    #[test]
    fn what_is_not_known_is_refused_with_its_name() {
        let bond = "interfaces:\n- name: bond0\n  type: bond\n  state: up\n";
        assert!(from_yaml(bond).unwrap_err().to_string().contains("bond"));
        assert!(
            from_keyfile("[connection]\ntype=bridge\ninterface-name=br0\n")
                .unwrap_err()
                .to_string()
                .contains("bridge")
        );
        assert!(from_yaml("interfaces: 7").is_err());
        let stray = "interfaces:\n- name: a\n  ipv4: {enabled: true, address: [{ip: 192.0.2.300, prefix-length: 24}]}\n";
        assert!(from_yaml(stray).is_err());
        assert!(from_keyfile("[connection]\ntype=ethernet\n").is_err());
    }
}
