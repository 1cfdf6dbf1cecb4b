//! Networks of a cluster as its hosts see them: who reaches whom, which networks they share, who has whose address.

use crate::HostId;
use crate::checks::facts::{ClusterFacts, Peer, least_group};
use crate::checks::reports::Connectivity;
use crate::cluster::Cluster;
use crate::networks::Union;
use ipnet::IpNet;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

pub const IPV4: &str = "IPv4";
pub const IPV6: &str = "IPv6";

/// Hosts that reach each other, per network and per address family.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Groups {
    pub majority_groups: BTreeMap<String, Vec<HostId>>,
    pub l3_connected_addresses: BTreeMap<HostId, Vec<String>>,
    /// Hosts that have reported whom they reach.
    #[serde(skip)]
    pub reporters: usize,
}

impl Groups {
    /// Constant in the number of networks, logarithmic in the number of hosts.
    pub fn holds(&self, key: &str, host: HostId) -> bool {
        self.majority_groups
            .get(key)
            .is_some_and(|group| group.binary_search(&host).is_ok())
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("ids and addresses always serialise")
    }
}

/// Machine networks follow the virtual addresses until a person sets them.
pub fn derive_machine_networks(cluster: &mut Cluster, peers: &[Peer<'_>]) {
    if cluster.machine_networks_given || cluster.adds_hosts() {
        return;
    }
    let networks = if cluster.single_node() {
        peers
            .iter()
            .find_map(single_node_machine_network)
            .into_iter()
            .collect()
    } else if cluster.user_managed_networking {
        return;
    } else {
        let vips = cluster.api_vips.iter().chain(&cluster.ingress_vips);
        machine_networks(vips.filter_map(|vip| vip.ip.parse().ok()), peers)
    };
    cluster.machine_networks = networks.iter().map(ToString::to_string).collect();
}

/// The address under which a single node is the whole cluster: in the machine network, else its first.
pub fn node_address(cluster: &Cluster, addresses: &[String]) -> Option<String> {
    let networks = Union::parse(&cluster.machine_networks);
    let addresses: Vec<IpNet> = addresses.iter().filter_map(|text| text.parse().ok()).collect();
    let within = |address: &&IpNet| networks.holds(address.addr());
    let chosen = addresses.iter().find(within).or(addresses.first())?;
    Some(chosen.addr().to_string())
}

/// Address families in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Families {
    pub v4: bool,
    pub v6: bool,
}

impl Families {
    pub fn include(self, network: &IpNet) -> bool {
        match network {
            IpNet::V4(_) => self.v4,
            IpNet::V6(_) => self.v6,
        }
    }

    pub fn keys(self) -> Vec<&'static str> {
        [(self.v4, IPV4), (self.v6, IPV6)]
            .into_iter()
            .filter(|(used, _)| *used)
            .map(|(_, key)| key)
            .collect()
    }
}

/// The families a cluster uses: those of its networks, or both while none is set.
pub fn families(cluster: &ClusterFacts) -> Families {
    let pods = cluster.cluster_networks.iter().map(|network| network.cidr);
    let networks = pods
        .chain(cluster.machine_networks.iter().copied())
        .chain(cluster.service_networks.iter().copied());
    let mut used = Families { v4: false, v6: false };
    for network in networks {
        match network {
            IpNet::V4(_) => used.v4 = true,
            IpNet::V6(_) => used.v6 = true,
        }
    }
    if used.v4 || used.v6 {
        used
    } else {
        Families { v4: true, v6: true }
    }
}

/// Addresses every interface gives itself; they say nothing about the network.
pub fn is_link_local(network: &IpNet) -> bool {
    match network {
        IpNet::V4(net) => net.addr().is_link_local(),
        IpNet::V6(net) => net.addr().is_unicast_link_local(),
    }
}

/// Beyond any server. What more a host says it is in counts for nothing: every one is kept with its cluster.
const MOST_NETWORKS: usize = 1024;

/// The networks a host is in, the first ones if it tells of very many.
pub fn networks_of(peer: &Peer<'_>) -> BTreeSet<IpNet> {
    let mut networks = BTreeSet::new();
    let told = peer.addresses().map(|address| address.trunc());
    for network in told.filter(|network| !is_link_local(network)) {
        networks.insert(network);
        if networks.len() == MOST_NETWORKS {
            break;
        }
    }
    networks
}

