//! What people ask of clusters: create, update, import, and which to list.

use crate::rules::{CommaList, loose_bool, words};
use crate::secret::Secret;
use crate::v2::cluster_setting::{
    ChooseBundle, ChooseOperator, DiskEncryption, HighAvailabilityMode, IgnitionEndpoint, LoadBalancer,
    NetworkType, Platform, ReleaseArchitecture, RoleSet,
};
use crate::v2::network::{ClusterNetwork, MachineNetwork, ServiceNetwork, Vip};
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Ask for a new cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateCluster {
    pub name: String,
    pub openshift_version: String,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pull_secret: Secret,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_availability_mode: Option<HighAvailabilityMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ocp_release_image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_dns_domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_cidr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_host_prefix: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_network_cidr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_networks: Option<Vec<ServiceNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_networks: Option<Vec<MachineNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vips: Option<Vec<Vip>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_vips: Option<Vec<Vip>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_dhcp_allocation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_public_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub olm_operators: Option<Vec<ChooseOperator>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_bundles: Option<Vec<ChooseBundle>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<RoleSet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedulable_masters: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_encryption: Option<DiskEncryption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_stream: Option<String>,
}

/// Change a cluster. Absent and null leave a field as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateCluster {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub pull_secret: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_network_cidr: Option<String>,
    /// Only for clusters that hosts are added to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vip_dns_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_dns_domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_cidr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_host_prefix: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_network_cidr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_networks: Option<Vec<ServiceNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_networks: Option<Vec<MachineNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vips: Option<Vec<Vip>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_vips: Option<Vec<Vip>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_dhcp_allocation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_public_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub olm_operators: Option<Vec<ChooseOperator>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_bundles: Option<Vec<ChooseBundle>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<RoleSet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedulable_masters: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_encryption: Option<DiskEncryption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_stream: Option<String>,
}

/// Import a cluster that was installed elsewhere, to add hosts to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ImportCluster {
    pub name: String,
    pub api_vip_dnsname: String,
    pub openshift_cluster_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_version: Option<String>,
}

/// Which clusters to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ClustersQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_cluster_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Vec<String>>, style = Form, explode = false))]
    pub ams_subscription_ids: Option<CommaList<String>>,
    #[serde(deserialize_with = "loose_bool", skip_serializing_if = "Option::is_none")]
    pub with_hosts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// How much of a cluster to show.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ClusterQuery {
    #[serde(
        rename = "exclude-hosts",
        deserialize_with = "loose_bool",
        skip_serializing_if = "Option::is_none"
    )]
    pub exclude_hosts: Option<bool>,
}

words! {
    /// Files of a cluster.
    pub enum ClusterFile {
        BootstrapIgn = "bootstrap.ign",
        MasterIgn = "master.ign",
        WorkerIgn = "worker.ign",
        ArbiterIgn = "arbiter.ign",
        MetadataJson = "metadata.json",
        InstallConfigYaml = "install-config.yaml",
        CustomManifestsJson = "custom_manifests.json",
        CustomManifestsYaml = "custom_manifests.yaml",
    }
}

/// Which file of a cluster to download.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ClusterFilesQuery {
    pub file_name: ClusterFile,
}

words! {
    /// Credentials of a cluster.
    pub enum CredentialFile {
        KubeadminPassword = "kubeadmin-password",
        Kubeconfig = "kubeconfig",
        KubeconfigNoingress = "kubeconfig-noingress",
    }
}

/// Which credentials of a cluster to download.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct CredentialFilesQuery {
    pub file_name: CredentialFile,
}
