//! Changes that concern a cluster and all of its hosts: decided together, written in one commit or not at all.

use crate::Hub;
use crate::error::Error;
use crate::turn::Ask;
use muster_domain::ClusterId;
use muster_domain::cluster::{self, Cluster};
use muster_domain::host::{self, Host};
use muster_store::{ClusterWrite, Commit};
use std::sync::Arc;

/// Lost races in a row after which something else is wrong.
const ATTEMPTS: usize = 16;

/// What becomes of a cluster and of those of its hosts that change with it.
#[derive(Debug)]
pub struct Whole {
    pub cluster: cluster::Decision,
    pub hosts: Vec<host::Decision>,
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

    /// Decides over all of them, again on fresh data as long as somebody else is faster.
    pub async fn whole_turn(
        &self,
        id: ClusterId,
        ask: &Ask,
        decide: impl Fn(&Cluster, &[Host]) -> Result<Whole, Error>,
    ) -> Result<Arc<Cluster>, Error> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.learn_whole(id).await?;
            }
            let before = self
                .index
                .cluster(id)
                .ok_or_else(|| Error::missing("cluster", id))?;
            let whole = match decide(&before, &self.hosts_of(id)) {
                // Another hub may have changed something a moment ago: nobody is refused because of an old copy.
                Err(Error::Refused(_)) if attempt == 0 && self.has_company() => continue,
                decided => decided?,
            };
            match self.whole_commit(whole, ask).await {
                Err(error) if error.is_stale() => last = Some(error),
                done => return done,
            }
        }
        Err(last.unwrap_or_else(|| Error::missing("cluster", id)))
    }

    async fn whole_commit(&self, whole: Whole, ask: &Ask) -> Result<Arc<Cluster>, Error> {
        let now = self.now();
        let cluster::Decision {
            mut cluster,
            mut journal,
            mut effects,
            why: _,
        } = whole.cluster;
        let (mut writes, mut rows) = (Vec::new(), Vec::new());
        for decision in whole.hosts {
            let reports = decision.forget.iter().map(|report| (*report, None)).collect();
            writes.push(Self::host_write(&decision.host, reports));
            journal.extend(decision.journal);
            effects.extend(decision.effects);
            rows.push(decision.host);
        }
        let commit = Commit {
            request_id: ask.request_id,
            hosts: writes,
            clusters: vec![ClusterWrite::Put {
                cluster: cluster.clone(),
            }],
            journal,
            effects,
            ..Commit::new(now)
        };
        let (_, done) = self.committed(commit, rows).await?;
        cluster.revision = done.clusters.first().copied().unwrap_or(cluster.revision + 1);
        let row = self.keep_cluster(cluster);
        self.mark_dirty(row.id);
        Ok(row)
    }

    /// Takes a cluster and its hosts as the store has them.
    async fn learn_whole(&self, id: ClusterId) -> Result<(), Error> {
        self.learn_cluster(id).await?;
        for slot in self.index.hosts_of_cluster(id) {
            self.refresh_host(slot.row().key()).await?;
        }
        Ok(())
    }
}
