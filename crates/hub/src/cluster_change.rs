//! What a decision about a cluster looks at: the cluster alone, with files, or with all its hosts.

use crate::Hub;
use crate::change::{Decision, OpContext, Scope};
use crate::error::Error;
use crate::host_change::HostChange;
use jiff::Timestamp;
use muster_domain::cluster::{self, Cluster};
use muster_domain::host::{self, Host};
use muster_domain::{ClusterId, Entry};
use muster_store::{FileStat, FileWrite, RowKey};
use std::sync::Arc;

/// A cluster, and those of its files that the scope names.
#[derive(Debug)]
pub struct ClusterSnapshot {
    pub cluster: Arc<Cluster>,
    pub files: Vec<FileStat>,
    /// With their newest signs of life, in the order of their keys; empty if the scope is without hosts.
    pub hosts: Vec<Host>,
    pub now: Timestamp,
}

/// One cluster. Every change of its files raises its revision, so nobody decides on a list of files that is not true any
/// more.
#[derive(Debug, Clone, Copy)]
pub struct OneCluster<'a> {
    id: ClusterId,
    below: Option<&'a str>,
    with_hosts: bool,
}

impl<'a> OneCluster<'a> {
    pub fn new(id: ClusterId) -> Self {
        Self {
            id,
            below: None,
            with_hosts: false,
        }
    }

    /// With the files below this path.
    pub fn files_below(self, path: &'a str) -> Self {
        let below = Some(path);
        Self { below, ..self }
    }

    pub fn with_hosts(self) -> Self {
        Self {
            with_hosts: true,
            ..self
        }
    }
}

impl Scope for OneCluster<'_> {
    type Snapshot = ClusterSnapshot;

    async fn read(&self, hub: &Hub, now: Timestamp, fresh: bool) -> Result<ClusterSnapshot, Error> {
        let id = self.id;
        if fresh {
            hub.reload(id.into()).await?;
            for slot in hub.index.hosts_of_cluster(id).iter().filter(|_| self.with_hosts) {
                hub.reload(slot.row().key().into()).await?;
            }
        }
        let cluster = hub
            .index
            .cluster(id)
            .ok_or_else(|| Error::missing("cluster", id))?;
        let files = match self.below {
            // Read after the row: a list that is older than the row cannot be told from a true one.
            Some(below) => hub.store.file_list(id, below).await?,
            None => Vec::new(),
        };
        let hosts = match self.with_hosts {
            true => hub.hosts_of(id),
            false => Vec::new(),
        };
        Ok(ClusterSnapshot {
            cluster,
            files,
            hosts,
            now,
        })
    }
}

impl ClusterSnapshot {
    /// What becomes of the cluster and its files; nothing if both stay as they are.
    pub fn changed(&self, mut decision: cluster::Decision, files: Vec<FileWrite>) -> Decision {
        let mut written = Decision::because(decision.why);
        let is_same = files.is_empty()
            && decision.journal.is_empty()
            && decision.effects.is_empty()
            && decision.cluster == *self.cluster;
        if !is_same {
            decision.cluster.updated_at = self.now;
            written.put_cluster(decision);
            written.files = files;
        }
        written
    }
}

/// What becomes of a cluster and of those of its hosts that change with it.
#[derive(Debug)]
pub struct ClusterChange {
    pub cluster: cluster::Decision,
    pub hosts: Vec<host::Decision>,
}

impl ClusterSnapshot {
    /// All of it in one commit; hosts that stay as they are stay out of it.
    pub fn changed_with_hosts(&self, change: ClusterChange) -> Decision {
        let ClusterChange { cluster, hosts } = change;
        let mut written = Decision::because(cluster.why);
        written.journal = cluster.journal;
        written.effects = cluster.effects;
        for decision in hosts {
            let before = self.hosts.iter().find(|host| host.key() == decision.host.key());
            let change = HostChange::plain(decision);
            if before.is_none_or(|before| !change.changes_nothing(before)) {
                written.put_host(change);
            }
        }
        if !written.is_empty() || cluster.cluster != *self.cluster {
            written.put(cluster.cluster);
        }
        written
    }
}

impl Hub {
    pub fn cluster_around(&self) -> cluster::event::Around<'_> {
        cluster::event::Around {
            now: self.now(),
            timers: &self.settings.cluster_timers,
        }
    }

    /// The hosts of a cluster with their newest signs of life, in the order of their keys.
    pub fn hosts_of(&self, id: ClusterId) -> Vec<Host> {
        let slots = self.index.hosts_of_cluster(id);
        slots.iter().map(|slot| slot.host()).collect()
    }

    /// Changes one cluster and its files.
    pub async fn change_cluster(
        &self,
        id: ClusterId,
        opctx: &OpContext,
        decide: impl Fn(&Cluster) -> Result<(cluster::Decision, Vec<FileWrite>), Error>,
    ) -> Result<Arc<Cluster>, Error> {
        self.change_clusters(&OneCluster::new(id), opctx, |snapshot| {
            let (decision, files) = decide(&snapshot.cluster)?;
            Ok(snapshot.changed(decision, files))
        })
        .await
    }

    /// The same for decisions that depend on which files there are below a path.
    pub async fn change_cluster_by_files(
        &self,
        id: ClusterId,
        below: &str,
        opctx: &OpContext,
        decide: impl Fn(&Cluster, &[FileStat]) -> Result<(cluster::Decision, Vec<FileWrite>), Error>,
    ) -> Result<Arc<Cluster>, Error> {
        self.change_clusters(&OneCluster::new(id).files_below(below), opctx, |snapshot| {
            let (decision, files) = decide(&snapshot.cluster, &snapshot.files)?;
            Ok(snapshot.changed(decision, files))
        })
        .await
    }

    /// Changes a cluster with whatever the scope holds; gives it as it is afterwards.
    pub async fn change_clusters(
        &self,
        scope: &OneCluster<'_>,
        opctx: &OpContext,
        decide: impl Fn(&ClusterSnapshot) -> Result<Decision, Error>,
    ) -> Result<Arc<Cluster>, Error> {
        let done = self.change(scope, opctx, decide).await?;
        Ok(done.row().unwrap_or(done.snapshot.cluster))
    }

    /// Writes a new cluster; stale if its id is taken.
    pub async fn add_cluster(
        &self,
        cluster: Cluster,
        entry: Entry,
        opctx: &OpContext,
    ) -> Result<Arc<Cluster>, Error> {
        let scope = crate::change::New(RowKey::Cluster(cluster.id));
        let done = self.change(&scope, opctx, |()| {
            let mut new = Decision::because("a person wants it");
            new.put(cluster.clone());
            new.journal.push(entry.clone());
            Ok(new)
        });
        let done = done.await?;
        done.row().ok_or_else(|| Error::missing("cluster", cluster.id))
    }
}
