//! Settings of a cluster that are written and shown in the same words.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the control plane is more than one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum HighAvailabilityMode {
    #[default]
    #[serde(rename = "Full")]
    Full,
    #[serde(rename = "None")]
    None,
}

impl HighAvailabilityMode {
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "Full",
            Self::None => "None",
        }
    }
}

/// A choice of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum RoleSet {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "masters")]
    Masters,
    #[serde(rename = "arbiters")]
    Arbiters,
    #[serde(rename = "workers")]
    Workers,
    #[serde(rename = "masters,arbiters")]
    MastersArbiters,
    #[serde(rename = "masters,workers")]
    MastersWorkers,
    #[serde(rename = "arbiters,workers")]
    ArbitersWorkers,
    #[serde(rename = "masters,arbiters,workers")]
    MastersArbitersWorkers,
    #[serde(rename = "all")]
    All,
}

impl RoleSet {
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Masters => "masters",
            Self::Arbiters => "arbiters",
            Self::Workers => "workers",
            Self::MastersArbiters => "masters,arbiters",
            Self::MastersWorkers => "masters,workers",
            Self::ArbitersWorkers => "arbiters,workers",
            Self::MastersArbitersWorkers => "masters,arbiters,workers",
            Self::All => "all",
        }
    }
}

/// The network plug-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum NetworkType {
    #[serde(rename = "OpenShiftSDN")]
    OpenShiftSDN,
    #[serde(rename = "OVNKubernetes")]
    OVNKubernetes,
    #[serde(rename = "CiscoACI")]
    CiscoACI,
    #[serde(rename = "Cilium")]
    Cilium,
    #[serde(rename = "Calico")]
    Calico,
    #[serde(rename = "None")]
    None,
}

impl NetworkType {
    pub fn word(self) -> &'static str {
        match self {
            Self::OpenShiftSDN => "OpenShiftSDN",
            Self::OVNKubernetes => "OVNKubernetes",
            Self::CiscoACI => "CiscoACI",
            Self::Cilium => "Cilium",
            Self::Calico => "Calico",
            Self::None => "None",
        }
    }
}

/// Processor architecture of a release.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum ReleaseArchitecture {
    #[default]
    #[serde(rename = "x86_64")]
    X86_64,
    #[serde(rename = "aarch64")]
    Aarch64,
    #[serde(rename = "arm64")]
    Arm64,
    #[serde(rename = "ppc64le")]
    Ppc64le,
    #[serde(rename = "s390x")]
    S390x,
    #[serde(rename = "multi")]
    Multi,
}

impl ReleaseArchitecture {
    pub fn word(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::Arm64 => "arm64",
            Self::Ppc64le => "ppc64le",
            Self::S390x => "s390x",
            Self::Multi => "multi",
        }
    }
}

/// Where a cluster runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum PlatformType {
    #[default]
    #[serde(rename = "baremetal")]
    Baremetal,
    #[serde(rename = "nutanix")]
    Nutanix,
    #[serde(rename = "vsphere")]
    Vsphere,
    #[serde(rename = "none")]
    None,
    #[serde(rename = "external")]
    External,
}

impl PlatformType {
    pub fn word(self) -> &'static str {
        match self {
            Self::Baremetal => "baremetal",
            Self::Nutanix => "nutanix",
            Self::Vsphere => "vsphere",
            Self::None => "none",
            Self::External => "external",
        }
    }
}

/// Whether the platform brings its own cloud controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum CloudControllerManager {
    #[default]
    #[serde(rename = "")]
    Unset,
    #[serde(rename = "External")]
    External,
}

impl CloudControllerManager {
    pub fn word(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::External => "External",
        }
    }
}

/// Where the keys of encrypted disks come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum DiskEncryptionMode {
    #[default]
    #[serde(rename = "tpmv2")]
    Tpmv2,
    #[serde(rename = "tang")]
    Tang,
}

impl DiskEncryptionMode {
    pub fn word(self) -> &'static str {
        match self {
            Self::Tpmv2 => "tpmv2",
            Self::Tang => "tang",
        }
    }
}

/// Who balances traffic to the control plane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum LoadBalancerType {
    #[default]
    #[serde(rename = "cluster-managed")]
    ClusterManaged,
    #[serde(rename = "user-managed")]
    UserManaged,
}

impl LoadBalancerType {
    pub fn word(self) -> &'static str {
        match self {
            Self::ClusterManaged => "cluster-managed",
            Self::UserManaged => "user-managed",
        }
    }
}

/// Details of an external platform.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalPlatform {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_controller_manager: Option<CloudControllerManager>,
}

/// Where a cluster runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    pub r#type: PlatformType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatform>,
}

/// Encryption of installation disks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskEncryption {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_on: Option<RoleSet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DiskEncryptionMode>,
    /// JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tang_servers: Option<String>,
}

/// Where hosts added later get their ignition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IgnitionEndpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// Who balances traffic to the control plane.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<LoadBalancerType>,
}

/// An operator to install with the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChooseOperator {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<String>,
}

/// A bundle of operators to install with the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChooseBundle {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional_operators: Option<Vec<String>>,
}
