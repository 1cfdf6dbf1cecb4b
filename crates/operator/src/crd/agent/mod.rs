//! `Agent`: a discovered host. Its name is the host's id, its namespace that of its InfraEnv.

mod inventory;
mod status;

pub use inventory::*;
pub use status::*;

use super::reference::{ClusterRef, FullRef};
use kube::CustomResource;
use muster_vocabulary::{HostStatus, Role, Word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What people want of a host.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agent-install.openshift.io",
    version = "v1beta1",
    kind = "Agent",
    plural = "agents",
    namespaced,
    status = "AgentStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Agent is a host that booted the image of an InfraEnv.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        description = "The ClusterDeployment the host is lent to",
        json_path = ".spec.clusterDeploymentName.name"
    ),
    printcolumn(
        name = "Approved",
        type_ = "boolean",
        description = "Whether the hub may install the host",
        json_path = ".spec.approved"
    ),
    printcolumn(
        name = "Role",
        type_ = "string",
        description = "The host's role in its cluster",
        json_path = ".status.role"
    ),
    printcolumn(
        name = "Stage",
        type_ = "string",
        description = "How far the installation is",
        json_path = ".status.progress.currentStage"
    ),
    printcolumn(
        name = "Hostname",
        type_ = "string",
        priority = 1,
        description = "The name the host has",
        json_path = ".status.inventory.hostname"
    ),
    printcolumn(
        name = "Requested Hostname",
        type_ = "string",
        priority = 1,
        description = "The name that the hub gives the host",
        json_path = ".spec.hostname"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AgentSpec {
    /// The ClusterDeployment the host is lent to, in any namespace. Leave it out to keep or take the host back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_deployment_name: Option<ClusterRef>,
    /// The host's role: auto-assign, master, worker or arbiter. Empty leaves the choice to the hub.
    #[schemars(with = "String")]
    pub role: Word<Role>,
    /// The name that the hub gives the host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// Name of the machine config pool the host joins; the last part of its ignition address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_config_pool: String,
    /// Approves the host: the hub may install it, and machines may take it.
    pub approved: bool,
    /// Id of the disk to install to. Cannot be combined with `installation_disk_path`.
    #[serde(
        default,
        rename = "installation_disk_id",
        skip_serializing_if = "String::is_empty"
    )]
    pub installation_disk_id: String,
    /// Path of the disk to install to. Cannot be combined with `installation_disk_id`.
    #[serde(
        default,
        rename = "installation_disk_path",
        skip_serializing_if = "String::is_empty"
    )]
    pub installation_disk_path: String,
    /// Arguments, as a JSON list of strings, for the program that writes the system to disk.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    /// Ignition, as JSON, that is added to what the host installs with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignition_config_overrides: String,
    /// Secret whose key `ignition-token` the host sends to the ignition endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint_token_reference: Option<FullRef>,
    /// HTTP headers that the host sends to the ignition endpoint.
    #[serde(
        default,
        rename = "ignitionEndpointHTTPHeaders",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub ignition_endpoint_http_headers: BTreeMap<String, String>,
    /// Labels of the Node the host becomes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// Secret in the same namespace with `address`, `username`, `password` and, if wanted, `certificateVerification` of
    /// the host's power controller, for fencing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fencing_credentials_secret_ref: String,
}

/// Types of conditions.
pub mod condition {
    pub const SPEC_SYNCED: &str = "SpecSynced";
    pub const CONNECTED: &str = "Connected";
    pub const REQUIREMENTS_MET: &str = "RequirementsMet";
    pub const VALIDATED: &str = "Validated";
    pub const INSTALLED: &str = "Installed";
    pub const BOUND: &str = "Bound";
    /// Only present after a failure to clean up.
    pub const CLEANUP: &str = "Cleanup";
}

/// Reasons of conditions.
pub mod reason {
    pub const SYNC_OK: &str = "SyncOK";
    pub const BACKEND_ERROR: &str = "BackendError";
    pub const INPUT_ERROR: &str = "InputError";
    pub const CONNECTED: &str = "AgentIsConnected";
    pub const DISCONNECTED: &str = "AgentIsDisconnected";
    pub const READY: &str = "AgentIsReady";
    pub const NOT_READY: &str = "AgentNotReady";
    pub const NOT_APPROVED: &str = "AgentIsNotApproved";
    pub const ALREADY_INSTALLING: &str = "AgentAlreadyInstalling";
    pub const INSTALLATION_STOPPED: &str = "AgentInstallationStopped";
    pub const VALIDATIONS_PASSING: &str = "ValidationsPassing";
    pub const VALIDATIONS_FAILING: &str = "ValidationsFailing";
    pub const VALIDATIONS_USER_PENDING: &str = "ValidationsUserPending";
    pub const VALIDATIONS_UNKNOWN: &str = "ValidationsUnknown";
    pub const NOT_STARTED: &str = "InstallationNotStarted";
    pub const IN_PROGRESS: &str = "InstallationInProgress";
    pub const COMPLETED: &str = "InstallationCompleted";
    pub const FAILED: &str = "InstallationFailed";
    pub const BOUND: &str = "Bound";
    pub const UNBOUND: &str = "Unbound";
    pub const BINDING: &str = "Binding";
    pub const UNBINDING: &str = "Unbinding";
    pub const UNBINDING_PENDING_USER_ACTION: &str = "UnbindingPendingUserAction";
    pub const NOT_AVAILABLE: &str = "NotAvailable";
    pub const UNKNOWN_STATUS: &str = "UnknownStatus";
    pub const CLEANUP_FAILED: &str = "CleanupFailed";
}

impl Agent {
    /// The hub's word for the state of the host; empty while the operator does not know it.
    pub fn state(&self) -> Word<HostStatus> {
        let status = self.status.as_ref();
        status.map_or_else(Word::default, |status| Word::read(&status.debug_info.state))
    }
}
