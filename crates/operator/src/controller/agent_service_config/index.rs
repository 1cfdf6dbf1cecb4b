//! How AgentServiceConfigs, and those of hosted clusters, are cached.

use crate::crd::{AgentServiceConfig, HypershiftAgentServiceConfig};
use crate::runtime::registry::{Cached, Which};
use kube::api::ApiResource;

impl Cached for AgentServiceConfig {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }

    fn which() -> Which {
        Which::Everywhere
    }
}

impl Cached for HypershiftAgentServiceConfig {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}
