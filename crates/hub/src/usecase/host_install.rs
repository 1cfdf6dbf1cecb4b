//! Single hosts: installed into a running cluster, reset, reclaimed in-band, or tested once more.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need, Stored};
use crate::usecase::cluster_install::other_system;
use crate::usecase::host_bind::early_bound;
use muster_domain::HostKey;
use muster_domain::checks::CheckId;
use muster_domain::host::{Event, Host, Report, Role};
use muster_domain::refusal::{Class, Refused};
use std::sync::Arc;

pub async fn host_install(hub: &Hub, key: HostKey, opctx: &OpContext) -> Result<Arc<Host>, Error> {
    hub.change_host(key, Need::Row, opctx, decide_install).await
}

pub fn decide_install(snapshot: &HostSnapshot) -> Result<HostChange, Error> {
    lent(&snapshot.host)?;
    let mut decision = snapshot.next(&Event::Install)?;
    let host = &mut decision.host;
    if host.role == Role::Worker && host.tenant.machine_config_pool.is_empty() {
        host.tenant.machine_config_pool = Role::Worker.word().into();
    }
    if let Some(cluster) = &snapshot.cluster
        && let Some(warning) = snapshot.hub.system_warning(&decision.host, cluster)
    {
        decision.journal.push(other_system(&decision.host, warning));
    }
    Ok(snapshot.plain(decision))
}

pub async fn host_reset(hub: &Hub, key: HostKey, opctx: &OpContext) -> Result<Arc<Host>, Error> {
    hub.change_host(key, Need::Row, opctx, decide_reset).await
}

pub fn decide_reset(snapshot: &HostSnapshot) -> Result<HostChange, Error> {
    let adds = snapshot
        .cluster
        .as_ref()
        .is_some_and(|cluster| cluster.adds_hosts());
    if !adds {
        return Err(Refused::conflict(
            "not-a-day-two-host",
            format!(
                "Host {} does not join a running cluster, so it cannot be reset alone.",
                snapshot.host.name()
            ),
            "Reset its cluster, or unbind the host.",
        )
        .into());
    }
    Ok(snapshot.plain(snapshot.next(&Event::Reset)?))
}

/// Takes back a host that runs its installed system: it fetches the discovery image itself and boots it.
pub async fn host_reclaim(hub: &Hub, key: HostKey, opctx: &OpContext) -> Result<Arc<Host>, Error> {
    hub.change_host(key, Need::Row, opctx, decide_reclaim).await
}

pub fn decide_reclaim(snapshot: &HostSnapshot) -> Result<HostChange, Error> {
    early_bound(snapshot)?;
    let decision = snapshot.next(&Event::Reclaim)?;
    snapshot.measured(decision, Stored::new())
}

/// Forgets what a test found, so that it runs again when the cluster is next prepared.
pub async fn host_retest(
    hub: &Hub,
    key: HostKey,
    check: &str,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    let report = match CheckId::parse(check) {
        Some(CheckId::InstallationDiskSpeed) => Report::DisksInfo,
        Some(CheckId::ContainerImagesAvailable) => Report::ImagesStatus,
        Some(_) | None => return Err(not_retestable(check).into()),
    };
    hub.change_host(key, Need::Reports, opctx, |snapshot| {
        lent(&snapshot.host)?;
        let mut decision = snapshot.next(&Event::CheckedIn)?;
        decision.forget.push(report);
        snapshot.measured(decision, Stored::new())
    })
    .await
}

fn not_retestable(check: &str) -> Refused {
    Refused::new(
        Class::Invalid,
        "check-not-repeatable",
        format!("{check:?} is no check that can be run again."),
        "Name sufficient-installation-disk-speed or container-images-available; all others run by themselves.",
    )
}

fn lent(host: &Host) -> Result<(), Refused> {
    match host.cluster {
        Some(_) => Ok(()),
        None => Err(Refused::new(
            Class::Missing,
            "host-is-free",
            format!("Host {} is free: it belongs to no cluster.", host.name()),
            "Bind it to a cluster first.",
        )),
    }
}
