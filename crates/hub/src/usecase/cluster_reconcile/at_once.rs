//! A change of a cluster and what follows from it for the cluster and its hosts: one decision, one commit.
//!
//! For whoever is answered with what follows. Nobody ever sees the one without the other, also when the hub is killed.

use super::{Member, arrange, counted, decide_follow, decide_host, has_manifests, own_findings, rows};
use crate::Hub;
use crate::change::{Decision, OpContext, Scope};
use crate::cluster_change::{ClusterSnapshot, OneCluster};
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Stored};
use crate::measure;
use crate::shared_facts::SharedFacts;
use crate::stale_clusters::Reconciling;
use jiff::Timestamp;
use muster_domain::ClusterId;
use muster_domain::cluster::{self, Cluster};
use muster_domain::host::{Host, Report, rules};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Whoever changes a busy cluster does not reconcile it again and again: after so many lost races the change is written alone,
/// and what follows comes after it.
const MOST_RUNS: usize = 3;
/// A phase that moves is followed by another round, in the same commit. What still moves then is reconciled later.
const MOST_ROUNDS: usize = 4;
/// How long a change waits for a run for the same cluster that is under way. Then it is written alone.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Changes a cluster together with what follows. Where that cannot be found out, the change is made all the same and the cluster
/// is marked, as after any other change. Gives the cluster as it was written.
pub async fn change(
    hub: &Hub,
    id: ClusterId,
    opctx: &OpContext,
    apply: impl Fn(&Cluster) -> Result<cluster::Decision, Error> + Sync,
) -> Result<Arc<Cluster>, Error> {
    if hub.index.cluster(id).is_none() {
        return Err(Error::missing("cluster", id));
    }
    // Two at a time would only spoil each other's commits.
    let gate = hub.stale_clusters.gate(id);
    let turn = tokio::time::timeout(LONGEST_WAIT, gate.lock()).await.ok();
    // What was marked before is in the rows that are read now.
    let run = turn.as_ref().and_then(|_| Reconciling::begin(hub, id));
    let scope = ChangedCluster {
        id,
        apply: &apply,
        runs_left: AtomicUsize::new(if turn.is_some() { MOST_RUNS } else { 0 }),
    };
    let done = hub.change(&scope, opctx, |changed| match &changed.follows {
        Some(follows) => Ok(follows.written.clone()),
        None => Ok(changed
            .snapshot
            .changed(apply(&changed.snapshot.cluster)?, Vec::new())),
    });
    let done = done.await;
    let follows = done.as_ref().ok().and_then(|done| done.snapshot.follows.as_ref());
    match (follows, run) {
        (Some(follows), run) => {
            if let Some(shared) = &follows.shared {
                hub.shared_facts.put(id, shared.clone());
            }
            run.into_iter().for_each(Reconciling::worked);
            if follows.goes_on {
                hub.mark_dirty(id);
            }
        }
        (None, Some(run)) => run.put_off(),
        (None, None) => {}
    }
    let done = done?;
    Ok(done.row().unwrap_or(done.snapshot.snapshot.cluster))
}

struct ChangedCluster<'a, F> {
    id: ClusterId,
    apply: &'a F,
    runs_left: AtomicUsize,
}

struct Changed {
    snapshot: ClusterSnapshot,
    /// `None`: nothing changes, the change is refused, or what follows could not be found out.
    follows: Option<Follows>,
}

/// A change with everything that follows from it.
struct Follows {
    written: Decision,
    /// What the checks of the hosts share from now on; `None` where findings are frozen.
    shared: Option<Arc<SharedFacts>>,
    goes_on: bool,
}

impl<F: Fn(&Cluster) -> Result<cluster::Decision, Error> + Sync> Scope for ChangedCluster<'_, F> {
    type Snapshot = Changed;

    async fn read(&self, hub: &Hub, now: Timestamp, fresh: bool) -> Result<Changed, Error> {
        let snapshot = OneCluster::new(self.id).read(hub, now, fresh).await?;
        let given = (self.apply)(&snapshot.cluster).ok();
        let given = given.filter(|given| !snapshot.changed(given.clone(), Vec::new()).is_empty());
        let is_allowed = |left: usize| left.checked_sub(1);
        let may_run = || {
            self.runs_left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_allowed)
        };
        let follows = match given {
            Some(given) if may_run().is_ok() => follows(hub, &snapshot, given).await,
            Some(_) | None => Ok(None),
        };
        let follows = follows.unwrap_or_else(|error| {
            tracing::warn!(cluster = %self.id, %error, "what follows from a change of a cluster cannot be found out; it is reconciled later");
            None
        });
        Ok(Changed { snapshot, follows })
    }
}

async fn follows(
    hub: &Hub,
    snapshot: &ClusterSnapshot,
    given: cluster::Decision,
) -> Result<Option<Follows>, Error> {
    let id = snapshot.cluster.id;
    // Without some of its hosts the count would be wrong.
    if given.cluster.phase.follows_hosts() && !hub.unreadable_of_cluster(id).is_empty() {
        return Ok(None);
    }
    let rows = rows(hub, id).await?;
    let has_manifests = has_manifests(hub, id).await?;
    let (there, now) = (hub.clone(), snapshot.now);
    let found = hub.look_threads.run(move || {
        let members = rows
            .into_iter()
            .map(|row| Following::of(Member::of(row)))
            .collect();
        let whole = Whole {
            hub: there,
            cluster: given.cluster.clone(),
            members,
            has_manifests,
            shared: None,
            now,
        };
        whole.follow(given)
    });
    found.await.map(Some)
}

/// A host of the cluster, and what has become of it so far.
struct Following {
    member: Member,
    change: Option<HostChange>,
}

