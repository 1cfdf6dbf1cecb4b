//! Networks and addresses of a cluster: which are meant, and when two texts mean the same.

use crate::crd::agent_cluster_install::Networking;
use std::net::IpAddr;

pub fn pods(networking: &Networking) -> Vec<(String, Option<i64>)> {
    let one = |net: &crate::crd::agent_cluster_install::ClusterNetworkEntry| {
        (net.cidr.clone(), net.host_prefix.map(i64::from))
    };
    networking.cluster_network.iter().map(one).collect()
}

/// The list, or the old field for a single address.
pub fn vips(list: &[String], one: &str) -> Vec<String> {
    match list {
        [] => Some(one.to_owned())
            .filter(|one| !one.is_empty())
            .into_iter()
            .collect(),
        list => list.to_vec(),
    }
}

/// Two lists of networks mean the same, however they are written.
pub fn same_network<'a>(now: impl Iterator<Item = &'a str>, desired: &[String]) -> bool {
    let now: Vec<String> = now.map(normal).collect();
    now == desired.iter().map(|cidr| normal(cidr)).collect::<Vec<_>>()
}

/// The address in its short form, without the bits of single hosts.
fn normal(cidr: &str) -> String {
    let parsed = cidr
        .split_once('/')
        .and_then(|(ip, length)| Some((ip.parse::<IpAddr>().ok()?, length.parse::<u32>().ok()?)));
    match parsed {
        Some((IpAddr::V4(ip), length @ 0..=32)) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            format!("{}/{length}", std::net::Ipv4Addr::from(u32::from(ip) & mask))
        }
        Some((IpAddr::V6(ip), length @ 0..=128)) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            format!("{}/{length}", std::net::Ipv6Addr::from(u128::from(ip) & mask))
        }
        _ => cidr.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_compared_by_what_they_mean() {
        let same = |now: &str, desired: &str| same_network([now].into_iter(), &[desired.to_owned()]);
        assert!(same("10.0.0.0/24", "10.0.0.7/24"));
        assert!(same("fd01::/48", "FD01:0:0::/48"));
        assert!(same("0.0.0.0/0", "1.2.3.4/0"));
        assert!(!same("10.0.0.0/24", "10.0.0.0/25"));
        assert!(!same("10.0.0.0/24", "what"));
    }

    #[test]
    fn the_plural_wins() {
        assert_eq!(vips(&["a".into()], "b"), ["a"]);
        assert_eq!(vips(&[], "b"), ["b"]);
        assert!(vips(&[], "").is_empty());
    }
}
