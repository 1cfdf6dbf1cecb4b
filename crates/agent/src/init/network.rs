//! Gives the machine its addresses: as set for it in the image, and by DHCP and routers on every other card with a link.
//!
//! Settings stand in `/etc/assisted/network/hostN`: `mac_interface.ini` says which MAC has which name in the files beside
//! it. An installed system has them in NetworkManager's folder instead, where they are kept here too.

use super::connection::{self, Connection, Controller, Kind, Label};
use super::names::{Names, ResolvConf, Source};
use super::{dhcp, ipv6, stack};
use crate::clock::{Clock, Real};
use crate::collect::Machine;
use crate::note;
use crate::probe::arp::parse_mac;
use crate::sys::netlink;
use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub const SETTINGS: &str = "etc/assisted/network";
pub const KEPT: &str = "etc/NetworkManager/system-connections";
/// Links need a moment after their cards are switched on, and cables are plugged in later.
const LINK_LOOK: Duration = Duration::from_millis(200);
/// An interface that cannot be asked is not tried without pause.
const RETRY: Duration = Duration::from_secs(5);
/// A network that gives addresses of both families gives IPv6 first, because nobody need be asked for it. Hubs are often
/// reached by IPv4 only.
const IPV4_COMES: Duration = Duration::from_secs(5);

/// All cards with hardware behind them.
fn cards(machine: &Machine) -> Vec<String> {
    let names = machine.list("sys/class/net").into_iter();
    names
        .filter(|name| machine.exists(&format!("sys/class/net/{name}/device")))
        .collect()
}

/// What is set for this machine, with the names its interfaces have here. What cannot be read is noted and left out.
fn wanted(machine: &Machine) -> Vec<Connection> {
    let here: BTreeMap<String, String> = cards(machine)
        .into_iter()
        .map(|card| (machine.card_mac(&card), card))
        .collect();
    let mut list = Vec::new();
    for folder in machine.list(SETTINGS) {
        let folder = format!("{SETTINGS}/{folder}");
        let map = machine.text(&format!("{folder}/mac_interface.ini"));
        let pairs: Vec<(String, String)> = map
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter_map(|(mac, name)| {
                let real = here.get(&mac.trim().to_ascii_lowercase())?;
                Some((name.trim().to_owned(), real.clone()))
            })
            .collect();
        if !pairs.is_empty() {
            note!("the network settings in /{folder} are for this machine");
            list = read_folder(machine, &folder, &pairs);
            break;
        }
    }
    if list.is_empty() {
        list = read_folder(machine, KEPT, &[]);
    }
    for connection in &mut list {
        complete(connection, &here);
    }
    list
}

fn read_folder(machine: &Machine, folder: &str, pairs: &[(String, String)]) -> Vec<Connection> {
    let mut list = Vec::new();
    let mut labels = Vec::new();
    for file in machine.list(folder) {
        let text = || renamed(&machine.text(&format!("{folder}/{file}")), pairs);
        let read = match file.rsplit('.').next() {
            Some("nmconnection") => {
                labels.push(connection::label(&text()));
                connection::from_keyfile(&text()).map(|one| vec![one])
            }
            Some("yml" | "yaml") => connection::from_yaml(&text()),
            Some(_) | None => continue,
        };
        match read {
            Ok(found) => list.extend(found),
            Err(error) => note!("/{folder}/{file} is not usable, trying DHCP: {error:#}"),
        }
    }
    for one in &mut list {
        call_by_name(one, &labels);
    }
    list
}

/// Keyfiles may call others by the id or UUID of their file.
fn call_by_name(connection: &mut Connection, labels: &[Label]) {
    let name = |called: &mut String| {
        let is_it = |label: &&Label| [&label.interface, &label.uuid, &label.id].contains(&&*called);
        let found = labels
            .iter()
            .find(is_it)
            .filter(|label| !label.interface.is_empty());
        if let Some(label) = found {
            called.clone_from(&label.interface);
        }
    };
    match &mut connection.controller {
        Some(Controller::Bond(called) | Controller::Bridge(called)) => name(called),
        None => {}
    }
    match &mut connection.kind {
        Kind::Vlan(vlan) => name(&mut vlan.parent),
        Kind::Card | Kind::Bond(_) | Kind::Bridge(_) => {}
    }
}

