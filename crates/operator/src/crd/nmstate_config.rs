//! `NMStateConfig`: the static network settings of one host, found by its MAC addresses.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The network of one host, and the interfaces by which the hub recognises the host.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agent-install.openshift.io",
    version = "v1beta1",
    kind = "NMStateConfig",
    plural = "nmstateconfigs",
    namespaced,
    status = "NMStateConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "NMStateConfig is the static network of one host. An InfraEnv of the same namespace chooses it by its labels."
)]
pub struct NMStateConfigSpec {
    /// The interfaces by which the hub recognises the host, with the names that `config` uses for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub interfaces: Vec<Interface>,
    /// The network as nmstate describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "super::schema::Anything")]
    pub config: Option<Value>,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// The interface's name in `config`; the host may know it under another.
    pub name: String,
    /// The interface's MAC address.
    #[schemars(regex(pattern = r"^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$"))]
    pub mac_address: String,
}

/// Muster reports nothing here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NMStateConfigStatus {}
