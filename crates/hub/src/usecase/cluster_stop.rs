//! An installation is stopped: cancelled where it is, or reset to the start, cluster and hosts in one commit.

use crate::Hub;
use crate::change::OpContext;
use crate::cluster_change::{ClusterChange, OneCluster};
use crate::error::Error;
use muster_domain::cluster::{self, Cluster, lifecycle};
use muster_domain::host::{self, Host, rules};
use muster_domain::refusal::Refused;
use muster_domain::{ClusterId, Severity};
use std::sync::Arc;

/// The two ways to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Cancel,
    Reset,
}

impl Stop {
    fn of_cluster(self) -> cluster::Event {
        match self {
            Self::Cancel => cluster::Event::Cancel,
            Self::Reset => cluster::Event::Reset,
        }
    }

    fn failed(self) -> &'static str {
        match self {
            Self::Cancel => "cancel_installation_failed",
            Self::Reset => "reset_installation_failed",
        }
    }

    fn of_host(self) -> host::Event {
        match self {
            Self::Cancel => host::Event::Cancel,
            Self::Reset => host::Event::Reset,
        }
    }
}

pub async fn cluster_stop(
    hub: &Hub,
    id: ClusterId,
    how: Stop,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    let done = hub
        .change_clusters(&OneCluster::new(id).with_hosts(), opctx, |snapshot| {
            let change = stop(hub, &snapshot.cluster, &snapshot.hosts, how)?;
            Ok(snapshot.changed_with_hosts(change))
        })
        .await;
    if let Err(Error::Refused(refused)) = &done {
        tell_failure(hub, id, how, refused, opctx).await?;
    }
    done
}

/// Who reads the cluster's history learns that somebody tried.
async fn tell_failure(
    hub: &Hub,
    id: ClusterId,
    how: Stop,
    refused: &Refused,
    opctx: &OpContext,
) -> Result<(), Error> {
    let Some(cluster) = hub.index.cluster(id) else {
        return Ok(());
    };
    let text = format!("Cluster {}: {refused}", cluster.name);
    hub.tell(cluster.entry(how.failed(), Severity::Error, text), opctx)
        .await
}

/// The decision alone; a plan asks for it, too.
pub fn stop(hub: &Hub, cluster: &Cluster, hosts: &[Host], how: Stop) -> Result<ClusterChange, Error> {
    hub.whole_cluster(cluster)?;
    let decision = lifecycle::next(cluster, &how.of_cluster(), hub.cluster_around())?;
    let around = hub.around(Some(&decision.cluster), hub.now());
    let event = how.of_host();
    let mut stopped = Vec::new();
    for host in hosts.iter().filter(|host| rules::takes_part(host)) {
        stopped.push(host::lifecycle::next(host, &event, &around)?);
    }
    Ok(ClusterChange {
        cluster: decision,
        hosts: stopped,
    })
}
