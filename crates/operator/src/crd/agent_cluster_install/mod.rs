//! `AgentClusterInstall`: how a cluster is installed on Agents, and how far that is.

mod network;
mod status;

pub use network::*;
pub use status::*;

use super::infra_env::Proxy;
use super::reference::{FullRef, LocalRef, NameRef};
use super::schema::words_of;
use kube::CustomResource;
use muster_vocabulary::{DiskEncryptionMode, RoleSet, Word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired cluster.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.hive.openshift.io",
    version = "v1beta1",
    kind = "AgentClusterInstall",
    plural = "agentclusterinstalls",
    shortname = "aci",
    namespaced,
    status = "AgentClusterInstallStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "AgentClusterInstall is the installation of a cluster on Agents.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        description = "The ClusterDeployment this belongs to",
        json_path = ".spec.clusterDeploymentRef.name"
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        description = "The hub's word for the state of the cluster",
        json_path = ".status.debugInfo.state"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AgentClusterInstallSpec {
    /// The ClusterDeployment this belongs to, in the same namespace.
    pub cluster_deployment_ref: LocalRef,
    /// The ClusterImageSet with the release to install. Needed unless the cluster is installed already. You cannot
    /// change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_set_ref: Option<NameRef>,
    /// The networks of the cluster.
    pub networking: Networking,
    /// How many hosts of each role the installation waits for.
    pub provision_requirements: ProvisionRequirements,
    /// Public SSH key that may log in to the cluster's hosts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ssh_public_key: String,
    /// NTP servers of the cluster's hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ntp_sources: Vec<String>,
    /// Settings of the control plane's hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<MachinePool>,
    /// Settings of the arbiter hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arbiter: Option<MachinePool>,
    /// Settings of the workers; the pool's name is `worker`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compute: Vec<MachinePool>,
    /// Virtual address of the API. Deprecated: use `apiVIPs`.
    #[serde(default, rename = "apiVIP", skip_serializing_if = "String::is_empty")]
    pub api_vip: String,
    /// Virtual addresses of the API, one per address family.
    #[serde(default, rename = "apiVIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub api_vips: Vec<String>,
    /// Virtual address of the ingress. Deprecated: use `ingressVIPs`.
    #[serde(default, rename = "ingressVIP", skip_serializing_if = "String::is_empty")]
    pub ingress_vip: String,
    /// Virtual addresses of the ingress, one per address family.
    #[serde(default, rename = "ingressVIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub ingress_vips: Vec<String>,
    /// Holds the installation, although everything is ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold_installation: bool,
    /// Where hosts that join the cluster fetch their ignition, when not from the cluster itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    /// Encryption of installed disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_encryption: Option<DiskEncryption>,
    /// Proxies of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// The platform the cluster runs on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["", "BareMetal", "None", "VSphere", "Nutanix", "External"]))]
    pub platform_type: String,
    /// The external platform, when `platformType` is External.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatform>,
    /// Workloads may run on the control plane's hosts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masters_schedulable: bool,
    /// ConfigMap with manifests to install. Deprecated: use `manifestsConfigMapRefs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests_config_map_ref: Option<LocalRef>,
    /// ConfigMaps with manifests to install; no file name may occur twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests_config_map_refs: Vec<NameRef>,
    /// ConfigMap with `registries.conf` and, if needed, `ca-bundle.crt`: registries to use instead of the public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror_registry_ref: Option<FullRef>,
    /// Who balances the load of API and ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    /// Ids and credentials of the installed cluster. Written by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_metadata: Option<ClusterMetadata>,
}

/// How many hosts of each role the installation waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionRequirements {
    /// Hosts of the control plane.
    pub control_plane_agents: i64,
    /// Workers.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub worker_agents: i64,
    /// Arbiters.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub arbiter_agents: i64,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Settings of hosts of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachinePool {
    /// Name of the pool.
    pub name: String,
    /// Whether the hosts use hyperthreading.
    #[serde(default = "enabled", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["", "Enabled", "Disabled"]))]
    pub hyperthreading: String,
}

fn enabled() -> String {
    "Enabled".into()
}

/// Where hosts that join the cluster fetch their ignition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IgnitionEndpoint {
    /// Address without its last part, which is the name of the pool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Secret whose key `tls.crt` holds the certificate authority of the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate_reference: Option<FullRef>,
}

/// Encryption of installed disks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskEncryption {
    /// The roles whose disks are encrypted.
    #[serde(default = "none", skip_serializing_if = "Word::is_empty")]
    #[schemars(with = "String", extend("enum" = ENCRYPTED.map(RoleSet::word)))]
    pub enable_on: Word<RoleSet>,
    /// Where the key comes from.
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[schemars(with = "String", extend("enum" = words_of::<DiskEncryptionMode>()))]
    pub mode: Word<DiskEncryptionMode>,
    /// The tang servers, as a JSON list of objects with `url` and `thumbprint`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tang_servers: String,
}

