//! How clusters are shown.

use crate::rules::{is_false, is_zero, null_as_default};
use crate::time::{DateMs, GoTime};
#[cfg(feature = "openapi")]
use crate::v2::cluster_setting::{DiskEncryption, LoadBalancer, Platform};
use crate::v2::cluster_setting::{
    DiskEncryptionView, HighAvailabilityMode, IgnitionEndpoint, LoadBalancerView, NetworkType, PlatformView,
    RoleSet,
};
use crate::v2::host::HostView;
use crate::v2::network::{ClusterNetwork, HostNetworkView, MachineNetwork, ServiceNetwork, Vip};
use crate::v2::operator::MonitoredOperatorView;
use muster_vocabulary::{ClusterKind, ClusterStatus, FinalizingStage, LogsState, PreparationStatus, Word};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;
use uuid::Uuid;

/// Left over from images made per cluster; always empty, never null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ImageInfoView {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ssh_public_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub download_url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub generator_version: String,
    pub created_at: GoTime,
    pub expires_at: DateMs,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub static_network_config: String,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub r#type: Cow<'static, str>,
}

/// How far the installation of a cluster is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ClusterProgressView {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub total_percentage: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub preparing_for_installation_stage_percentage: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub installing_stage_percentage: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub finalizing_stage_percentage: i64,
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub finalizing_stage: Word<FinalizingStage>,
    pub finalizing_stage_started_at: DateMs,
    #[serde(default, skip_serializing_if = "is_false")]
    pub finalizing_stage_timed_out: bool,
}

/// How the last preparation of an installation ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PreparationView {
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: Word<PreparationStatus>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub reason: Cow<'static, str>,
}

/// A bundle of operators chosen for a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct BundleView {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    pub optional_operators: Option<Vec<String>>,
}

/// A cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ClusterView {
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Word<ClusterKind>,
    pub id: Uuid,
    #[serde(deserialize_with = "null_as_default")]
    pub href: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub org_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: Word<ClusterStatus>,
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status_info: Cow<'static, str>,
    pub status_updated_at: DateMs,
    /// Absent only in the answer to an import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<ClusterProgressView>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ocp_release_image: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os_stream: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<HighAvailabilityMode>))]
    pub high_availability_mode: Option<Word<HighAvailabilityMode>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub control_plane_count: i64,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub cpu_architecture: Cow<'static, str>,
    pub image_info: ImageInfoView,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Platform>))]
    pub platform: Option<PlatformView>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_dns_domain: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_network_cidr: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cluster_network_host_prefix: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_network_cidr: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_network_cidr: String,
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    pub service_networks: Option<Vec<ServiceNetwork>>,
    pub machine_networks: Option<Vec<MachineNetwork>>,
    /// Null where it is not computed.
    pub host_networks: Option<Vec<HostNetworkView>>,
    pub api_vips: Option<Vec<Vip>>,
    pub ingress_vips: Option<Vec<Vip>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vip_dns_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_dhcp_allocation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<NetworkType>))]
    pub network_type: Option<Word<NetworkType>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ssh_public_key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub http_proxy: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub https_proxy: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_proxy: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub additional_ntp_source: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<RoleSet>))]
    pub hyperthreading: Option<Word<RoleSet>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedulable_masters: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedulable_masters_forced_true: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<DiskEncryption>))]
    pub disk_encryption: Option<DiskEncryptionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<LoadBalancer>))]
    pub load_balancer: Option<LoadBalancerView>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tags: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub pull_secret_set: bool,
    /// Null when they were left out on request.
    pub hosts: Option<Vec<HostView>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub total_host_count: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ready_host_count: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub enabled_host_count: i64,
    pub monitored_operators: Option<Vec<MonitoredOperatorView>>,
    pub operator_bundles: Option<Vec<BundleView>>,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub validations_info: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub connectivity_majority_groups: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ip_collisions: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignored_host_validations: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignored_cluster_validations: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub install_config_overrides: String,
    /// JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub feature_usage: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub imported: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub org_soft_timeouts_enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ams_subscription_id: Option<Uuid>,
    #[serde(rename = "last-installation-preparation")]
    pub last_installation_preparation: PreparationView,
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub logs_info: Word<LogsState>,
    pub controller_logs_started_at: DateMs,
    pub controller_logs_collected_at: DateMs,
    pub install_started_at: DateMs,
    pub install_completed_at: DateMs,
    pub created_at: GoTime,
    pub updated_at: GoTime,
    pub deleted_at: Option<GoTime>,
}

/// How to log in to an installed cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CredentialsView {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub password: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub console_url: String,
}

/// The defaults of a new cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ClusterDefaultsView {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_network_cidr: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cluster_network_host_prefix: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_network_cidr: String,
    #[serde(deserialize_with = "null_as_default")]
    pub ntp_source: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inactive_deletion_hours: i64,
    pub cluster_networks_ipv4: Option<Vec<ClusterNetwork>>,
    pub cluster_networks_dualstack: Option<Vec<ClusterNetwork>>,
    pub service_networks_ipv4: Option<Vec<ServiceNetwork>>,
    pub service_networks_dualstack: Option<Vec<ServiceNetwork>>,
    pub forbidden_hostnames: Option<Vec<String>>,
}
