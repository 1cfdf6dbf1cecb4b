//! Reconciles a cluster as a whole: networks, groups, roles, every host's findings, then the cluster's own, and counts
//! how far its hosts are. Installations move by this: hosts follow the cluster, and the cluster follows its hosts.

pub mod at_once;

use crate::change::{Decision, OpContext, Scope};
use crate::cluster_change::OneCluster;
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need, Stored};
use crate::ignition::MANIFESTS;
use crate::shared_facts::SharedFacts;
use crate::{Hub, measure};
use futures_util::future::join_all;
use jiff::Timestamp;
use muster_domain::checks::{self, ClusterFacts, Neighbours, Peer, Reports};
use muster_domain::cluster::tally::Tally;
use muster_domain::cluster::{self, Cluster, Phase, lifecycle, network, roles};
use muster_domain::host::{Host, Report, Role, rules};
use muster_domain::{ClusterId, Entry, HostId, Severity};
use muster_store::HostFilter;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Hosts of one cluster read at once; more than any cluster has.
const ALL_HOSTS: u32 = 100_000;
/// Hosts written at a time: they share a wait for the disk.
const TOGETHER: usize = 64;

/// Gives the cluster as it is afterwards; `None` when it is gone.
pub async fn cluster_reconcile(hub: &Hub, id: ClusterId) -> Result<Option<Arc<Cluster>>, Error> {
    let opctx = OpContext {
        from_reconcile: true,
        ..OpContext::hub()
    };
    let scope = MeasuredCluster { id, opctx: &opctx };
    let done = match hub.change(&scope, &opctx, |measured| decide(hub, measured)).await {
        Err(Error::Missing { kind: "cluster", .. }) => return Ok(None),
        done => done?,
    };
    let before = &done.snapshot.before;
    let after = done.row().unwrap_or_else(|| before.clone());
    // The hosts follow at once, not at somebody's next poll.
    if after.phase != before.phase {
        hub.mark_dirty(id);
    }
    Ok(Some(after))
}

/// A cluster with the newest findings about all its hosts, each of which is brought up to date in a change of its own.
struct MeasuredCluster<'a> {
    id: ClusterId,
    opctx: &'a OpContext,
}

/// What the hosts taken together make of their cluster.
struct Measured {
    before: Arc<Cluster>,
    /// With its own findings.
    next: Cluster,
    journal: Vec<Entry>,
    /// `None`: not all of them are known, and nothing follows from some.
    hosts: Option<Vec<Host>>,
    now: Timestamp,
}

impl Measured {
    fn unknown(cluster: Arc<Cluster>, now: Timestamp) -> Self {
        Self {
            next: Cluster::clone(&cluster),
            before: cluster,
            journal: Vec::new(),
            hosts: None,
            now,
        }
    }
}

impl Scope for MeasuredCluster<'_> {
    type Snapshot = Measured;

    async fn read(&self, hub: &Hub, now: Timestamp, fresh: bool) -> Result<Measured, Error> {
        let scope = OneCluster::new(self.id);
        let cluster = scope.read(hub, now, fresh).await?.cluster;
        // Without some of its hosts the count would be wrong, and end an installation.
        let waits = cluster.phase.follows_hosts() && !hub.unreadable_of_cluster(self.id).is_empty();
        if waits {
            return Ok(Measured::unknown(cluster, now));
        }
        if cluster.phase.is_checked() {
            measured(hub, cluster, now, self.opctx).await
        } else {
            followed(hub, cluster, now, self.opctx).await
        }
    }
}

/// What the hosts' states mean for the cluster; nothing if it stays as it is.
fn decide(hub: &Hub, measured: &Measured) -> Result<Decision, Error> {
    let mut written = Decision::because("the cluster was reconciled");
    let Some(hosts) = &measured.hosts else {
        return Ok(written);
    };
    let all: Vec<_> = hosts.iter().collect();
    let mut decision = counted(hub, &measured.next, &all)?;
    if decision.cluster != *measured.before || !decision.effects.is_empty() {
        decision.cluster.updated_at = measured.now;
        written.journal.clone_from(&measured.journal);
        written.put_cluster(decision);
    }
    Ok(written)
}

