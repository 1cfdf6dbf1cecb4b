//! NetworkManager's keyfiles: read, and written for installed systems.

use super::{Bond, Bridge, Connection, Controller, Kind, Route, Vlan, ip, network};
use anyhow::{bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;

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

/// What other files may call an interface by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub uuid: String,
    pub id: String,
    pub interface: String,
}

pub fn label(text: &str) -> Label {
    let all = sections(text);
    let get = |key: &str| {
        let section = all.get("connection");
        section
            .and_then(|section| section.get(key))
            .cloned()
            .unwrap_or_default()
    };
    Label {
        uuid: get("uuid"),
        id: get("id"),
        interface: get("interface-name"),
    }
}

/// One `*.nmconnection` file.
pub fn from_keyfile(text: &str) -> anyhow::Result<Connection> {
    let all = sections(text);
    let get = |section: &str, key: &str| {
        let value = all.get(section).and_then(|section| section.get(key));
        value.map(String::as_str).unwrap_or_default()
    };
    // The same thing under its newer and its older name.
    let either = |new: &str, old: &str| {
        let value = get("connection", new);
        if value.is_empty() {
            get("connection", old).to_owned()
        } else {
            value.to_owned()
        }
    };
    let mut this = Connection {
        interface: get("connection", "interface-name").to_owned(),
        controller: Controller::named(
            &either("port-type", "slave-type"),
            &either("controller", "master"),
        ),
        ..Connection::default()
    };
    let own_mac =
        |this: &mut Connection| this.mac = get("ethernet", "cloned-mac-address").to_ascii_lowercase();
    for section in ["ethernet", "802-3-ethernet"] {
        this.mtu = this.mtu.or(get(section, "mtu").parse().ok());
    }
    match get("connection", "type") {
        "" | "ethernet" | "802-3-ethernet" => {
            for section in ["ethernet", "802-3-ethernet"] {
                this.mac
                    .push_str(&get(section, "mac-address").to_ascii_lowercase());
            }
        }
        "vlan" => {
            let (parent, id) = (get("vlan", "parent").to_owned(), get("vlan", "id").parse()?);
            this.kind = Kind::Vlan(Vlan { parent, id });
            if this.interface.is_empty() {
                this.interface = get("vlan", "interface-name").to_owned();
            }
            own_mac(&mut this);
            ensure!(!this.interface.is_empty(), "a tagged network has no name");
        }
        "bond" => {
            this.kind = Kind::Bond(bond(all.get("bond")));
            own_mac(&mut this);
            ensure!(!this.interface.is_empty(), "a bond has no name");
        }
        "bridge" => {
            this.kind = Kind::Bridge(bridge(all.get("bridge")));
            own_mac(&mut this);
            ensure!(!this.interface.is_empty(), "a bridge has no name");
        }
        other => bail!("unknown type of interface {other}"),
    }
    ensure!(
        !(this.interface.is_empty() && this.mac.is_empty()),
        "it names neither an interface nor a MAC"
    );
    for section in ["ipv4", "ipv6"] {
        this.read_family(section, all.get(section).unwrap_or(&BTreeMap::new()))?;
    }
    // A part of something larger has no addresses of its own.
    this.dhcp &= this.controller.is_none();
    this.auto6 &= this.controller.is_none();
    Ok(this)
}

fn bond(section: Option<&BTreeMap<String, String>>) -> Bond {
    let mut options = section.cloned().unwrap_or_default();
    options.remove("interface-name");
    Bond {
        mode: options.remove("mode").unwrap_or_default(),
        options,
    }
}

/// A bridge looks for loops only when it is told to: half a minute without network is a high price.
fn bridge(section: Option<&BTreeMap<String, String>>) -> Bridge {
    let mut options = section.cloned().unwrap_or_default();
    options.remove("interface-name");
    Bridge {
        stp: options
            .remove("stp")
            .is_some_and(|value| value == "true" || value == "yes" || value == "1"),
        options,
    }
}

impl Connection {
    fn read_family(&mut self, family: &str, keys: &BTreeMap<String, String>) -> anyhow::Result<()> {
        let method = keys.get("method").map_or("auto", String::as_str);
        self.dhcp |= family == "ipv4" && method == "auto";
        self.auto6 |= family == "ipv6" && !matches!(method, "manual" | "disabled" | "link-local");
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
        let id = if self.interface.is_empty() {
            &self.mac
        } else {
            &self.interface
        };
        let kind = self.kind.word();
        let _ = writeln!(text, "[connection]\nid={id}\ntype={kind}\nautoconnect=true");
        if !self.kind.is_card() || self.mac.is_empty() {
            let _ = writeln!(text, "interface-name={}", self.interface);
        }
        if let Some(controller) = &self.controller {
            let (name, word) = (controller.name(), controller.word());
            let _ = writeln!(text, "master={name}\nslave-type={word}");
        }
        self.write_kind(&mut text);
        for is_v4 in [true, false] {
            self.write_family(&mut text, is_v4);
        }
        text
    }

    fn write_kind(&self, text: &mut String) {
        match &self.kind {
            Kind::Card => {}
            Kind::Vlan(vlan) => {
                let _ = writeln!(text, "\n[vlan]\nid={}\nparent={}", vlan.id, vlan.parent);
            }
            Kind::Bond(bond) => {
                let _ = writeln!(text, "\n[bond]\nmode={}", bond.mode);
                write_options(text, &bond.options);
            }
            Kind::Bridge(bridge) => {
                let _ = writeln!(text, "\n[bridge]\nstp={}", bridge.stp);
                write_options(text, &bridge.options);
            }
        }
        let mac = if self.kind.is_card() {
            "mac-address"
        } else {
            "cloned-mac-address"
        };
        if self.kind.is_card() || !self.mac.is_empty() || self.mtu.is_some() {
            let _ = writeln!(text, "\n[ethernet]");
        }
        if !self.mac.is_empty() {
            let _ = writeln!(text, "{mac}={}", self.mac.to_ascii_uppercase());
        }
        if let Some(mtu) = self.mtu {
            let _ = writeln!(text, "mtu={mtu}");
        }
    }

    fn write_family(&self, text: &mut String, is_v4: bool) {
        let addresses: Vec<_> = self
            .addresses
            .iter()
            .filter(|(ip, _)| ip.is_ipv4() == is_v4)
            .collect();
        let method = match (addresses.is_empty(), is_v4) {
            (_, false) if self.auto6 => "auto",
            (false, _) => "manual",
            (true, true) if self.dhcp => "auto",
            (true, _) => "disabled",
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

fn write_options(text: &mut String, options: &BTreeMap<String, String>) {
    for (name, value) in options {
        let _ = writeln!(text, "{name}={value}");
    }
}
