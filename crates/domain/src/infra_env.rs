//! An InfraEnv: the settings of one discovery image, and the pool of hosts booted from it.

use crate::id::{ClusterId, InfraEnvId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct InfraEnv {
    pub id: InfraEnvId,
    /// Set by the store: the revision this value was read at.
    #[serde(skip)]
    pub revision: i64,
    pub name: String,
    pub pull_secret: String,
    /// Present: every host booted from this image is bound to that cluster as it registers.
    #[serde(default)]
    pub cluster: Option<ClusterId>,
    pub openshift_version: String,
    pub cpu_architecture: String,
    pub image_type: ImageType,
    #[serde(default)]
    pub ssh_authorized_key: String,
    #[serde(default)]
    pub proxy: Proxy,
    #[serde(default)]
    pub additional_ntp_sources: String,
    #[serde(default)]
    pub ntp_sources: String,
    /// The wire's JSON text, sorted; empty when there is none.
    #[serde(default)]
    pub static_network_config: String,
    /// The wire's JSON text; `None` when never set or cleared.
    #[serde(default)]
    pub kernel_arguments: Option<String>,
    #[serde(default)]
    pub ignition_config_override: String,
    #[serde(default)]
    pub additional_trust_bundle: String,
    #[serde(default)]
    pub network_discovery_delay_seconds: Option<i64>,
    #[serde(default)]
    pub rendezvous_ip: Option<String>,
    /// Signs links to this image.
    pub image_token_key: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub org: String,
    #[serde(default)]
    pub email_domain: String,
}

// Holds a pull secret: never printed.
impl std::fmt::Debug for InfraEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InfraEnv")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageType {
    #[default]
    FullIso,
    MinimalIso,
    DisconnectedIso,
}

impl ImageType {
    pub fn word(self) -> &'static str {
        match self {
            Self::FullIso => "full-iso",
            Self::MinimalIso => "minimal-iso",
            Self::DisconnectedIso => "disconnected-iso",
        }
    }

    /// The file a download URL ends in.
    pub fn file(self) -> &'static str {
        match self {
            Self::FullIso => "full.iso",
            Self::MinimalIso => "minimal.iso",
            Self::DisconnectedIso => "disconnected.iso",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Proxy {
    pub http: String,
    pub https: String,
    pub no: String,
}
