//! Each cluster check: what passes, what fails, what waits; and what they gate.

use super::CheckId::*;
use super::*;
use crate::HostId;
use crate::checks::facts::{PodNetwork, Verification, Vip};
use crate::checks::finding::Status::*;
use crate::checks::reports::FreeNetwork;
use crate::cluster::PlatformType;
use crate::host::{Digest, Nic, Role};
use uuid::Uuid;

struct World {
    facts: ClusterFacts,
    digests: Vec<Digest>,
    roles: Vec<Role>,
    skews: Vec<i64>,
    ready: bool,
    fencing: bool,
    manifests: bool,
    free: Vec<FreeNetwork>,
    settings: Settings,
}

fn vip(ip: &str) -> Vec<Vip> {
    vec![Vip {
        ip: ip.parse().unwrap(),
        verification: Verification::Unverified,
    }]
}

fn ready() -> World {
    let digest = |n: usize| Digest {
        cpus: 8,
        nics: vec![Nic {
            addresses: vec![format!("192.168.111.{n}/24")],
            ..Nic::default()
        }],
        ..Digest::default()
    };
    World {
        facts: ClusterFacts {
            name: "blue".into(),
            base_domain: "example.com".into(),
            release: "4.20.1".into(),
            platform: PlatformType::Baremetal,
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
        },
        digests: (1..=3).map(digest).collect(),
        roles: vec![Role::Master; 3],
        skews: vec![0; 3],
        ready: true,
        fencing: false,
        manifests: false,
        free: vec![FreeNetwork {
            network: "192.168.111.0/24".into(),
            free_addresses: vec!["192.168.111.100".into(), "192.168.111.101".into()],
        }],
        settings: Settings::default(),
    }
}

/// As created: nothing but defaults, no hosts.
fn fresh() -> World {
    let mut world = ready();
    world.facts.machine_networks.clear();
    world.facts.api_vips.clear();
    world.facts.ingress_vips.clear();
    world.digests.clear();
    world
}

impl World {
    fn run(&self) -> Report {
        let peers: Vec<Peer<'_>> = self
            .digests
            .iter()
            .enumerate()
            .map(|(at, digest)| Peer {
                id: HostId(Uuid::from_u128(at as u128)),
                name: "",
                role: self.roles[at],
                suggested_role: None,
                has_inventory: true,
                digest,
                connectivity: None,
                free_addresses: &self.free,
                clock_skew_seconds: Some(self.skews[at]),
                ready_to_install: self.ready,
                has_fencing: self.fencing,
            })
            .collect();
        run(&Subject {
            facts: &self.facts,
            peers: &peers,
            has_manifests: self.manifests,
            settings: &self.settings,
        })
    }
}

type Case = (CheckId, Status, &'static str, fn(&mut World));

fn check(base: fn() -> World, cases: &[Case]) {
    for (id, expected, why, spoil) in cases {
        let mut world = base();
        spoil(&mut world);
        let report = world.run();
        let finding = report.find(*id).unwrap();
        assert_eq!(finding.status, *expected, "{why}: {finding:?}");
    }
}

#[test]
fn findings_are_shown_by_category_and_id() {
    let json: serde_json::Value = serde_json::from_str(&ready().run().to_json()).unwrap();
    let ids = |category: &str| -> Vec<String> {
        json[category]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["id"].as_str().unwrap().into())
            .collect()
    };
    assert_eq!(
        ids("configuration"),
        ["platform-requirements-satisfied", "pull-secret-set"]
    );
    assert_eq!(
        ids("hosts-data"),
        ["all-hosts-are-ready-to-install", "sufficient-masters-count"]
    );
    let network: Vec<&str> = "api-vips-defined api-vips-valid cluster-cidr-defined \
        custom-manifests-requirements-satisfied dns-domain-defined ingress-vips-defined ingress-vips-valid \
        machine-cidr-defined machine-cidr-equals-to-calculated-cidr network-prefix-valid network-type-valid \
        networks-same-address-families no-cidrs-overlapping ntp-server-configured service-cidr-defined"
        .split_whitespace()
        .collect();
    assert_eq!(ids("network"), network);
    assert_eq!(ids("operators").len(), 28);
    assert_eq!(CheckId::CORE.len(), 19);
}

#[test]
fn a_complete_cluster_passes_every_gate() {
    let report = ready().run();
    assert!(
        report.findings.iter().all(|finding| finding.status == Success),
        "{report:#?}"
    );
    assert_eq!(
        report.gates(),
        Gates {
            inputs: true,
            vips_defined: true,
            required: true
        }
    );
    assert_eq!(report.complaints(), "");
}

