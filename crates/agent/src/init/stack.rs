//! Bonds and bridges: what stands on what, and the options the kernel takes for them.

use super::connection::{Bond, Bridge, Connection, Kind};
use crate::collect::Machine;
use crate::note;
use crate::sys::netlink;
use anyhow::Context as _;
use std::collections::HashSet;

/// The kernel counts times of bridges in hundredths of seconds.
const TIMES: [(&str, &str); 4] = [
    ("forward-delay", "forward_delay"),
    ("hello-time", "hello_time"),
    ("max-age", "max_age"),
    ("ageing-time", "ageing_time"),
];
const PLAIN: [(&str, &str); 5] = [
    ("priority", "priority"),
    ("group-forward-mask", "group_fwd_mask"),
    ("multicast-snooping", "multicast_snooping"),
    ("vlan-filtering", "vlan_filtering"),
    ("vlan-protocol", "vlan_protocol"),
];
/// Others depend on these.
const FIRST: [&str; 3] = ["mode", "miimon", "arp_interval"];

/// The next to set up: it is not done, and all it stands on is. A bond or bridge begins with its first part; later
/// parts join it.
pub fn next<'a>(
    wanted: &'a [Connection],
    cards: &HashSet<String>,
    done: &HashSet<String>,
) -> Option<&'a Connection> {
    let is_ready = |one: &Connection| match &one.kind {
        Kind::Card => cards.contains(&one.interface),
        Kind::Vlan(vlan) => cards.contains(&vlan.parent) || done.contains(&vlan.parent),
        Kind::Bond(_) | Kind::Bridge(_) => {
            let mut parts = parts(wanted, &one.interface).peekable();
            parts.peek().is_none() || parts.any(|part| done.contains(&part.interface))
        }
    };
    wanted
        .iter()
        .find(|one| !done.contains(&one.interface) && is_ready(one))
}

pub fn parts<'a>(wanted: &'a [Connection], name: &'a str) -> impl Iterator<Item = &'a Connection> {
    let is_part = move |one: &&Connection| one.controller.as_ref().is_some_and(|it| it.name() == name);
    wanted.iter().filter(is_part)
}

/// Whether the settings speak of a card; others are left to DHCP.
pub fn is_mentioned(wanted: &[Connection], card: &str) -> bool {
    wanted.iter().any(|one| match &one.kind {
        Kind::Vlan(vlan) => vlan.parent == card,
        Kind::Card | Kind::Bond(_) | Kind::Bridge(_) => one.interface == card,
    })
}

/// Makes the link itself, without its parts.
pub fn make(machine: &Machine, name: &str, kind: &Kind) -> anyhow::Result<()> {
    match kind {
        Kind::Card => Ok(()),
        Kind::Vlan(vlan) => {
            netlink::add_vlan(&vlan.parent, name, vlan.id).context("cannot make the tagged network")
        }
        Kind::Bond(bond) => {
            netlink::add_link(name, "bond").context("cannot make the bond")?;
            set(
                machine,
                &format!("sys/class/net/{name}/bonding"),
                &bond_options(bond),
            )
        }
        Kind::Bridge(bridge) => {
            netlink::add_link(name, "bridge").context("cannot make the bridge")?;
            set(
                machine,
                &format!("sys/class/net/{name}/bridge"),
                &bridge_options(bridge),
            )
        }
    }
}

/// Bonds take only links that are down.
pub fn join(part: &str, controller: &str) -> anyhow::Result<()> {
    let joined = netlink::link_down(part)
        .and_then(|()| netlink::set_controller(part, controller))
        .and_then(|()| netlink::link_up(part));
    joined.with_context(|| format!("{part} does not join {controller}"))
}

/// A bond in another mode than its switch expects carries nothing; other options are a matter of taste.
fn set(machine: &Machine, folder: &str, options: &[(String, String)]) -> anyhow::Result<()> {
    for (name, value) in options {
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(machine.path(&format!("{folder}/{name}")));
        let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, value.as_bytes()));
        match written {
            Err(error) if name == "mode" => {
                return Err(error).with_context(|| format!("cannot set the mode {value}"));
            }
            Err(error) => note!("cannot set /{folder}/{name} to {value}: {error}"),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// In the order the kernel wants them.
fn bond_options(bond: &Bond) -> Vec<(String, String)> {
    let mode = (!bond.mode.is_empty()).then(|| ("mode".to_owned(), bond.mode.clone()));
    let others = bond.options.iter().flat_map(|(name, value)| {
        // A list is written entry by entry.
        let values: Vec<String> = match name.as_str() {
            "arp_ip_target" | "ns_ip6_target" => {
                value.split(',').map(|ip| format!("+{}", ip.trim())).collect()
            }
            _ => vec![value.clone()],
        };
        values.into_iter().map(|value| (name.clone(), value))
    });
    let mut list: Vec<(String, String)> = mode.into_iter().chain(others).collect();
    let rank = |name: &str| {
        FIRST
            .iter()
            .position(|first| *first == name)
            .unwrap_or(FIRST.len())
    };
    list.sort_by_key(|(name, _)| rank(name));
    list
}

fn file(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(own, _)| *own == name).map(|(_, file)| *file)
}

