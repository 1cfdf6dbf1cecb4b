//! Groups, shared networks, derived networks and collisions.

use super::*;
use crate::checks::reports::{L2, L3, RemoteHost};
use crate::host::{Digest, Nic, Role};
use uuid::Uuid;

fn id(n: u128) -> HostId {
    HostId(Uuid::from_u128(n))
}

fn digest(addresses: &[&str]) -> Digest {
    let addresses = addresses.iter().map(|text| text.to_string()).collect();
    Digest {
        cpus: 4,
        nics: vec![Nic {
            name: "eth0".into(),
            mac: String::new(),
            addresses,
        }],
        ..Digest::default()
    }
}

fn peer<'a>(n: u128, digest: &'a Digest, connectivity: Option<&'a Connectivity>) -> Peer<'a> {
    Peer {
        id: id(n),
        name: "",
        role: Role::AutoAssign,
        suggested_role: None,
        has_inventory: true,
        digest,
        connectivity,
        free_addresses: &[],
        clock_skew_seconds: None,
        ready_to_install: true,
        has_fencing: false,
    }
}

fn reaching(hosts: &[u128], address: fn(u128) -> String, l2: bool) -> Connectivity {
    let remote = |n: &u128| RemoteHost {
        host_id: id(*n).to_string(),
        l2_connectivity: vec![L2 {
            remote_ip_address: address(*n),
            successful: l2,
            ..L2::default()
        }],
        l3_connectivity: vec![L3 {
            remote_ip_address: address(*n),
            successful: true,
            ..L3::default()
        }],
        ..RemoteHost::default()
    };
    Connectivity {
        remote_hosts: hosts.iter().map(remote).collect(),
    }
}

fn v4(n: u128) -> String {
    format!("10.0.0.{n}")
}

fn v6(n: u128) -> String {
    format!("fd00::{n}")
}

/// Groups of hosts 1 to n, where each line says whom a host reaches.
fn groups(reach: &[&[u128]], address: fn(u128) -> String, l2: bool) -> Groups {
    let suffix = if address(1).contains(':') { "/64" } else { "/24" };
    let digests: Vec<Digest> = (1..=reach.len() as u128)
        .map(|n| digest(&[format!("{}{suffix}", address(n)).as_str()]))
        .collect();
    let reports: Vec<Connectivity> = reach.iter().map(|hosts| reaching(hosts, address, l2)).collect();
    let peers: Vec<Peer<'_>> = (0..reach.len())
        .map(|at| peer(at as u128 + 1, &digests[at], Some(&reports[at])))
        .collect();
    majority_groups(&peers)
}

fn members(groups: &Groups, key: &str) -> Vec<u128> {
    groups.majority_groups[key]
        .iter()
        .map(|host| host.0.as_u128())
        .collect()
}

#[test]
fn everybody_reaching_everybody_is_one_group() {
    let groups = groups(&[&[2, 3], &[1, 3], &[1, 2]], v4, true);
    assert_eq!(members(&groups, "10.0.0.0/24"), [1, 2, 3]);
    assert_eq!(members(&groups, IPV4), [1, 2, 3]);
    assert!(members(&groups, IPV6).is_empty());
    assert_eq!(groups.l3_connected_addresses[&id(2)], ["10.0.0.2"]);
    assert!(groups.holds(IPV4, id(3)) && !groups.holds(IPV4, id(4)) && !groups.holds("nonsense", id(3)));
}

#[test]
fn a_host_that_is_not_reached_back_is_outside() {
    let groups = groups(&[&[2, 3, 4], &[1, 3, 4], &[1, 2, 4], &[]], v4, true);
    assert_eq!(members(&groups, "10.0.0.0/24"), [1, 2, 3]);
}

#[test]
fn half_of_the_hosts_is_not_a_majority() {
    let groups = groups(&[&[2, 3], &[1, 3], &[1, 2], &[5, 6], &[4, 6], &[4, 5]], v4, true);
    assert!(members(&groups, "10.0.0.0/24").is_empty());
}

#[test]
fn two_hosts_make_no_group() {
    let groups = groups(&[&[2], &[1]], v4, true);
    assert!(members(&groups, "10.0.0.0/24").is_empty());
    assert_eq!(groups.reporters, 2);
}

#[test]
fn pings_count_inside_an_ipv6_network_where_neighbour_discovery_is_filtered() {
    let filtered = groups(&[&[2, 3], &[1, 3], &[1, 2]], v6, false);
    assert_eq!(members(&filtered, "fd00::/64"), [1, 2, 3]);
    let v4 = groups(&[&[2, 3], &[1, 3], &[1, 2]], v4, false);
    assert!(members(&v4, "10.0.0.0/24").is_empty());
    assert_eq!(members(&v4, IPV4), [1, 2, 3]);
}

#[test]
fn no_host_makes_two_empty_groups() {
    let json: serde_json::Value = serde_json::from_str(&majority_groups(&[]).to_json()).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"majority_groups": {"IPv4": [], "IPv6": []}, "l3_connected_addresses": {}})
    );
}