/// The networks of all hosts with an inventory.
fn known_networks(peers: &[Peer<'_>]) -> BTreeSet<IpNet> {
    let known = peers.iter().filter(|peer| peer.has_inventory);
    known.flat_map(networks_of).collect()
}

/// Whom each host reaches, of those that reported.
type Reached = HashMap<HostId, HashSet<HostId>>;

/// Computes all groups of a cluster at once, from what its hosts reported. Every path is read once, however many
/// networks there are.
pub fn majority_groups(peers: &[Peer<'_>]) -> Groups {
    let least = least_group(peers.iter().filter(|peer| peer.has_fencing).count());
    let told: HashMap<HostId, &Connectivity> = peers
        .iter()
        .filter_map(|peer| Some((peer.id, peer.connectivity?)))
        .collect();
    let networks = known_networks(peers);
    let (inside, families) = reached(&told, &networks);
    let nobody = Reached::new();
    let found = |reached: Option<&Reached>| group(reached.unwrap_or(&nobody), least, told.len());
    let in_networks = networks
        .iter()
        .map(|network| (network.to_string(), found(inside.get(network))));
    let in_families = [IPV4, IPV6].map(|key| (key.to_owned(), found(families.get(key))));
    Groups {
        majority_groups: in_networks.chain(in_families).collect(),
        reporters: peers.iter().filter(|peer| peer.connectivity.is_some()).count(),
        l3_connected_addresses: connected_addresses(peers),
    }
}

/// Who reaches whom in which network, and in which family.
fn reached(
    told: &HashMap<HostId, &Connectivity>,
    networks: &BTreeSet<IpNet>,
) -> (HashMap<IpNet, Reached>, HashMap<&'static str, Reached>) {
    let around = Around::new(networks);
    let (mut inside, mut families) = (HashMap::<_, Reached>::new(), HashMap::<_, Reached>::new());
    let all = told
        .iter()
        .flat_map(|(host, report)| report.remote_hosts.iter().map(|remote| (*host, remote)));
    for (host, remote) in all {
        // Nobody is in a group who said nothing.
        let Some(other) = remote.host_id.parse().ok().filter(|id| told.contains_key(id)) else {
            continue;
        };
        let mut reaches = |network| {
            let of_host = inside.entry(network).or_default().entry(host);
            of_host.or_default().insert(other);
        };
        let neighbours = &remote.l2_connectivity;
        let neighbours = neighbours
            .iter()
            .map(|path| (path.successful, &path.remote_ip_address));
        let pings = &remote.l3_connectivity;
        let pings = pings
            .iter()
            .map(|path| (path.successful, &path.remote_ip_address));
        for ip in answers(neighbours) {
            around.each(ip).for_each(&mut reaches);
        }
        for ip in answers(pings) {
            // One working path is enough: bond members and storage networks need not reach everything. Neighbour
            // discovery is often filtered for IPv6, so an answered ping inside the network counts as well there.
            if ip.is_ipv6() {
                around.each(ip).for_each(&mut reaches);
            }
            let family = if ip.is_ipv4() { IPV4 } else { IPV6 };
            families
                .entry(family)
                .or_default()
                .entry(host)
                .or_default()
                .insert(other);
        }
    }
    (inside, families)
}

/// The addresses of paths that work.
fn answers<'a>(paths: impl Iterator<Item = (bool, &'a String)>) -> impl Iterator<Item = IpAddr> {
    paths
        .filter(|(successful, _)| *successful)
        .filter_map(|(_, address)| address.parse().ok())
}

/// Finds the networks around an address without asking each of them: one question per length of prefix.
struct Around<'a> {
    networks: HashSet<&'a IpNet>,
    v4: BTreeSet<u8>,
    v6: BTreeSet<u8>,
}

impl<'a> Around<'a> {
    fn new(networks: &'a BTreeSet<IpNet>) -> Self {
        let lengths = |v4: bool| {
            let family = networks.iter().filter(|network| network.addr().is_ipv4() == v4);
            family.map(IpNet::prefix_len).collect()
        };
        Self {
            networks: networks.iter().collect(),
            v4: lengths(true),
            v6: lengths(false),
        }
    }

    fn each(&self, ip: IpAddr) -> impl Iterator<Item = IpNet> {
        let lengths = if ip.is_ipv4() { &self.v4 } else { &self.v6 };
        lengths
            .iter()
            .filter_map(move |length| Some(IpNet::new(ip, *length).ok()?.trunc()))
            .filter(|network| self.networks.contains(network))
    }
}

/// The largest set of hosts found in which everybody reaches everybody, if it is most of those that reported.
fn group(told: &Reached, least: usize, reporters: usize) -> Vec<HostId> {
    let reaches = |a: &HostId, b: &HostId| told.get(a).is_some_and(|reached| reached.contains(b));
    let mutual = |a: &HostId, b: &HostId| reaches(a, b) && reaches(b, a);
    // Who has no link with anybody is in no group of two.
    let mut hosts: Vec<(usize, HostId)> = told
        .iter()
        .map(|(host, reached)| (reached.iter().filter(|other| reaches(other, host)).count(), *host))
        .filter(|(links, _)| *links > 0)
        .collect();
    // Best connected first, ids as tie-break: the same reports always make the same group.
    hosts.sort_by_key(|(links, host)| (std::cmp::Reverse(*links), *host));
    let mut members: Vec<HostId> = Vec::new();
    for (_, host) in &hosts {
        if members.iter().all(|member| mutual(member, host)) {
            members.push(*host);
        }
    }
    if members.len() < least || members.len() * 2 <= reporters {
        return Vec::new();
    }
    members.sort_unstable();
    members
}

