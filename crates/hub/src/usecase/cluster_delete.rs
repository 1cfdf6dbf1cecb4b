//! A cluster is deleted: its own hosts go with it, borrowed ones return to their pools, all in one commit.

use crate::Hub;
use crate::error::Error;
use crate::turn::{Ask, Need, Scene, Stored, Turn};
use muster_domain::cluster::{Cluster, lifecycle};
use muster_domain::host::{self, Event, Host, rules};
use muster_domain::{ClusterId, Entry, Refused, Severity};
use muster_store::{ClusterWrite, Commit, HostWrite};
use std::sync::Arc;

const ATTEMPTS: usize = 16;

/// What happens to one host of a deleted cluster.
pub enum Fate {
    /// Booted from the cluster's own image: it goes with the cluster.
    Deleted(Box<Host>),
    Returned(Box<Turn>),
}

pub async fn cluster_delete(hub: &Hub, id: ClusterId, ask: &Ask) -> Result<(), Error> {
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            refresh(hub, id).await?;
        }
        let cluster = hub
            .index
            .cluster(id)
            .ok_or_else(|| Error::missing("cluster", id))?;
        match delete_once(hub, &cluster, ask).await {
            Err(error) if error.is_stale() => last = Some(error),
            Err(Error::Refused(refused)) => {
                tell_failure(hub, &cluster, &refused, ask).await?;
                return Err(refused.into());
            }
            Ok(()) => {
                end_moves(hub, &cluster).await;
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| Error::missing("cluster", id)))
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
    let ask = Ask::hub();
    for key in hub.index.hosts_moving_to(cluster.id) {
        let ended = hub.host_turn(key, Need::Row, &ask, |scene| {
            let decision = if scene.host.moving_to == Some(cluster.id) {
                scene.next(&event)?
            } else {
                scene.unchanged()
            };
            Ok(scene.plain(decision))
        });
        if let Err(error) = ended.await {
            tracing::warn!(host = %key, %error, "a move to a deleted cluster goes on for now");
        }
    }
}

/// A refusal is history too: people look there when automation did not do what they expected.
async fn tell_failure(hub: &Hub, cluster: &Cluster, refused: &Refused, ask: &Ask) -> Result<(), Error> {
    let text = format!("Cluster {} was not deleted: {refused}", cluster.name);
    let commit = Commit {
        request_id: ask.request_id,
        journal: vec![cluster.entry("cluster_deregister_failed", Severity::Error, text)],
        ..Commit::new(hub.now())
    };
    hub.commit(commit, Vec::new()).await?;
    Ok(())
}

/// Decides for every host; the same code answers a plan.
pub fn fates(hub: &Hub, cluster: &Arc<Cluster>) -> Result<(Vec<Fate>, Vec<Entry>), Error> {
    hub.whole_cluster(cluster)?;
    let decision = lifecycle::next(cluster, &lifecycle::Event::Delete, hub.now())?;
    let slots = hub.index.hosts_of_cluster(cluster.id);
    let writing = slots.iter().map(|slot| slot.host()).filter(|host| {
        // A borrowed host stays known until its installer has ended; one that goes with the cluster would not.
        rules::is_writing(host)
            && is_own(hub, cluster, host)
            && rules::deletable(host, Some(cluster)).is_err()
    });
    must_not_write(cluster, writing)?;
    let fates = slots
        .iter()
        .map(|slot| fate(hub, cluster, slot.host()))
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
fn must_not_write(cluster: &Cluster, writing: impl Iterator<Item = Host>) -> Result<(), Refused> {
    let names: Vec<String> = writing
        .map(|host| format!("{} ({})", host.name(), host.status().word()))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(Refused::conflict(
        "hosts-are-installing",
        format!(
            "Cluster {} cannot be deleted with its own hosts while their disks are being written: {}.",
            cluster.name,
            names.join(", ")
        ),
        "Cancel the installation first.",
    ))
}

fn fate(hub: &Hub, cluster: &Arc<Cluster>, host: Host) -> Result<Fate, Error> {
    if is_own(hub, cluster, &host) {
        return Ok(Fate::Deleted(Box::new(host)));
    }
    let infra_env = hub.index.infra_env(host.infra_env);
    let scene = Scene {
        hub,
        host,
        stored: Stored::new(),
        cluster: Some(cluster.clone()),
        infra_env,
        now: hub.now(),
    };
    let decision = scene.next(&Event::Release)?;
    Ok(Fate::Returned(Box::new(scene.measured(decision, Stored::new())?)))
}

async fn delete_once(hub: &Hub, cluster: &Arc<Cluster>, ask: &Ask) -> Result<(), Error> {
    let now = hub.now();
    let (fates, mut journal) = fates(hub, cluster)?;
    let (mut hosts, mut returned, mut deleted, mut effects) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for fate in fates {
        match fate {
            Fate::Deleted(host) => {
                journal.extend(host::lifecycle::farewell(&host, &hub.around(Some(cluster), now)));
                deleted.push(HostWrite::Delete {
                    key: host.key(),
                    revision: host.revision,
                });
            }
            Fate::Returned(turn) => {
                let Turn { decision, reports } = *turn;
                hosts.push(Hub::host_write(&decision.host, reports));
                journal.extend(decision.journal);
                effects.extend(decision.effects);
                returned.push(decision.host);
            }
        }
    }
    let gone: Vec<_> = deleted
        .iter()
        .filter_map(|write| match write {
            HostWrite::Delete { key, .. } => Some(*key),
            HostWrite::Put { .. } => None,
        })
        .collect();
    // Returned hosts first: their new revisions come back in this order.
    hosts.extend(deleted);
    let commit = Commit {
        request_id: ask.request_id,
        hosts,
        clusters: vec![ClusterWrite::Delete {
            id: cluster.id,
            revision: cluster.revision,
        }],
        journal,
        effects,
        ..Commit::new(now)
    };
    hub.commit(commit, returned).await?;
    gone.into_iter().for_each(|key| hub.index.drop_host(key, now));
    hub.index.drop_cluster(cluster.id);
    hub.rooms.drop_room(cluster.id);
    hub.behind.forget(cluster.id);
    Ok(())
}

async fn refresh(hub: &Hub, id: ClusterId) -> Result<(), Error> {
    match hub.store.cluster_find(id).await? {
        Some(cluster) => drop(hub.keep_cluster(cluster)),
        None => hub.index.drop_cluster(id),
    }
    for slot in hub.index.hosts_of_cluster(id) {
        if let Some(host) = hub.store.host_find(slot.row().key()).await? {
            hub.index.put_host(host);
        }
    }
    Ok(())
}
