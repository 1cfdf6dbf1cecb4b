//! What a decision about one host looks at, and what it leaves: the decision, then the checks over it.

use crate::change::{Decision as Written, OpContext, Scope};
use crate::error::Error;
use crate::shared_facts::SharedFacts;
use crate::{Hub, measure};
use jiff::Timestamp;
use muster_domain::cluster::Cluster;
use muster_domain::host::event::{Around, Event};
use muster_domain::host::{Decision, Host, Report, lifecycle};
use muster_domain::infra_env::InfraEnv;
use muster_domain::{ClusterId, Entry, HostKey};
use muster_store::{FileWrite, HostFilter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reports by kind, as stored.
pub type Stored = BTreeMap<Report, String>;

/// Everything a decision about one host may look at.
#[derive(Clone)]
pub struct HostSnapshot {
    pub hub: Hub,
    pub host: Host,
    pub stored: Stored,
    pub cluster: Option<Arc<Cluster>>,
    pub infra_env: Option<Arc<InfraEnv>>,
    pub now: Timestamp,
}

/// A decision about a host with the reports and files it changes.
#[derive(Debug, Clone)]
pub struct HostChange {
    pub decision: Decision,
    /// `None` deletes.
    pub reports: BTreeMap<Report, Option<String>>,
    pub files: Vec<FileWrite>,
}

/// How much must be read before deciding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Row,
    Reports,
}

/// One host with its cluster and its InfraEnv.
#[derive(Debug, Clone, Copy)]
pub struct OneHost {
    key: HostKey,
    need: Need,
    /// The cluster it may go to.
    target: Option<ClusterId>,
}

impl OneHost {
    pub fn new(key: HostKey, need: Need) -> Self {
        let target = None;
        Self { key, need, target }
    }

    pub fn going_to(key: HostKey, need: Need, cluster: ClusterId) -> Self {
        let target = Some(cluster);
        Self { key, need, target }
    }
}

impl Scope for OneHost {
    type Snapshot = HostSnapshot;

    async fn read(&self, hub: &Hub, now: Timestamp, fresh: bool) -> Result<HostSnapshot, Error> {
        let Self { key, need, target } = *self;
        if fresh {
            hub.reload(key.into()).await?;
            if hub.shares_database() {
                let cluster = hub.index.slot(key).and_then(|slot| slot.row().cluster);
                for id in cluster.into_iter().chain(target) {
                    hub.reload(id.into()).await?;
                }
                hub.reload(key.infra_env.into()).await?;
            }
        }
        hub.readable_host(key)?;
        let host = hub
            .index
            .host(key)
            .ok_or_else(|| Error::missing("host", key.host))?;
        host.cluster.map_or(Ok(()), |id| hub.readable_cluster(id))?;
        let stored = match need {
            Need::Row => Stored::new(),
            Need::Reports => hub.store.host_reports(key).await?,
        };
        Ok(HostSnapshot {
            cluster: host.cluster.and_then(|id| hub.index.cluster(id)),
            infra_env: hub.index.infra_env(key.infra_env),
            hub: hub.clone(),
            host,
            stored,
            now,
        })
    }
}

impl HostSnapshot {
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
    pub fn plain(&self, decision: Decision) -> HostChange {
        HostChange::plain(decision)
    }

    /// The decision, then the checks over what it leaves, in the same commit.
    pub fn measured(&self, decision: Decision, new: Stored) -> Result<HostChange, Error> {
        let stays = decision.host.cluster.filter(|id| self.host.cluster == Some(*id));
        if stays.is_some_and(|id| measure::waits_for_facts(&self.hub, id)) {
            // The cluster is reconciled because of this change, and its hosts' findings with it.
            let mut change = self.plain(decision);
            let new = new.into_iter().map(|(report, body)| (report, Some(body)));
            change.reports.extend(new);
            return Ok(change);
        }
        let mut stored = self.stored.clone();
        decision
            .forget
            .iter()
            .for_each(|report| drop(stored.remove(report)));
        stored.extend(new.clone());
        let found = measure::host(&self.hub, &decision.host, &stored, self.now);
        self.with_findings(decision, new, found)
    }

