//! What a person may do here, and how often the tokens of an InfraEnv were replaced.

use serde::{Deserialize, Serialize};
use std::fmt;

crate::words! {
    /// What a person may do. Somebody may have several of these roles; each of them but the first is held within an
    /// organisation.
    pub enum AccessRole {
        /// Sees and changes everything, and still reads no secret of somebody else.
        Admin = "admin",
        /// Makes InfraEnvs and runs the hosts that boot their images.
        InfraAdmin = "infra-admin",
        /// Makes clusters, and binds hosts that are offered to the organisation.
        ClusterCreator = "cluster-creator",
        /// Sees what the organisation has.
        ReadOnly = "read-only",
    }
}

/// Counts how often the tokens of an InfraEnv or a cluster were revoked: a token of another generation is worth nothing.
/// Tokens that name none were made before anybody counted, and belong to the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u32);

impl Generation {
    pub const FIRST: Self = Self(0);

    /// The one after; the last one there is stays the last.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    pub fn is_first(&self) -> bool {
        *self == Self::FIRST
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