/// In the order in which others publish them.
const ENCRYPTED: [RoleSet; 9] = [
    RoleSet::None,
    RoleSet::All,
    RoleSet::Masters,
    RoleSet::Arbiters,
    RoleSet::Workers,
    RoleSet::MastersArbiters,
    RoleSet::MastersWorkers,
    RoleSet::ArbitersWorkers,
    RoleSet::MastersArbitersWorkers,
];

fn none() -> Word<RoleSet> {
    RoleSet::None.into()
}

/// An external platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalPlatform {
    /// Name of the platform. Once it is set you cannot change it.
    #[serde(default = "unknown", skip_serializing_if = "String::is_empty")]
    pub platform_name: String,
    /// `External` when the platform brings its own cloud controller manager.
    #[serde(default)]
    #[schemars(extend("enum" = ["", "External"]))]
    pub cloud_controller_manager: String,
}

fn unknown() -> String {
    "Unknown".into()
}

/// Who balances the load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadBalancer {
    /// The cluster itself, or something outside it.
    #[serde(
        rename = "type",
        default = "cluster_managed",
        skip_serializing_if = "String::is_empty"
    )]
    #[schemars(extend("enum" = ["ClusterManaged", "UserManaged"]))]
    pub type_: String,
}

fn cluster_managed() -> String {
    "ClusterManaged".into()
}

/// Ids and credentials of an installed cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterMetadata {
    /// The cluster's own id.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// The hub's id of the cluster.
    #[serde(rename = "infraID")]
    pub infra_id: String,
    /// Secret with the administrator's `kubeconfig`.
    pub admin_kubeconfig_secret_ref: LocalRef,
    /// Secret with the administrator's `username` and `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_password_secret_ref: Option<LocalRef>,
    /// Secret with the installer's `metadata.json`.
    #[serde(
        default,
        rename = "metadataJSONSecretRef",
        skip_serializing_if = "Option::is_none"
    )]
    pub metadata_json_secret_ref: Option<LocalRef>,
    /// Facts of the platform. Muster does not use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "super::schema::Anything")]
    pub platform: Option<serde_json::Value>,
}

/// Types of conditions.
pub mod condition {
    pub const SPEC_SYNCED: &str = "SpecSynced";
    pub const VALIDATED: &str = "Validated";
    pub const REQUIREMENTS_MET: &str = "RequirementsMet";
    pub const COMPLETED: &str = "Completed";
    pub const FAILED: &str = "Failed";
    pub const STOPPED: &str = "Stopped";
    pub const LAST_PREPARATION_FAILED: &str = "LastInstallationPreparationFailed";
}

/// Reasons of conditions.
pub mod reason {
    pub const SYNC_OK: &str = "SyncOK";
    pub const BACKEND_ERROR: &str = "BackendError";
    pub const INPUT_ERROR: &str = "InputError";
    pub const NOT_READY: &str = "ClusterNotReady";
    pub const READY: &str = "ClusterIsReady";
    pub const ALREADY_INSTALLING: &str = "ClusterAlreadyInstalling";
    pub const INSTALLATION_STOPPED: &str = "ClusterInstallationStopped";
    pub const INSUFFICIENT_AGENTS: &str = "InsufficientAgents";
    pub const UNSYNCED_AGENTS: &str = "UnsyncedAgents";
    pub const UNAPPROVED_AGENTS: &str = "UnapprovedAgents";
    pub const VALIDATIONS_PASSING: &str = "ValidationsPassing";
    pub const VALIDATIONS_FAILING: &str = "ValidationsFailing";
    pub const VALIDATIONS_USER_PENDING: &str = "ValidationsUserPending";
    pub const VALIDATIONS_UNKNOWN: &str = "ValidationsUnknown";
    pub const NOT_STARTED: &str = "InstallationNotStarted";
    pub const ON_HOLD: &str = "InstallationOnHold";
    pub const IN_PROGRESS: &str = "InstallationInProgress";
    pub const COMPLETED: &str = "InstallationCompleted";
    pub const FAILED: &str = "InstallationFailed";
    pub const NOT_FAILED: &str = "InstallationNotFailed";
    pub const NOT_STOPPED: &str = "InstallationNotStopped";
    pub const CANCELLED: &str = "InstallationCancelled";
    pub const NOT_AVAILABLE: &str = "NotAvailable";
    pub const UNKNOWN_STATUS: &str = "UnknownStatus";
    pub const PREPARATION_NOT_FAILING: &str = "There is no failing prior preparation attempt";
    pub const PREPARATION_FAILED: &str = "The last installation preparation failed";
    pub const PREPARATION_NEVER: &str = "Cluster preparation has never been performed for this cluster";
}
