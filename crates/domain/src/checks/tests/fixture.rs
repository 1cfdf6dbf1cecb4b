//! A healthy host, free or lent to a healthy cluster of three, to be spoilt by each test in one way.

use crate::HostId;
use crate::checks::facts::{PodNetwork, Verification, Vip};
use crate::checks::reports::{
    Connectivity, DomainResolutions, L2, L3, Mtu, NtpSource, RemoteHost, Reports, Resolution,
};
use crate::checks::{
    CheckId, ClusterFacts, Installation, Neighbours, Peer, Report, Settings, Status, Subject, domain_names,
    run,
};
use crate::cluster::network::majority_groups;
use crate::host::{Digest, Nic, Role, disks};
use crate::inventory::{Cpu, Disk, Interface, Inventory, Memory, Number, Route, SystemVendor};
use crate::requirements::Requirements;
use jiff::Timestamp;
use uuid::Uuid;

pub const NOW: i64 = 1_800_000_000;

pub struct World {
    pub inventory: Option<Inventory>,
    pub broken: bool,
    pub reports: Reports,
    pub cluster: Option<ClusterFacts>,
    pub neighbours: Neighbours,
    pub settings: Settings,
    pub requirements: Requirements,
    pub connected: bool,
    pub media: bool,
    pub installation: Installation,
    pub name: Option<String>,
    pub role: Role,
    pub suggested: Option<Role>,
    pub disk: String,
    pub skip: Vec<String>,
    pub disk_speed_skipped: bool,
    pub clock: i64,
    pub agent: String,
    pub agent_stays: bool,
    pub ntp_configured: bool,
    pub wanted_images: Vec<String>,
}

pub fn id(n: u128) -> HostId {
    HostId(Uuid::from_u128(n))
}

pub fn inventory() -> Inventory {
    let mut inventory = Inventory {
        hostname: "node-1".into(),
        tpm_version: "2.0".into(),
        cpu: Some(Cpu {
            count: 16,
            architecture: "x86_64".into(),
            ..Cpu::default()
        }),
        memory: Some(Memory {
            physical_bytes: 64 << 30,
            physical_bytes_method: "dmidecode".into(),
            ..Memory::default()
        }),
        system_vendor: Some(SystemVendor {
            manufacturer: "Vendor".into(),
            product_name: "Server".into(),
            ..SystemVendor::default()
        }),
        disks: vec![Disk {
            name: "sda".into(),
            path: "/dev/sda".into(),
            by_id: "/dev/disk/by-id/one".into(),
            drive_type: "SSD".into(),
            size_bytes: 960 * disks::GB,
            bootable: true,
            ..Disk::default()
        }],
        interfaces: vec![Interface {
            name: "eth0".into(),
            kind: "physical".into(),
            ipv4_addresses: vec!["192.168.111.1/24".into()],
            ..Interface::default()
        }],
        routes: vec![Route {
            destination: "0.0.0.0".into(),
            gateway: "192.168.111.254".into(),
            interface: "eth0".into(),
            ..Route::default()
        }],
        ..Inventory::default()
    };
    disks::judge(&mut inventory, 50, None);
    inventory
}

pub fn cluster() -> ClusterFacts {
    let vip = |ip: &str| {
        vec![Vip {
            ip: ip.parse().unwrap(),
            verification: Verification::Succeeded,
        }]
    };
    ClusterFacts {
        name: "blue".into(),
        base_domain: "example.com".into(),
        release: "4.20.1".into(),
        platform: crate::cluster::PlatformType::Baremetal,
        control_plane_count: 3,
        machine_networks: vec!["192.168.111.0/24".parse().unwrap()],
        cluster_networks: vec![PodNetwork {
            cidr: "10.128.0.0/14".parse().unwrap(),
            host_prefix: 23,
        }],
        service_networks: vec!["172.30.0.0/16".parse().unwrap()],
        api_vips: vip("192.168.111.100"),
        ingress_vips: vip("192.168.111.101"),
        network_type: "OVNKubernetes".into(),
        pull_secret_set: true,
        ..ClusterFacts::default()
    }
}

/// Host `from` reaches hosts 1 to `count` at 192.168.111.n.
pub fn reaching(from: u128, count: u128) -> Connectivity {
    let remote = |n: u128| {
        let ip = format!("192.168.111.{n}");
        RemoteHost {
            host_id: id(n).to_string(),
            l2_connectivity: vec![L2 {
                remote_ip_address: ip.clone(),
                remote_mac: format!("52:54:00:00:00:{n:02x}"),
                successful: true,
                ..L2::default()
            }],
            l3_connectivity: vec![L3 {
                remote_ip_address: ip.clone(),
                average_rtt_ms: Number(0.4),
                successful: true,
                ..L3::default()
            }],
            mtu_report: vec![Mtu {
                remote_ip_address: ip,
                mtu_successful: true,
                ..Mtu::default()
            }],
        }
    };
    Connectivity {
        remote_hosts: (1..=count).filter(|n| *n != from).map(remote).collect(),
    }
}

