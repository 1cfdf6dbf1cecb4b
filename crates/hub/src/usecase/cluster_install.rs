//! A cluster's installation starts: roles, bootstrap host and the order for its files, in one commit with whatever had to be
//! found out about its hosts for that.

use crate::Hub;
use crate::change::OpContext;
use crate::cluster_change::ClusterChange;
use crate::error::Error;
use crate::ignition::UPLOADED;
use crate::ignition::uploaded::roles_of;
use crate::usecase::cluster_reconcile::at_once;
use muster_domain::cluster::{Cluster, install};
use muster_domain::host::Host;
use muster_domain::{ClusterId, Entry, Severity};
use muster_vocabulary::InstallRole;
use std::sync::Arc;

pub async fn cluster_install(hub: &Hub, id: ClusterId, opctx: &OpContext) -> Result<Arc<Cluster>, Error> {
    at_once::decide(hub, id, UPLOADED, opctx, |cluster, hosts, files| {
        start(hub, cluster, hosts, &roles_of(files))
    })
    .await
}

/// The decision alone; a plan asks for it, too.
pub fn start(
    hub: &Hub,
    cluster: &Cluster,
    hosts: &[Host],
    uploaded: &[InstallRole],
) -> Result<ClusterChange, Error> {
    hub.whole_cluster(cluster)?;
    let sources = install::Sources {
        uploaded,
        installer: hub.settings.installer.program.is_some(),
    };
    let start = install::start(
        cluster,
        hosts,
        sources,
        hub.cluster_around(),
        &hub.settings.timers,
    )?;
    let mut whole = ClusterChange {
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
