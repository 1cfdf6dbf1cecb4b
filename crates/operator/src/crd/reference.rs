//! Ways in which one object names another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object of the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalRef {
    /// Name of the object, in the namespace of the one that refers to it.
    #[serde(default)]
    pub name: String,
}

/// An object of the same namespace; the name must be given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameRef {
    /// Name of the object.
    pub name: String,
}

/// An object of any namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ClusterRef {
    /// Name of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// An object of any namespace; both parts must be given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FullRef {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}
