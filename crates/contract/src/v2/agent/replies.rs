//! What agents answer to steps; each is JSON in the string `output` of a reply.

use crate::rules::{is_false, is_zero, is_zero_float, null_as_default, short_float};
use muster_vocabulary::{NtpSourceState, ReplyResult, VipType, VipVerification, Word};
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct ConnectivityReply {
    #[serde(deserialize_with = "null_as_default")]
    pub remote_hosts: Vec<RemoteHost>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct RemoteHost {
    pub host_id: Uuid,
    #[serde(deserialize_with = "null_as_default")]
    pub l2_connectivity: Vec<L2Connectivity>,
    #[serde(deserialize_with = "null_as_default")]
    pub l3_connectivity: Vec<L3Connectivity>,
    #[serde(deserialize_with = "null_as_default")]
    pub mtu_report: Vec<MtuReport>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct L2Connectivity {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outgoing_nic: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outgoing_ip_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_ip_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_mac: String,
    #[serde(skip_serializing_if = "is_false")]
    pub successful: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct L3Connectivity {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outgoing_nic: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_ip_address: String,
    #[serde(skip_serializing_if = "is_false")]
    pub successful: bool,
    #[serde(skip_serializing_if = "is_zero_float", serialize_with = "short_float")]
    pub average_rtt_ms: f64,
    #[serde(skip_serializing_if = "is_zero_float", serialize_with = "short_float")]
    pub packet_loss_percentage: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct MtuReport {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outgoing_nic: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_ip_address: String,
    #[serde(skip_serializing_if = "is_false")]
    pub mtu_successful: bool,
}

/// The reply to free-network-addresses is a list of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct FreeNetworkAddresses {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network: String,
    #[serde(deserialize_with = "null_as_default")]
    pub free_addresses: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DhcpLeaseReply {
    #[serde(deserialize_with = "null_as_default")]
    pub api_vip_address: String,
    #[serde(deserialize_with = "null_as_default")]
    pub ingress_vip_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_vip_lease: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ingress_vip_lease: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct ApiVipCheckReply {
    #[serde(skip_serializing_if = "is_false")]
    pub is_success: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub download_error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignition: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct TangCheckReply {
    #[serde(skip_serializing_if = "is_false")]
    pub is_success: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub tang_server_response: Vec<TangServerReply>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct TangServerReply {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tang_url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub payload: String,
    #[serde(deserialize_with = "null_as_default")]
    pub signatures: Vec<TangSignature>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct TangSignature {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub protected: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub signature: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct NtpReply {
    #[serde(deserialize_with = "null_as_default")]
    pub ntp_sources: Vec<NtpSource>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct NtpSource {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_name: String,
    #[serde(skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub source_state: Word<NtpSourceState>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DomainResolutionReply {
    #[serde(deserialize_with = "null_as_default")]
    pub resolutions: Vec<DomainResolution>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DomainResolution {
    #[serde(deserialize_with = "null_as_default")]
    pub domain_name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub ipv4_addresses: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub ipv6_addresses: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub cnames: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DiskSpeedReply {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub io_sync_duration: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct ImageAvailabilityReply {
    #[serde(deserialize_with = "null_as_default")]
    pub images: Vec<ImageAvailability>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct ImageAvailability {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub result: Word<ReplyResult>,
    #[serde(skip_serializing_if = "is_zero_float", serialize_with = "short_float")]
    pub size_bytes: f64,
    #[serde(skip_serializing_if = "is_zero_float", serialize_with = "short_float")]
    pub time: f64,
    #[serde(skip_serializing_if = "is_zero_float", serialize_with = "short_float")]
    pub download_rate: f64,
}

/// The reply to verify-vips is a list of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct VerifiedVip {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vip: String,
    #[serde(skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub vip_type: Word<VipType>,
    #[serde(skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub verification: Word<VipVerification>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct UpgradeAgentReply {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent_image: String,
    #[serde(skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub result: Word<ReplyResult>,
}

/// The measured speed of a disk; the value of each entry in the host's `disks_info`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DiskInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_speed: Option<DiskSpeed>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(default)]
pub struct DiskSpeed {
    #[serde(skip_serializing_if = "is_false")]
    pub tested: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub exit_code: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub speed_ms: i64,
}
