//! `ClusterDeployment` of Hive: the parts that are read here. Everything else is left alone.

use super::agent_cluster_install::ClusterMetadata;
use super::reference::LocalRef;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Only written by merge patches of single fields: this type does not know all of them.
/// What the cluster is called, what installs it, and how to get into it once it runs.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hive.openshift.io",
    version = "v1",
    kind = "ClusterDeployment",
    plural = "clusterdeployments",
    shortname = "cd",
    namespaced,
    status = "ClusterDeploymentStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "ClusterDeployment is a cluster, to be installed or installed already.",
    printcolumn(
        name = "InfraID",
        type_ = "string",
        json_path = ".spec.clusterMetadata.infraID"
    ),
    printcolumn(
        name = "Platform",
        type_ = "string",
        json_path = ".metadata.labels.hive\\.openshift\\.io/cluster-platform"
    ),
    printcolumn(
        name = "Region",
        type_ = "string",
        json_path = ".metadata.labels.hive\\.openshift\\.io/cluster-region"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".metadata.labels.hive\\.openshift\\.io/version"
    ),
    printcolumn(
        name = "ClusterType",
        type_ = "string",
        json_path = ".metadata.labels.hive\\.openshift\\.io/cluster-type"
    ),
    printcolumn(
        name = "ProvisionStatus",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Provisioned')].reason"
    ),
    printcolumn(name = "PowerState", type_ = "string", json_path = ".status.powerState"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDeploymentSpec {
    /// Name of the cluster; with `baseDomain` the name of its API.
    pub cluster_name: String,
    /// Domain of the cluster's names.
    pub base_domain: String,
    /// The platform; `agentBareMetal` for clusters installed on Agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Secret in the same namespace whose key `.dockerconfigjson` holds the cluster's pull secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret_ref: Option<LocalRef>,
    /// What installs the cluster; an AgentClusterInstall for clusters installed on Agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_install_ref: Option<ClusterInstallRef>,
    /// The cluster is installed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub installed: bool,
    /// Ids and credentials of the installed cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_metadata: Option<ClusterMetadata>,
    /// The cluster stays as it is when this object is deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preserve_on_delete: bool,
}

/// The platform of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Platform {
    /// The cluster is installed on Agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_bare_metal: Option<AgentBareMetal>,
}

/// A cluster on Agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentBareMetal {
    /// Not used: Agents are bound by name.
    pub agent_selector: LabelSelector,
}

/// What installs a cluster, in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterInstallRef {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// Written by Hive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterDeploymentStatus {}

impl ClusterDeployment {
    /// The AgentClusterInstall that installs this cluster; `None` when the cluster is not ours.
    pub fn install_name(&self) -> Option<&str> {
        let install = self.spec.cluster_install_ref.as_ref()?;
        let ours = install.group == "extensions.hive.openshift.io" && install.kind == "AgentClusterInstall";
        ours.then_some(install.name.as_str())
    }
}