#[test]
fn only_networks_common_to_all_hosts_are_listed() {
    let (one, two) = (
        digest(&["10.0.0.1/24", "10.1.0.1/24", "fe80::1/64"]),
        digest(&["10.0.0.2/24", "fe80::2/64"]),
    );
    let unknown = Peer {
        has_inventory: false,
        ..peer(3, &two, None)
    };
    let shared = host_networks(&[peer(1, &one, None), peer(2, &two, None), unknown]);
    assert_eq!(
        shared,
        [HostNetwork {
            cidr: "10.0.0.0/24".into(),
            host_ids: vec![id(1), id(2)]
        }]
    );
}

#[test]
fn the_machine_network_follows_from_the_virtual_addresses() {
    let digest = digest(&["10.0.0.1/24", "10.0.0.2/16", "fd00::1/64"]);
    let peers = [peer(1, &digest, None)];
    let derived = |ips: &[&str]| {
        let networks = machine_networks(ips.iter().map(|ip| ip.parse().unwrap()), &peers);
        networks.iter().map(IpNet::to_string).collect::<Vec<_>>()
    };
    assert_eq!(derived(&["10.0.0.9", "10.0.0.8"]), ["10.0.0.0/24"]);
    assert_eq!(derived(&["10.0.7.9"]), ["10.0.0.0/16"]);
    assert_eq!(derived(&["fd00::5", "10.0.0.9"]), ["fd00::/64", "10.0.0.0/24"]);
    assert!(derived(&["172.16.0.1"]).is_empty());
    assert_eq!(
        single_node_machine_network(&peers[0]).unwrap().to_string(),
        "10.0.0.0/24"
    );
}

#[test]
fn one_hosts_clean_report_does_not_erase_anothers_collision() {
    let answer = |mac: &str| L2 {
        remote_ip_address: "10.0.0.5".into(),
        remote_mac: mac.into(),
        successful: true,
        ..L2::default()
    };
    let report = |l2_connectivity| Connectivity {
        remote_hosts: vec![RemoteHost {
            l2_connectivity,
            ..RemoteHost::default()
        }],
    };
    let bad = collisions_seen(&report(vec![answer("AA"), answer("bb"), answer("aa")]));
    let good = collisions_seen(&report(vec![answer("aa")]));
    assert_eq!(bad["10.0.0.5"], ["aa", "bb"]);
    assert!(good.is_empty());
    assert_eq!(merge_collisions([&bad, &good].into_iter()), bad);
}

#[test]
fn an_address_counts_for_every_network_around_it() {
    let digests: Vec<Digest> = (1..=3)
        .map(|n| {
            digest(&[
                &format!("10.0.0.{n}/24"),
                &format!("10.0.0.{n}/8"),
                "10.0.0.128/25",
            ])
        })
        .collect();
    let reports = [[2, 3], [1, 3], [1, 2]].map(|hosts| reaching(&hosts, v4, true));
    let peers: Vec<Peer<'_>> = (0..3)
        .map(|at| peer(at as u128 + 1, &digests[at], Some(&reports[at])))
        .collect();
    let groups = majority_groups(&peers);
    assert_eq!(members(&groups, "10.0.0.0/24"), [1, 2, 3]);
    assert_eq!(members(&groups, "10.0.0.0/8"), [1, 2, 3]);
    assert!(members(&groups, "10.0.0.128/25").is_empty());
}

#[test]
fn a_host_that_says_it_is_in_very_many_networks_is_in_the_first_of_them() {
    let addresses: Vec<String> = (0..200_000_u32)
        .map(|n| format!("{}/32", std::net::Ipv4Addr::from(0x0a00_0000 + n)))
        .collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let digest = digest(&addresses);
    let networks = networks_of(&peer(1, &digest, None));
    assert_eq!(networks.len(), MOST_NETWORKS);
    assert_eq!(networks.last().unwrap().to_string(), "10.0.3.255/32");
}

/// Each network compared with each path would take minutes.
#[test]
fn thousands_of_networks_and_a_hundred_thousand_paths_make_one_walk() {
    let digests: Vec<Digest> = (1..=3_u128)
        .map(|host| {
            let subnets = (0..1000).map(|n| format!("10.{}.{}.{host}/24", n / 256, n % 256));
            let own = (0..24).map(|n| format!("172.{host}.{n}.1/30"));
            let all: Vec<String> = subnets.chain(own).collect();
            digest(&all.iter().map(String::as_str).collect::<Vec<_>>())
        })
        .collect();
    let reports: Vec<Connectivity> = (1..=3_u128)
        .map(|host| {
            let remotes = (1..=3_u128)
                .filter(|other| *other != host)
                .map(|other| RemoteHost {
                    host_id: id(other).to_string(),
                    l2_connectivity: (0..100_000)
                        .map(|n| L2 {
                            remote_ip_address: format!("10.{}.{}.{other}", n / 256, n % 256),
                            successful: true,
                            ..L2::default()
                        })
                        .collect(),
                    ..RemoteHost::default()
                });
            Connectivity {
                remote_hosts: remotes.collect(),
            }
        })
        .collect();
    let peers: Vec<Peer<'_>> = (0..3)
        .map(|at| peer(at as u128 + 1, &digests[at], Some(&reports[at])))
        .collect();
    let groups = majority_groups(&peers);
    assert_eq!(groups.majority_groups.len(), 1000 + 3 * 24 + 2);
    assert_eq!(members(&groups, "10.3.231.0/24"), [1, 2, 3]);
    assert!(members(&groups, "172.1.0.0/30").is_empty());
}
