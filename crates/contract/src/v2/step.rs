//! The conversation with an agent: steps to run and what came of them.

use crate::rules::{is_zero, null_as_default};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// What an agent can be told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum StepType {
    #[serde(rename = "connectivity-check")]
    ConnectivityCheck,
    #[serde(rename = "execute")]
    Execute,
    #[serde(rename = "inventory")]
    Inventory,
    #[serde(rename = "install")]
    Install,
    #[serde(rename = "free-network-addresses")]
    FreeNetworkAddresses,
    #[serde(rename = "dhcp-lease-allocate")]
    DhcpLeaseAllocate,
    #[serde(rename = "api-vip-connectivity-check")]
    ApiVipConnectivityCheck,
    #[serde(rename = "tang-connectivity-check")]
    TangConnectivityCheck,
    #[serde(rename = "ntp-synchronizer")]
    NtpSynchronizer,
    #[serde(rename = "installation-disk-speed-check")]
    InstallationDiskSpeedCheck,
    #[serde(rename = "container-image-availability")]
    ContainerImageAvailability,
    #[serde(rename = "domain-resolution")]
    DomainResolution,
    #[serde(rename = "stop-installation")]
    StopInstallation,
    #[serde(rename = "logs-gather")]
    LogsGather,
    #[serde(rename = "next-step-runner")]
    NextStepRunner,
    #[serde(rename = "upgrade-agent")]
    UpgradeAgent,
    #[serde(rename = "download-boot-artifacts")]
    DownloadBootArtifacts,
    #[serde(rename = "reboot-for-reclaim")]
    RebootForReclaim,
    #[serde(rename = "verify-vips")]
    VerifyVips,
}

impl StepType {
    pub fn word(self) -> &'static str {
        match self {
            Self::ConnectivityCheck => "connectivity-check",
            Self::Execute => "execute",
            Self::Inventory => "inventory",
            Self::Install => "install",
            Self::FreeNetworkAddresses => "free-network-addresses",
            Self::DhcpLeaseAllocate => "dhcp-lease-allocate",
            Self::ApiVipConnectivityCheck => "api-vip-connectivity-check",
            Self::TangConnectivityCheck => "tang-connectivity-check",
            Self::NtpSynchronizer => "ntp-synchronizer",
            Self::InstallationDiskSpeedCheck => "installation-disk-speed-check",
            Self::ContainerImageAvailability => "container-image-availability",
            Self::DomainResolution => "domain-resolution",
            Self::StopInstallation => "stop-installation",
            Self::LogsGather => "logs-gather",
            Self::NextStepRunner => "next-step-runner",
            Self::UpgradeAgent => "upgrade-agent",
            Self::DownloadBootArtifacts => "download-boot-artifacts",
            Self::RebootForReclaim => "reboot-for-reclaim",
            Self::VerifyVips => "verify-vips",
        }
    }
}

/// Whether the agent's runner goes on or ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum PostStepAction {
    #[serde(rename = "exit")]
    Exit,
    #[default]
    #[serde(rename = "continue")]
    Continue,
}

impl PostStepAction {
    pub fn word(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Continue => "continue",
        }
    }
}

/// One step for an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepView {
    pub step_type: StepType,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub step_id: String,
    #[serde(deserialize_with = "null_as_default")]
    pub args: Vec<String>,
}

/// What an agent does next, and when it asks again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StepsView {
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub next_instruction_seconds: i64,
    pub post_step_action: PostStepAction,
    /// Null when there is nothing to do.
    pub instructions: Option<Vec<StepView>>,
}

/// What came of a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PostStepReply {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_type: Option<StepType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What an agent tells when it asks for steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct NextStepsQuery {
    /// The host's own clock in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
}

/// The argument of the command an agent starts after it has registered; JSON in a string.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct NextStepRunnerArgs {
    pub infra_env_id: Uuid,
    pub host_id: Uuid,
    #[serde(deserialize_with = "null_as_default")]
    pub agent_version: String,
}
