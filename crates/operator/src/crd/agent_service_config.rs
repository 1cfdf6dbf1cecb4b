//! `AgentServiceConfig`: settings of another service as a whole. Manifests that have one apply; what is in it is made
//! elsewhere, which the object named `agent` says by its condition.

use super::condition::ServiceCondition;
use super::reference::LocalRef;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of the service.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agent-install.openshift.io",
    version = "v1beta1",
    kind = "AgentServiceConfig",
    plural = "agentserviceconfigs",
    status = "AgentServiceConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "AgentServiceConfig is here so that existing manifests apply. Nothing in it has an effect: the chart or \
        muster serve configures the hub. The condition ReconcileCompleted of the object named agent names the \
        settings and annotations that have no effect, and what to do instead."
)]
#[serde(rename_all = "camelCase")]
pub struct AgentServiceConfigSpec {
    /// Volume claim for files. Muster ignores it; use `persistence` of the chart.
    #[schemars(with = "super::schema::Anything")]
    pub filesystem_storage: serde_json::Value,
    /// Volume claim for the database. Muster ignores it; use `persistence` of the chart.
    #[schemars(with = "super::schema::Anything")]
    pub database_storage: serde_json::Value,
    /// Volume claim for base images. Muster ignores it; use `persistence` of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "super::schema::Anything")]
    pub image_storage: Option<serde_json::Value>,
    /// ConfigMap with `registries.conf` and, if needed, `ca-bundle.crt` for all clusters. Muster ignores it; name it
    /// in each InfraEnv and AgentClusterInstall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror_registry_ref: Option<LocalRef>,
    /// Operating systems that hosts can boot. Muster ignores them; use `hub.osImages` of the chart, or `--os-images`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub os_images: Vec<OsImage>,
    /// Images that collect facts of broken clusters. Muster ignores them; use `--must-gather-images`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_gather_images: Vec<MustGatherImage>,
    /// Serve over plain HTTP what iPXE fetches. Muster ignores it; use `hub.baseUrl` of the chart with http://.
    #[serde(default, rename = "iPXEHTTPRoute", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["enabled", "disabled"]))]
    pub ipxe_http_route: String,
    /// Registries for which a pull secret needs no credentials. Muster ignores them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unauthenticated_registries: Vec<String>,
    /// ConfigMap with the certificate authority of the servers of operating system images. Muster ignores it.
    #[serde(default, rename = "OSImageCACertRef", skip_serializing_if = "Option::is_none")]
    pub os_image_ca_cert_ref: Option<LocalRef>,
    /// Secret with headers and query parameters for the download of operating system images. Muster ignores it.
    #[serde(
        default,
        rename = "OSImageAdditionalParamsRef",
        skip_serializing_if = "Option::is_none"
    )]
    pub os_image_additional_params_ref: Option<LocalRef>,
    /// Host names of the service where there are no Routes. Muster ignores them; use `ingress` of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
}

/// An operating system that hosts can boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OsImage {
    /// The OpenShift version it belongs to.
    pub openshift_version: String,
    /// The version of the operating system.
    pub version: String,
    /// Where the live image is.
    pub url: String,
    /// Where the root file system is. Deprecated: the hub takes it from the image.
    #[serde(default, rename = "rootFSUrl", skip_serializing_if = "String::is_empty")]
    pub root_fs_url: String,
    /// Processor architecture.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpu_architecture: String,
}

/// An image that collects facts of broken clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MustGatherImage {
    /// The OpenShift version it is for.
    pub openshift_version: String,
    /// Processor architecture.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["x86_64", "aarch64", "arm64", "ppc64le", "s390x", "multi"]))]
    pub cpu_architecture: String,
    /// The name of the image.
    pub name: String,
    /// The image.
    pub url: String,
}

/// Host names of the service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    /// Name of the hub.
    pub assisted_service_hostname: String,
    /// Name of the image service.
    pub image_service_hostname: String,
    /// Class of the Ingress objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class_name: String,
}

/// Whether the settings have an effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentServiceConfigStatus {
    /// ReconcileCompleted: False while the object has settings without an effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ServiceCondition>,
    /// Annotations that cannot be changed any more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub immutable_annotations: BTreeMap<String, String>,
}

/// The name of the one that counts.
pub const NAME: &str = "agent";

/// The condition that says whether all settings are applied.
pub const RECONCILE_COMPLETED: &str = "ReconcileCompleted";

/// The condition that says whether the service works.
pub const DEPLOYMENTS_HEALTHY: &str = "DeploymentsHealthy";

pub mod reason {
    pub const DEPLOYMENT_FAILURE: &str = "DeploymentFailure";
    pub const DEPLOYMENT_SUCCEEDED: &str = "DeploymentSucceeded";
    pub const RECONCILE_SUCCEEDED: &str = "ReconcileSucceeded";
    pub const SETTINGS_NOT_APPLIED: &str = "SettingsNotApplied";
    pub const HOSTED_CLUSTER_NOT_SERVED: &str = "HostedClusterNotServed";
}
