//! InfraEnvs in Muster's own API: changes that REST v2 has no words for.

use crate::rules::words;
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

words! {
    /// Settings of an InfraEnv that can be removed, as if nobody had ever set them. In REST v2 an empty value of these
    /// means that nothing changes.
    pub enum InfraEnvSetting {
        SshAuthorizedKey = "ssh-authorized-key",
    }
}

/// Change what REST v2 cannot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeInfraEnv {
    /// Settings to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<InfraEnvSetting>,
    /// The cluster that hosts belong to as they register, instead of one that no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
}

/// How many hosts go at a time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct DeleteWithHostsQuery {
    /// 500 when absent, which is also the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// How far the deletion of an InfraEnv with its hosts is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct DeletionView {
    /// Hosts that this request deleted.
    pub deleted: u64,
    /// Hosts that are left; ask again to delete those, too.
    pub left: u64,
    /// The InfraEnv itself is gone.
    pub done: bool,
}
