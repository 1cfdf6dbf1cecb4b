//! Everything the checks may know: plain borrowed facts, gathered once per host or cluster.

use super::finding::Ignored;
use super::reports::{Connectivity, FreeNetwork, Reports};
use crate::HostId;
use crate::cluster::network::Groups;
use crate::cluster::{Cluster, DiskEncryption, LoadBalancerType, NetworkType, PlatformType};
use crate::host::{self, Digest, Host, Role};
use crate::inventory::Inventory;
use crate::requirements::{Profile, Quantities, Requirements};
use ipnet::IpNet;
use jiff::Timestamp;
use muster_vocabulary::Word;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

pub use muster_vocabulary::VipVerification as Verification;

/// One host under examination.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub id: HostId,
    /// `None`: the host is free.
    pub cluster: Option<&'a ClusterFacts>,
    /// Of the same cluster, this host included; empty for a free host.
    pub neighbours: &'a Neighbours,
    pub connected: bool,
    pub media_connected: bool,
    pub installation: Installation,
    pub inventory: Option<&'a Inventory>,
    /// An inventory came but could not be read.
    pub inventory_broken: bool,
    pub given_name: Option<&'a str>,
    pub role: Role,
    pub suggested_role: Option<Role>,
    pub installation_disk_id: &'a str,
    pub skip_formatting: &'a [String],
    /// Nobody measures the disk: something on it must be kept, the system runs from it, or the site wants it so.
    pub disk_speed_skipped: bool,
    pub reports: &'a Reports,
    /// The host's clock in epoch seconds, as its last poll said; 0 = never said.
    pub clock: i64,
    pub clock_read_at: Timestamp,
    pub agent_version: &'a str,
    /// The hub told it to replace itself often enough, and it did not.
    pub agent_stays: bool,
    /// Somebody named time servers for the InfraEnv or the cluster.
    pub ntp_configured: bool,
    /// Images the installation will pull; empty for a free host, and for clusters that need none.
    pub wanted_images: &'a [String],
    pub settings: &'a Settings,
    pub requirements: &'a Requirements,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Installation {
    #[default]
    NotStarted,
    Started,
    /// Stage Rebooting or later: the agent is gone by design.
    Rebooted,
}

/// What a site decided for all its hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub disabled_host_checks: BTreeSet<String>,
    pub disabled_cluster_checks: BTreeSet<String>,
    /// Single-node clusters answer their own names.
    pub single_node_dns: bool,
    /// The agent image every host should run; `None` switches agent upgrades off.
    pub wanted_agent: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            disabled_host_checks: BTreeSet::new(),
            disabled_cluster_checks: BTreeSet::new(),
            single_node_dns: true,
            wanted_agent: None,
        }
    }
}

/// What the checks need to know of a cluster.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClusterFacts {
    pub name: String,
    pub base_domain: String,
    pub release: String,
    /// Runs already; its hosts join it.
    pub day_two: bool,
    pub user_managed_networking: bool,
    pub user_managed_load_balancer: bool,
    pub platform: PlatformType,
    /// Name of an `external` platform, such as `oci`.
    pub external_platform: String,
    pub control_plane_count: i64,
    pub machine_networks: Vec<IpNet>,
    pub cluster_networks: Vec<PodNetwork>,
    pub service_networks: Vec<IpNet>,
    pub api_vips: Vec<Vip>,
    pub ingress_vips: Vec<Vip>,
    pub vip_dhcp_allocation: bool,
    pub network_type: Word<NetworkType>,
    pub disk_encryption: DiskEncryption,
    /// Add-ons the cluster brings along, by the names of the wire.
    pub operators: Vec<String>,
    /// Address → the hardware addresses that answered for it.
    pub ip_collisions: BTreeMap<String, Vec<String>>,
    pub ignored_host_checks: Ignored,
    pub ignored_cluster_checks: Ignored,
    pub pull_secret_set: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodNetwork {
    pub cidr: IpNet,
    /// Size of the slice each host gets.
    pub host_prefix: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vip {
    pub ip: IpAddr,
    pub verification: Verification,
}

impl ClusterFacts {
    pub fn is_single_node(&self) -> bool {
        self.control_plane_count == 1
    }

    /// Hosts must find each other in one network that the cluster's own balancers serve.
    pub fn manages_networks(&self) -> bool {
        !self.user_managed_networking && !self.user_managed_load_balancer
    }

    pub fn release(&self) -> Option<&str> {
        Some(self.release.as_str()).filter(|release| !release.is_empty())
    }
}

/// Another host of the same cluster, in the few facts others need. Also the input of group, role and cluster checks.
#[derive(Debug, Clone, Copy)]
pub struct Peer<'a> {
    pub id: HostId,
    /// The effective name.
    pub name: &'a str,
    pub role: Role,
    pub suggested_role: Option<Role>,
    pub has_inventory: bool,
    pub digest: &'a Digest,
    pub connectivity: Option<&'a Connectivity>,
    pub free_addresses: &'a [FreeNetwork],
    /// Host clock minus hub clock, in seconds; `None` = never reported.
    pub clock_skew_seconds: Option<i64>,
    /// Known, preparing or prepared.
    pub ready_to_install: bool,
    pub has_fencing: bool,
}

