//! Plans: what a verb would do, step by step, and what blocks it.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;
use uuid::Uuid;

/// What can be planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum Verb {
    #[serde(rename = "bind")]
    Bind,
    #[serde(rename = "unbind")]
    Unbind,
    #[serde(rename = "move")]
    Move,
    #[serde(rename = "delete-host")]
    DeleteHost,
    #[serde(rename = "delete-cluster")]
    DeleteCluster,
    #[serde(rename = "delete-infra-env")]
    DeleteInfraEnv,
}

impl Verb {
    pub fn word(self) -> &'static str {
        match self {
            Self::Bind => "bind",
            Self::Unbind => "unbind",
            Self::Move => "move",
            Self::DeleteHost => "delete-host",
            Self::DeleteCluster => "delete-cluster",
            Self::DeleteInfraEnv => "delete-infra-env",
        }
    }
}

/// Ask what a verb would do, without doing it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    pub verb: Verb,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
}

/// One thing that would happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanStep {
    pub order: u32,
    /// What it happens to, such as `host/worker-3`.
    pub subject: String,
    #[schema(value_type = String)]
    pub action: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub from: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub to: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What is lost for good.
    pub destroys: Vec<String>,
}

/// Something that stands in the way, and what to do about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Blocker {
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    pub subject: String,
    pub reason: String,
    pub next_action: String,
}

/// What a verb would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanView {
    pub verb: Verb,
    pub allowed: bool,
    pub steps: Vec<PlanStep>,
    pub blockers: Vec<Blocker>,
    pub warnings: Vec<String>,
}
