//! A cluster installed elsewhere is made known, so that hosts can be added to it.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::usecase::cluster_create::blank;
use muster_contract::v2::cluster_request::ImportCluster;
use muster_domain::cluster::{Cluster, DiskEncryption, Kind, Phase, lifecycle};
use muster_domain::input::name;
use muster_domain::{ClusterId, Severity};
use muster_vocabulary::Word;
use std::sync::Arc;
use uuid::Uuid;

pub async fn cluster_import(
    hub: &Hub,
    wish: &ImportCluster,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    cluster_import_as(hub, ClusterId(Uuid::new_v4()), wish, opctx).await
}

/// Under an id that the caller chose; stale if it is taken.
pub async fn cluster_import_as(
    hub: &Hub,
    id: ClusterId,
    wish: &ImportCluster,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    let mut cluster = imported(hub, wish, opctx)?;
    cluster.id = id;
    let text = format!("Cluster {} was imported; hosts can be added to it.", cluster.name);
    let entry = cluster.entry("cluster_registration_succeeded", Severity::Info, text);
    hub.add_cluster(cluster, entry, opctx).await
}

fn imported(hub: &Hub, wish: &ImportCluster, opctx: &OpContext) -> Result<Cluster, Error> {
    name::api_vip_dnsname("api_vip_dnsname", &wish.api_vip_dnsname)?;
    let (own_name, domain) = name_and_domain(&wish.api_vip_dnsname).unwrap_or((&wish.name, ""));
    name::cluster_name(own_name, true)?;
    let mut cluster = blank(hub, opctx);
    cluster.kind = Kind::AddHostsCluster;
    cluster.phase = Phase::AddingHosts;
    cluster.imported = true;
    cluster.name = own_name.to_owned();
    cluster.base_dns_domain = domain.to_owned();
    cluster.api_vip_dns_name.clone_from(&wish.api_vip_dnsname);
    cluster.openshift_cluster_id = Some(wish.openshift_cluster_id);
    cluster.openshift_version = wish.openshift_version.clone().unwrap_or_default();
    // How it was installed is not ours to tell.
    cluster.hyperthreading = Word::default();
    cluster.disk_encryption = DiskEncryption::default();
    cluster.org_soft_timeouts_enabled = false;
    cluster.status_info = lifecycle::status_text(cluster.status()).into();
    Ok(cluster)
}

/// The API of a cluster is `api.<name>.<domain>`, unless somebody gave it another name.
fn name_and_domain(api: &str) -> Option<(&str, &str)> {
    let (own_name, domain) = api.strip_prefix("api.")?.split_once('.')?;
    (name::cluster_name(own_name, false).is_ok() && name::base_dns_domain(domain).is_ok())
        .then_some((own_name, domain))
}

#[cfg(test)]
mod tests {
    use super::name_and_domain;

    #[test]
    fn the_usual_api_name_tells_name_and_domain() {
        assert_eq!(
            name_and_domain("api.prod.example.com"),
            Some(("prod", "example.com"))
        );
        assert_eq!(name_and_domain("k8s.example.com"), None);
        assert_eq!(name_and_domain("api.example"), None);
        assert_eq!(name_and_domain("10.0.0.1"), None);
    }
}
