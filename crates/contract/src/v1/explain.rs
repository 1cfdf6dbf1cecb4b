//! Explanations: why something is in the state it is in, and what to do next.

use crate::v1::plan::{Blocker, PlanView};
use crate::v1::row_status::RowStatus;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// The time until which the state may last, and what follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Deadline {
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    pub then: String,
}

/// Whether a host fits a role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RoleVerdict {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: Cow<'static, str>,
    pub fits: bool,
    pub reasons: Vec<String>,
}

/// Why a host, cluster or InfraEnv is in the state it is in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(from = "ToldExplanation")]
pub struct ExplainView {
    pub subject: String,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: RowStatus,
    pub status_info: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub since: Option<Timestamp>,
    pub why: String,
    pub next_action: String,
    pub blockers: Vec<Blocker>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    pub verdicts: Vec<RoleVerdict>,
    /// What each verb would do now.
    pub verbs: Vec<PlanView>,
}

/// As it is read: whose status it is, the subject tells.
#[derive(Deserialize)]
struct ToldExplanation {
    subject: String,
    status: String,
    status_info: String,
    since: Option<Timestamp>,
    why: String,
    next_action: String,
    blockers: Vec<Blocker>,
    deadline: Option<Deadline>,
    verdicts: Vec<RoleVerdict>,
    verbs: Vec<PlanView>,
}

impl From<ToldExplanation> for ExplainView {
    fn from(told: ToldExplanation) -> Self {
        Self {
            status: RowStatus::about(&told.subject, &told.status),
            subject: told.subject,
            status_info: told.status_info,
            since: told.since,
            why: told.why,
            next_action: told.next_action,
            blockers: told.blockers,
            deadline: told.deadline,
            verdicts: told.verdicts,
            verbs: told.verbs,
        }
    }
}
