//! The running cluster sends the certificate of its ingress; with it the kubeconfig is complete.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::ignition::generated;
use crate::usecase::cluster_files::{find, made};
use crate::usecase::operator_report::as_mistake;
use muster_domain::ClusterId;
use muster_domain::cluster::{Cluster, Event, lifecycle};
use muster_domain::refusal::{Class, Refused};
use muster_domain::render::kubeconfig;
use muster_store::FileWrite;
use std::sync::Arc;

/// May be sent again: the same certificate changes nothing.
pub async fn ingress_cert(
    hub: &Hub,
    id: ClusterId,
    pem: &str,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    let cluster = find(hub, id)?;
    // A wrong moment is reported before a wrong certificate.
    lifecycle::next(&cluster, &Event::IngressCert, hub.cluster_around())
        .map_err(|refused| as_mistake(refused.into()))?;
    let plain = made(hub, &cluster, "kubeconfig-noingress")
        .await?
        .ok_or_else(|| {
            let reason = format!(
                "Cluster {} has no kubeconfig: this hub did not install it.",
                cluster.name
            );
            Refused::new(Class::Invalid, "no-kubeconfig", reason, "")
        })?;
    let merged = kubeconfig::with_ingress_ca(&String::from_utf8_lossy(&plain), pem)?;
    let known = made(hub, &cluster, "kubeconfig").await?;
    let is_news = known.is_none_or(|known| known != merged.as_bytes());
    let done = hub.change_cluster(id, opctx, |cluster| {
        let decision = lifecycle::next(cluster, &Event::IngressCert, hub.cluster_around())?;
        let write = FileWrite::put(id, generated("kubeconfig"), merged.as_bytes());
        Ok((decision, if is_news { vec![write] } else { Vec::new() }))
    });
    done.await.map_err(as_mistake)
}
