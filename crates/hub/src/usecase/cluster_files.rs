//! Files of an installation: made when it starts, given to those who install, gone with a reset.

use crate::Hub;
use crate::change::{Decision, OpContext};
use crate::cluster_change::OneCluster;
use crate::error::Error;
use crate::ignition::{GENERATED, generated, make_files, openshift_cluster_id};
use muster_domain::ClusterId;
use muster_domain::cluster::{Cluster, Event, PreparationStatus, Status, lifecycle};
use muster_domain::host::Host;
use muster_domain::refusal::Refused;
use muster_domain::render::install_config as render;
use muster_store::FileWrite;
use std::collections::BTreeSet;
use std::sync::Arc;

pub fn find(hub: &Hub, id: ClusterId) -> Result<Arc<Cluster>, Error> {
    hub.readable_cluster(id)?;
    hub.index.cluster(id).ok_or_else(|| Error::missing("cluster", id))
}

pub async fn cluster_file(hub: &Hub, id: ClusterId, name: &str) -> Result<Vec<u8>, Error> {
    let cluster = find(hub, id)?;
    only_while(&cluster, name, Status::has_files)?;
    made(hub, &cluster, name).await?.ok_or_else(|| {
        let reason = format!("Cluster {}: there is no {name}.", cluster.name);
        Refused::conflict("file-not-made", reason, "").into()
    })
}

pub async fn made(hub: &Hub, cluster: &Cluster, name: &str) -> Result<Option<Vec<u8>>, Error> {
    Ok(hub.store.file_read(cluster.id, &generated(name)).await?)
}

/// What the installer would be given now, people's changes included.
pub fn install_config(hub: &Hub, cluster: &Cluster) -> Result<String, Error> {
    let mut hosts: Vec<Host> = hub
        .index
        .hosts_of_cluster(cluster.id)
        .iter()
        .map(|slot| Host::clone(&slot.row()))
        .collect();
    // The same hosts give the same text, whoever registered first.
    hosts.sort_by_key(Host::key);
    let pools: BTreeSet<_> = hosts.iter().map(|host| host.infra_env).collect();
    let pools: Vec<_> = pools
        .into_iter()
        .filter_map(|id| hub.index.infra_env(id))
        .collect();
    let trusted: Vec<_> = pools
        .iter()
        .map(|pool| pool.additional_trust_bundle.as_str())
        .collect();
    Ok(render::install_config(cluster, &hosts, &trusted)?)
}

/// A "no" because of the state the cluster is in.
pub fn only_while(cluster: &Cluster, name: &str, is_there: fn(Status) -> bool) -> Result<(), Refused> {
    let status = cluster.status();
    if is_there(status) {
        return Ok(());
    }
    let all = Status::ALL.iter().copied();
    let words: Vec<_> = all.filter(|status| is_there(*status)).map(Status::word).collect();
    Err(Refused::conflict(
        "file-not-made",
        format!(
            "Cluster {} is {status}: {name} is not available now.",
            cluster.name
        ),
        format!(
            "It is available while the cluster is one of: {}.",
            words.join(", ")
        ),
    ))
}

/// Makes the files of an attempt and tells the cluster how that went.
pub async fn files_make(hub: &Hub, id: ClusterId, attempt: u32) -> Result<(), Error> {
    // The order is in the database before memory knows of the attempt; an old copy would not wait for the result.
    hub.reload(id.into()).await?;
    let Some(cluster) = hub.index.cluster(id) else {
        return Ok(());
    };
    let (outcome, files) = match make_files(hub, &cluster, attempt).await {
        Ok(files) => (Ok(()), files),
        Err(why) => (Err(why), Vec::new()),
    };
    let event = Event::FilesMade { attempt, outcome };
    let opctx = OpContext::hub();
    let done = hub.change_cluster(id, &opctx, |cluster| {
        let mut decision = lifecycle::next(cluster, &event, hub.cluster_around())?;
        // Nobody waits for a result that changes nothing: the attempt is over, or another one is under way.
        if decision.cluster == *cluster {
            return Ok((decision, Vec::new()));
        }
        if let Some(own) = openshift_cluster_id(&files) {
            decision.cluster.openshift_cluster_id = Some(own);
        }
        Ok((decision, files.clone()))
    });
    match done.await {
        Ok(_) | Err(Error::Missing { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What was made for an installation goes; what people gave, and logs, stay.
pub async fn files_drop(hub: &Hub, id: ClusterId) -> Result<(), Error> {
    hub.readable_cluster(id)?;
    let (scope, opctx) = (OneCluster::new(id), OpContext::hub());
    let done = hub.change_clusters(&scope, &opctx, |snapshot| {
        let mut dropped = Decision::because("the installation was reset");
        // A new attempt may have made its own files before this came to pass.
        if snapshot.cluster.install.preparation.status != PreparationStatus::Success {
            dropped.files.push(FileWrite::delete_prefix(id, GENERATED));
        }
        Ok(dropped)
    });
    match done.await {
        // Deleted meanwhile, and its files with it.
        Ok(_) | Err(Error::Missing { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