impl Peer<'_> {
    pub fn effective_role(&self) -> Role {
        effective_role(self.role, self.suggested_role)
    }

    pub fn addresses(&self) -> impl Iterator<Item = IpNet> + '_ {
        self.digest
            .nics
            .iter()
            .flat_map(|nic| &nic.addresses)
            .filter_map(|text| text.parse().ok())
    }
}

/// The role that counts: chosen, else suggested.
pub fn effective_role(role: Role, suggested: Option<Role>) -> Role {
    match role {
        Role::AutoAssign => suggested.unwrap_or_default(),
        Role::Master | Role::Arbiter | Role::Worker => role,
    }
}

/// A cluster's hosts seen from one of them: built once per cluster, asked in constant time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Neighbours {
    pub count: usize,
    pub with_fencing: usize,
    names: HashMap<String, usize>,
    roles: HashMap<HostId, Role>,
    host_names: HashMap<HostId, String>,
    pub groups: Groups,
}

impl Neighbours {
    /// `groups` come from [`crate::cluster::network::majority_groups`] over the same peers. A machine that was booted
    /// from two images and lent twice is one neighbour.
    pub fn new(peers: &[Peer<'_>], groups: Groups) -> Self {
        let mut neighbours = Self {
            groups,
            ..Self::default()
        };
        for peer in peers {
            if neighbours.roles.insert(peer.id, peer.effective_role()).is_some() {
                continue;
            }
            if peer.has_inventory {
                *neighbours.names.entry(peer.name.to_owned()).or_default() += 1;
            }
            neighbours.with_fencing += usize::from(peer.has_fencing);
            neighbours.host_names.insert(peer.id, peer.name.to_owned());
        }
        neighbours.count = neighbours.roles.len();
        neighbours
    }

    pub fn hosts_called(&self, name: &str) -> usize {
        self.names.get(name).copied().unwrap_or_default()
    }

    pub fn role_of(&self, host: HostId) -> Option<Role> {
        self.roles.get(&host).copied()
    }

    pub fn name_of(&self, host: HostId) -> String {
        self.host_names
            .get(&host)
            .filter(|name| !name.is_empty())
            .cloned()
            .unwrap_or_else(|| host.to_string())
    }

    /// How many hosts make a group: three, or two when they can fence each other.
    pub fn least_group(&self) -> usize {
        least_group(self.with_fencing)
    }
}

/// Three hosts make a majority possible; two do when they can fence each other.
pub(crate) fn least_group(with_fencing: usize) -> usize {
    if with_fencing >= 2 { 2 } else { 3 }
}

impl<'a> Subject<'a> {
    pub fn effective_role(&self) -> Role {
        effective_role(self.role, self.suggested_role)
    }