fn bridge_options(bridge: &Bridge) -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (name, value) in &bridge.options {
        let number = match value.as_str() {
            "true" => "1",
            "false" => "0",
            other => other,
        };
        match (file(&TIMES, name), file(&PLAIN, name), number.parse::<u64>()) {
            (Some(file), _, Ok(seconds)) => list.push((file.to_owned(), (seconds * 100).to_string())),
            (_, Some(file), _) => list.push((file.to_owned(), number.to_owned())),
            (_, None, _) => note!("unknown option {name} of a bridge"),
        }
    }
    // With it on, times must be within its limits: it comes last.
    list.push(("stp_state".to_owned(), u8::from(bridge.stp).to_string()));
    list
}

#[cfg(test)]
mod tests {
    use super::super::connection::from_yaml;
    use super::*;
    use std::collections::BTreeMap;

    fn names(list: &[&str]) -> HashSet<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    const YAML: &str = "
interfaces:
- name: br0
  type: linux-bridge
  bridge: {port: [{name: bond0.7}]}
- name: bond0.7
  type: vlan
  vlan: {base-iface: bond0, id: 7}
- name: bond0
  type: bond
  link-aggregation: {mode: active-backup, port: [eth0, eth1]}
";

    #[test]
    fn what_stands_on_others_comes_after_them() {
        let wanted = from_yaml(YAML).unwrap();
        let mut done = HashSet::new();
        let mut order = Vec::new();
        let mut run = |cards: &[&str], order: &mut Vec<String>| {
            while let Some(one) = next(&wanted, &names(cards), &done) {
                order.push(one.interface.clone());
                done.insert(one.interface.clone());
            }
        };
        run(&[], &mut order);
        assert_eq!(order, [""; 0], "nothing without a card");
        run(&["eth0"], &mut order);
        assert_eq!(order, ["eth0", "bond0", "bond0.7", "br0"]);
        run(&["eth0", "eth1"], &mut order);
        assert_eq!(
            order.last().map(String::as_str),
            Some("eth1"),
            "the second card joins later"
        );
        assert!(
            is_mentioned(&wanted, "eth1") && is_mentioned(&wanted, "bond0") && !is_mentioned(&wanted, "eth2")
        );
    }

    #[test]
    fn options_go_to_the_kernel_in_the_order_it_wants_them() {
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let bond = Bond {
            mode: "active-backup".into(),
            options: BTreeMap::from([
                option("downdelay", "200"),
                option("miimon", "100"),
                option("arp_ip_target", "192.0.2.1,192.0.2.2"),
            ]),
        };
        assert_eq!(
            bond_options(&bond),
            [
                option("mode", "active-backup"),
                option("miimon", "100"),
                option("arp_ip_target", "+192.0.2.1"),
                option("arp_ip_target", "+192.0.2.2"),
                option("downdelay", "200"),
            ]
        );
        let bridge = Bridge {
            stp: true,
            options: BTreeMap::from([
                option("forward-delay", "4"),
                option("multicast-snooping", "false"),
                option("unheard-of", "1"),
            ]),
        };
        assert_eq!(
            bridge_options(&bridge),
            [
                option("forward_delay", "400"),
                option("multicast_snooping", "0"),
                option("stp_state", "1")
            ]
        );
    }

    #[test]
    fn a_mode_that_the_kernel_refuses_is_an_error_and_other_options_are_not() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        let option = |name: &str| vec![(name.to_owned(), "1".to_owned())];
        assert!(set(&machine, "bonding", &option("mode")).is_err());
        assert!(set(&machine, "bonding", &option("miimon")).is_ok());
        std::fs::create_dir(root.path().join("bonding")).unwrap();
        std::fs::write(root.path().join("bonding/mode"), "").unwrap();
        set(&machine, "bonding", &option("mode")).unwrap();
        assert_eq!(machine.text("bonding/mode"), "1");
    }
}
