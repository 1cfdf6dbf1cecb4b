//! What installers and controllers report while a host or cluster installs.

use crate::rules::words;
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

pub use muster_vocabulary::{FinalizingStage, LogsState, Stage as HostStage};

words! {
    /// Whose logs.
    #[derive(Default)]
    pub enum LogsType {
        Host = "host",
        Controller = "controller",
        All = "all",
        #[default]
        Unset = "",
    }
}

/// An installer reports the stage its host is in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportHostProgress {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<HostStage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_info: Option<String>,
}

/// A controller reports the stage of finalizing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportClusterProgress {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizing_stage: Option<FinalizingStage>,
}

/// Someone reports how far the collection of logs is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportLogsProgress {
    pub logs_state: LogsState,
}

/// A controller reports the end of an installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CompleteInstallation {
    pub is_success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_info: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub data: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Whose logs to upload or download.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct LogsQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs_type: Option<LogsType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
}

/// The certificate of a cluster's ingress as PEM: the body is a JSON string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(transparent)]
pub struct IngressCert(pub String);

/// Changes to the rendered install-config as JSON: the body is a JSON string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(transparent)]
pub struct InstallConfigOverrides(pub String);