    pub fn name(&self) -> &'a str {
        crate::host::hostname::effective(self.given_name, self.inventory)
    }

    pub fn release(&self) -> Option<&'a str> {
        self.cluster.and_then(ClusterFacts::release)
    }

    pub fn profile(&self) -> Profile {
        let single_node = self
            .cluster
            .is_some_and(|cluster| cluster.is_single_node() && !cluster.day_two);
        Profile::of(
            self.effective_role(),
            single_node,
            self.inventory.is_some_and(Inventory::is_edge),
        )
    }

    pub fn required(&self) -> &'a Quantities {
        self.requirements.roles(self.release()).get(self.profile())
    }

    /// A free host without a role needs what the least demanding role needs.
    pub fn least_disk_gb(&self) -> i64 {
        match self.cluster {
            None => self.requirements.roles(None).least_disk_size_gb(),
            Some(_) => self.required().disk_size_gb,
        }
    }
}

impl ClusterFacts {
    /// Networks and addresses that do not parse are left out: requests are checked before they are stored.
    pub fn of(cluster: &Cluster) -> Self {
        let networks = |texts: &[String]| texts.iter().filter_map(|text| network(text)).collect();
        let pods = cluster.cluster_networks.iter().filter_map(|pods| {
            Some(PodNetwork {
                cidr: network(&pods.cidr)?,
                host_prefix: pods.host_prefix,
            })
        });
        Self {
            name: cluster.name.clone(),
            base_domain: cluster.base_dns_domain.clone(),
            release: cluster.openshift_version.clone(),
            day_two: cluster.adds_hosts(),
            user_managed_networking: cluster.user_managed_networking,
            user_managed_load_balancer: cluster.load_balancer == LoadBalancerType::UserManaged,
            platform: cluster.platform.kind,
            external_platform: cluster.platform.external_name.clone(),
            control_plane_count: cluster.control_plane_count,
            machine_networks: networks(&cluster.machine_networks),
            cluster_networks: pods.collect(),
            service_networks: networks(&cluster.service_networks),
            api_vips: vips(&cluster.api_vips),
            ingress_vips: vips(&cluster.ingress_vips),
            vip_dhcp_allocation: cluster.vip_dhcp_allocation,
            network_type: cluster.network_type.clone(),
            disk_encryption: cluster.disk_encryption.clone(),
            operators: cluster.chosen_operators().map(str::to_owned).collect(),
            ip_collisions: crate::cluster::network::merge_collisions(cluster.collisions.values()),
            ignored_host_checks: Ignored::parse(&cluster.ignored_host_validations).unwrap_or_default(),
            ignored_cluster_checks: Ignored::parse(&cluster.ignored_cluster_validations).unwrap_or_default(),
            pull_secret_set: !cluster.pull_secret.is_empty(),
        }
    }
}

fn network(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().map(|network| network.trunc())
}

fn vips(vips: &[crate::cluster::Vip]) -> Vec<Vip> {
    let parsed = vips.iter().filter_map(|vip| {
        Some(Vip {
            ip: vip.ip.parse().ok()?,
            verification: vip.verification.known().unwrap_or(Verification::Unverified),
        })
    });
    parsed.collect()
}

impl<'a> Peer<'a> {
    /// `name` is the host's effective name. A host without inventory has an empty digest,
    /// or one that only keeps its name while it is told to register again.
    pub fn of(host: &'a Host, name: &'a str, reports: &'a Reports) -> Self {
        let ready = host.status().is_ready_to_install();
        Self {
            id: host.id,
            name,
            role: host.role,
            suggested_role: host.suggested_role,
            has_inventory: host.phase != host::Phase::Binding && host.digest != Digest::default(),
            digest: &host.digest,
            connectivity: reports.connectivity.as_ref(),
            free_addresses: &reports.free_addresses,
            clock_skew_seconds: (host.clock != 0).then(|| host.clock - host.checked_in_at.as_second()),
            ready_to_install: ready,
            has_fencing: !host.tenant.fencing.is_empty(),
        }
    }
}
