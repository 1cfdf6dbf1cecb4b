//! InfraEnvs on the wire: how one is asked for, changed, listed and shown.

use crate::rules::{is_false, null_as_default, words};
use crate::secret::Secret;
use crate::time::{DateMs, GoTime};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

words! {
    /// What kind of discovery image an InfraEnv hands out.
    #[derive(Default)]
    pub enum ImageType {
        #[default]
        FullIso = "full-iso",
        MinimalIso = "minimal-iso",
        DisconnectedIso = "disconnected-iso",
    }
}

words! {
    /// Processor architecture of the hosts.
    #[derive(Default)]
    pub enum CpuArchitecture {
        #[default]
        X86_64 = "x86_64",
        Aarch64 = "aarch64",
        Arm64 = "arm64",
        Ppc64le = "ppc64le",
        S390x = "s390x",
    }
}

words! {
    /// What to do with a kernel argument of the discovery image.
    #[derive(Default)]
    pub enum KernelArgumentOperation {
        #[default]
        Append = "append",
        Replace = "replace",
        Delete = "delete",
    }
}

/// Proxies for everything that a discovered host downloads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
}

/// Ties a MAC address to the interface name used in `network_yaml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MacInterface {
    pub mac_address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_nic_name: Option<String>,
}

/// Static network settings of one host, found by its MAC addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StaticNetworkConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_yaml: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_interface_map: Option<Vec<MacInterface>>,
}

/// One kernel argument of the discovery image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct KernelArgument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<KernelArgumentOperation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Ask for a new InfraEnv.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateInfraEnv {
    pub name: String,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pull_secret: Secret,
    /// The hub binds hosts to this cluster as soon as they register.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<CpuArchitecture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_stream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_type: Option<ImageType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_authorized_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_sources: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_network_config: Option<Vec<StaticNetworkConfig>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_config_override: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_trust_bundle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_discovery_delay_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
}

/// Change an InfraEnv. Absent and null leave a field as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateInfraEnv {
    /// Empty leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub pull_secret: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_stream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_type: Option<ImageType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_authorized_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_sources: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    /// An empty list clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_network_config: Option<Vec<StaticNetworkConfig>>,
    /// An empty list clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_config_override: Option<String>,
    /// Empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_trust_bundle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_discovery_delay_seconds: Option<i64>,
    /// Empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
}

/// An InfraEnv.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct InfraEnvView {
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Cow<'static, str>,
    pub id: Uuid,
    #[serde(deserialize_with = "null_as_default")]
    pub href: String,
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub r#type: Cow<'static, str>,
    /// Absent unless the hub binds hosts as they register.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub cpu_architecture: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os_stream: String,
    /// Always sent by the hub, empty when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub additional_ntp_sources: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ssh_authorized_key: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub pull_secret_set: bool,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub static_network_config: String,
    /// JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignition_config_override: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub additional_trust_bundle: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_discovery_delay_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub download_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub generator_version: String,
    pub expires_at: DateMs,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub org_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    pub created_at: GoTime,
    pub updated_at: GoTime,
}

/// Which InfraEnvs to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct InfraEnvsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A link to a file and the time until which it works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PresignedUrlView {
    #[serde(deserialize_with = "null_as_default")]
    pub url: String,
    pub expires_at: DateMs,
}

words! {
    /// Files an InfraEnv offers for download.
    #[derive(Default)]
    pub enum InfraEnvFile {
        #[default]
        DiscoveryIgn = "discovery.ign",
        IpxeScript = "ipxe-script",
        StaticNetworkConfig = "static-network-config",
    }
}

words! {
    /// Which iPXE script to render.
    pub enum IpxeScriptType {
        DiscoveryImageAlways = "discovery-image-always",
        BootOrderControl = "boot-order-control",
    }
}

/// Which file of an InfraEnv to download.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct InfraEnvFilesQuery {
    pub file_name: InfraEnvFile,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipxe_script_type: Option<IpxeScriptType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery_iso_type: Option<ImageType>,
}
