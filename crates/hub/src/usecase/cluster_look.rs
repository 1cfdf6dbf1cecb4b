//! Looks at a cluster as a whole: networks, groups, roles, every host's findings, then the cluster's own, and counts
//! how far its hosts are. Installations move by this: hosts follow the cluster, and the cluster follows its hosts.

use crate::error::Error;
use crate::ignition::MANIFESTS;
use crate::room::Room;
use crate::turn::{Ask, Need, Scene, Stored, Turn};
use crate::{Hub, measure};
use futures_util::future::join_all;
use muster_domain::checks::{self, ClusterFacts, Neighbours, Peer, Reports};
use muster_domain::cluster::tally::Tally;
use muster_domain::cluster::{self, Cluster, Phase, lifecycle, network, roles};
use muster_domain::host::{Host, Report, Role, rules};
use muster_domain::{ClusterId, HostId, Severity};
use muster_store::{ClusterWrite, Commit, HostFilter};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Hosts of one cluster read at once; more than any cluster has.
const ALL_HOSTS: u32 = 100_000;
const ATTEMPTS: usize = 16;
/// Hosts written at a time: they share a wait for the disk.
const TOGETHER: usize = 64;

/// The whole look; `None` when the cluster is gone.
pub async fn cluster_look(hub: &Hub, id: ClusterId) -> Result<Option<Arc<Cluster>>, Error> {
    let ask = Ask {
        from_look: true,
        ..Ask::hub()
    };
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 0
            && let Some(fresh) = hub.store.cluster_find(id).await?
        {
            hub.keep_cluster(fresh);
        }
        let Some(cluster) = hub.index.cluster(id) else {
            return Ok(None);
        };
        let phase = cluster.phase;
        // Without some of its hosts the count would be wrong, and end an installation.
        if phase.follows_hosts() && !hub.unreadable_of_cluster(id).is_empty() {
            return Ok(Some(cluster));
        }
        match look_once(hub, cluster, &ask).await {
            Err(error) if error.is_stale() => last = Some(error),
            // The hosts follow at once, not at somebody's next poll.
            Ok(after) if after.phase != phase => {
                hub.mark_dirty(id);
                return Ok(Some(after));
            }
            done => return done.map(Some),
        }
    }
    last.map_or(Ok(None), Err)
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

async fn look_once(hub: &Hub, cluster: Arc<Cluster>, ask: &Ask) -> Result<Arc<Cluster>, Error> {
    if !cluster.phase.is_checked() {
        return count_only(hub, &cluster, ask).await;
    }
    let rows = rows(hub, cluster.id).await?;
    // Read after the row, whose revision every change of files bumps: an old answer is not committed.
    let has_manifests = !hub.store.file_list(cluster.id, MANIFESTS).await?.is_empty();
    let (there, mut next) = (hub.clone(), Cluster::clone(&cluster));
    let arranged = hub.look_threads.run(move || {
        let mut members: Vec<_> = rows.into_iter().map(Member::of).collect();
        let room = arrange(&there, &mut next, &mut members);
        (next, members, Arc::new(room))
    });
    let (next, mut members, room) = arranged.await;
    hub.rooms.put(cluster.id, room.clone());
    let mut looked_at = Vec::with_capacity(members.len());
    while !members.is_empty() {
        let some = members.drain(..members.len().min(TOGETHER)).collect();
        let looks = judged(hub, some, &room)
            .await
            .into_iter()
            .map(async |(member, judged)| {
                let host = settle_host(hub, &member, judged?, &room, ask).await?;
                Ok::<_, Error>((member, host))
            });
        for looked in join_all(looks).await {
            let (mut member, host) = looked?;
            // What is known of it may decide its next phase, too, and nobody has to report that again.
            if host.phase != member.host.phase {
                hub.mark_dirty(cluster.id);
            }
            member.host = host;
            looked_at.push(member);
        }
    }
    settle_cluster(hub, &cluster, next, looked_at, (room, has_manifests)).await
}

