//! A cluster is deleted: its own hosts go with it, borrowed ones return to their pools, all in one commit.

use crate::Hub;
use crate::change::{Decision, OpContext};
use crate::cluster_change::{ClusterSnapshot, OneCluster};
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need, Stored};
use muster_domain::cluster::{Cluster, lifecycle};
use muster_domain::host::{self, Event, Host, rules};
use muster_domain::{ClusterId, Entry, Refused, Severity};

/// What happens to one host of a deleted cluster.
pub enum Fate {
    /// Booted from the cluster's own image: it goes with the cluster.
    Deleted(Box<Host>),
    Returned(Box<HostChange>),
}

pub async fn cluster_delete(hub: &Hub, id: ClusterId, opctx: &OpContext) -> Result<(), Error> {
    let before = hub.index.cluster(id);
    let scope = OneCluster::new(id).with_hosts();
    let done = hub
        .change(&scope, opctx, |snapshot| decide_delete(hub, snapshot))
        .await;
    match (done, before) {
        (Ok(done), _) => {
            end_moves(hub, &done.snapshot.cluster).await;
            Ok(())
        }
        (Err(Error::Refused(refused)), Some(cluster)) => {
            tell_failure(hub, &cluster, &refused, opctx).await?;
            Err(refused.into())
        }
        (Err(error), _) => Err(error),
    }
}

/// Nobody is on the way to a cluster that is gone. What is missed here is noticed when the host would arrive.
async fn end_moves(hub: &Hub, cluster: &Cluster) {
    let event = Event::MoveAbandoned {
        why: Refused::conflict(
            "cluster-not-found",
            format!("Cluster {} was deleted.", cluster.name),
            "",
        ),
    };
    let opctx = OpContext::hub();
    for key in hub.index.hosts_moving_to(cluster.id) {
        let ended = hub.change_host(key, Need::Row, &opctx, |snapshot| {
            let decision = if snapshot.host.moving_to == Some(cluster.id) {
                snapshot.next(&event)?
            } else {
                snapshot.unchanged()
            };
            Ok(snapshot.plain(decision))
        });
        if let Err(error) = ended.await {
            tracing::warn!(host = %key, %error, "a move to a deleted cluster goes on for now");
        }
    }
}

/// A refusal is history too: people look there when automation did not do what they expected.
async fn tell_failure(
    hub: &Hub,
    cluster: &Cluster,
    refused: &Refused,
    opctx: &OpContext,
) -> Result<(), Error> {
    let text = format!("Cluster {} was not deleted: {refused}", cluster.name);
    let entry = cluster.entry("cluster_deregister_failed", Severity::Error, text);
    hub.tell(entry, opctx).await
}

/// Decides for every host; the same code answers a plan.
pub fn fates(hub: &Hub, snapshot: &ClusterSnapshot) -> Result<(Vec<Fate>, Vec<Entry>), Error> {
    let cluster = &snapshot.cluster;
    hub.whole_cluster(cluster)?;
    let decision = lifecycle::next(cluster, &lifecycle::Event::Delete, snapshot.now)?;
    let writing = snapshot.hosts.iter().filter(|host| {
        // A borrowed host stays known until its installer has ended; one that goes with the cluster would not.
        rules::is_writing(host)
            && is_own(hub, cluster, host)
            && rules::deletable(host, Some(cluster)).is_err()
    });
    must_not_write(cluster, writing)?;
    let fates = snapshot
        .hosts
        .iter()
        .map(|host| fate(hub, snapshot, host))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((fates, decision.journal))
}

/// Booted from an image that was made for this cluster.
fn is_own(hub: &Hub, cluster: &Cluster, host: &Host) -> bool {
    hub.index
        .infra_env(host.infra_env)
        .is_some_and(|pool| pool.cluster == Some(cluster.id))
}

/// Names all of them: a machine whose disk is being written must not be forgotten half-way.
fn must_not_write<'a>(cluster: &Cluster, writing: impl Iterator<Item = &'a Host>) -> Result<(), Refused> {
    let names: Vec<String> = writing
        .map(|host| format!("{} ({})", host.name(), host.status().word()))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(Refused::conflict(
        "hosts-are-installing",
        format!(
            "The hub cannot delete cluster {} with its own hosts while installers write to their disks: {}.",
            cluster.name,
            names.join(", ")
        ),
        "Cancel the installation first.",
    ))
}

fn fate(hub: &Hub, snapshot: &ClusterSnapshot, host: &Host) -> Result<Fate, Error> {
    if is_own(hub, &snapshot.cluster, host) {
        return Ok(Fate::Deleted(Box::new(host.clone())));
    }
    let snapshot = HostSnapshot {
        hub: hub.clone(),
        host: host.clone(),
        stored: Stored::new(),
        cluster: Some(snapshot.cluster.clone()),
        infra_env: hub.index.infra_env(host.infra_env),
        now: snapshot.now,
    };
    let decision = snapshot.next(&Event::Release)?;
    Ok(Fate::Returned(Box::new(
        snapshot.measured(decision, Stored::new())?,
    )))
}

fn decide_delete(hub: &Hub, snapshot: &ClusterSnapshot) -> Result<Decision, Error> {
    let (fates, journal) = fates(hub, snapshot)?;
    let around = hub.around(Some(&snapshot.cluster), snapshot.now);
    let mut deleted = Decision::because("a person wants it gone");
    deleted.journal = journal;
    for fate in fates {
        match fate {
            Fate::Deleted(host) => {
                let farewell = host::lifecycle::farewell(&host, &around);
                deleted.journal.extend(farewell);
                deleted.delete(&*host);
            }
            Fate::Returned(change) => deleted.put_host(*change),
        }
    }
    deleted.delete(&*snapshot.cluster);
    Ok(deleted)
}
