//! Read, decide, commit: the loops through which every change of a host and of a cluster goes.

use crate::error::Error;
use crate::index::Slot;
use crate::room::Room;
use crate::{Hub, measure};
use jiff::Timestamp;
use muster_domain::cluster::{self, Cluster};
use muster_domain::host::event::{Around, Event};
use muster_domain::host::{Decision, Host, Report, lifecycle};
use muster_domain::infra_env::InfraEnv;
use muster_domain::{Caller, ClusterId, Entry, HostKey};
use muster_store::{ClusterWrite, Commit, Committed, FileStat, FileWrite, HostFilter, HostWrite};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use uuid::Uuid;

/// Reports by kind, as stored.
pub type Stored = BTreeMap<Report, String>;

/// Who asks, and under which request; carried through every use case.
#[derive(Debug, Clone)]
pub struct Ask {
    pub caller: Caller,
    pub request_id: Option<Uuid>,
    /// A look at the whole cluster made this change, so it need not be looked at again for it.
    pub from_look: bool,
}

impl Ask {
    /// The hub itself: a deadline, a worker.
    pub fn hub() -> Self {
        Self {
            caller: Caller::admin(),
            request_id: None,
            from_look: false,
        }
    }
}

/// Everything a decision about one host may look at.
pub struct Scene<'a> {
    pub hub: &'a Hub,
    pub host: Host,
    pub stored: Stored,
    pub cluster: Option<Arc<Cluster>>,
    pub infra_env: Option<Arc<InfraEnv>>,
    pub now: Timestamp,
}

/// A decision with the reports it changes.
#[derive(Debug)]
pub struct Turn {
    pub decision: Decision,
    /// `None` deletes.
    pub reports: BTreeMap<Report, Option<String>>,
}

/// How much must be read before deciding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Row,
    Reports,
}

/// Lost races in a row after which something else is wrong.
pub const ATTEMPTS: usize = 16;

/// Tries again as long as somebody else is faster, but not for ever.
pub async fn contested<T, Try: Future<Output = Result<T, Error>>>(
    mut attempt: impl FnMut() -> Try,
) -> Result<T, Error> {
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match attempt().await {
            Err(error) if error.is_stale() && left > 0 => {}
            done => return done,
        }
    }
}

impl Scene<'_> {
    pub fn around(&self) -> Around<'_> {
        self.hub.around(self.cluster.as_deref(), self.now)
    }

    pub fn next(&self, event: &Event) -> Result<Decision, Error> {
        Ok(lifecycle::next(&self.host, event, &self.around())?)
    }

    /// Nothing happens.
    pub fn unchanged(&self) -> Decision {
        Decision {
            host: self.host.clone(),
            journal: Vec::new(),
            effects: Vec::new(),
            forget: Vec::new(),
            why: "nothing to do",
        }
    }

    /// The decision as it is; findings stay as they were.
    pub fn plain(&self, decision: Decision) -> Turn {
        let reports = decision.forget.iter().map(|report| (*report, None)).collect();
        Turn { decision, reports }
    }

    /// The decision, then the checks over what it leaves, in the same commit.
    pub fn measured(&self, decision: Decision, new: Stored) -> Result<Turn, Error> {
        let mut stored = self.stored.clone();
        decision
            .forget
            .iter()
            .for_each(|report| drop(stored.remove(report)));
        stored.extend(new.clone());
        let found = measure::host(self.hub, &decision.host, &stored, self.now);
        self.settled(decision, new, found)
    }

    /// The checks alone, in a room that was just arranged.
    pub fn in_room(&self, host: Host, journal: Vec<Entry>, room: &Room) -> Result<Turn, Error> {
        let found = measure::in_room(self.hub, &host, &self.stored, Some(room), self.now);
        let decision = Decision {
            host,
            journal,
            effects: Vec::new(),
            forget: Vec::new(),
            why: "the cluster was looked at",
        };
        self.settled(decision, Stored::new(), found)
    }

    fn settled(&self, decision: Decision, mut new: Stored, found: measure::Found) -> Result<Turn, Error> {
        let mut reports: BTreeMap<_, _> = decision.forget.iter().map(|report| (*report, None)).collect();
        let around = self
            .hub
            .around(self.cluster_of(&decision.host).as_deref(), self.now);
        let event = Event::Measured {
            gates: found.gates,
            complaints: found.complaints,
        };
        let mut settled = lifecycle::next(&decision.host, &event, &around)?;
        let mut journal = decision.journal;
        journal.append(&mut settled.journal);
        let mut effects = decision.effects;
        effects.append(&mut settled.effects);
        let old = self
            .stored
            .get(&Report::Validations)
            .map(String::as_str)
            .unwrap_or_default();
        if self.host.cluster == settled.host.cluster {
            journal.extend(measure::news(&settled.host, old, &found.report));
        }
        reports.extend(settled.forget.iter().map(|report| (*report, None)));
        if old != found.validations || reports.contains_key(&Report::Validations) {
            new.insert(Report::Validations, found.validations);
        }
        reports.extend(new.into_iter().map(|(report, body)| (report, Some(body))));
        let decision = Decision {
            journal,
            effects,
            why: decision.why,
            ..settled
        };
        Ok(Turn { decision, reports })
    }

    fn cluster_of(&self, host: &Host) -> Option<Arc<Cluster>> {
        match host.cluster {
            Some(id) if self.host.cluster == Some(id) => self.cluster.clone(),
            Some(id) => self.hub.index.cluster(id),
            None => None,
        }
    }
}

