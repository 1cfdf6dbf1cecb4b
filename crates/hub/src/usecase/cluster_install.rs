//! A cluster's installation starts: roles, bootstrap host and the order for its files, in one commit.

use crate::Hub;
use crate::error::Error;
use crate::ignition::uploaded::roles_uploaded;
use crate::turn::Ask;
use crate::usecase::cluster_whole::Whole;
use muster_domain::cluster::{Cluster, install};
use muster_domain::host::Host;
use muster_domain::{ClusterId, Entry, Severity};
use std::sync::Arc;

pub async fn cluster_install(hub: &Hub, id: ClusterId, ask: &Ask) -> Result<Arc<Cluster>, Error> {
    // A change of uploads bumps the cluster's revision, so a list that grew old makes the commit stale.
    let uploaded = roles_uploaded(hub, id).await?;
    hub.whole_turn(id, ask, |cluster, hosts| start(hub, cluster, hosts, &uploaded))
        .await
}

/// The decision alone; a plan asks for it, too.
pub fn start(hub: &Hub, cluster: &Cluster, hosts: &[Host], uploaded: &[String]) -> Result<Whole, Error> {
    hub.whole_cluster(cluster)?;
    let names: Vec<&str> = uploaded.iter().map(String::as_str).collect();
    let sources = install::Sources {
        uploaded: &names,
        installer: hub.settings.installer.program.is_some(),
    };
    let start = install::start(
        cluster,
        hosts,
        sources,
        hub.cluster_around(),
        &hub.settings.timers,
    )?;
    let mut whole = Whole {
        cluster: start.decision,
        hosts: start.hosts,
    };
    for decision in &mut whole.hosts {
        if let Some(warning) = hub.system_warning(&decision.host, cluster) {
            decision.journal.push(other_system(&decision.host, warning));
        }
    }
    Ok(whole)
}

/// The right operating system cannot be named; the host is installed all the same, and people know with what.
pub fn other_system(host: &Host, warning: String) -> Entry {
    host.entry("host_os_image_not_found", Severity::Warning, warning)
}
