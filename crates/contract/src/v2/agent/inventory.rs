//! What an agent finds in its machine.

use crate::rules::{is_false, is_zero, is_zero_float, null_as_default, short_float};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// Everything an agent finds in its machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Inventory {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bmc_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bmc_v6address: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tpm_version: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_vendor: Option<SystemVendor>,
    #[serde(deserialize_with = "null_as_default")]
    pub disks: Vec<Disk>,
    #[serde(deserialize_with = "null_as_default")]
    pub interfaces: Vec<Interface>,
    #[serde(deserialize_with = "null_as_default")]
    pub gpus: Vec<Gpu>,
    #[serde(deserialize_with = "null_as_default")]
    pub routes: Vec<Route>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
}

/// How the machine was started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Boot {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub current_boot_mode: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pxe_interface: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command_line: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub secure_boot_state: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub device_type: Cow<'static, str>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Cpu {
    #[serde(skip_serializing_if = "is_zero")]
    pub count: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub architecture: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub model_name: Cow<'static, str>,
    #[serde(skip_serializing_if = "is_zero_float", serialize_with = "short_float")]
    pub frequency: f64,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub flags: Vec<Cow<'static, str>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Memory {
    #[serde(skip_serializing_if = "is_zero")]
    pub physical_bytes: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub usable_bytes: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub physical_bytes_method: Cow<'static, str>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct SystemVendor {
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub manufacturer: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub product_name: Cow<'static, str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    #[serde(skip_serializing_if = "is_false")]
    pub r#virtual: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Disk {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by_path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub model: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub vendor: Cow<'static, str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hctl: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub size_bytes: i64,
    #[serde(skip_serializing_if = "is_false")]
    pub bootable: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub removable: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub has_uuid: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub drive_type: Cow<'static, str>,
    #[serde(skip_serializing_if = "is_false")]
    pub is_installation_media: bool,
    pub installation_eligibility: DiskEligibility,
    /// JSON in a string.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub smart: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_perf: Option<IoPerf>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub holders: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iscsi: Option<Iscsi>,
    #[serde(rename = "partitionTypes", skip_serializing_if = "String::is_empty")]
    pub partition_types: String,
}

/// Whether a disk can be installed to, as far as the agent can tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DiskEligibility {
    #[serde(skip_serializing_if = "is_false")]
    pub eligible: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub not_eligible_reasons: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct IoPerf {
    #[serde(skip_serializing_if = "is_zero")]
    pub sync_duration: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Iscsi {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_ip_address: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Interface {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac_address: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub r#type: Cow<'static, str>,
    #[serde(skip_serializing_if = "is_zero")]
    pub mtu: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub speed_mbps: i64,
    #[serde(skip_serializing_if = "is_false")]
    pub has_carrier: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub ipv4_addresses: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub ipv6_addresses: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub flags: Vec<Cow<'static, str>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub vendor: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub product: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub biosdevname: Cow<'static, str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_id: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Gpu {
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub vendor: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub vendor_id: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub device_id: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Cow<'static, str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
}

/// Destination and interface are always sent: clients index them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Route {
    #[serde(deserialize_with = "null_as_default")]
    pub interface: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway: String,
    #[serde(deserialize_with = "null_as_default")]
    pub destination: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub family: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub metric: i64,
}

/// What was left out because the inventory was too large.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct Truncation {
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub r#type: Cow<'static, str>,
    #[serde(deserialize_with = "null_as_default")]
    pub reasons: Vec<String>,
}
