//! Plans: what a verb would do, step by step, and what blocks it.

use crate::rules::words;
use crate::v1::row_status::RowStatus;
use muster_vocabulary::Word;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;
use uuid::Uuid;

words! {
    /// What can be planned.
    pub enum Verb {
        Bind = "bind",
        Unbind = "unbind",
        Move = "move",
        DeleteHost = "delete-host",
        DeleteCluster = "delete-cluster",
        DeleteInfraEnv = "delete-infra-env",
        DeleteInfraEnvWithHosts = "delete-infra-env-with-hosts",
        InstallCluster = "install-cluster",
        CancelCluster = "cancel-cluster",
        ResetCluster = "reset-cluster",
        InstallHost = "install-host",
        ResetHost = "reset-host",
        ReclaimHost = "reclaim-host",
    }
}

/// Ask what a verb would do, without doing it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(from = "ToldStep")]
pub struct PlanStep {
    pub order: u32,
    /// What it happens to, such as `host/worker-3`.
    pub subject: String,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub action: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub from: Option<RowStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub to: Option<RowStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What is lost for good.
    pub destroys: Vec<String>,
}

/// As it is read: whose status it is, the subject tells.
#[derive(Deserialize)]
struct ToldStep {
    order: u32,
    subject: String,
    action: Cow<'static, str>,
    from: Option<String>,
    to: Option<String>,
    note: Option<String>,
    destroys: Vec<String>,
}

impl From<ToldStep> for PlanStep {
    fn from(told: ToldStep) -> Self {
        let read = |text: Option<String>| text.map(|text| RowStatus::about(&told.subject, &text));
        let (from, to) = (read(told.from), read(told.to));
        Self {
            order: told.order,
            subject: told.subject,
            action: told.action,
            from,
            to,
            note: told.note,
            destroys: told.destroys,
        }
    }
}

/// Something that blocks a verb, and what to do about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Blocker {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Cow<'static, str>,
    pub subject: String,
    pub reason: String,
    pub next_action: String,
}

/// What a verb would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PlanView {
    #[cfg_attr(feature = "openapi", schema(value_type = Verb))]
    pub verb: Word<Verb>,
    pub allowed: bool,
    pub steps: Vec<PlanStep>,
    pub blockers: Vec<Blocker>,
    pub warnings: Vec<String>,
}
