//! The list of host checks: their public names, by which clients look findings up and which never change, what each
//! holds up, and what to do when it fails.

use super::facts::{ClusterFacts, Subject};
use super::finding::Outcome;
use super::{Category, Gate, connectivity, disks, domain_names, hardware, network, platform, time};

macro_rules! check_ids {
    ($($name:ident => $word:literal),* $(,)?) => {
        /// A host check. The 38 core checks, one name that is known but never evaluated, and one per operator.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CheckId { $($name,)* Operator(Operator) }

        impl CheckId {
            pub const CORE: &'static [CheckId] = &[$(CheckId::$name),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                    Self::Operator(operator) => operator.check_id(),
                }
            }
        }
    };
}

check_ids! {
    Connected => "connected",
    MediaConnected => "media-connected",
    HasInventory => "has-inventory",
    InventoryNotPartiallyTruncated => "inventory-not-partially-truncated",
    InventoryNotFullyTruncated => "inventory-not-fully-truncated",
    HasMinCpuCores => "has-min-cpu-cores",
    HasMinMemory => "has-min-memory",
    HasMinValidDisks => "has-min-valid-disks",
    HasCpuCoresForRole => "has-cpu-cores-for-role",
    HasMemoryForRole => "has-memory-for-role",
    HostnameUnique => "hostname-unique",
    HostnameValid => "hostname-valid",
    MachineCidrDefined => "machine-cidr-defined",
    BelongsToMachineCidr => "belongs-to-machine-cidr",
    IgnitionDownloadable => "ignition-downloadable",
    BelongsToMajorityGroup => "belongs-to-majority-group",
    MtuValid => "mtu-valid",
    ValidPlatformNetworkSettings => "valid-platform-network-settings",
    NtpSynced => "ntp-synced",
    TimeSynced => "time-synced-between-host-and-service",
    ContainerImagesAvailable => "container-images-available",
    NetworkLatency => "sufficient-network-latency-requirement-for-role",
    PacketLoss => "sufficient-packet-loss-requirement-for-role",
    HasDefaultRoute => "has-default-route",
    ApiDomainName => "api-domain-name-resolved-correctly",
    ApiIntDomainName => "api-int-domain-name-resolved-correctly",
    AppsDomainName => "apps-domain-name-resolved-correctly",
    // Accepted wherever ids are named, never evaluated.
    ReleaseDomainName => "release-domain-name-resolved-correctly",
    DnsWildcardNotConfigured => "dns-wildcard-not-configured",
    NonOverlappingSubnets => "non-overlapping-subnets",
    NoIpCollisions => "no-ip-collisions-in-network",
    NoIscsiNicInMachineCidr => "no-iscsi-nic-belongs-to-machine-cidr",
    InstallationDiskSpeed => "sufficient-installation-disk-speed",
    CompatibleWithClusterPlatform => "compatible-with-cluster-platform",
    VsphereDiskUuidEnabled => "vsphere-disk-uuid-enabled",
    DiskEncryption => "disk-encryption-requirements-satisfied",
    CompatibleAgent => "compatible-agent",
    NoSkipInstallationDisk => "no-skip-installation-disk",
    NoSkipMissingDisk => "no-skip-missing-disk",
}

