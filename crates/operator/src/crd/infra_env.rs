//! `InfraEnv`: the settings of a discovery image, and the pool of hosts that boot it.

use super::condition::ServiceCondition;
use super::reference::{ClusterRef, FullRef, LocalRef};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the discovery image of this InfraEnv contains and how its hosts are treated.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agent-install.openshift.io",
    version = "v1beta1",
    kind = "InfraEnv",
    plural = "infraenvs",
    namespaced,
    status = "InfraEnvStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "InfraEnv is a discovery image with its settings, and the pool of hosts that boot it.",
    printcolumn(
        name = "ISO Created At",
        type_ = "string",
        description = "When the content of the image last changed",
        json_path = ".status.createdTime"
    ),
    printcolumn(
        name = "ISO URL",
        type_ = "string",
        priority = 1,
        description = "Where the image can be downloaded",
        json_path = ".status.isoDownloadURL"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct InfraEnvSpec {
    /// Secret in the same namespace whose key `.dockerconfigjson` holds the pull secret that hosts use during discovery.
    pub pull_secret_ref: LocalRef,
    /// ClusterDeployment to which the hub binds every host as it registers. Leave it out to bind hosts later, one by
    /// one. You cannot change it afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterRef>,
    /// Proxies for everything a host downloads during discovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// NTP servers used in addition to those a host already knows. Cannot be combined with `ntpSources`.
    #[serde(
        default,
        rename = "additionalNTPSources",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub additional_ntp_sources: Vec<String>,
    /// NTP servers used instead of those a host already knows. Cannot be combined with `additionalNTPSources`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ntp_sources: Vec<String>,
    /// Public SSH keys, one per line, that may log in to hosts during discovery.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ssh_authorized_key: String,
    /// Labels that the operator gives every Agent of this InfraEnv when it creates the Agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_labels: BTreeMap<String, String>,
    /// Chooses NMStateConfigs of the same namespace by their labels. An empty selector chooses none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nm_state_config_label_selector: Option<LabelSelector>,
    /// Ignition, as JSON, that the hub merges into what hosts boot with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignition_config_override: String,
    /// Processor architecture of the hosts: x86_64, aarch64, arm64, ppc64le or s390x. You cannot change it
    /// afterwards.
    #[serde(default = "x86_64", skip_serializing_if = "String::is_empty")]
    pub cpu_architecture: String,
    /// What the iPXE script does: always boot discovery, or let hosts that are to boot their own disk do so.
    #[serde(
        default = "discovery_always",
        rename = "ipxeScriptType",
        skip_serializing_if = "String::is_empty"
    )]
    #[schemars(extend("enum" = ["", "DiscoveryImageAlways", "BootOrderControl"]))]
    pub ipxe_script_type: String,
    /// Changes of the kernel arguments that hosts boot with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_arguments: Vec<KernelArgument>,
    /// Certificates, as PEM, that hosts trust in addition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub additional_trust_bundle: String,
    /// OpenShift version whose operating system hosts boot; the newest when left out. With `clusterRef` it has no
    /// effect until that cluster is installed: until then hosts boot the release of the cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os_image_version: String,
    /// ConfigMap with `registries.conf` and, if needed, `ca-bundle.crt`: registries to use instead of the public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror_registry_ref: Option<FullRef>,
    /// Kind of image: `full-iso`, or `minimal-iso`, which fetches the larger part while it boots.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image_type: String,
    /// How the operator approves Agents of this InfraEnv.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_approval: Option<AgentApproval>,
    /// How many seconds a host waits after its network is up before discovery starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub network_discovery_delay_seconds: Option<i64>,
}

fn x86_64() -> String {
    "x86_64".into()
}

fn discovery_always() -> String {
    "DiscoveryImageAlways".into()
}

/// Proxies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Proxy {
    /// Proxy for http:// addresses.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub http_proxy: String,
    /// Proxy for https:// addresses.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub https_proxy: String,
    /// Names and networks, separated by commas, that hosts reach without a proxy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_proxy: String,
}

/// A change of one kernel argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelArgument {
    /// The kind of change.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["append", "replace", "delete"]))]
    pub operation: String,
    /// The argument; white space only inside quotes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(regex(pattern = r#"^(?:(?:[^\s"]+)|(?:"[^"]*"))+$"#))]
    pub value: String,
}

/// How the operator approves Agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentApproval {
    /// Approve Agents without waiting for a person.
    #[serde(default)]
    pub auto_approve: bool,
}

/// The state of the image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InfraEnvStatus {
    /// Where the image can be downloaded.
    #[serde(default, rename = "isoDownloadURL", skip_serializing_if = "String::is_empty")]
    pub iso_download_url: String,
    /// When the content of the image last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<Time>,
    /// `ImageCreated` tells whether the image can be used, and why not; `Cleanup` tells what a deleted InfraEnv waits
    /// for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ServiceCondition>,
    /// Selects the Agents of this InfraEnv.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_label_selector: Option<LabelSelector>,
    /// Links for troubleshooting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug_info: Option<InfraEnvDebugInfo>,
    /// Links for booting hosts over the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_artifacts: Option<BootArtifacts>,
}

/// Links for troubleshooting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InfraEnvDebugInfo {
    /// Address of the events of this InfraEnv.
    #[serde(default, rename = "eventsURL", skip_serializing_if = "String::is_empty")]
    pub events_url: String,
    /// The static network settings that the image contains.
    #[serde(
        default,
        rename = "staticNetworkDownloadURL",
        skip_serializing_if = "String::is_empty"
    )]
    pub static_network_download_url: String,
}

/// Links for booting hosts over the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootArtifacts {
    /// The initial file system, with this InfraEnv's settings in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub initrd: String,
    /// The root file system.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rootfs: String,
    /// The kernel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    /// The script for iPXE that boots the three.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ipxe_script: String,
    /// The Ignition config that hosts boot with.
    #[serde(
        default,
        rename = "discoveryIgnitionURL",
        skip_serializing_if = "String::is_empty"
    )]
    pub discovery_ignition_url: String,
}

/// An image that has just changed may change again: nobody is rebooted for it before so much time has gone by.
pub const COOL_DOWN: Duration = Duration::from_secs(60);

impl InfraEnv {
    /// How long its image has to be left alone; `None` when there is no image.
    pub fn cool_down_left(&self, now: Timestamp) -> Option<Duration> {
        let created = &self.status.as_ref()?.created_time.as_ref()?.0;
        Some(cool_down_left(*created, now))
    }
}

/// How long an image that got its content then has to be left alone.
pub fn cool_down_left(created: Timestamp, now: Timestamp) -> Duration {
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    COOL_DOWN.saturating_sub(age)
}

/// The condition of an InfraEnv, and its reasons.
pub const IMAGE_CREATED: &str = "ImageCreated";
/// Shown only when an InfraEnv is to be deleted and cannot be yet.
pub const CLEANUP: &str = "Cleanup";
pub mod reason {
    pub const AVAILABLE: &str = "InfraEnvAvailable";
    /// The image is being prepared.
    pub const IN_PREPARATION: &str = "ImageCreated";
    pub const FAILED: &str = "ImageCreationError";
    pub const MISSING_CLUSTER: &str = "MissingClusterDeployment";
    /// Of the clean-up: it waits for hosts that are being installed.
    pub const HOSTS_ARE_INSTALLING: &str = "HostsAreInstalling";
    pub const CLEANUP_FAILED: &str = "CleanupFailed";
}