pub fn digest(n: u128) -> Digest {
    Digest {
        hostname: format!("node-{n}"),
        cpus: 16,
        memory_mib: 65536,
        disk_gb: 960,
        nics: vec![Nic {
            name: "eth0".into(),
            mac: String::new(),
            addresses: vec![format!("192.168.111.{n}/24")],
        }],
        ..Digest::default()
    }
}

pub fn peer<'a>(n: u128, digest: &'a Digest, connectivity: Option<&'a Connectivity>) -> Peer<'a> {
    Peer {
        id: id(n),
        name: &digest.hostname,
        role: Role::Master,
        suggested_role: None,
        has_inventory: true,
        digest,
        connectivity,
        free_addresses: &[],
        clock_skew_seconds: Some(0),
        ready_to_install: true,
        has_fencing: false,
    }
}

/// Hosts 1 to 3; `spoil` may change them before the groups are made.
pub fn neighbours(spoil: impl FnOnce(&mut Vec<Peer<'_>>)) -> Neighbours {
    let digests: Vec<Digest> = (1..=3).map(digest).collect();
    let reports: Vec<Connectivity> = (1..=3).map(|n| reaching(n, 3)).collect();
    let mut peers: Vec<Peer<'_>> = (0..3)
        .map(|at| peer(at as u128 + 1, &digests[at], Some(&reports[at])))
        .collect();
    spoil(&mut peers);
    let groups = majority_groups(&peers);
    Neighbours::new(&peers, groups)
}

impl World {
    pub fn free() -> Self {
        Self {
            inventory: Some(inventory()),
            broken: false,
            reports: Reports {
                ntp_sources: Some(vec![NtpSource {
                    source_name: "clock".into(),
                    source_state: "synced".into(),
                }]),
                ..Reports::default()
            },
            cluster: None,
            neighbours: Neighbours::default(),
            settings: Settings::default(),
            requirements: Requirements::default(),
            connected: true,
            media: true,
            installation: Installation::NotStarted,
            name: None,
            role: Role::AutoAssign,
            suggested: None,
            disk: "/dev/disk/by-id/one".into(),
            skip: vec![],
            disk_speed_skipped: false,
            clock: NOW,
            agent: "agent:1".into(),
            agent_stays: false,
            ntp_configured: false,
            wanted_images: vec![],
        }
    }

    pub fn bound() -> Self {
        let mut world = Self::free();
        let facts = cluster();
        let resolution = |domain_name: String| Resolution {
            ipv4_addresses: if domain_name.contains("Wildcard") {
                vec![]
            } else {
                vec!["10.0.0.1".into()]
            },
            domain_name,
            ..Resolution::default()
        };
        let resolutions = domain_names::wanted(&facts).into_iter().map(resolution).collect();
        world.reports.domain_resolutions = Some(DomainResolutions { resolutions });
        world.reports.connectivity = Some(reaching(1, 3));
        world.cluster = Some(facts);
        world.neighbours = neighbours(|_| {});
        world.role = Role::Master;
        world
    }

    pub fn facts(&mut self) -> &mut ClusterFacts {
        self.cluster.as_mut().unwrap()
    }

    pub fn machine(&mut self) -> &mut Inventory {
        self.inventory.as_mut().unwrap()
    }

    pub fn run(&self) -> Report {
        run(&Subject {
            id: id(1),
            cluster: self.cluster.as_ref(),
            neighbours: &self.neighbours,
            connected: self.connected,
            media_connected: self.media,
            installation: self.installation,
            inventory: self.inventory.as_ref(),
            inventory_broken: self.broken,
            given_name: self.name.as_deref(),
            role: self.role,
            suggested_role: self.suggested,
            installation_disk_id: &self.disk,
            skip_formatting: &self.skip,
            disk_speed_skipped: self.disk_speed_skipped,
            reports: &self.reports,
            clock: self.clock,
            clock_read_at: Timestamp::from_second(NOW).unwrap(),
            agent_version: &self.agent,
            agent_stays: self.agent_stays,
            ntp_configured: self.ntp_configured,
            wanted_images: &self.wanted_images,
            settings: &self.settings,
            requirements: &self.requirements,
        })
    }

    /// `None`: not shown.
    pub fn status(&self, id: CheckId) -> Option<Status> {
        self.run().find(id).map(|finding| finding.status)
    }

    pub fn with(mut self, spoil: impl FnOnce(&mut Self)) -> Self {
        spoil(&mut self);
        self
    }
}