    /// The checks alone, with facts of the cluster that were just put together.
    pub fn measured_with(
        &self,
        host: Host,
        journal: Vec<Entry>,
        shared: &SharedFacts,
    ) -> Result<HostChange, Error> {
        let cluster = self.cluster_of(&host);
        let found = measure::with_facts(
            &self.hub,
            &host,
            &self.stored,
            Some(shared),
            cluster.as_deref(),
            self.now,
        );
        let decision = Decision {
            host,
            journal,
            effects: Vec::new(),
            forget: Vec::new(),
            why: "its cluster was reconciled",
        };
        self.with_findings(decision, Stored::new(), found)
    }

    fn with_findings(
        &self,
        decision: Decision,
        mut new: Stored,
        found: measure::Found,
    ) -> Result<HostChange, Error> {
        let mut reports: BTreeMap<_, _> = decision.forget.iter().map(|report| (*report, None)).collect();
        let around = self
            .hub
            .around(self.cluster_of(&decision.host).as_deref(), self.now);
        let event = Event::Measured {
            gates: found.gates,
            complaints: found.complaints,
        };
        let mut measured = lifecycle::next(&decision.host, &event, &around)?;
        let mut journal = decision.journal;
        journal.append(&mut measured.journal);
        let mut effects = decision.effects;
        effects.append(&mut measured.effects);
        let old = self
            .stored
            .get(&Report::Validations)
            .map(String::as_str)
            .unwrap_or_default();
        if self.host.cluster == measured.host.cluster {
            journal.extend(measure::news(&measured.host, old, &found.report));
        }
        reports.extend(measured.forget.iter().map(|report| (*report, None)));
        if old != found.validations || reports.contains_key(&Report::Validations) {
            new.insert(Report::Validations, found.validations);
        }
        reports.extend(new.into_iter().map(|(report, body)| (report, Some(body))));
        let decision = Decision {
            journal,
            effects,
            why: decision.why,
            ..measured
        };
        Ok(HostChange {
            decision,
            reports,
            files: Vec::new(),
        })
    }

    fn cluster_of(&self, host: &Host) -> Option<Arc<Cluster>> {
        match host.cluster {
            Some(id) if self.host.cluster == Some(id) => self.cluster.clone(),
            Some(id) => self.hub.index.cluster(id),
            None => None,
        }
    }
}

impl HostChange {
    /// The decision as it is; findings stay as they were.
    pub fn plain(decision: Decision) -> Self {
        let reports = decision.forget.iter().map(|report| (*report, None)).collect();
        Self {
            decision,
            reports,
            files: Vec::new(),
        }
    }

    pub fn changes_nothing(&self, before: &Host) -> bool {
        self.reports.is_empty()
            && self.files.is_empty()
            && self.decision.journal.is_empty()
            && self.decision.effects.is_empty()
            && &self.decision.host == before
    }

    /// Nothing if the host stays as it is.
    pub fn decision_over(self, before: &Host) -> Written {
        let mut written = Written::because(self.decision.why);
        if !self.changes_nothing(before) {
            written.put_host(self);
        }
        written
    }
}

impl Hub {
    /// Changes one host.
    pub async fn change_host(
        &self,
        key: HostKey,
        need: Need,
        opctx: &OpContext,
        decide: impl Fn(&HostSnapshot) -> Result<HostChange, Error>,
    ) -> Result<Arc<Host>, Error> {
        self.change_one_host(&OneHost::new(key, need), opctx, decide)
            .await
    }

    /// Changes one host that may go to another cluster.
    pub async fn change_one_host(
        &self,
        scope: &OneHost,
        opctx: &OpContext,
        decide: impl Fn(&HostSnapshot) -> Result<HostChange, Error>,
    ) -> Result<Arc<Host>, Error> {
        let done = self.change(scope, opctx, |snapshot| {
            Ok(decide(snapshot)?.decision_over(&snapshot.host))
        });
        let done = done.await?;
        Ok(done.row().unwrap_or_else(|| Arc::new(done.snapshot.host)))
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

    /// The host, and what a plan looks at.
    pub async fn host_snapshot(&self, key: HostKey, need: Need) -> Result<HostSnapshot, Error> {
        self.snapshot(&OneHost::new(key, need)).await
    }
}