/// Once hosts are being written their findings are frozen: what is left is to let hosts follow the cluster, and to
/// count them. That needs no report, however many there are.
async fn count_only(hub: &Hub, cluster: &Cluster, ask: &Ask) -> Result<Arc<Cluster>, Error> {
    let mut hosts = Vec::new();
    for slot in hub.index.hosts_of_cluster(cluster.id) {
        let host = slot.host();
        let follows = hub.host_turn(host.key(), Need::Row, ask, follow_turn).await;
        match follows {
            Ok(after) => hosts.push(Host::clone(&after)),
            Err(Error::Missing { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    count(hub, cluster, Cluster::clone(cluster), Vec::new(), &hosts).await
}

/// The findings as they are, under the cluster as it is now.
fn follow_turn(scene: &Scene<'_>) -> Result<Turn, Error> {
    if rules::part(scene.host.phase) == rules::Part::Discovery {
        return Ok(scene.plain(scene.unchanged()));
    }
    let event = muster_domain::host::Event::Measured {
        gates: scene.host.gates,
        complaints: String::new(),
    };
    Ok(scene.plain(scene.next(&event)?))
}

/// The cluster's hosts with their reports.
async fn rows(hub: &Hub, id: ClusterId) -> Result<Vec<(Host, Stored)>, Error> {
    let filter = HostFilter {
        cluster: Some(id),
        ..HostFilter::default()
    };
    // Reports are most of the work, and of no use while all hosts are told to register again.
    let is_measured = hub
        .index
        .hosts_of_cluster(id)
        .iter()
        .any(|slot| rules::is_measured(&slot.row()));
    let wanted: &[Report] = if is_measured { &Report::ALL } else { &[] };
    hub.hosts_page(&filter, None, ALL_HOSTS, wanted).await
}

/// Derives what follows from the hosts taken together, and suggests their roles.
fn arrange(hub: &Hub, cluster: &mut Cluster, members: &mut [Member]) -> Room {
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
    derive_machine_networks(cluster, &peers);
    let facts = ClusterFacts::of(cluster);
    let groups = network::majority_groups(&peers);
    cluster.connectivity_groups = groups.to_json();
    let suggested = roles::suggest(&facts, &peers, &hub.settings.requirements);
    drop(peers);
    if let Some(suggested) = suggested {
        suggest_roles(members, &suggested);
    }
    let peers: Vec<_> = members.iter().map(Member::peer).collect();
    Room {
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

/// Machine networks follow the virtual addresses until a person sets them.
fn derive_machine_networks(cluster: &mut Cluster, peers: &[Peer<'_>]) {
    if cluster.machine_networks_given || cluster.adds_hosts() {
        return;
    }
    let networks = if cluster.single_node() {
        peers
            .iter()
            .find_map(network::single_node_machine_network)
            .into_iter()
            .collect()
    } else if cluster.user_managed_networking {
        return;
    } else {
        let vips = cluster.api_vips.iter().chain(&cluster.ingress_vips);
        network::machine_networks(vips.filter_map(|vip| vip.ip.parse().ok()), peers)
    };
    cluster.machine_networks = networks.iter().map(ToString::to_string).collect();
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

async fn judged(hub: &Hub, members: Vec<Member>, room: &Arc<Room>) -> Vec<(Member, Result<Judged, Error>)> {
    let (there, room) = (hub.clone(), room.clone());
    let judging = hub.look_threads.run(move || {
        let judged = members.into_iter().map(|member| {
            let judged = judge(&there, &member, &room);
            (member, judged)
        });
        judged.collect()
    });
    judging.await
}

fn judge(hub: &Hub, member: &Member, room: &Room) -> Result<Judged, Error> {
    if !rules::is_judged(&member.host) {
        return Ok(Judged::Same(Box::new(member.host.clone())));
    }
    let before = hub.index.host(member.host.key());
    let scene = Scene {
        hub,
        host: before.unwrap_or_else(|| member.host.clone()),
        stored: member.stored.clone(),
        cluster: member.host.cluster.and_then(|id| hub.index.cluster(id)),
        infra_env: None,
        now: hub.now(),
    };
    let turn = host_turn(&scene, room, member.host.suggested_role)?;
    Ok(match turn.changes_nothing(&scene.host) {
        true => Judged::Same(Box::new(scene.host)),
        false => Judged::Different,
    })
}

/// Commits only when something about the host really became different.
async fn settle_host(
    hub: &Hub,
    member: &Member,
    judged: Judged,
    room: &Room,
    ask: &Ask,
) -> Result<Host, Error> {
    if let Judged::Same(host) = judged {
        return Ok(*host);
    }
    // A look at a thousand hosts must not keep one poll waiting.
    tokio::task::yield_now().await;
    let suggested = member.host.suggested_role;
    let id = member.host.cluster;
    let key = member.host.key();
    let done = hub
        .host_turn(key, Need::Reports, ask, |scene| {
            if scene.host.cluster != id {
                // It left in the meantime; whoever took it away has looked at it.
                return Ok(scene.plain(scene.next(&muster_domain::host::Event::CheckedIn)?));
            }
            host_turn(scene, room, suggested)
        })
        .await;
    match done {
        Ok(host) => Ok(Host::clone(&host)),
        Err(Error::Missing { .. }) => Ok(member.host.clone()),
        Err(error) => Err(error),
    }
}

fn host_turn(scene: &Scene<'_>, room: &Room, suggested: Option<Role>) -> Result<Turn, Error> {
    let mut host = scene.host.clone();
    let mut journal = Vec::new();
    if host.suggested_role != suggested && suggested.is_some() {
        host.suggested_role = suggested;
        let role = suggested.unwrap_or_default().word();
        let text = format!("Host {}: suggested role is {role}.", host.name());
        journal.push(host.entry("host_role_updated", Severity::Info, text));
    }
    scene.in_room(host, journal, room)
}

async fn settle_cluster(
    hub: &Hub,
    before: &Cluster,
    next: Cluster,
    members: Vec<Member>,
    (room, has_manifests): (Arc<Room>, bool),
) -> Result<Arc<Cluster>, Error> {
    let there = hub.clone();
    let found = hub
        .look_threads
        .run(move || settled(&there, next, members, &room, has_manifests));
    let (decision, hosts) = found.await?;
    count(hub, before, decision.cluster, decision.journal, &hosts).await
}

/// The cluster as its own checks leave it, and its hosts.
fn settled(
    hub: &Hub,
    mut next: Cluster,
    members: Vec<Member>,
    room: &Room,
    has_manifests: bool,
) -> Result<(cluster::Decision, Vec<Host>), Error> {
    let peers: Vec<_> = members.iter().map(Member::peer).collect();
    let subject = cluster::checks::Subject {
        facts: &room.facts,
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
    drop(peers);
    let hosts = members.into_iter().map(|member| member.host).collect();
    Ok((decision, hosts))
}

/// The last part of a look: what the hosts' states mean for the cluster, and the commit if anything became different.
async fn count(
    hub: &Hub,
    before: &Cluster,
    next: Cluster,
    mut journal: Vec<muster_domain::Entry>,
    hosts: &[Host],
) -> Result<Arc<Cluster>, Error> {
    let all: Vec<_> = hosts.iter().collect();
    let event = lifecycle::Event::Counted {
        tally: Tally::of(&all),
    };
    let mut decision = lifecycle::next(&next, &event, hub.cluster_around())?;
    if &decision.cluster == before && decision.effects.is_empty() {
        return Ok(Arc::new(decision.cluster));
    }
    journal.append(&mut decision.journal);
    decision.journal = journal;
    let ask = Ask {
        from_look: true,
        ..Ask::hub()
    };
    hub.cluster_commit(decision, Vec::new(), &ask).await
}

pub async fn cluster_commit(
    hub: &Hub,
    mut cluster: Cluster,
    journal: Vec<muster_domain::Entry>,
    request_id: Option<uuid::Uuid>,
) -> Result<Arc<Cluster>, Error> {
    let commit = Commit {
        request_id,
        clusters: vec![ClusterWrite::Put {
            cluster: cluster.clone(),
        }],
        journal,
        ..Commit::new(hub.now())
    };
    let done = hub.store.commit(commit).await?;
    cluster.revision = done.clusters.first().copied().unwrap_or(cluster.revision + 1);
    let row = hub.keep_cluster(cluster);
    // The feed takes it for known: nobody else would have it looked at.
    hub.mark_dirty(row.id);
    hub.announce(done.seq);
    Ok(row)
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