impl Hub {
    /// Changes one host: decided again on fresh data as long as somebody else is faster.
    pub async fn host_turn(
        &self,
        key: HostKey,
        need: Need,
        ask: &Ask,
        decide: impl Fn(&Scene<'_>) -> Result<Turn, Error>,
    ) -> Result<Arc<Host>, Error> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            let scene = self.scene(key, need, attempt > 0).await?;
            let turn = match decide(&scene) {
                // Another hub may have changed the host a moment ago: nobody is refused because of an old copy.
                Err(Error::Refused(_)) if attempt == 0 && self.has_company() => continue,
                decided => decided?,
            };
            if turn.changes_nothing(&scene.host) {
                return Ok(Arc::new(scene.host));
            }
            let before = scene.host.cluster;
            match self.host_commit(turn, before, ask, scene.now).await {
                Err(error) if error.is_stale() => {
                    self.relearn(&error).await?;
                    last = Some(error);
                }
                done => return done,
            }
        }
        Err(last.unwrap_or_else(|| Error::missing("host", key.host)))
    }

    /// A page of hosts as the store has them, with the signs of life that are in memory only.
    pub async fn hosts_page(
        &self,
        filter: &HostFilter,
        after: Option<HostKey>,
        limit: u32,
        wanted: &[Report],
    ) -> Result<Vec<(Host, Stored)>, Error> {
        let known = |key, revision| {
            let copy = self.index.host(key)?;
            (copy.revision == revision && self.readable_host(key).is_ok()).then_some(copy)
        };
        Ok(self.store.hosts_page(filter, after, limit, wanted, known).await?)
    }

    pub async fn scene(&self, key: HostKey, need: Need, fresh: bool) -> Result<Scene<'_>, Error> {
        if fresh {
            self.refresh_host(key).await?;
        }
        self.readable_host(key)?;
        let host = self
            .index
            .host(key)
            .ok_or_else(|| Error::missing("host", key.host))?;
        host.cluster.map_or(Ok(()), |id| self.readable_cluster(id))?;
        let stored = match need {
            Need::Row => Stored::new(),
            Need::Reports => self.store.host_reports(key).await?,
        };
        let cluster = host.cluster.and_then(|id| self.index.cluster(id));
        let infra_env = self.index.infra_env(key.infra_env);
        Ok(Scene {
            hub: self,
            host,
            stored,
            cluster,
            infra_env,
            now: self.now(),
        })
    }

    async fn host_commit(
        &self,
        turn: Turn,
        before: Option<ClusterId>,
        ask: &Ask,
        now: Timestamp,
    ) -> Result<Arc<Host>, Error> {
        let Turn { decision, reports } = turn;
        let Decision {
            host,
            journal,
            effects,
            forget: _,
            why: _,
        } = decision;
        let commit = Commit {
            at: now,
            request_id: ask.request_id,
            hosts: vec![Self::host_write(&host, reports)],
            journal,
            effects,
            ..Commit::new(now)
        };
        let hosts = self.commit(commit, vec![host]).await?;
        let host = hosts
            .into_iter()
            .next()
            .ok_or_else(|| Error::BadReport("nothing was written".into()))?;
        if !ask.from_look {
            before
                .into_iter()
                .chain(host.cluster)
                .for_each(|cluster| self.mark_dirty(cluster));
        }
        Ok(host)
    }

    /// Changes one cluster and its files: decided again on fresh data as long as somebody else is faster.
    pub async fn cluster_turn(
        &self,
        id: ClusterId,
        ask: &Ask,
        decide: impl Fn(&Cluster) -> Result<(cluster::Decision, Vec<FileWrite>), Error>,
    ) -> Result<Arc<Cluster>, Error> {
        self.cluster_turn_on_files(id, ask, None, |cluster, _| decide(cluster))
            .await
    }

    /// The same for decisions that depend on which files there are below a path. Every change of files bumps the
    /// cluster's revision, so nobody decides on a list that is not true any more.
    pub async fn cluster_turn_on_files(
        &self,
        id: ClusterId,
        ask: &Ask,
        below: Option<&str>,
        decide: impl Fn(&Cluster, &[FileStat]) -> Result<(cluster::Decision, Vec<FileWrite>), Error>,
    ) -> Result<Arc<Cluster>, Error> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.learn_cluster(id).await?;
            }
            let before = self
                .index
                .cluster(id)
                .ok_or_else(|| Error::missing("cluster", id))?;
            let files = match below {
                // Read after the row: a list that is older than the row cannot be told from a true one.
                Some(below) => self.store.file_list(id, below).await?,
                None => Vec::new(),
            };
            let (decision, writes) = match decide(&before, &files) {
                // Another hub may have changed it a moment ago: nobody is refused because of an old copy.
                Err(Error::Refused(_)) if attempt == 0 && self.has_company() => continue,
                decided => decided?,
            };
            if writes.is_empty()
                && decision.journal.is_empty()
                && decision.effects.is_empty()
                && decision.cluster == *before
            {
                return Ok(before);
            }
            match self.cluster_commit(decision, writes, ask).await {
                Err(error) if error.is_stale() => last = Some(error),
                done => return done,
            }
        }
        Err(last.unwrap_or_else(|| Error::missing("cluster", id)))
    }

    pub async fn cluster_commit(
        &self,
        decision: cluster::Decision,
        files: Vec<FileWrite>,
        ask: &Ask,
    ) -> Result<Arc<Cluster>, Error> {
        let cluster::Decision {
            mut cluster,
            journal,
            effects,
            why: _,
        } = decision;
        let now = self.now();
        cluster.updated_at = now;
        let has_effects = !effects.is_empty();
        let commit = Commit {
            request_id: ask.request_id,
            clusters: vec![ClusterWrite::Put {
                cluster: cluster.clone(),
            }],
            files,
            journal,
            effects,
            ..Commit::new(now)
        };
        let done = self.store.commit(commit).await?;
        cluster.revision = done.clusters.first().copied().unwrap_or(cluster.revision + 1);
        let row = self.keep_cluster(cluster);
        if has_effects {
            self.ring_outbox();
        }
        self.announce(done.seq);
        if !ask.from_look {
            self.mark_dirty(row.id);
        }
        Ok(row)
    }

    /// Takes a host as the store has it; one that is gone there is gone here.
    pub async fn refresh_host(&self, key: HostKey) -> Result<(), Error> {
        match self.store.host_find(key).await? {
            Some(host) => drop(self.index.put_host(host)),
            None => self.index.drop_host(key, self.now()),
        }
        Ok(())
    }

    /// Takes a cluster as the store has it.
    pub async fn learn_cluster(&self, id: ClusterId) -> Result<(), Error> {
        match self.store.cluster_find(id).await? {
            Some(cluster) => drop(self.keep_cluster(cluster)),
            None => self.index.drop_cluster(id),
        }
        Ok(())
    }

    pub fn host_write(host: &Host, reports: BTreeMap<Report, Option<String>>) -> HostWrite {
        HostWrite::Put {
            host: host.clone(),
            reports: reports.into_iter().collect(),
        }
    }

    /// Commits, then brings memory and waiting clients up to date. `hosts` are the rows written, in order.
    pub async fn commit(&self, commit: Commit, hosts: Vec<Host>) -> Result<Vec<Arc<Host>>, Error> {
        Ok(self.committed(commit, hosts).await?.0)
    }

    /// The same, for those who wrote more than hosts.
    pub async fn committed(
        &self,
        commit: Commit,
        hosts: Vec<Host>,
    ) -> Result<(Vec<Arc<Host>>, Committed), Error> {
        let has_effects = !commit.effects.is_empty();
        let committed = self.store.commit(commit).await?;
        let rows = hosts
            .into_iter()
            .zip(&committed.hosts)
            .map(|(mut host, revision)| {
                host.revision = *revision;
                let slot = self.index.put_host(host);
                self.remind(&slot);
                slot.row()
            })
            .collect();
        if has_effects {
            self.ring_outbox();
        }
        self.announce(committed.seq);
        Ok((rows, committed))
    }

    pub fn announce(&self, seq: i64) {
        self.newest_change.send_if_modified(|newest| {
            let news = seq > *newest;
            *newest = seq.max(*newest);
            news
        });
    }

    /// Takes over a committed cluster, and its next deadline.
    pub fn keep_cluster(&self, cluster: Cluster) -> Arc<Cluster> {
        let row = self.index.put_cluster(cluster);
        if let Some(due) = cluster::deadline::of(&row, &self.settings.cluster_timers) {
            self.cluster_agenda.add(due.as_microsecond(), row.id);
        }
        row
    }

    /// Puts the host's next deadline on the agenda, unless an earlier look is planned already.
    pub fn remind(&self, slot: &Slot) {
        let host = slot.host();
        let Some(due) = self.due_at(&host) else {
            return;
        };
        let due = due.as_microsecond();
        if slot.live.queued_micros.fetch_min(due, Ordering::Relaxed) > due {
            self.agenda.add(due, host.key());
        }
    }
}

