//! `AgentClassification`: a label for Agents for whose inventory a query is true.

use super::condition::ServiceCondition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The label, and the query that decides which Agents get it.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agent-install.openshift.io",
    version = "v1beta1",
    kind = "AgentClassification",
    plural = "agentclassifications",
    namespaced,
    status = "AgentClassificationStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "AgentClassification labels those Agents of its namespace for whose inventory a query is true."
)]
#[serde(rename_all = "camelCase")]
pub struct AgentClassificationSpec {
    /// The part of the label's key after `agentclassification.agent-install.openshift.io/`. You cannot change it.
    pub label_key: String,
    /// The label's value, of at most 63 characters. You cannot change it, and it cannot begin with QUERYERROR.
    pub label_value: String,
    /// A jq expression over `status.inventory` of an Agent, with exactly one answer: true or false.
    pub query: String,
}

/// The result of the query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentClassificationStatus {
    /// How many Agents have the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_count: Option<i64>,
    /// For how many Agents the query failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_count: Option<i64>,
    /// `QueryErrors` tells whether the query failed for any Agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ServiceCondition>,
}

/// The only condition, and its reasons.
pub const QUERY_ERRORS: &str = "QueryErrors";
pub mod reason {
    pub const HAS_QUERY_ERRORS: &str = "HasQueryErrors";
    pub const NO_QUERY_ERRORS: &str = "NoQueryErrors";
}
