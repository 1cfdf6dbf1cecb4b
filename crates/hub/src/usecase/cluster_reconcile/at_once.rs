//! A change of a cluster and what follows from it for the cluster and its hosts: one decision, one commit.
//!
//! For whoever is answered with what follows, or decides over it. Nobody ever sees the one without the other, also when the hub is
//! killed.

use super::{Member, arrange, counted, decide_follow, decide_host, has_manifests, own_findings, rows};
use crate::change::{Decision, OpContext, Scope};
use crate::cluster_change::{ClusterChange, ClusterSnapshot, OneCluster};
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Stored};
use crate::shared_facts::SharedFacts;
use crate::stale_clusters::Reconciling;
use crate::{Hub, measure};
use jiff::Timestamp;
use muster_domain::cluster::{self, Cluster};
use muster_domain::host::{self, Effect, Host, Report, rules};
use muster_domain::{ClusterId, Entry, HostKey};
use muster_store::FileStat;
use std::collections::BTreeMap;
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
    let scope = WithWhatFollows {
        rows: OneCluster::new(id),
        // A refusal is told by the decision, and where nothing changes nothing follows.
        given: |before: &Cluster| apply(before).ok().filter(|given| does_something(given, before)),
        runs_left: AtomicUsize::new(if turn.is_some() { MOST_RUNS } else { 0 }),
    };
    let done = hub.change(&scope, opctx, |read| match &read.follows {
        Some(follows) => Ok(follows.written()),
        None => Ok(read.snapshot.changed(apply(&read.snapshot.cluster)?, Vec::new())),
    });
    let done = done.await;
    let follows = done.as_ref().ok().and_then(|done| done.snapshot.follows.as_ref());
    finish(hub, id, follows, run);
    let done = done?;
    Ok(done.row().unwrap_or(done.snapshot.snapshot.cluster))
}

/// Decides over a cluster and its hosts as they are with what follows from their newest changes: if that was not written yet, it
/// is written in the same commit. What follows from the decision comes after it.
pub async fn decide(
    hub: &Hub,
    id: ClusterId,
    below: &str,
    opctx: &OpContext,
    decide: impl Fn(&Cluster, &[Host], &[FileStat]) -> Result<ClusterChange, Error> + Sync,
) -> Result<Arc<Cluster>, Error> {
    if hub.index.cluster(id).is_none() {
        return Err(Error::missing("cluster", id));
    }
    let gate = hub.stale_clusters.gate(id);
    let turn = tokio::time::timeout(LONGEST_WAIT, gate.lock()).await.ok();
    let run = turn.as_ref().and_then(|_| Reconciling::begin(hub, id));
    let scope = WithWhatFollows {
        rows: OneCluster::new(id).with_hosts().files_below(below),
        given: |before: &Cluster| Some(as_it_is(before)),
        runs_left: AtomicUsize::new(if run.is_some() { MOST_RUNS } else { 0 }),
    };
    let done = hub.change(&scope, opctx, |read| {
        let Read { snapshot, follows } = read;
        match follows {
            Some(follows) => {
                let hosts: Vec<_> = follows
                    .members
                    .iter()
                    .map(|one| one.member.host.clone())
                    .collect();
                let change = decide(&follows.cluster, &hosts, &snapshot.files)?;
                Ok(follows.written_with(change))
            }
            None => {
                let change = decide(&snapshot.cluster, &snapshot.hosts, &snapshot.files)?;
                Ok(snapshot.changed_with_hosts(change))
            }
        }
    });
    let done = done.await;
    let follows = done.as_ref().ok().and_then(|done| done.snapshot.follows.as_ref());
    finish(hub, id, follows, run);
    let done = done?;
    Ok(done.row().unwrap_or(done.snapshot.snapshot.cluster))
}

/// `follows`: what was written.
fn finish(hub: &Hub, id: ClusterId, follows: Option<&Follows>, run: Option<Reconciling<'_>>) {
    match (follows, run) {
        (Some(follows), run) => {
            if let Some(shared) = &follows.shared {
                hub.shared_facts.put(id, shared.clone());
            }
            if let Some(run) = run {
                run.worked();
            }
            if follows.goes_on {
                hub.mark_dirty(id);
            }
        }
        (None, Some(run)) => run.put_off(),
        (None, None) => {}
    }
}

fn does_something(given: &cluster::Decision, before: &Cluster) -> bool {
    given.cluster != *before || !given.journal.is_empty() || !given.effects.is_empty()
}

fn as_it_is(cluster: &Cluster) -> cluster::Decision {
    cluster::Decision {
        cluster: cluster.clone(),
        journal: Vec::new(),
        effects: Vec::new(),
        why: "nothing to do",
    }
}

/// A cluster, what is done to it, and what follows.
struct WithWhatFollows<'a, F> {
    rows: OneCluster<'a>,
    given: F,
    runs_left: AtomicUsize,
}

struct Read {
    snapshot: ClusterSnapshot,
    /// `None`: nothing is done, or what follows could not be found out.
    follows: Option<Follows>,
}