#[test]
fn a_fresh_cluster_waits_for_hosts_and_addresses() {
    let report = fresh().run();
    let with = |status| -> Vec<&str> {
        report
            .findings
            .iter()
            .filter(|finding| finding.status == status)
            .map(|finding| finding.id.as_str())
            .collect()
    };
    assert_eq!(
        with(Failure),
        [
            "sufficient-masters-count",
            "api-vips-defined",
            "ingress-vips-defined"
        ]
    );
    assert_eq!(
        with(Pending),
        [
            "api-vips-valid",
            "ingress-vips-valid",
            "machine-cidr-defined",
            "machine-cidr-equals-to-calculated-cidr",
            "networks-same-address-families",
            "no-cidrs-overlapping"
        ]
    );
    assert_eq!(
        report.gates(),
        Gates {
            inputs: false,
            vips_defined: false,
            required: false
        }
    );
}

#[test]
fn networks() {
    check(
        ready,
        &[
            (MachineCidrDefined, Failure, "hosts seen, nothing set", |w| {
                w.facts.machine_networks.clear()
            }),
            (MachineCidrDefined, Success, "own networking", |w| {
                w.facts.machine_networks.clear();
                w.facts.user_managed_networking = true;
            }),
            (
                MachineCidrDefined,
                Failure,
                "a single node needs one all the same",
                |w| {
                    w.facts.machine_networks.clear();
                    w.facts.user_managed_networking = true;
                    w.facts.control_plane_count = 1;
                },
            ),
            (ClusterCidrDefined, Failure, "unset", |w| {
                w.facts.cluster_networks.clear()
            }),
            (ServiceCidrDefined, Failure, "unset", |w| {
                w.facts.service_networks.clear()
            }),
            (NoCidrsOverlapping, Failure, "service in machine", |w| {
                w.facts.service_networks = vec!["192.168.0.0/16".parse().unwrap()];
            }),
            (NoCidrsOverlapping, Error, "different counts", |w| {
                w.facts.service_networks.push("fd02::/112".parse().unwrap());
            }),
            (
                NoCidrsOverlapping,
                Success,
                "own networking without machine network",
                |w| {
                    w.facts.machine_networks.clear();
                    w.facts.user_managed_networking = true;
                },
            ),
            (NetworksSameAddressFamilies, Failure, "mixed", |w| {
                w.facts.service_networks = vec!["fd02::/112".parse().unwrap()];
            }),
            (NetworkPrefixValid, Failure, "0", |w| {
                w.facts.cluster_networks[0].host_prefix = 0
            }),
            (NetworkPrefixValid, Failure, "slices too small", |w| {
                w.facts.cluster_networks[0].host_prefix = 26
            }),
            (NetworkPrefixValid, Success, "smallest slices", |w| {
                w.facts.cluster_networks[0].host_prefix = 25
            }),
            (NetworkPrefixValid, Failure, "too few slices", |w| {
                w.facts.cluster_networks[0].host_prefix = 15
            }),
            (NetworkPrefixValid, Success, "four slices", |w| {
                w.facts.cluster_networks[0].host_prefix = 16
            }),
            (
                NetworkPrefixValid,
                Failure,
                "prefix shorter than the network",
                |w| {
                    w.facts.cluster_networks[0].host_prefix = 13;
                },
            ),
            (NetworkPrefixValid, Success, "one slice for one node", |w| {
                w.facts.cluster_networks[0].host_prefix = 14;
                w.facts.control_plane_count = 1;
            }),
            (NetworkTypeValid, Failure, "OVN with DHCP", |w| {
                w.facts.vip_dhcp_allocation = true
            }),
            (NetworkTypeValid, Failure, "SDN on one node", |w| {
                w.facts.network_type = "OpenShiftSDN".into();
                w.facts.control_plane_count = 1;
            }),
            (NetworkTypeValid, Failure, "SDN with IPv6", |w| {
                w.facts.network_type = "OpenShiftSDN".into();
                w.facts.machine_networks.push("fd00::/64".parse().unwrap());
            }),
        ],
    );
}

