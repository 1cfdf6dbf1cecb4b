//! Hardware requirements by role.

use crate::rules::{is_false, is_zero, short_float_option};
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// What a host needs for one role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RequirementsView {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_cores: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ram_mib: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disk_size_gb: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub installation_disk_speed_threshold_ms: i64,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "short_float_option"
    )]
    pub network_latency_threshold_ms: Option<f64>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "short_float_option"
    )]
    pub packet_loss_percentage: Option<f64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub tpm_enabled_in_bios: bool,
}

/// What a host needs for one role, in numbers and in words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RoleRequirementsView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantitative: Option<RequirementsView>,
    pub qualitative: Option<Vec<String>>,
}

/// What hosts need, by role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RequirementsByRoleView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<RoleRequirementsView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<RoleRequirementsView>,
}

/// What an operator needs on top.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct OperatorRequirementsView {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operator_name: String,
    pub dependencies: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirements: Option<RequirementsByRoleView>,
}

/// What hosts of a cluster need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct PreflightRequirementsView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ocp: Option<RequirementsByRoleView>,
    pub operators: Option<Vec<OperatorRequirementsView>>,
}
