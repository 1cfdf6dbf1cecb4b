//! The public names of the host checks; clients look findings up by them, so they never change.

use super::facts::ClusterFacts;

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
    pub fn standing(self, cluster: &ClusterFacts) -> String {
        if cluster.operators.iter().any(|name| name == self.name()) {
            format!(
                "{} is installed with the cluster; whether its hosts suit it is not checked.",
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
