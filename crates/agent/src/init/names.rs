//! What networks tell of name servers and time servers, in the files where programs look for them.

use crate::collect::Machine;
use crate::note;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

const NAMES: &str = "etc/resolv.conf";
/// Where other systems put what DHCP tells of time servers, in the form that chrony reads.
pub const TIME_SERVERS: &str = "run/chrony-dhcp";

/// Who tells it, the most trusted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Settings,
    Dhcp,
    Dhcp6,
    Routers,
}

impl Source {
    fn word(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Dhcp => "dhcp",
            Self::Dhcp6 => "dhcp6",
            Self::Routers => "routers",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    pub servers: Vec<IpAddr>,
    pub search: Vec<String>,
}

type Told = BTreeMap<(Source, String), Names>;

/// What all interfaces tell of name servers: it goes into one file.
#[derive(Debug)]
pub struct ResolvConf {
    machine: Machine,
    told: Mutex<Told>,
}

impl ResolvConf {
    pub fn new(machine: &Machine) -> Self {
        Self {
            machine: machine.clone(),
            told: Mutex::default(),
        }
    }

    pub fn tell(&self, interface: &str, source: Source, names: Names) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source, interface.to_owned());
        let is_news = if names == Names::default() {
            told.remove(&key).is_some()
        } else {
            told.insert(key, names.clone()).as_ref() != Some(&names)
        };
        if !is_news {
            return;
        }
        if let Err(error) = std::fs::write(self.machine.path(NAMES), text(&told)) {
            note!("cannot write /{NAMES}: {error}");
        }
    }
}

fn text(told: &Told) -> String {
    let mut text = String::new();
    let mut seen = HashSet::new();
    let search: Vec<&str> = told
        .values()
        .flat_map(|names| &names.search)
        .map(String::as_str)
        .filter(|name| seen.insert(*name))
        .collect();
    if !search.is_empty() {
        let _ = writeln!(text, "search {}", search.join(" "));
    }
    let mut seen = HashSet::new();
    let servers = told.values().flat_map(|names| &names.servers);
    for server in servers.filter(|ip| seen.insert(**ip)) {
        let _ = writeln!(text, "nameserver {server}");
    }
    text
}

/// One file for each interface and source; none when there is nothing to tell.
pub fn tell_time_servers(machine: &Machine, interface: &str, source: Source, servers: &[IpAddr]) {
    let folder = machine.path(TIME_SERVERS);
    let file = folder.join(format!("{interface}-{}.sources", source.word()));
    if servers.is_empty() {
        let _ = std::fs::remove_file(file);
        return;
    }
    let lines: String = servers.iter().map(|ip| format!("server {ip} iburst\n")).collect();
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, lines));
    if let Err(error) = written {
        note!("{} is not written: {error}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(servers: &[&str], search: &[&str]) -> Names {
        Names {
            servers: servers.iter().map(|ip| ip.parse().unwrap()).collect(),
            search: search.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn name_servers_of_all_interfaces_are_in_one_file() {
        let told = Told::from([
            (
                (Source::Dhcp, "eth0".to_owned()),
                names(&["192.0.2.53"], &["a.example"]),
            ),
            (
                (Source::Dhcp, "eth1".to_owned()),
                names(&["192.0.2.53", "2001:db8::53"], &[]),
            ),
        ]);
        assert_eq!(
            text(&told),
            "search a.example\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n"
        );
    }

    #[test]
    fn settings_come_first_and_each_name_once() {
        let told = Told::from([
            (
                (Source::Routers, "eth0".to_owned()),
                names(&["2001:db8::1"], &["b.example", "a.example"]),
            ),
            (
                (Source::Settings, "eth1".to_owned()),
                names(&["192.0.2.1"], &["a.example"]),
            ),
        ]);
        assert_eq!(
            text(&told),
            "search a.example b.example\nnameserver 192.0.2.1\nnameserver 2001:db8::1\n"
        );
    }

    #[test]
    fn the_file_follows_what_is_told() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        std::fs::create_dir(root.path().join("etc")).unwrap();
        let file = ResolvConf::new(&machine);
        file.tell("eth0", Source::Dhcp, Names::default());
        assert!(
            !machine.exists(NAMES),
            "what others wrote stays until there is news"
        );
        file.tell("eth0", Source::Dhcp, names(&["192.0.2.1"], &[]));
        assert_eq!(machine.text(NAMES), "nameserver 192.0.2.1");
        file.tell("eth0", Source::Dhcp, Names::default());
        assert_eq!(machine.text(NAMES), "");
    }

    #[test]
    fn time_servers_are_told_until_they_are_taken_back() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        tell_time_servers(&machine, "eth0", Source::Dhcp, &["192.0.2.9".parse().unwrap()]);
        let file = format!("{TIME_SERVERS}/eth0-dhcp.sources");
        assert_eq!(machine.text(&file), "server 192.0.2.9 iburst");
        tell_time_servers(&machine, "eth0", Source::Dhcp, &[]);
        assert!(!machine.exists(&file));
    }
}