/// Per host, the addresses most other reporting hosts can ping.
fn connected_addresses(peers: &[Peer<'_>]) -> BTreeMap<HostId, Vec<String>> {
    let reporters = peers.iter().filter(|peer| peer.connectivity.is_some()).count();
    if reporters < 2 {
        return BTreeMap::new();
    }
    let mut pinged: BTreeMap<HostId, BTreeMap<&str, usize>> = BTreeMap::new();
    for remote in peers
        .iter()
        .filter_map(|peer| peer.connectivity)
        .flat_map(|report| &report.remote_hosts)
    {
        let Ok(id) = remote.host_id.parse() else { continue };
        let answered: BTreeSet<&str> = remote
            .l3_connectivity
            .iter()
            .filter(|path| path.successful)
            .map(|path| path.remote_ip_address.as_str())
            .collect();
        for ip in answered {
            *pinged.entry(id).or_default().entry(ip).or_default() += 1;
        }
    }
    let others = reporters - 1;
    let wide = |(ip, count): (&str, usize)| (count * 2 > others).then(|| ip.to_owned());
    pinged
        .into_iter()
        .map(|(id, ips)| (id, ips.into_iter().filter_map(wide).collect::<Vec<_>>()))
        .filter(|(_, ips)| !ips.is_empty())
        .collect()
}

/// A network all hosts with an inventory are in, as `host_networks` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostNetwork {
    pub cidr: String,
    pub host_ids: Vec<HostId>,
}

pub fn host_networks(peers: &[Peer<'_>]) -> Vec<HostNetwork> {
    let known: Vec<&Peer<'_>> = peers.iter().filter(|peer| peer.has_inventory).collect();
    let mut hosts_in: BTreeMap<IpNet, Vec<HostId>> = BTreeMap::new();
    for peer in &known {
        for network in networks_of(peer) {
            hosts_in.entry(network).or_default().push(peer.id);
        }
    }
    let shared = hosts_in
        .into_iter()
        .filter(|(_, hosts)| hosts.len() == known.len());
    shared
        .map(|(network, host_ids)| HostNetwork {
            cidr: network.to_string(),
            host_ids,
        })
        .collect()
}

/// The narrowest network of the hosts that holds an address.
pub fn network_around(ip: IpAddr, peers: &[Peer<'_>]) -> Option<IpNet> {
    narrowest(ip, &known_networks(peers))
}

fn narrowest(ip: IpAddr, networks: &BTreeSet<IpNet>) -> Option<IpNet> {
    let around = networks.iter().filter(|network| network.contains(&ip));
    around
        .max_by_key(|network| (network.prefix_len(), **network))
        .copied()
}

/// Machine networks that follow from the virtual addresses, one per family in the order of the addresses.
/// Empty until a host is in such a network.
pub fn machine_networks(vips: impl Iterator<Item = IpAddr>, peers: &[Peer<'_>]) -> Vec<IpNet> {
    let known = known_networks(peers);
    let mut networks: Vec<IpNet> = Vec::new();
    for network in vips.filter_map(|ip| narrowest(ip, &known)) {
        let same_family = |known: &IpNet| matches!(known, IpNet::V4(_)) == matches!(network, IpNet::V4(_));
        if !networks.iter().any(same_family) {
            networks.push(network);
        }
    }
    networks
}

/// The network of a lone host's first interface with an address: where a single node lives.
pub fn single_node_machine_network(peer: &Peer<'_>) -> Option<IpNet> {
    peer.addresses()
        .map(|address| address.trunc())
        .find(|network| !is_link_local(network))
}

/// Addresses for which one host got answers from several machines. Kept per reporter: the same private address may
/// exist in two places that no host sees at once, and one host's clean report must not erase another's finding.
pub fn collisions_seen(report: &Connectivity) -> BTreeMap<String, Vec<String>> {
    let mut answers: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let paths = report
        .remote_hosts
        .iter()
        .flat_map(|remote| &remote.l2_connectivity);
    for path in paths.filter(|path| !path.remote_mac.is_empty() && !path.remote_ip_address.is_empty()) {
        answers
            .entry(&path.remote_ip_address)
            .or_default()
            .insert(path.remote_mac.to_ascii_lowercase());
    }
    let shared = answers.into_iter().filter(|(_, macs)| macs.len() > 1);
    shared
        .map(|(ip, macs)| (ip.to_owned(), macs.into_iter().collect()))
        .collect()
}

/// All reporters' findings together.
pub fn merge_collisions<'a>(
    seen: impl Iterator<Item = &'a BTreeMap<String, Vec<String>>>,
) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (ip, macs) in seen.flatten() {
        all.entry(ip.clone()).or_default().extend(macs.iter().cloned());
    }
    all.into_iter()
        .map(|(ip, macs)| (ip, macs.into_iter().collect()))
        .collect()
}

#[cfg(test)]
mod tests;