#[derive(Clone, Copy)]
pub(super) enum Run {
    Always(fn(&Subject<'_>) -> Outcome),
    /// Left out while the host is free.
    Bound(fn(&Subject<'_>, &ClusterFacts) -> Outcome),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    Ever,
    InstallationStarts,
    /// The agent is gone from then on.
    Reboot,
}

pub(super) struct Check {
    pub id: CheckId,
    pub category: Category,
    pub gate: Gate,
    pub until: Until,
    pub run: Run,
}

const fn hw(id: CheckId, gate: Gate, run: Run) -> Check {
    Check {
        id,
        category: Category::Hardware,
        gate,
        until: Until::Ever,
        run,
    }
}

const fn net(id: CheckId, gate: Gate, run: Run) -> Check {
    Check {
        id,
        category: Category::Network,
        gate,
        until: Until::Ever,
        run,
    }
}

const fn until(until: Until, check: Check) -> Check {
    Check { until, ..check }
}

/// In the order they are evaluated and shown.
pub(super) const CHECKS: &[Check] = {
    use CheckId::*;
    use Gate::*;
    use Run::{Always, Bound};
    &[
        until(Until::Reboot, net(Connected, ById, Always(network::connected))),
        until(
            Until::Reboot,
            net(MediaConnected, ById, Always(network::media_connected)),
        ),
        hw(HasInventory, ById, Always(hardware::has_inventory)),
        hw(
            InventoryNotPartiallyTruncated,
            Nothing,
            Always(hardware::not_partially_truncated),
        ),
        hw(
            InventoryNotFullyTruncated,
            Sufficient,
            Always(hardware::not_fully_truncated),
        ),
        hw(HasMinCpuCores, MinHardware, Always(hardware::least_cpu)),
        hw(HasMinMemory, MinHardware, Always(hardware::least_memory)),
        hw(HasMinValidDisks, MinHardware, Always(disks::least_disks)),
        hw(HasCpuCoresForRole, Sufficient, Always(hardware::cpu_for_role)),
        hw(HasMemoryForRole, Sufficient, Always(hardware::memory_for_role)),
        hw(HostnameUnique, Sufficient, Bound(hardware::hostname_unique)),
        hw(HostnameValid, Sufficient, Always(hardware::hostname_valid)),
        net(MachineCidrDefined, Inputs, Bound(network::machine_cidr_defined)),
        net(
            BelongsToMachineCidr,
            Sufficient,
            Bound(network::belongs_to_machine_cidr),
        ),
        net(
            IgnitionDownloadable,
            Sufficient,
            Bound(network::ignition_downloadable),
        ),
        net(
            BelongsToMajorityGroup,
            Sufficient,
            Bound(connectivity::majority_group),
        ),
        net(MtuValid, Nothing, Bound(connectivity::mtu)),
        net(
            ValidPlatformNetworkSettings,
            Sufficient,
            Always(platform::network_settings),
        ),
        until(Until::Reboot, net(NtpSynced, Nothing, Always(time::ntp_synced))),
        until(
            Until::Reboot,
            net(TimeSynced, Sufficient, Always(time::clock_agrees)),
        ),
        net(
            ContainerImagesAvailable,
            Nothing,
            Always(platform::images_available),
        ),
        hw(InstallationDiskSpeed, Sufficient, Always(disks::speed)),
        net(NetworkLatency, Sufficient, Bound(connectivity::latency)),
        net(PacketLoss, Sufficient, Bound(connectivity::packet_loss)),
        net(HasDefaultRoute, Sufficient, Always(network::default_route)),
        net(ApiDomainName, Sufficient, Bound(domain_names::api)),
        net(ApiIntDomainName, Sufficient, Bound(domain_names::api_int)),
        net(AppsDomainName, Sufficient, Bound(domain_names::apps)),
        net(
            DnsWildcardNotConfigured,
            Sufficient,
            Bound(domain_names::no_wildcard),
        ),
        hw(
            CompatibleWithClusterPlatform,
            MinHardware,
            Bound(platform::compatible),
        ),
        hw(VsphereDiskUuidEnabled, ById, Bound(disks::vsphere_uuids)),
        hw(DiskEncryption, MinHardware, Bound(disks::encryption)),
        net(
            NonOverlappingSubnets,
            Sufficient,
            Bound(network::no_overlapping_subnets),
        ),
        until(
            Until::InstallationStarts,
            hw(CompatibleAgent, Sufficient, Always(platform::agent)),
        ),
        hw(
            NoSkipInstallationDisk,
            Sufficient,
            Always(disks::installation_disk_not_skipped),
        ),
        hw(
            NoSkipMissingDisk,
            Sufficient,
            Always(disks::skipped_disks_present),
        ),
        net(NoIpCollisions, Sufficient, Always(network::no_ip_collisions)),
        net(
            NoIscsiNicInMachineCidr,
            Sufficient,
            Bound(disks::no_iscsi_in_machine_cidr),
        ),
    ]
};

macro_rules! operators {
    ($($name:ident => $word:literal, $title:literal);* $(;)?) => {
        /// An add-on a cluster may ask for. What each needs of hosts is not known here, so each check passes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Operator { $($name),* }

        impl Operator {
            pub const ALL: &'static [Operator] = &[$(Operator::$name),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            pub fn check_id(self) -> &'static str {
                match self { $(Self::$name => concat!($word, "-requirements-satisfied")),* }
            }

            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }
        }
    };
}

operators! {
    AmdGpu => "amd-gpu", "AMD GPU";
    Authorino => "authorino", "Authorino";
    ClusterObservability => "cluster-observability", "Cluster Observability";
    Cnv => "cnv", "OpenShift Virtualization";
    FenceAgentsRemediation => "fence-agents-remediation", "Fence Agents Remediation";
    Kmm => "kmm", "Kernel Module Management";
    KubeDescheduler => "kube-descheduler", "Kube Descheduler";
    Loki => "loki", "Loki";
    Lso => "lso", "Local Storage";
    Lvm => "lvm", "Logical Volume Manager Storage";
    Mce => "mce", "Multicluster Engine";
    Metallb => "metallb", "MetalLB";
    Mtv => "mtv", "Migration Toolkit for Virtualization";
    Nmstate => "nmstate", "NMState";
    NodeFeatureDiscovery => "node-feature-discovery", "Node Feature Discovery";
    NodeHealthcheck => "node-healthcheck", "Node Health Check";
    NodeMaintenance => "node-maintenance", "Node Maintenance";
    NumaResources => "numa-resources", "NUMA Resources";
    NvidiaGpu => "nvidia-gpu", "NVIDIA GPU";
    Oadp => "oadp", "OADP";
    Odf => "odf", "OpenShift Data Foundation";
    OpenshiftAi => "openshift-ai", "OpenShift AI";
    OpenshiftLogging => "openshift-logging", "OpenShift Logging";
    Osc => "osc", "Sandboxed Containers";
    Pipelines => "pipelines", "Pipelines";
    SelfNodeRemediation => "self-node-remediation", "Self Node Remediation";
    Serverless => "serverless", "Serverless";
    Servicemesh => "servicemesh", "Service Mesh";
}

impl Operator {
    /// The name under which a cluster asks for it.
    pub fn name(self) -> &'static str {
        // Its check is spelled otherwise.
        if self == Self::NumaResources {
            "numaresources"
        } else {
            self.as_str()
        }
    }

    /// Whether the cluster asked for it, for people.
    pub fn selection(self, cluster: &ClusterFacts) -> String {
        if cluster.operators.iter().any(|name| name == self.name()) {
            format!(
                "{} is installed with the cluster; the hub does not check whether its hosts suit it.",
                self.title()
            )
        } else {
            format!("{} is not selected for this cluster.", self.title())
        }
    }
}

impl CheckId {
    /// Every id that may be named in a request or setting.
    pub fn parse(word: &str) -> Option<Self> {
        let core = Self::CORE.iter().copied().find(|id| id.as_str() == word);
        let operator = || Operator::ALL.iter().find(|operator| operator.check_id() == word);
        core.or_else(|| operator().map(|operator| Self::Operator(*operator)))
    }

    /// Whether the owner of a cluster may decide to live with a failure.
    pub fn is_ignorable(self) -> bool {
        !matches!(
            self,
            Self::Connected
                | Self::HasInventory
                | Self::InventoryNotFullyTruncated
                | Self::MachineCidrDefined
                | Self::HostnameUnique
                | Self::HostnameValid
        )
    }
}

impl CheckId {
    /// What to do when it fails.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Connected => {
                "Check the host's power and network, or boot it from the discovery image again."
            }
            Self::MediaConnected => "Attach the discovery media again and reboot the host.",
            Self::HasInventory => {
                "Wait for the first inventory report; if none comes, read the agent's log on the host."
            }
            Self::InventoryNotPartiallyTruncated | Self::InventoryNotFullyTruncated => {
                "Check the host's disks and network cards: it reports more than the hub can read."
            }
            Self::HasMinCpuCores | Self::HasMinMemory | Self::HasMinValidDisks => {
                "Give the machine more hardware, or use another host."
            }
            Self::HasCpuCoresForRole | Self::HasMemoryForRole => {
                "Give the host another role, or the machine more hardware."
            }
            Self::HostnameUnique | Self::HostnameValid => "Set another hostname for this host.",
            Self::MachineCidrDefined => "Set the cluster's virtual addresses or its machine network.",
            Self::BelongsToMachineCidr => {
                "Connect the host to the cluster's machine network, or change that network."
            }
            Self::IgnitionDownloadable => {
                "Check that the host reaches the cluster's API and its certificate is right."
            }
            Self::BelongsToMajorityGroup | Self::NetworkLatency | Self::PacketLoss | Self::MtuValid => {
                "Check cabling, VLANs and MTU between the hosts of the cluster."
            }
            Self::ValidPlatformNetworkSettings | Self::CompatibleWithClusterPlatform => {
                "Use hosts of one platform, or change the cluster's platform."
            }
            Self::NtpSynced | Self::TimeSynced => {
                "Set the host's clock, or name a reachable NTP server for the InfraEnv."
            }
            Self::ContainerImagesAvailable => "Check that the host reaches the image registry.",
            Self::HasDefaultRoute => {
                "Give the host a default route, by DHCP or by static network configuration."
            }
            Self::ApiDomainName | Self::ApiIntDomainName | Self::AppsDomainName | Self::ReleaseDomainName => {
                "Add the missing name to the DNS server the host uses."
            }
            Self::DnsWildcardNotConfigured => "Remove the DNS wildcard for the cluster's domain.",
            Self::NonOverlappingSubnets => {
                "Choose networks for the cluster that do not overlap with the host's."
            }
            Self::NoIpCollisions => "Find the second machine that uses the address.",
            Self::NoIscsiNicInMachineCidr => "Keep storage cards out of the machine network.",
            Self::InstallationDiskSpeed => {
                "Choose an installation disk that is large and fast enough, or attach one."
            }
            Self::VsphereDiskUuidEnabled => "Set disk.EnableUUID on the virtual machine.",
            Self::DiskEncryption => "Enable the TPM of the host, or change the cluster's disk encryption.",
            Self::CompatibleAgent => {
                "Wait until the hub has replaced the agent, or boot a newer discovery \
                image."
            }
            Self::NoSkipInstallationDisk | Self::NoSkipMissingDisk => {
                "Correct the host's list of disks to keep."
            }
            Self::Operator(_) => "Choose other operators, or hosts that meet their needs.",
        }
    }
}
