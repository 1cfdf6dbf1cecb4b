//! The name of an object: its namespace and its name.

use kube::Resource;
use std::fmt;

/// Of objects without a namespace, `namespace` is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

impl From<&crate::crd::reference::ClusterRef> for Key {
    fn from(reference: &crate::crd::reference::ClusterRef) -> Self {
        Self::new(&reference.namespace, &reference.name)
    }
}

impl From<&crate::crd::reference::FullRef> for Key {
    fn from(reference: &crate::crd::reference::FullRef) -> Self {
        Self::new(&reference.namespace, &reference.name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}
