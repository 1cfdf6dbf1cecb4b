//! By what AgentClassifications are cached and found.

use crate::crd::AgentClassification;
use crate::runtime::cache::{Index, namespace_of};
use crate::runtime::registry::Cached;
use kube::api::ApiResource;

impl Cached for AgentClassification {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}

pub const CLASSIFICATIONS_BY_NAMESPACE: Index<AgentClassification> = Index::new("namespace", namespace_of);