impl Turn {
    pub fn changes_nothing(&self, before: &Host) -> bool {
        self.reports.is_empty()
            && self.decision.journal.is_empty()
            && self.decision.effects.is_empty()
            && &self.decision.host == before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_store::StoreError;
    use std::cell::Cell;

    fn too_late() -> Error {
        let (kind, id) = ("host", "1".to_owned());
        StoreError::Stale { kind, id }.into()
    }

    #[tokio::test]
    async fn who_always_comes_too_late_is_told_so_after_some_tries() {
        let tries = Cell::new(0);
        let lost = contested(|| {
            tries.set(tries.get() + 1);
            async { Err::<(), _>(too_late()) }
        });
        assert!(lost.await.unwrap_err().is_stale());
        assert_eq!(tries.get(), ATTEMPTS);
    }

    #[tokio::test]
    async fn who_comes_in_time_at_last_is_done_and_other_failures_are_told_at_once() {
        let tries = Cell::new(0);
        let won = contested(|| {
            tries.set(tries.get() + 1);
            let tried = tries.get();
            async move { if tried < 3 { Err(too_late()) } else { Ok(tried) } }
        });
        assert_eq!(won.await.unwrap(), 3);
        let failed = contested(|| async { Err::<(), _>(Error::missing("host", "1")) });
        assert!(matches!(failed.await, Err(Error::Missing { .. })));
    }
}
