//! The hardware of an Agent's host.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hardware and network of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// When the agent reported this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_time: Option<Time>,
    /// The name the host has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// IPv4 address of the power controller.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bmc_address: String,
    /// IPv6 address of the power controller.
    #[serde(default, rename = "bmcV6Address", skip_serializing_if = "String::is_empty")]
    pub bmc_v6_address: String,
    /// Memory.
    #[serde(default)]
    pub memory: Memory,
    /// Processors.
    #[serde(default)]
    pub cpu: Cpu,
    /// Network interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<HostInterface>,
    /// Disks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// How the host booted.
    #[serde(default)]
    pub boot: Boot,
    /// Who made the host.
    #[serde(default)]
    pub system_vendor: SystemVendor,
    /// Graphics processors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
}

/// Memory of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Installed bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub physical_bytes: i64,
    /// Bytes the operating system can use.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub usable_bytes: i64,
}

/// Processors of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// How many logical processors there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: i64,
    /// Clock in MHz.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_megahertz: i64,
    /// Features of the processor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model_name: String,
    /// Architecture.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub architecture: String,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostInterface {
    /// IPv4 addresses with the length of their prefix.
    #[serde(rename = "ipV4Addresses")]
    pub ip_v4_addresses: Vec<String>,
    /// IPv6 addresses with the length of their prefix.
    #[serde(rename = "ipV6Addresses")]
    pub ip_v6_addresses: Vec<String>,
    /// Manufacturer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    /// Name on the host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The interface has a carrier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_carrier: bool,
    /// Model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub product: String,
    /// Largest packet (MTU) in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mtu: i64,
    /// Name given by the firmware.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bios_dev_name: String,
    /// Identifier used with DHCP.
    #[serde(default, rename = "clientID", skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    /// MAC address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mac_address: String,
    /// Flags of the interface, such as up.
    pub flags: Vec<String>,
    /// Speed in Mbit/s.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub speed_mbps: i64,
}

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// Names the disk in `installation_disk_id`.
    pub id: String,
    /// Kind of drive, such as HDD or SSD.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub drive_type: String,
    /// Manufacturer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    /// Name on the host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Path on the host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// SCSI host, channel, target and lun.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hctl: String,
    /// Path by the place of the device, below /dev/disk/by-path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by_path: String,
    /// Path by the identity of the device, below /dev/disk/by-id.
    #[serde(default, rename = "byID", skip_serializing_if = "String::is_empty")]
    pub by_id: String,
    /// Model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// World Wide Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub wwn: String,
    /// Serial number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub serial: String,
    /// Bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub size_bytes: i64,
    /// The disk has a boot loader.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bootable: bool,
    /// What the disk reports of its health, as JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub smart: String,
    /// Whether the hub can install to the disk.
    #[serde(default)]
    pub installation_eligibility: InstallationEligibility,
    /// How fast the disk is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_perf: Option<IoPerf>,
}

/// Whether the hub can install to a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationEligibility {
    /// The hub can install to the disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub eligible: bool,
    /// Why the hub cannot install to the disk.
    pub not_eligible_reasons: Vec<String>,
}

/// Speed of a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IoPerf {
    /// How long nearly all of its writes take to be safe, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sync_duration_milliseconds: i64,
}

/// How a host booted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Boot {
    /// uefi or bios.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub current_boot_mode: String,
    /// Interface from which the host booted over the network.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pxe_interface: String,
    /// Kind of device from which the host booted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device_type: String,
}

/// Who made a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemVendor {
    /// Serial number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    /// Model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub product_name: String,
    /// Manufacturer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manufacturer: String,
    /// The host is a virtual machine.
    #[serde(default, rename = "virtual", skip_serializing_if = "std::ops::Not::not")]
    pub is_virtual: bool,
}

/// A graphics processor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    /// Address on its bus.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Id of the device.
    #[serde(default, rename = "deviceID", skip_serializing_if = "String::is_empty")]
    pub device_id: String,
    /// Name of the device.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Manufacturer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    /// Id of the manufacturer.
    #[serde(default, rename = "vendorID", skip_serializing_if = "String::is_empty")]
    pub vendor_id: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}