impl Following {
    fn of(member: Member) -> Self {
        let change = None;
        Self { member, change }
    }

    /// Whether the host went on to another phase.
    fn take(&mut self, change: HostChange) -> bool {
        let HostChange {
            decision,
            reports,
            files,
        } = change;
        let moved = decision.host.phase != self.member.host.phase;
        for (report, body) in &reports {
            match body {
                Some(body) => self.member.stored.insert(*report, body.clone()),
                None => self.member.stored.remove(report),
            };
        }
        if reports.keys().any(|report| *report != Report::Validations) {
            self.member.reports = measure::parse(&self.member.stored);
        }
        self.member.host = decision.host.clone();
        match &mut self.change {
            None => {
                self.change = Some(HostChange {
                    decision,
                    reports,
                    files,
                });
            }
            Some(so_far) => {
                so_far.decision.host = decision.host;
                so_far.decision.journal.extend(decision.journal);
                so_far.decision.effects.extend(decision.effects);
                so_far.reports.extend(reports);
                so_far.files.extend(files);
            }
        }
        moved
    }
}

/// The cluster and all its hosts in memory: nothing is read or written while they follow each other.
struct Whole {
    hub: Hub,
    cluster: Cluster,
    members: Vec<Following>,
    has_manifests: bool,
    shared: Option<Arc<SharedFacts>>,
    now: Timestamp,
}

impl Whole {
    fn follow(mut self, given: cluster::Decision) -> Result<Follows, Error> {
        let mut written = Decision::because(given.why);
        written.is_reconciled = true;
        written.journal = given.journal;
        written.effects = given.effects;
        let mut own = Vec::new();
        let mut goes_on = true;
        for _ in 0..MOST_ROUNDS {
            let (decision, moved) = self.round()?;
            self.cluster = decision.cluster;
            own.extend(decision.journal);
            written.effects.extend(decision.effects);
            goes_on = moved;
            if !goes_on {
                break;
            }
        }
        let changes = self.members.into_iter().filter_map(|member| member.change);
        changes.for_each(|change| written.put_host(change));
        // The hosts' news come first, as they do when a cluster is reconciled.
        written.journal.extend(own);
        self.cluster.updated_at = self.now;
        written.put(self.cluster);
        Ok(Follows {
            written,
            shared: self.shared,
            goes_on,
        })
    }

    /// The hosts follow the cluster, then the cluster follows its hosts. Says whether a phase moved.
    fn round(&mut self) -> Result<(cluster::Decision, bool), Error> {
        let phase = self.cluster.phase;
        let (mut decision, mut moved) = match phase.is_checked() {
            true => self.judge()?,
            false => self.lead()?,
        };
        let hosts: Vec<_> = self
            .members
            .iter()
            .map(|following| &following.member.host)
            .collect();
        let counted = counted(&self.hub, &decision.cluster, &hosts)?;
        moved |= counted.cluster.phase != phase;
        decision.cluster = counted.cluster;
        decision.journal.extend(counted.journal);
        decision.effects.extend(counted.effects);
        Ok((decision, moved))
    }

    /// All of them are measured with the facts they share, and then their cluster.
    fn judge(&mut self) -> Result<(cluster::Decision, bool), Error> {
        let mut members: Vec<Member> = Vec::with_capacity(self.members.len());
        let mut changes = Vec::with_capacity(self.members.len());
        for Following { member, change } in self.members.drain(..) {
            members.push(member);
            changes.push(change);
        }
        let before: Vec<Host> = members.iter().map(|member| member.host.clone()).collect();
        let shared = Arc::new(arrange(&self.hub, &mut self.cluster, &mut members));
        let arranged = Arc::new(self.cluster.clone());
        let mut moved = false;
        for ((mut member, change), before) in members.into_iter().zip(changes).zip(before) {
            let suggested = member.host.suggested_role;
            member.host = before;
            let mut following = Following { member, change };
            if rules::is_judged(&following.member.host) {
                let stored = following.member.stored.clone();
                let snapshot = self.snapshot(&following.member.host, stored, &arranged);
                let change = decide_host(&snapshot, &shared, suggested)?;
                if !change.changes_nothing(&snapshot.host) {
                    moved |= following.take(change);
                }
            }
            self.members.push(following);
        }
        self.shared = Some(shared.clone());
        let members: Vec<_> = self.members.iter().map(|following| &following.member).collect();
        let decision = own_findings(
            &self.hub,
            self.cluster.clone(),
            &members,
            &shared,
            self.has_manifests,
        )?;
        Ok((decision, moved))
    }

    /// Their findings are frozen: they follow the cluster only.
    fn lead(&mut self) -> Result<(cluster::Decision, bool), Error> {
        let cluster = Arc::new(self.cluster.clone());
        let mut moved = false;
        let mut members = std::mem::take(&mut self.members);
        for following in &mut members {
            let snapshot = self.snapshot(&following.member.host, Stored::new(), &cluster);
            let change = decide_follow(&snapshot)?;
            if !change.changes_nothing(&snapshot.host) {
                moved |= following.take(change);
            }
        }
        self.members = members;
        let decision = cluster::Decision {
            cluster: self.cluster.clone(),
            journal: Vec::new(),
            effects: Vec::new(),
            why: "its hosts follow it",
        };
        Ok((decision, moved))
    }

    fn snapshot(&self, host: &Host, stored: Stored, cluster: &Arc<Cluster>) -> HostSnapshot {
        HostSnapshot {
            hub: self.hub.clone(),
            host: host.clone(),
            stored,
            cluster: Some(cluster.clone()),
            infra_env: None,
            now: self.now,
        }
    }
}
