//! Whether the other hosts of a cluster can be reached: by their cards, by their addresses, with large packets.

use super::{Context, json};
use crate::collect;
use crate::note;
use crate::probe::{arp, ping};
use muster_contract::v2::agent::args::{ConnectivityCheckHost, ConnectivityCheckNic};
use muster_contract::v2::agent::inventory::Interface;
use muster_contract::v2::agent::replies::{
    ConnectivityReply, L2Connectivity, L3Connectivity, MtuReport, RemoteHost,
};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pings wait most of their time; so many at once keep a check of a hundred hosts within a minute.
const AT_ONCE: usize = 64;

/// One address of another host, seen from one card of ours.
struct Pair<'a> {
    host: usize,
    nic: &'a Interface,
    remote: IpAddr,
}

pub fn check(context: &Context, hosts: Vec<ConnectivityCheckHost>) -> anyhow::Result<String> {
    let nics: Vec<Interface> = collect::inventory(&context.machine, 0)
        .interfaces
        .into_iter()
        .filter(|nic| nic.has_carrier && matches!(nic.r#type.as_ref(), "physical" | "bond" | "vlan"))
        .collect();
    let mut found: Vec<RemoteHost> = hosts
        .iter()
        .map(|host| RemoteHost {
            host_id: host.host_id,
            ..RemoteHost::default()
        })
        .collect();
    layer_2(&nics, &hosts, &mut found);
    layer_3(&nics, &hosts, &mut found);
    json(&ConnectivityReply { remote_hosts: found })
}

fn addresses(host: &ConnectivityCheckHost) -> impl Iterator<Item = (&ConnectivityCheckNic, IpAddr)> {
    host.nics.iter().flat_map(|nic| {
        let bare = |text: &String| text.split('/').next().and_then(|ip| ip.parse().ok());
        nic.ip_addresses
            .iter()
            .filter_map(move |text| Some((nic, bare(text)?)))
    })
}

/// One scan per card asks for the addresses of all hosts.
fn layer_2(nics: &[Interface], hosts: &[ConnectivityCheckHost], found: &mut [RemoteHost]) {
    let is_v4 = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    };
    let wanted: Vec<Ipv4Addr> = hosts
        .iter()
        .flat_map(addresses)
        .filter_map(|(_, ip)| is_v4(ip))
        .collect();
    for nic in nics {
        let own = nic
            .ipv4_addresses
            .first()
            .and_then(|text| text.split('/').next()?.parse().ok());
        let Some(mac) = arp::parse_mac(&nic.mac_address) else {
            continue;
        };
        let from = own.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let answers = match arp::scan(&nic.name, mac, from, &wanted) {
            Ok(answers) => answers,
            Err(error) => {
                note!("cannot ask neighbours on {}: {error}", nic.name);
                continue;
            }
        };
        for (host, report) in hosts.iter().zip(found.iter_mut()) {
            let macs: Vec<String> = host.nics.iter().map(|nic| nic.mac.to_ascii_lowercase()).collect();
            for remote in addresses(host).filter_map(|(_, ip)| is_v4(ip)) {
                report
                    .l2_connectivity
                    .extend(neighbour(nic, own, remote, &macs, &answers));
            }
        }
    }
}

/// An answer from a card that is none of the host's means that two machines have the same address.
fn neighbour(
    nic: &Interface,
    own: Option<Ipv4Addr>,
    remote: Ipv4Addr,
    macs: &[String],
    answers: &HashMap<Ipv4Addr, Vec<[u8; 6]>>,
) -> Vec<L2Connectivity> {
    let entry = |remote_mac: String, successful: bool| L2Connectivity {
        outgoing_nic: nic.name.clone(),
        outgoing_ip_address: own.map(|ip| ip.to_string()).unwrap_or_default(),
        remote_ip_address: remote.to_string(),
        remote_mac,
        successful,
    };
    match answers.get(&remote) {
        None => vec![entry(String::new(), false)],
        Some(from) => from
            .iter()
            .map(arp::mac_text)
            .map(|mac| {
                let is_theirs = macs.contains(&mac);
                entry(mac, is_theirs)
            })
            .collect(),
    }
}

fn layer_3(nics: &[Interface], hosts: &[ConnectivityCheckHost], found: &mut [RemoteHost]) {
    let mut pairs = Vec::new();
    for (index, host) in hosts.iter().enumerate() {
        for (_, remote) in addresses(host) {
            let can_send = |nic: &&Interface| match remote {
                IpAddr::V4(_) => !nic.ipv4_addresses.is_empty(),
                IpAddr::V6(_) => !nic.ipv6_addresses.is_empty(),
            };
            pairs.extend(nics.iter().filter(can_send).map(|nic| Pair {
                host: index,
                nic,
                remote,
            }));
        }
    }
    let results = Mutex::new(found);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(pairs.len()) {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (reached, mtu) = reach(pair);
                    if let Ok(mut found) = results.lock() {
                        found[pair.host].l3_connectivity.push(reached);
                        found[pair.host].mtu_report.extend(mtu);
                    }
                }
            });
        }
    });
    // Threads end in any order; the same world gives the same answer, or the hub would be told each minute.
    if let Ok(found) = results.into_inner() {
        for host in found.iter_mut() {
            host.l3_connectivity.sort_by(|a, b| {
                (&a.outgoing_nic, &a.remote_ip_address).cmp(&(&b.outgoing_nic, &b.remote_ip_address))
            });
            host.mtu_report.sort_by(|a, b| {
                (&a.outgoing_nic, &a.remote_ip_address).cmp(&(&b.outgoing_nic, &b.remote_ip_address))
            });
        }
    }
}

fn reach(pair: &Pair<'_>) -> (L3Connectivity, Option<MtuReport>) {
    let echo = ping::echo(pair.remote, Some(&pair.nic.name)).unwrap_or_default();
    let reached = L3Connectivity {
        outgoing_nic: pair.nic.name.clone(),
        remote_ip_address: pair.remote.to_string(),
        successful: echo.received > 0,
        average_rtt_ms: (echo.average_rtt_ms * 1000.0).round() / 1000.0,
        packet_loss_percentage: echo.loss_percent(),
    };
    let mtu = usize::try_from(pair.nic.mtu).unwrap_or_default();
    let report = (reached.successful && mtu > 0).then(|| MtuReport {
        outgoing_nic: pair.nic.name.clone(),
        remote_ip_address: pair.remote.to_string(),
        mtu_successful: ping::carries_mtu(pair.remote, &pair.nic.name, mtu).unwrap_or_default(),
    });
    (reached, report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_from_a_foreign_card_is_told_but_no_success() {
        let nic = Interface {
            name: "eth0".into(),
            ..Interface::default()
        };
        let remote = Ipv4Addr::new(192, 0, 2, 9);
        let answers = HashMap::from([(remote, vec![[2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 0xee]])]);
        let macs = ["02:00:00:00:00:09".to_owned()];
        let told = neighbour(&nic, None, remote, &macs, &answers);
        let told: Vec<(&str, bool)> = told
            .iter()
            .map(|entry| (entry.remote_mac.as_str(), entry.successful))
            .collect();
        assert_eq!(told, [("02:00:00:00:00:09", true), ("02:00:00:00:00:ee", false)]);
        let silent = neighbour(&nic, None, Ipv4Addr::new(192, 0, 2, 10), &macs, &answers);
        assert!(!silent[0].successful);
    }
}