/// Completes the interface of a card by its MAC, and its MAC by its interface.
fn complete(connection: &mut Connection, here: &BTreeMap<String, String>) {
    if !connection.kind.is_card() {
        return;
    }
    if let Some(name) = here.get(&connection.mac) {
        connection.interface.clone_from(name);
    } else if let Some((mac, _)) = here.iter().find(|(_, name)| **name == connection.interface) {
        connection.mac.clone_from(mac);
    }
}

/// Whole words only, all at once: two cards may have exchanged their names.
fn renamed(text: &str, pairs: &[(String, String)]) -> String {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let starts_word = !out.ends_with(is_letter);
        let hit = pairs.iter().find(|(name, _)| {
            starts_word
                && !name.is_empty()
                && rest
                    .strip_prefix(name.as_str())
                    .is_some_and(|after| !after.starts_with(is_letter))
        });
        let taken = match hit {
            Some((name, real)) => {
                out.push_str(real);
                name.len()
            }
            None => {
                let c = rest.chars().next().unwrap_or_default();
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// Whether any interface has what it needs.
#[derive(Debug, Default)]
struct Ready {
    state: Mutex<Readiness>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
enum Readiness {
    #[default]
    No,
    /// By IPv6 alone, since then.
    Ipv6(Instant),
    Yes,
}

impl Ready {
    fn tell(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Readiness::Yes;
        self.changed.notify_all();
    }

    fn tell_ipv6(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Readiness::No = *state {
            *state = Readiness::Ipv6(Instant::now());
            self.changed.notify_all();
        }
    }

    /// False when the time is over before.
    fn wait(&self, most: Duration) -> bool {
        let end = Instant::now() + most;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let until = match *state {
                Readiness::Yes => return true,
                Readiness::Ipv6(since) => end.min(since + IPV4_COMES),
                Readiness::No => end,
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return matches!(*state, Readiness::Ipv6(_));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The network of this machine, as long as it runs.
#[derive(Debug)]
pub struct Network {
    machine: Machine,
    wanted: Vec<Connection>,
    attended: HashSet<String>,
    /// The interfaces that have what is set for them.
    done: HashSet<String>,
    ready: Arc<Ready>,
    resolv_conf: Arc<ResolvConf>,
}

impl Network {
    pub fn new(machine: &Machine) -> Self {
        Self {
            machine: machine.clone(),
            wanted: Vec::new(),
            attended: HashSet::new(),
            done: HashSet::new(),
            ready: Arc::default(),
            resolv_conf: Arc::new(ResolvConf::new(machine)),
        }
    }

    /// Looks after cards that were not there before.
    pub fn attend(&mut self) {
        let new = cards(&self.machine)
            .into_iter()
            .filter(|card| self.attended.insert(card.clone()))
            .collect::<Vec<_>>();
        if new.is_empty() {
            return;
        }
        self.wanted = wanted(&self.machine);
        keep(&self.machine, &self.wanted);
        for card in &new {
            if let Err(error) = netlink::link_up(card) {
                note!("{card} does not come up: {error}");
            }
        }
        while let Some(connection) = stack::next(&self.wanted, &self.attended, &self.done).cloned() {
            self.done.insert(connection.interface.clone());
            self.configure(&connection);
        }
        for card in new {
            if !stack::is_mentioned(&self.wanted, &card) {
                self.ask(&card, true);
                self.ask_ipv6(&card);
            }
        }
    }

    fn configure(&self, connection: &Connection) {
        let name = &connection.interface;
        if let Err(error) = self.apply(connection) {
            return note!("cannot set up {name}: {error:#}");
        }
        if connection.dhcp {
            self.ask(name, connection.mtu.is_none());
        } else if !connection.addresses.is_empty() {
            note!("{name} has the addresses set for it");
            self.ready.tell();
        }
        if connection.auto6 {
            self.ask_ipv6(name);
        }
    }

    fn apply(&self, connection: &Connection) -> anyhow::Result<()> {
        use anyhow::Context as _;
        let name = &connection.interface;
        stack::make(&self.machine, name, &connection.kind)?;
        if let Some(mac) = parse_mac(&connection.mac).filter(|_| !connection.kind.is_card()) {
            netlink::set_mac(name, mac).context("cannot set its MAC")?;
        }
        if let Some(mtu) = connection.mtu {
            netlink::set_mtu(name, mtu).context("cannot set the size of packets")?;
        }
        self.join_parts(connection);
        netlink::link_up(name).context("it does not come up")?;
        for (ip, prefix) in &connection.addresses {
            netlink::add_address(name, *ip, *prefix).with_context(|| format!("cannot set {ip}"))?;
        }
        for route in &connection.routes {
            netlink::add_route(name, route.to, route.prefix, route.gateway)
                .with_context(|| format!("cannot set the route to {}/{}", route.to, route.prefix))?;
        }
        let names = Names {
            servers: connection.name_servers.clone(),
            search: connection.search.clone(),
        };
        self.resolv_conf.tell(name, Source::Settings, names);
        Ok(())
    }

    /// Takes what is there already, and goes to who is there already. A bond that lacks one card is still a bond.
    fn join_parts(&self, connection: &Connection) {
        let name = connection.interface.as_str();
        let parts = stack::parts(&self.wanted, name).map(|part| (part.interface.as_str(), name));
        let own = connection.controller.iter().map(|it| (name, it.name()));
        let is_there = |(part, controller): &(&str, &str)| {
            let other = if *part == name { controller } else { part };
            self.done.contains(*other)
        };
        for (part, controller) in parts.chain(own).filter(is_there) {
            if let Err(error) = stack::join(part, controller) {
                note!("{error:#}");
            }
        }
    }

    fn ask(&self, interface: &str, takes_mtu: bool) {
        let (machine, ready, names) = self.shared();
        self.keep_asking(interface, move |interface| {
            dhcp::serve(&machine, &names, interface, takes_mtu, || ready.tell())
        });
    }

    fn ask_ipv6(&self, interface: &str) {
        let (machine, ready, names) = self.shared();
        self.keep_asking(interface, move |interface| {
            ipv6::serve(&machine, &names, interface, || ready.tell_ipv6())
        });
    }

    fn shared(&self) -> (Machine, Arc<Ready>, Arc<ResolvConf>) {
        (self.machine.clone(), self.ready.clone(), self.resolv_conf.clone())
    }

    /// In a thread, as soon as there is a link. A reason why it cannot be done is logged once.
    fn keep_asking(
        &self,
        interface: &str,
        serve: impl Fn(&str) -> anyhow::Result<Infallible> + Send + 'static,
    ) {
        let (machine, interface) = (self.machine.clone(), interface.to_owned());
        std::thread::spawn(move || {
            let mut told = String::new();
            loop {
                while !machine.is_set(&format!("sys/class/net/{interface}/carrier")) {
                    Real.sleep(LINK_LOOK);
                }
                match serve(&interface) {
                    Ok(never) => match never {},
                    Err(error) => {
                        let reason = format!("{error:#}");
                        if reason != told {
                            note!("not asking for addresses on {interface}: {reason}");
                            told = reason;
                        }
                    }
                }
                Real.sleep(RETRY);
            }
        });
    }

    /// Until an interface has an address, but not for ever: the agent tries again by itself.
    pub fn wait(&self, most: Duration) {
        if !self.ready.wait(most) {
            note!("no network yet");
        }
    }
}

/// For who copies the settings to an installed system.
fn keep(machine: &Machine, wanted: &[Connection]) {
    use std::os::unix::fs::OpenOptionsExt;
    if wanted.is_empty() {
        return;
    }
    let folder = machine.path(KEPT);
    let _ = std::fs::create_dir_all(&folder);
    for connection in wanted {
        let name = if connection.interface.is_empty() {
            connection.mac.replace(':', "-")
        } else {
            connection.interface.clone()
        };
        let written = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(folder.join(format!("{name}.nmconnection")))
            .and_then(|mut file| std::io::Write::write_all(&mut file, connection.to_keyfile().as_bytes()));
        if let Err(error) = written {
            note!("cannot keep the network settings of {name}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::alone::alone;

    #[test]
    fn ipv4_is_waited_for_a_little_longer_than_ipv6() {
        let ready = Ready::default();
        assert!(!ready.wait(Duration::ZERO));
        ready.tell_ipv6();
        assert!(
            ready.wait(Duration::ZERO),
            "the time is over, and there is a network"
        );
        ready.tell();
        ready.tell_ipv6();
        assert!(ready.wait(Duration::from_secs(3600)), "at once");
    }

    #[test]
    fn names_change_as_whole_words_and_all_at_once() {
        let pairs = [
            ("eth0".to_owned(), "eth1".to_owned()),
            ("eth1".to_owned(), "eth0".to_owned()),
        ];
        assert_eq!(
            renamed("eth0 eth1 eth0.100 xeth0 eth01 eth0", &pairs),
            "eth1 eth0 eth1.100 xeth0 eth01 eth1"
        );
        assert_eq!(renamed("é eth0", &pairs), "é eth1");
        assert_eq!(renamed("same", &[]), "same");
    }

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let machine = Machine::at(root.path());
        (root, machine)
    }

    const CARD: [(&str, &str); 2] = [
        ("sys/class/net/ens3/address", "52:54:00:aa:00:02\n"),
        ("sys/class/net/ens3/device/x", ""),
    ];
    const OTHER: &str =
        "interfaces:\n- name: eth0\n  ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 24}]}\n";
    const MINE: &str = "interfaces:\n- name: eth0\n  ipv4: {enabled: true, address: [{ip: 192.0.2.2, prefix-length: 24}]}\n\
        - name: eth0.7\n  type: vlan\n  vlan: {base-iface: eth0, id: 7}\n";

    #[test]
    fn a_machine_takes_the_settings_made_for_its_mac() {
        let (_root, machine) = machine(
            &[
                &CARD[..],
                &[
                    (
                        "etc/assisted/network/host0/mac_interface.ini",
                        "52:54:00:aa:00:01=eth0\n",
                    ),
                    ("etc/assisted/network/host0/ymlFile0.yml", OTHER),
                    (
                        "etc/assisted/network/host1/mac_interface.ini",
                        "52:54:00:AA:00:02=eth0\n",
                    ),
                    ("etc/assisted/network/host1/ymlFile1.yml", MINE),
                ],
            ]
            .concat(),
        );
        let found = wanted(&machine);
        assert_eq!(found[0].interface, "ens3");
        assert_eq!(found[0].mac, "52:54:00:aa:00:02");
        assert_eq!(found[0].addresses, [("192.0.2.2".parse().unwrap(), 24)]);
        assert_eq!(found[1].interface, "ens3.7");
        keep(&machine, &found);
        // An installed system finds what was kept.
        std::fs::remove_dir_all(machine.path(SETTINGS)).unwrap();
        let again = wanted(&machine);
        assert_eq!(again.len(), 2);
        assert_eq!(again.iter().find(|one| one.kind.is_card()), found.first());
    }

    #[test]
    fn settings_for_others_or_of_unknown_kinds_leave_the_machine_to_dhcp() {
        let (_root, machine) = machine(
            &[
                &CARD[..],
                &[
                    (
                        "etc/assisted/network/host0/mac_interface.ini",
                        "52:54:00:aa:00:02=eth0\n",
                    ),
                    (
                        "etc/assisted/network/host0/ymlFile0.yml",
                        "interfaces: [{name: ovs0, type: ovs-bridge}]",
                    ),
                ],
            ]
            .concat(),
        );
        assert_eq!(wanted(&machine), []);
    }

    #[test]
    fn ports_find_their_bond_by_its_uuid_and_are_kept_with_it() {
        let bond = "[connection]\nid=my bond\nuuid=u-1\ntype=bond\ninterface-name=bond0\n[bond]\nmode=1\n";
        let port =
            "[connection]\nid=p\nuuid=u-2\ntype=ethernet\ninterface-name=eth0\nmaster=u-1\nslave-type=bond\n";
        let tagged = "[connection]\nid=v\ntype=vlan\ninterface-name=bond0.7\n[vlan]\nid=7\nparent=my bond\n";
        let (_root, machine) = machine(
            &[
                &CARD[..],
                &[
                    // In a bond a card shows the MAC of another one.
                    (
                        "sys/class/net/ens3/bonding_slave/perm_hwaddr",
                        "52:54:00:aa:00:03",
                    ),
                    (
                        "etc/assisted/network/host0/mac_interface.ini",
                        "52:54:00:aa:00:03=eth0\n",
                    ),
                    ("etc/assisted/network/host0/a.nmconnection", bond),
                    ("etc/assisted/network/host0/b.nmconnection", port),
                    ("etc/assisted/network/host0/c.nmconnection", tagged),
                ],
            ]
            .concat(),
        );
        for _ in 0..2 {
            let found = wanted(&machine);
            let find = |name: &str| found.iter().find(|one| one.interface == name).unwrap();
            assert_eq!(find("ens3").controller, Some(Controller::Bond("bond0".into())));
            assert!(matches!(&find("bond0.7").kind, Kind::Vlan(vlan) if vlan.parent == "bond0"));
            keep(&machine, &found);
            // An installed system finds what was kept.
            let _ = std::fs::remove_dir_all(machine.path(SETTINGS));
        }
    }

    /// One end of a cable is the card `eth0`, the other end `veth0` asks for an address from outside.
    fn answers_through(yaml: &'static str, kind: &'static str, ip: std::net::Ipv4Addr) {
        alone(move || {
            // A kernel without the module cannot show what answers; that the agent goes on without it is shown all the same.
            let lacks = netlink::add_link("probe0", kind).err();
            if let Some(error) = &lacks {
                assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{kind}: {error}");
            }
            netlink::add_link("eth0", "veth").unwrap();
            netlink::link_up("veth0").unwrap();
            let (_root, machine) = machine(&[
                ("sys/class/net/eth0/address", "52:54:00:aa:00:02"),
                ("sys/class/net/eth0/device/x", ""),
                ("sys/class/net/bond0/bonding/mode", ""),
                (
                    "etc/assisted/network/host0/mac_interface.ini",
                    "52:54:00:aa:00:02=eth0",
                ),
                ("etc/assisted/network/host0/a.yml", yaml),
            ]);
            let mut network = Network::new(&machine);
            network.attend();
            let mac = [2, 0, 0, 0, 0, 9];
            let from = std::net::Ipv4Addr::new(192, 0, 2, 9);
            let found = crate::probe::arp::scan("veth0", mac, from, &[ip]).unwrap();
            if lacks.is_some() {
                assert_eq!(found.get(&ip), None, "there is no {kind} that could answer");
                return;
            }
            // The kernel would answer on any of its links, but not with this MAC.
            assert_eq!(found.get(&ip), Some(&vec![[2, 0, 0, 0, 0, 0x42]]), "{found:?}");
        });
    }

    const ADDRESS: std::net::Ipv4Addr = std::net::Ipv4Addr::new(192, 0, 2, 1);

    #[test]
    fn a_bridge_has_its_addresses_on_the_network_of_its_port() {
        let yaml = "interfaces:\n- name: br0\n  type: linux-bridge\n  mac-address: 02:00:00:00:00:42\n  bridge: {port: [{name: eth0}]}\n  \
            ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 24}]}\n";
        answers_through(yaml, "bridge", ADDRESS);
    }

    #[test]
    fn a_bond_has_its_addresses_on_the_network_of_its_port() {
        let yaml = "interfaces:\n- name: bond0\n  type: bond\n  mac-address: 02:00:00:00:00:42\n  link-aggregation: {mode: active-backup, port: [eth0]}\n  \
            ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 24}]}\n";
        answers_through(yaml, "bond", ADDRESS);
    }
}
