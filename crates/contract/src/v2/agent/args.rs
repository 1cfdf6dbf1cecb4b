//! Arguments of steps; each is JSON in a string inside a step's `args`.

use crate::rules::{is_false, is_zero, null_as_default};
use crate::secret::Secret;
use muster_vocabulary::{InstallRole, VipType, Word};
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::ToSchema;
use uuid::Uuid;

/// A host whose addresses are to be tried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct ConnectivityCheckHost {
    pub host_id: Uuid,
    #[serde(deserialize_with = "null_as_default")]
    pub nics: Vec<ConnectivityCheckNic>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct ConnectivityCheckNic {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac: String,
    #[serde(deserialize_with = "null_as_default")]
    pub ip_addresses: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DhcpLeaseArgs {
    #[serde(deserialize_with = "null_as_default")]
    pub interface: String,
    #[serde(deserialize_with = "null_as_default")]
    pub api_vip_mac: String,
    #[serde(deserialize_with = "null_as_default")]
    pub ingress_vip_mac: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_vip_lease: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ingress_vip_lease: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct ApiVipCheckArgs {
    #[serde(deserialize_with = "null_as_default")]
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub ignition_endpoint_token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_headers: Option<Vec<HeaderArg>>,
    #[serde(skip_serializing_if = "is_false")]
    pub verify_cidr: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct HeaderArg {
    #[serde(deserialize_with = "null_as_default")]
    pub key: String,
    #[serde(deserialize_with = "null_as_default")]
    pub value: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct TangCheckArgs {
    /// JSON in a string.
    #[serde(deserialize_with = "null_as_default")]
    pub tang_servers: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct NtpArgs {
    #[serde(deserialize_with = "null_as_default")]
    pub ntp_source: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DomainResolutionArgs {
    #[serde(deserialize_with = "null_as_default")]
    pub domains: Vec<DomainArg>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DomainArg {
    #[serde(deserialize_with = "null_as_default")]
    pub domain_name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DiskSpeedArgs {
    #[serde(deserialize_with = "null_as_default")]
    pub path: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct ImageAvailabilityArgs {
    #[serde(deserialize_with = "null_as_default")]
    pub images: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub timeout: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct VipArg {
    #[serde(deserialize_with = "null_as_default")]
    pub vip: String,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub vip_type: Word<VipType>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct LogsGatherArgs {
    pub cluster_id: Uuid,
    pub infra_env_id: Uuid,
    pub host_id: Uuid,
    pub bootstrap: bool,
    pub installer_gather: bool,
    pub master_ips: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct UpgradeAgentArgs {
    #[serde(deserialize_with = "null_as_default")]
    pub agent_image: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct BootArtifactsArgs {
    #[serde(deserialize_with = "null_as_default")]
    pub kernel_url: String,
    #[serde(deserialize_with = "null_as_default")]
    pub rootfs_url: String,
    #[serde(deserialize_with = "null_as_default")]
    pub initrd_url: String,
    #[serde(deserialize_with = "null_as_default")]
    pub host_fs_mount_dir: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct RebootForReclaimArgs {
    #[serde(deserialize_with = "null_as_default")]
    pub host_fs_mount_dir: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct InstallProxy {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub http_proxy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub https_proxy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub no_proxy: String,
}

/// How to install the system to the disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct InstallArgs {
    pub cluster_id: Uuid,
    pub infra_env_id: Uuid,
    pub host_id: Uuid,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: Word<InstallRole>,
    #[serde(deserialize_with = "null_as_default")]
    pub boot_device: String,
    #[serde(deserialize_with = "null_as_default")]
    pub controller_image: String,
    #[serde(deserialize_with = "null_as_default")]
    pub installer_image: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub control_plane_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<InstallProxy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_cvo: Option<bool>,
    pub disks_to_format: Option<Vec<String>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub must_gather_image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mco_image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    pub service_ips: Option<Vec<String>>,
    /// JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    #[serde(skip_serializing_if = "is_false")]
    pub skip_installation_disk_cleanup: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub enable_skip_mco_reboot: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub notify_num_reboots: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub coreos_image: String,
}