#[test]
fn virtual_addresses() {
    check(
        ready,
        &[
            (ApiVipsDefined, Failure, "unset", |w| w.facts.api_vips.clear()),
            (ApiVipsDefined, Success, "own networking", |w| {
                w.facts.api_vips.clear();
                w.facts.user_managed_networking = true;
            }),
            (IngressVipsDefined, Pending, "DHCP needs a network", |w| {
                w.facts.vip_dhcp_allocation = true;
                w.facts.machine_networks.clear();
            }),
            (ApiVipsValid, Failure, "outside", |w| {
                w.facts.api_vips = vip("10.0.0.1")
            }),
            (ApiVipsValid, Failure, "broadcast", |w| {
                w.facts.api_vips = vip("192.168.111.255")
            }),
            (ApiVipsValid, Failure, "network", |w| {
                w.facts.api_vips = vip("192.168.111.0")
            }),
            (ApiVipsValid, Failure, "not on the list of free ones", |w| {
                w.facts.api_vips = vip("192.168.111.7")
            }),
            (ApiVipsValid, Success, "no list at all", |w| {
                w.facts.api_vips = vip("192.168.111.7");
                w.free.clear();
            }),
            (ApiVipsValid, Failure, "a host's own", |w| {
                w.facts.api_vips = vip("192.168.111.2");
                w.free.clear();
            }),
            (ApiVipsValid, Failure, "a test found it in use", |w| {
                w.facts.api_vips[0].verification = Verification::Failed;
            }),
            (ApiVipsValid, Success, "a test found it free", |w| {
                w.facts.api_vips = vip("192.168.111.7");
                w.facts.api_vips[0].verification = Verification::Succeeded;
            }),
            (IngressVipsValid, Failure, "the same as the API's", |w| {
                w.facts.ingress_vips = vip("192.168.111.100")
            }),
            (
                IngressVipsValid,
                Success,
                "shared behind a load balancer of one's own",
                |w| {
                    w.facts.ingress_vips = vip("192.168.111.100");
                    w.facts.user_managed_load_balancer = true;
                },
            ),
            (ApiVipsValid, Pending, "no host seen", |w| w.digests.clear()),
            (
                MachineCidrEqualsToCalculatedCidr,
                Failure,
                "another network",
                |w| {
                    w.facts.machine_networks = vec!["192.168.0.0/16".parse().unwrap()];
                },
            ),
            (MachineCidrEqualsToCalculatedCidr, Failure, "no host there", |w| {
                w.facts.api_vips = vip("10.0.0.1")
            }),
            (MachineCidrEqualsToCalculatedCidr, Pending, "unset", |w| {
                w.facts.api_vips.clear()
            }),
        ],
    );
}

#[test]
fn hosts() {
    check(
        ready,
        &[
            (AllHostsAreReadyToInstall, Failure, "not ready", |w| {
                w.ready = false
            }),
            (AllHostsAreReadyToInstall, Success, "no hosts", |w| {
                w.digests.clear()
            }),
            (SufficientMastersCount, Failure, "no hosts", |w| w.digests.clear()),
            (SufficientMastersCount, Failure, "one worker instead", |w| {
                w.roles[0] = Role::Worker
            }),
            (SufficientMastersCount, Failure, "too many", |w| {
                w.facts.control_plane_count = 2
            }),
            (SufficientMastersCount, Success, "two and an arbiter", |w| {
                w.facts.control_plane_count = 2;
                w.roles[0] = Role::Arbiter;
            }),
            (SufficientMastersCount, Failure, "two and a worker", |w| {
                w.facts.control_plane_count = 2;
                w.roles[0] = Role::Worker;
            }),
            (SufficientMastersCount, Success, "two with fencing", |w| {
                w.facts.control_plane_count = 2;
                w.roles[0] = Role::Worker;
                w.fencing = true;
            }),
            (SufficientMastersCount, Failure, "single node with company", |w| {
                w.facts.control_plane_count = 1
            }),
            (SufficientMastersCount, Success, "single node", |w| {
                w.facts.control_plane_count = 1;
                w.digests.truncate(1);
            }),
            (NtpServerConfigured, Failure, "more than 4 min apart", |w| {
                w.skews = vec![-100, 141, 0]
            }),
            (NtpServerConfigured, Success, "4 min apart", |w| {
                w.skews = vec![-100, 140, 0]
            }),
        ],
    );
}

#[test]
fn configuration() {
    check(
        ready,
        &[
            (PullSecretSet, Failure, "unset", |w| {
                w.facts.pull_secret_set = false
            }),
            (DnsDomainDefined, Failure, "unset", |w| {
                w.facts.base_domain.clear()
            }),
            (CustomManifestsRequirementsSatisfied, Failure, "Cilium", |w| {
                w.facts.network_type = "Cilium".into()
            }),
            (
                CustomManifestsRequirementsSatisfied,
                Success,
                "Cilium brought along",
                |w| {
                    w.facts.network_type = "Cilium".into();
                    w.manifests = true;
                },
            ),
            (PlatformRequirementsSatisfied, Failure, "OCI", |w| {
                w.facts.platform = PlatformType::External;
                w.facts.external_platform = "oci".into();
            }),
            (
                PlatformRequirementsSatisfied,
                Success,
                "OCI with its provider",
                |w| {
                    w.facts.platform = PlatformType::External;
                    w.facts.external_platform = "oci".into();
                    w.manifests = true;
                },
            ),
        ],
    );
}

#[test]
fn the_platform_does_not_gate_and_ignored_checks_do_not_either() {
    let mut world = ready();
    world.facts.platform = PlatformType::External;
    world.facts.external_platform = "oci".into();
    assert!(world.run().gates().required);
    world.skews = vec![-1000, 0, 0];
    assert!(!world.run().gates().required);
    world.facts.ignored_cluster_checks.ids = vec!["ntp-server-configured".into()];
    assert!(world.run().gates().required);
    world.facts.pull_secret_set = false;
    world.facts.ignored_cluster_checks.all = true;
    assert!(
        !world.run().gates().inputs,
        "the pull secret can never be ignored"
    );
}
