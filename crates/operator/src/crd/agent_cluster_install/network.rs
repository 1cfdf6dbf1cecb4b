//! The networks of a cluster.

use crate::crd::schema::words_of;
use muster_vocabulary::{NetworkType, Word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The networks of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Networking {
    /// Networks of the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_network: Vec<MachineNetworkEntry>,
    /// Networks of pods; 10.128.0.0/14 with /23 per host when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_network: Vec<ClusterNetworkEntry>,
    /// Networks of services; 172.30.0.0/16 when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_network: Vec<String>,
    /// The network plug-in.
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    #[schemars(with = "String", extend("enum" = words_of::<NetworkType>()))]
    pub network_type: Word<NetworkType>,
    /// You manage load balancers and DNS yourself. When left out, it follows from the platform and the number of
    /// hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
}

/// A network of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineNetworkEntry {
    /// The network, such as 192.0.2.0/24.
    pub cidr: String,
}

/// A network of pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetworkEntry {
    /// The network, such as 10.128.0.0/14.
    pub cidr: String,
    /// Length of the prefix each host gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_prefix: Option<i32>,
}