impl<F: Fn(&Cluster) -> Option<cluster::Decision> + Sync> Scope for WithWhatFollows<'_, F> {
    type Snapshot = Read;

    async fn read(&self, hub: &Hub, now: Timestamp, fresh: bool) -> Result<Read, Error> {
        let snapshot = self.rows.read(hub, now, fresh).await?;
        let follows = match (self.given)(&snapshot.cluster) {
            Some(given) if self.may_run() => follows(hub, &snapshot, given).await,
            Some(_) | None => Ok(None),
        };
        let follows = follows.unwrap_or_else(|error| {
            let cluster = snapshot.cluster.id;
            tracing::warn!(%cluster, %error, "what follows from a change of a cluster cannot be found out; it is reconciled later");
            None
        });
        Ok(Read { snapshot, follows })
    }
}

impl<F> WithWhatFollows<'_, F> {
    fn may_run(&self) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        let left = self
            .runs_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        left.is_ok()
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
    let (there, before, now) = (hub.clone(), snapshot.cluster.clone(), snapshot.now);
    let found = hub.reconcile_threads.run(move || {
        let members = rows.into_iter().map(|row| Following::of(Member::of(row)));
        let whole = Whole {
            hub: there,
            members: members.collect(),
            cluster: given.cluster,
            has_manifests,
            shared: None,
            now,
        };
        let given = Given {
            journal: given.journal,
            effects: given.effects,
            why: given.why,
        };
        whole.follow(&before, given)
    });
    found.await.map(Some)
}

/// What is told and ordered by the change itself.
struct Given {
    journal: Vec<Entry>,
    effects: Vec<Effect>,
    why: &'static str,
}

/// The cluster and its hosts with everything that follows.
struct Follows {
    cluster: Cluster,
    is_same: bool,
    given: Given,
    members: Vec<Following>,
    /// The cluster's own news.
    journal: Vec<Entry>,
    effects: Vec<Effect>,
    /// What the checks of the hosts share from now on; `None` where findings are frozen.
    shared: Option<Arc<SharedFacts>>,
    goes_on: bool,
}

impl Follows {
    /// All of it, or nothing if everything stays as it is.
    fn written(&self) -> Decision {
        let mut written = self.hosts_and_news(self.given.why, &BTreeMap::new());
        if !self.is_same || !written.is_empty() {
            written.put(self.cluster.clone());
        }
        written.is_reconciled = true;
        written
    }

    /// All of it with what was decided over it, from which more follows.
    fn written_with(&self, change: ClusterChange) -> Decision {
        let ClusterChange { cluster, hosts } = change;
        let decided = hosts.into_iter().map(|decision| (decision.host.key(), decision));
        let mut written = self.hosts_and_news(cluster.why, &decided.collect());
        written.journal.extend(cluster.journal);
        written.effects.extend(cluster.effects);
        if !self.is_same || !written.is_empty() || cluster.cluster != self.cluster {
            written.put(cluster.cluster);
        }
        written
    }

    /// The hosts' news come before the cluster's, as they do when a cluster is reconciled.
    fn hosts_and_news(&self, why: &'static str, decided: &BTreeMap<HostKey, host::Decision>) -> Decision {
        let mut written = Decision::because(why);
        written.journal.clone_from(&self.given.journal);
        written.effects.clone_from(&self.given.effects);
        for Following { member, change } in &self.members {
            let decided = decided.get(&member.host.key()).cloned().map(HostChange::plain);
            let decided = decided.filter(|decided| !decided.changes_nothing(&member.host));
            let whole = match (change.clone(), decided) {
                (Some(change), Some(decided)) => Some(one_after_the_other(change, decided)),
                (change, decided) => change.or(decided),
            };
            if let Some(change) = whole {
                written.put_host(change);
            }
        }
        written.journal.extend(self.journal.iter().cloned());
        written.effects.extend(self.effects.iter().cloned());
        written
    }
}

fn one_after_the_other(mut change: HostChange, next: HostChange) -> HostChange {
    let HostChange {
        decision,
        reports,
        files,
    } = next;
    change.decision.host = decision.host;
    change.decision.journal.extend(decision.journal);
    change.decision.effects.extend(decision.effects);
    change.reports.extend(reports);
    change.files.extend(files);
    change
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
        let host = change.decision.host.clone();
        let moved = host.phase != self.member.host.phase;
        self.member.host = host;
        for (report, body) in &change.reports {
            match body {
                Some(body) => self.member.stored.insert(*report, body.clone()),
                None => self.member.stored.remove(report),
            };
        }
        if change.reports.keys().any(|report| *report != Report::Validations) {
            self.member.reports = measure::parse(&self.member.stored);
        }
        self.change = Some(match self.change.take() {
            Some(so_far) => one_after_the_other(so_far, change),
            None => change,
        });
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
    fn follow(mut self, before: &Cluster, given: Given) -> Result<Follows, Error> {
        let (mut journal, mut effects) = (Vec::new(), Vec::new());
        let mut goes_on = true;
        for _ in 0..MOST_ROUNDS {
            let (decision, moved) = self.round()?;
            self.cluster = decision.cluster;
            journal.extend(decision.journal);
            effects.extend(decision.effects);
            goes_on = moved;
            if !goes_on {
                break;
            }
        }
        let is_same = self.cluster == *before;
        if !is_same {
            self.cluster.updated_at = self.now;
        }
        Ok(Follows {
            cluster: self.cluster,
            is_same,
            given,
            members: self.members,
            journal,
            effects,
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
        Ok((as_it_is(&self.cluster), moved))
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
