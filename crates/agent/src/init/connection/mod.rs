//! Static network settings: read from NetworkManager's keyfiles and from descriptions in YAML (NMState), as far as
//! cards, tagged networks, bonds, bridges, addresses, routes and name servers go.

mod keyfile;
mod yaml;

pub use keyfile::{Label, from_keyfile, label};
pub use yaml::from_yaml;

use anyhow::{Context as _, ensure};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The settings of one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connection {
    /// Empty when only the MAC is named.
    pub interface: String,
    /// Of a card: its own, in small letters; empty when only the interface is named. Of others: the one to have.
    pub mac: String,
    pub kind: Kind,
    /// The bond or bridge it is a part of.
    pub controller: Option<Controller>,
    pub mtu: Option<u32>,
    pub addresses: Vec<(IpAddr, u8)>,
    pub routes: Vec<Route>,
    /// Ask for an IPv4 address.
    pub dhcp: bool,
    /// Do for IPv6 what routers say.
    pub auto6: bool,
    pub name_servers: Vec<IpAddr>,
    pub search: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Card,
    Vlan(Vlan),
    Bond(Bond),
    Bridge(Bridge),
}

impl Kind {
    /// As NetworkManager calls it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Card => "ethernet",
            Self::Vlan(_) => "vlan",
            Self::Bond(_) => "bond",
            Self::Bridge(_) => "bridge",
        }
    }

    pub fn is_card(&self) -> bool {
        match self {
            Self::Card => true,
            Self::Vlan(_) | Self::Bond(_) | Self::Bridge(_) => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vlan {
    pub parent: String,
    pub id: u16,
}

/// Several cards as one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bond {
    pub mode: String,
    /// Under the names the kernel has for them.
    pub options: BTreeMap<String, String>,
}

/// A switch in the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bridge {
    /// Whether it looks for loops.
    pub stp: bool,
    /// Under NetworkManager's names, times in seconds.
    pub options: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Controller {
    Bond(String),
    Bridge(String),
}

impl Controller {
    pub fn name(&self) -> &str {
        match self {
            Self::Bond(name) | Self::Bridge(name) => name,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Bond(_) => "bond",
            Self::Bridge(_) => "bridge",
        }
    }

    fn named(kind: &str, name: &str) -> Option<Self> {
        match kind {
            "bond" => Some(Self::Bond(name.to_owned())),
            "bridge" => Some(Self::Bridge(name.to_owned())),
            _ => None,
        }
    }
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
            tagged.kind,
            Kind::Vlan(Vlan {
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
                interface: if connection.kind.is_card() {
                    String::new()
                } else {
                    connection.interface.clone()
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

    const BONDED: &str = "
interfaces:
- name: bond0
  type: bond
  state: up
  mac-address: 52:54:00:AA:00:09
  link-aggregation:
    mode: 802.3ad
    options: {miimon: 100, lacp_rate: fast, xmit_hash_policy: 'layer3+4'}
    port: [eth0, eth1]
- name: eth1
  type: ethernet
  mac-address: 52:54:00:AA:00:02
  mtu: 9000
- name: br0
  type: linux-bridge
  ipv4: {enabled: true, dhcp: true}
  bridge:
    options:
      stp: {enabled: true, forward-delay: 4, priority: 100}
      mac-ageing-time: 200
    port: [{name: bond0.7}]
- name: bond0.7
  type: vlan
  vlan: {base-iface: bond0, id: 7}
";

    #[test]
    fn bonds_and_bridges_are_read_with_their_options_and_ports() {
        let list = from_yaml(BONDED).unwrap();
        let find = |name: &str| list.iter().find(|one| one.interface == name).unwrap();
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let bond = Bond {
            mode: "802.3ad".into(),
            options: BTreeMap::from([
                option("miimon", "100"),
                option("lacp_rate", "fast"),
                option("xmit_hash_policy", "layer3+4"),
            ]),
        };
        assert_eq!(find("bond0").kind, Kind::Bond(bond));
        let bridge = Bridge {
            stp: true,
            options: BTreeMap::from([
                option("forward-delay", "4"),
                option("priority", "100"),
                option("ageing-time", "200"),
            ]),
        };
        assert_eq!(find("br0").kind, Kind::Bridge(bridge));
        // One port is described, the other one only named.
        for port in ["eth0", "eth1"] {
            let port = find(port);
            assert_eq!(port.controller, Some(Controller::Bond("bond0".into())));
            assert!(port.kind.is_card() && !port.dhcp);
        }
        assert_eq!(find("eth1").mtu, Some(9000));
        assert_eq!(find("bond0.7").controller, Some(Controller::Bridge("br0".into())));
    }

    #[test]
    fn bonds_and_bridges_that_are_written_as_keyfiles_are_read_back() {
        for connection in from_yaml(BONDED)
            .unwrap()
            .into_iter()
            .filter(|one| !one.kind.is_card())
        {
            let text = connection.to_keyfile();
            assert_eq!(from_keyfile(&text).unwrap(), connection, "{text}");
        }
    }

    #[test]
    fn keyfiles_of_bonds_and_their_ports_are_read() {
        let bond = from_keyfile(
            "[connection]\nid=bond0\nuuid=u-1\ntype=bond\ninterface-name=bond0\n[bond]\nmode=active-backup\nmiimon=100\nprimary=eth0\n\
             [ipv4]\nmethod=auto\n",
        )
        .unwrap();
        let Kind::Bond(Bond { mode, options }) = &bond.kind else {
            panic!("{bond:?}")
        };
        assert_eq!((mode.as_str(), options.len()), ("active-backup", 2));
        assert!(bond.dhcp);
        for words in ["master=u-1\nslave-type=bond", "controller=u-1\nport-type=bond"] {
            let text = format!("[connection]\ntype=ethernet\ninterface-name=eth0\n{words}\n");
            let port = from_keyfile(&text).unwrap();
            assert_eq!(port.controller, Some(Controller::Bond("u-1".into())));
            assert!(!port.dhcp, "the bond has the addresses");
        }
        let bridge =
            from_keyfile("[connection]\ntype=bridge\ninterface-name=br0\n[bridge]\nstp=false\n").unwrap();
        assert_eq!(bridge.kind, Kind::Bridge(Bridge::default()));
    }

    #[test]
    fn what_is_not_known_is_refused_with_its_name() {
        let switch = "interfaces:\n- name: ovs0\n  type: ovs-bridge\n  state: up\n";
        assert!(from_yaml(switch).unwrap_err().to_string().contains("ovs-bridge"));
        assert!(
            from_keyfile("[connection]\ntype=team\ninterface-name=team0\n")
                .unwrap_err()
                .to_string()
                .contains("team")
        );
        let nameless = "[connection]\ntype=bond\n";
        assert!(from_keyfile(nameless).unwrap_err().to_string().contains("bond"));
        assert!(from_yaml("interfaces: 7").is_err());
        let stray = "interfaces:\n- name: a\n  ipv4: {enabled: true, address: [{ip: 192.0.2.300, prefix-length: 24}]}\n";
        assert!(from_yaml(stray).is_err());
        assert!(from_keyfile("[connection]\ntype=ethernet\n").is_err());
    }
}
