//! What installers and controllers report while a host or cluster installs.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Stages of a host's installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum HostStage {
    #[serde(rename = "Starting installation")]
    StartingInstallation,
    #[serde(rename = "Waiting for control plane")]
    WaitingForControlPlane,
    #[serde(rename = "Waiting for bootkube")]
    WaitingForBootkube,
    #[serde(rename = "Waiting for controller")]
    WaitingForController,
    #[serde(rename = "Installing")]
    Installing,
    #[serde(rename = "Writing image to disk")]
    WritingImageToDisk,
    #[serde(rename = "Copying registry data to disk")]
    CopyingRegistryDataToDisk,
    #[serde(rename = "Rebooting")]
    Rebooting,
    #[serde(rename = "Waiting for ignition")]
    WaitingForIgnition,
    #[serde(rename = "Configuring")]
    Configuring,
    #[serde(rename = "Joined")]
    Joined,
    #[serde(rename = "Done")]
    Done,
    #[serde(rename = "Failed")]
    Failed,
}

impl HostStage {
    pub fn word(self) -> &'static str {
        match self {
            Self::StartingInstallation => "Starting installation",
            Self::WaitingForControlPlane => "Waiting for control plane",
            Self::WaitingForBootkube => "Waiting for bootkube",
            Self::WaitingForController => "Waiting for controller",
            Self::Installing => "Installing",
            Self::WritingImageToDisk => "Writing image to disk",
            Self::CopyingRegistryDataToDisk => "Copying registry data to disk",
            Self::Rebooting => "Rebooting",
            Self::WaitingForIgnition => "Waiting for ignition",
            Self::Configuring => "Configuring",
            Self::Joined => "Joined",
            Self::Done => "Done",
            Self::Failed => "Failed",
        }
    }
}

/// Stages of a cluster's last phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum FinalizingStage {
    #[serde(rename = "Waiting for cluster operators")]
    WaitingForClusterOperators,
    #[serde(rename = "Adding router ca")]
    AddingRouterCa,
    #[serde(rename = "Applying olm manifests")]
    ApplyingOlmManifests,
    #[serde(rename = "Waiting for olm operators csv initialization")]
    WaitingForOlmOperatorsCsvInitialization,
    #[serde(rename = "Waiting for olm operators csv")]
    WaitingForOlmOperatorsCsv,
    #[serde(rename = "Waiting for OLM operator setup jobs")]
    WaitingForOLMOperatorSetupJobs,
    #[serde(rename = "Done")]
    Done,
}

impl FinalizingStage {
    pub fn word(self) -> &'static str {
        match self {
            Self::WaitingForClusterOperators => "Waiting for cluster operators",
            Self::AddingRouterCa => "Adding router ca",
            Self::ApplyingOlmManifests => "Applying olm manifests",
            Self::WaitingForOlmOperatorsCsvInitialization => "Waiting for olm operators csv initialization",
            Self::WaitingForOlmOperatorsCsv => "Waiting for olm operators csv",
            Self::WaitingForOLMOperatorSetupJobs => "Waiting for OLM operator setup jobs",
            Self::Done => "Done",
        }
    }
}

/// How far the collection of logs is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum LogsState {
    #[serde(rename = "requested")]
    Requested,
    #[serde(rename = "collecting")]
    Collecting,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "timeout")]
    Timeout,
    #[default]
    #[serde(rename = "")]
    Unset,
}

impl LogsState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Collecting => "collecting",
            Self::Completed => "completed",
            Self::Timeout => "timeout",
            Self::Unset => "",
        }
    }
}

/// Whose logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum LogsType {
    #[serde(rename = "host")]
    Host,
    #[serde(rename = "controller")]
    Controller,
    #[serde(rename = "all")]
    All,
    #[default]
    #[serde(rename = "")]
    Unset,
}

impl LogsType {
    pub fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Controller => "controller",
            Self::All => "all",
            Self::Unset => "",
        }
    }
}

/// An installer reports the stage its host is in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportHostProgress {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<HostStage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_info: Option<String>,
}

/// A controller reports the stage of finalizing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportClusterProgress {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizing_stage: Option<FinalizingStage>,
}

/// Someone reports how far the collection of logs is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportLogsProgress {
    pub logs_state: LogsState,
}

/// A controller reports the end of an installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteInstallation {
    pub is_success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_info: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub data: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Whose logs to upload or download.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct LogsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs_type: Option<LogsType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
}

/// The certificate of a cluster's ingress as PEM: the body is a JSON string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct IngressCert(pub String);

/// Changes to the rendered install-config as JSON: the body is a JSON string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct InstallConfigOverrides(pub String);
