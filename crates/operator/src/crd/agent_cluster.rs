//! `AgentCluster`: a cluster of Cluster API whose machines are Agents.

use super::agent_cluster_install::IgnitionEndpoint;
use super::reference::ClusterRef;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the cluster is.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "capi-provider.agent-install.openshift.io",
    version = "v1beta1",
    kind = "AgentCluster",
    plural = "agentclusters",
    namespaced,
    status = "AgentClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "AgentCluster is a cluster of Cluster API whose machines are made of Agents."
)]
#[serde(rename_all = "camelCase")]
pub struct AgentClusterSpec {
    /// Where machines fetch their ignition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    /// Where the cluster's API is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub control_plane_endpoint: Option<ApiEndpoint>,
}

impl AgentCluster {
    /// The ClusterDeployment that stands for the cluster, once there is one.
    pub fn deployment(&self) -> Option<&ClusterRef> {
        let reference = &self.status.as_ref()?.cluster_deployment_reference;
        (!reference.name.is_empty()).then_some(reference)
    }
}

/// Where an API is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiEndpoint {
    /// Name or address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512))]
    pub host: String,
    /// Port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// The state of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentClusterStatus {
    /// Machines can be added.
    #[serde(default)]
    pub ready: bool,
    /// The ClusterDeployment that stands for the cluster.
    pub cluster_deployment_reference: ClusterRef,
    /// Ready: whether machines can be added, and what the operator waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Vec<FailureDomain>,
}

/// A part of the infrastructure that fails as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Name of the part.
    pub name: String,
    /// Control plane machines may run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// More about the part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// Types of conditions.
pub mod condition {
    pub const READY: &str = "Ready";
}

/// Reasons of conditions.
pub mod reason {
    pub const READY: &str = "Ready";
    pub const WAITING_FOR_CONTROL_PLANE: &str = "WaitingForControlPlane";
    pub const WAITING_FOR_ENDPOINT: &str = "WaitingForControlPlaneEndpoint";
    pub const NO_CLUSTER_DEPLOYMENT: &str = "ClusterDeploymentNotFound";
    pub const BAD_IGNITION_ENDPOINT: &str = "BadIgnitionEndpoint";
}
