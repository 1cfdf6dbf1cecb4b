//! By what PreprovisioningImages are cached and found.

use crate::controller::agent::index::label_of_infra_env;
use crate::crd::PreprovisioningImage;
use crate::crd::keys::label;
use crate::key::Key;
use crate::runtime::cache::Index;
use crate::runtime::registry::{Cached, Which};
use kube::ResourceExt;
use kube::api::ApiResource;

/// Only those that were made for an InfraEnv.
impl Cached for PreprovisioningImage {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }

    fn which() -> Which {
        Which::Labelled(label::INFRA_ENV, None)
    }
}

/// `namespace/name` of its InfraEnv.
pub const IMAGES_BY_INFRA_ENV: Index<PreprovisioningImage> = Index::new("infra-env", label_of_infra_env);

/// `namespace/name` of the Secret with network settings that it names.
pub const IMAGES_BY_NETWORK: Index<PreprovisioningImage> = Index::new("network", |image| {
    let namespace = image.namespace().unwrap_or_default();
    let name = Some(&image.spec.network_data_name).filter(|name| !name.is_empty());
    let key = name.map(|name| Key::new(&namespace, name).to_string());
    key.into_iter().collect()
});
