//! Settings of a cluster that are written and shown in the same words.

use crate::rules::words;
use muster_vocabulary::Word;
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

pub use muster_vocabulary::{
    CloudControllerManager, DiskEncryptionMode, HighAvailabilityMode, LoadBalancerType, NetworkType,
    PlatformType, RoleSet,
};

words! {
    /// Processor architecture of a release.
    #[derive(Default)]
    pub enum ReleaseArchitecture {
        #[default]
        X86_64 = "x86_64",
        Aarch64 = "aarch64",
        Arm64 = "arm64",
        Ppc64le = "ppc64le",
        S390x = "s390x",
        Multi = "multi",
    }
}

/// Details of an external platform.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExternalPlatform {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_controller_manager: Option<CloudControllerManager>,
}

/// Where a cluster runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Platform {
    pub r#type: PlatformType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatform>,
}

/// Encryption of installation disks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DiskEncryption {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_on: Option<RoleSet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DiskEncryptionMode>,
    /// JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tang_servers: Option<String>,
}

/// Where hosts added later get their ignition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct IgnitionEndpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// Who balances traffic to the control plane.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LoadBalancer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<LoadBalancerType>,
}

/// An operator to install with the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChooseOperator {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<String>,
}

/// A bundle of operators to install with the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChooseBundle {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional_operators: Option<Vec<String>>,
}

/// A platform as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlatformView {
    pub r#type: Word<PlatformType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatformView>,
}

/// Details of an external platform as they are shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExternalPlatformView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_controller_manager: Option<Word<CloudControllerManager>>,
}

/// Encryption of installation disks as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskEncryptionView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_on: Option<Word<RoleSet>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Word<DiskEncryptionMode>>,
    /// JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tang_servers: Option<String>,
}

/// Who balances traffic to the control plane, as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadBalancerView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<Word<LoadBalancerType>>,
}
