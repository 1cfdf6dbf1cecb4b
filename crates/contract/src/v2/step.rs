//! The conversation with an agent: steps to run and what came of them.

use crate::rules::{is_zero, null_as_default};
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

pub use muster_vocabulary::{PostStepAction, StepType};

/// One step for an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct StepView {
    pub step_type: StepType,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step_id: String,
    #[serde(deserialize_with = "null_as_default")]
    pub args: Vec<String>,
}

/// What an agent does next, and when it asks again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct StepsView {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub next_instruction_seconds: i64,
    pub post_step_action: PostStepAction,
    /// Null when there is nothing to do.
    pub instructions: Option<Vec<StepView>>,
}

/// The result of a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct NextStepsQuery {
    /// The host's own clock in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
}

/// The argument of the command an agent starts after it has registered; JSON in a string.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct NextStepRunnerArgs {
    pub infra_env_id: Uuid,
    pub host_id: Uuid,
    #[serde(deserialize_with = "null_as_default")]
    pub agent_version: String,
}