/// What the count of its hosts makes of a cluster.
fn counted(hub: &Hub, cluster: &Cluster, hosts: &[&Host]) -> Result<cluster::Decision, Error> {
    let event = lifecycle::Event::Counted {
        tally: Tally::of(hosts),
    };
    Ok(lifecycle::next(cluster, &event, hub.cluster_around())?)
}

/// Read after the cluster's row, whose revision every change of files raises: an old answer is not committed.
async fn has_manifests(hub: &Hub, id: ClusterId) -> Result<bool, Error> {
    Ok(!hub.store.file_list(id, MANIFESTS).await?.is_empty())
}

struct Member {
    host: Host,
    name: String,
    reports: Reports,
    stored: Stored,
}

impl Member {
    fn of((host, stored): (Host, Stored)) -> Self {
        Self {
            name: host.name(),
            reports: measure::parse(&stored),
            host,
            stored,
        }
    }

    fn peer(&self) -> Peer<'_> {
        Peer::of(&self.host, &self.name, &self.reports)
    }
}

async fn measured(
    hub: &Hub,
    cluster: Arc<Cluster>,
    now: Timestamp,
    opctx: &OpContext,
) -> Result<Measured, Error> {
    let rows = rows(hub, cluster.id).await?;
    let has_manifests = has_manifests(hub, cluster.id).await?;
    let (there, mut next) = (hub.clone(), Cluster::clone(&cluster));
    let arranged = hub.reconcile_threads.run(move || {
        let mut members: Vec<_> = rows.into_iter().map(Member::of).collect();
        let shared = arrange(&there, &mut next, &mut members);
        (next, members, Arc::new(shared))
    });
    let (next, mut members, shared) = arranged.await;
    hub.shared_facts.put(cluster.id, shared.clone());
    let mut up_to_date = Vec::with_capacity(members.len());
    while !members.is_empty() {
        let some = members.drain(..members.len().min(TOGETHER)).collect();
        let changes = judged(hub, some, &shared)
            .await
            .into_iter()
            .map(async |(member, judged)| {
                let host = reconcile_host(hub, &member, judged?, &shared, opctx).await?;
                Ok::<_, Error>((member, host))
            });
        for changed in join_all(changes).await {
            let (mut member, host) = changed?;
            // What is known of it may decide its next phase, too, and nobody has to report that again.
            if host.phase != member.host.phase {
                hub.mark_dirty(cluster.id);
            }
            member.host = host;
            up_to_date.push(member);
        }
    }
    let there = hub.clone();
    let found = hub.reconcile_threads.run(move || {
        let members: Vec<_> = up_to_date.iter().collect();
        let decision = own_findings(&there, next, &members, &shared, has_manifests)?;
        let hosts = up_to_date.into_iter().map(|member| member.host).collect();
        Ok::<(_, Vec<Host>), Error>((decision, hosts))
    });
    let (decision, hosts) = found.await?;
    Ok(Measured {
        before: cluster,
        next: decision.cluster,
        journal: decision.journal,
        hosts: Some(hosts),
        now,
    })
}

