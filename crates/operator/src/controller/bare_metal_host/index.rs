//! By what BareMetalHosts are cached and found.

use crate::controller::agent::index::{label_of_infra_env, mac_of};
use crate::crd::BareMetalHost;
use crate::crd::keys::annotation;
use crate::key::Key;
use crate::runtime::cache::Index;
use crate::runtime::registry::Cached;
use kube::ResourceExt;
use kube::api::ApiResource;

impl Cached for BareMetalHost {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}

/// `namespace/address` of the interface it boots from, as `mac_of` writes it.
pub const METAL_HOSTS_BY_MAC: Index<BareMetalHost> = Index::new("mac", |host| {
    let namespace = host.namespace().unwrap_or_default();
    let mac = mac_of(&namespace, &host.spec.boot_mac_address);
    mac.into_iter().collect()
});

/// `namespace/name` of its InfraEnv.
pub const METAL_HOSTS_BY_INFRA_ENV: Index<BareMetalHost> = Index::new("infra-env", label_of_infra_env);

/// `namespace/name` of the ClusterDeployment that its annotation names, which has the form of a key.
pub const METAL_HOSTS_BY_CLUSTER: Index<BareMetalHost> = Index::new("cluster", |host| {
    let named = host.annotations().get(annotation::BMAC_CLUSTER_REFERENCE);
    named.into_iter().cloned().collect()
});

/// `namespace/name` of the Secret with the credentials of its power controller.
pub const METAL_HOSTS_BY_CREDENTIALS: Index<BareMetalHost> = Index::new("credentials", |host| {
    let namespace = host.namespace().unwrap_or_default();
    let bmc = host.spec.bmc.iter();
    bmc.map(|bmc| Key::new(&namespace, &bmc.credentials_name).to_string())
        .collect()
});