/// Once hosts are being written their findings are frozen: what is left is to let hosts follow the cluster, and to
/// count them. That needs no report, however many there are.
async fn followed(
    hub: &Hub,
    cluster: Arc<Cluster>,
    now: Timestamp,
    opctx: &OpContext,
) -> Result<Measured, Error> {
    let mut hosts = Vec::new();
    for slot in hub.index.hosts_of_cluster(cluster.id) {
        let key = slot.row().key();
        let follows = hub.change_host(key, Need::Row, opctx, decide_follow).await;
        match follows {
            Ok(after) => hosts.push(Host::clone(&after)),
            Err(Error::Missing { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Measured {
        next: Cluster::clone(&cluster),
        before: cluster,
        journal: Vec::new(),
        hosts: Some(hosts),
        now,
    })
}

/// The findings as they are, under the cluster as it is now.
fn decide_follow(snapshot: &HostSnapshot) -> Result<HostChange, Error> {
    if rules::group(snapshot.host.phase) == rules::PhaseGroup::Discovery {
        return Ok(snapshot.plain(snapshot.unchanged()));
    }
    let event = muster_domain::host::Event::Measured {
        gates: snapshot.host.gates,
        complaints: String::new(),
    };
    Ok(snapshot.plain(snapshot.next(&event)?))
}

/// The cluster's hosts with their reports.
async fn rows(hub: &Hub, id: ClusterId) -> Result<Vec<(Host, Stored)>, Error> {
    let filter = HostFilter {
        cluster: Some(id),
        ..HostFilter::default()
    };
    // Reports are most of the work, and of no use while all hosts must register again.
    let is_measured = hub
        .index
        .hosts_of_cluster(id)
        .iter()
        .any(|slot| rules::is_measured(&slot.row()));
    let wanted: &[Report] = if is_measured { &Report::ALL } else { &[] };
    hub.hosts_page(&filter, None, ALL_HOSTS, wanted).await
}

/// Derives what follows from the hosts taken together, and suggests their roles.
fn arrange(hub: &Hub, cluster: &mut Cluster, members: &mut [Member]) -> SharedFacts {
    let peers: Vec<_> = members.iter().map(Member::peer).collect();
    cluster.collisions = members
        .iter()
        .filter_map(|member| {
            Some((
                member.host.id,
                network::collisions_seen(member.reports.connectivity.as_ref()?),
            ))
        })
        .filter(|(_, seen)| !seen.is_empty())
        .collect();
    network::derive_machine_networks(cluster, &peers);
    let facts = ClusterFacts::of(cluster);
    let groups = network::majority_groups(&peers);
    cluster.connectivity_groups = groups.to_json();
    let suggested = roles::suggest(&facts, &peers, &hub.settings.requirements);
    drop(peers);
    if let Some(suggested) = suggested {
        suggest_roles(members, &suggested);
    }
    let peers: Vec<_> = members.iter().map(Member::peer).collect();
    SharedFacts {
        neighbours: Neighbours::new(&peers, groups),
        targets: targets(members),
        networks: free_address_networks(&peers),
        facts,
    }
}

fn suggest_roles(members: &mut [Member], suggested: &BTreeMap<HostId, Role>) {
    for member in members {
        if let Some(role) = suggested.get(&member.host.id) {
            member.host.suggested_role = Some(*role);
        }
    }
}

fn targets(members: &[Member]) -> Vec<(HostId, String)> {
    let known = members
        .iter()
        .filter(|member| !member.host.digest.nics.is_empty());
    known
        .map(|member| {
            let nics = member.host.digest.nics.iter().map(|nic| {
                let plain = nic
                    .addresses
                    .iter()
                    .map(|address| address.split('/').next().unwrap_or(address));
                let plain: Vec<_> = plain.collect();
                json!({
                    "name": nic.name,
                    "mac": nic.mac,
                    "ip_addresses": if plain.is_empty() { json!(null) } else { json!(plain) },
                })
            });
            let target = json!({ "host_id": member.host.id, "nics": nics.collect::<Vec<_>>() });
            (member.host.id, target.to_string())
        })
        .collect()
}

/// Larger networks take an agent too long to scan.
const SMALLEST_PREFIX: u8 = 22;

fn free_address_networks(peers: &[Peer<'_>]) -> Vec<String> {
    let all: std::collections::BTreeSet<_> = peers
        .iter()
        .flat_map(network::networks_of)
        .filter(|network| network.addr().is_ipv4() && network.prefix_len() >= SMALLEST_PREFIX)
        .collect();
    all.iter().map(ToString::to_string).collect()
}

/// How a host is found.
enum Judged {
    /// Nothing about it became different.
    Same(Box<Host>),
    Different,
}

async fn judged(
    hub: &Hub,
    members: Vec<Member>,
    shared: &Arc<SharedFacts>,
) -> Vec<(Member, Result<Judged, Error>)> {
    let (there, shared) = (hub.clone(), shared.clone());
    let judging = hub.reconcile_threads.run(move || {
        let judged = members.into_iter().map(|member| {
            let judged = judge(&there, &member, &shared);
            (member, judged)
        });
        judged.collect()
    });
    judging.await
}

fn judge(hub: &Hub, member: &Member, shared: &SharedFacts) -> Result<Judged, Error> {
    if !rules::is_judged(&member.host) {
        return Ok(Judged::Same(Box::new(member.host.clone())));
    }
    let before = hub.index.host(member.host.key());
    let snapshot = HostSnapshot {
        hub: hub.clone(),
        host: before.unwrap_or_else(|| member.host.clone()),
        stored: member.stored.clone(),
        cluster: member.host.cluster.and_then(|id| hub.index.cluster(id)),
        infra_env: None,
        now: hub.now(),
    };
    let change = decide_host(&snapshot, shared, member.host.suggested_role)?;
    Ok(match change.changes_nothing(&snapshot.host) {
        true => Judged::Same(Box::new(snapshot.host)),
        false => Judged::Different,
    })
}

/// Commits only when something about the host really became different.
async fn reconcile_host(
    hub: &Hub,
    member: &Member,
    judged: Judged,
    shared: &SharedFacts,
    opctx: &OpContext,
) -> Result<Host, Error> {
    if let Judged::Same(host) = judged {
        return Ok(*host);
    }
    // Reconciling a thousand hosts must not keep one poll waiting.
    tokio::task::yield_now().await;
    let suggested = member.host.suggested_role;
    let id = member.host.cluster;
    let key = member.host.key();
    let done = hub
        .change_host(key, Need::Reports, opctx, |snapshot| {
            if snapshot.host.cluster != id {
                // It left in the meantime; whoever took it away has evaluated it.
                return Ok(snapshot.plain(snapshot.next(&muster_domain::host::Event::CheckedIn)?));
            }
            decide_host(snapshot, shared, suggested)
        })
        .await;
    match done {
        Ok(host) => Ok(Host::clone(&host)),
        Err(Error::Missing { .. }) => Ok(member.host.clone()),
        Err(error) => Err(error),
    }
}

fn decide_host(
    snapshot: &HostSnapshot,
    shared: &SharedFacts,
    suggested: Option<Role>,
) -> Result<HostChange, Error> {
    let mut host = snapshot.host.clone();
    let mut journal = Vec::new();
    if host.suggested_role != suggested && suggested.is_some() {
        host.suggested_role = suggested;
        let role = suggested.unwrap_or_default().word();
        let text = format!("Host {}: suggested role is {role}.", host.name());
        journal.push(host.entry("host_role_updated", Severity::Info, text));
    }
    snapshot.measured_with(host, journal, shared)
}

/// The cluster as its own checks leave it.
fn own_findings(
    hub: &Hub,
    mut next: Cluster,
    members: &[&Member],
    shared: &SharedFacts,
    has_manifests: bool,
) -> Result<cluster::Decision, Error> {
    let peers: Vec<_> = members.iter().map(|member| member.peer()).collect();
    let subject = cluster::checks::Subject {
        facts: &shared.facts,
        peers: &peers,
        has_manifests,
        settings: &hub.settings.checks,
    };
    let report = cluster::checks::run(&subject);
    let mut journal = Vec::new();
    if matches!(next.phase, Phase::Draft | Phase::Preparing) {
        journal.extend(news(&next, &report));
        next.validations = report.to_json();
    }
    let event = lifecycle::Event::Measured {
        gates: report.gates(),
        complaints: report.complaints(),
    };
    let mut decision = lifecycle::next(&next, &event, hub.cluster_around())?;
    journal.append(&mut decision.journal);
    decision.journal = journal;
    Ok(decision)
}

fn news(cluster: &Cluster, report: &cluster::checks::Report) -> Vec<muster_domain::Entry> {
    if cluster.validations.is_empty() {
        return Vec::new();
    }
    let changes = report.changes(&checks::stored(&cluster.validations));
    changes
        .into_iter()
        .filter_map(|change| match change.news {
            checks::News::Other => None,
            checks::News::Fixed => Some(cluster.entry(
                "cluster_validation_fixed",
                Severity::Info,
                format!("Cluster {}: check {} passes now.", cluster.name, change.id),
            )),
            checks::News::Failed | checks::News::Broke => Some(cluster.entry(
                "cluster_validation_failed",
                Severity::Warning,
                format!(
                    "Cluster {}: check {} fails: {}",
                    cluster.name, change.id, change.message
                ),
            )),
        })
        .collect()
}
