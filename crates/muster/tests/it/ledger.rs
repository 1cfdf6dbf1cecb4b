//! What the hub acknowledged, and whether its rows, its feed and its history all say the same.

use crate::served::{Served, until};
use muster_contract::v1::change::{Change, ChangeKind, ChangeOp};
use muster_contract::v1::host::{HostSummary, HostsQuery};
use muster_contract::v1::row_status::RowStatus;
use muster_contract::v2::event::{EventView, EventsQuery};
use muster_contract::v2::host::ClusterHostsQuery;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use uuid::Uuid;

/// Where each host must be: the last acknowledged request decides, one without an answer may have been done.
#[derive(Default)]
pub struct Ledger(Mutex<HashMap<Uuid, Entry>>);

#[derive(Debug, Clone, Default)]
struct Entry {
    promised: Option<Uuid>,
    perhaps: Option<Uuid>,
    history: Vec<Uuid>,
}

impl Entry {
    fn allows(&self, found: Option<Uuid>) -> bool {
        found == self.promised || (found.is_some() && found == self.perhaps)
    }
}

impl Ledger {
    pub fn asked(&self, host: Uuid, to: Uuid) {
        self.0.lock().unwrap().entry(host).or_default().perhaps = Some(to);
    }

    pub fn acknowledged(&self, host: Uuid, to: Uuid) {
        let mut hosts = self.0.lock().unwrap();
        let entry = hosts.entry(host).or_default();
        entry.history.push(to);
        (entry.promised, entry.perhaps) = (Some(to), None);
    }

    /// Where it was sent, as far as is known.
    pub fn destination(&self, host: Uuid) -> Option<Uuid> {
        self.0.lock().unwrap().get(&host).and_then(|entry| entry.promised)
    }

    /// Whether it may be there for good: nothing is open any more, or what is open has been done.
    pub fn allows(&self, host: Uuid, found: Option<Uuid>) -> bool {
        let hosts = self.0.lock().unwrap();
        hosts.get(&host).is_none_or(|entry| entry.allows(found))
    }

    /// What is found settles what was open.
    fn judge(&self, host: Uuid, found: Option<Uuid>) {
        let mut hosts = self.0.lock().unwrap();
        let entry = hosts.entry(host).or_default();
        let fits = entry.allows(found);
        assert!(fits, "host {host} goes to {found:?}, but {entry:?}");
        (entry.promised, entry.perhaps) = (found, None);
    }
}

/// Checks everything against everything and gives the hosts.
pub async fn agree(served: &Served, infra_env: Uuid, clusters: &[Uuid], ledger: &Ledger) -> Vec<HostSummary> {
    // Background work may go on meanwhile: read until nothing changed between the first and the last answer.
    let (hosts, members, feed, history) = until("the hub comes to rest", async || {
        let before = served.seq().await;
        let found = (
            hosts(served, infra_env).await,
            members(served, clusters).await,
            served.changes().await,
            bind_events(served, clusters).await,
        );
        (before == served.seq().await).then_some(found)
    })
    .await;
    let mut seen: HashMap<Uuid, Uuid> = HashMap::new();
    for (cluster, host) in members {
        let twice = seen.insert(host, cluster);
        assert_eq!(
            twice, None,
            "host {host} is in two clusters, one of them {cluster}"
        );
    }
    for host in &hosts {
        let listed = seen.get(&host.id).copied();
        let bound = host.cluster_id.filter(|id| clusters.contains(id));
        assert_eq!(bound, listed, "host {} and the lists of clusters", host.id);
        if !ledger.0.lock().unwrap().is_empty() {
            ledger.judge(host.id, destination(served, infra_env, host).await);
        }
    }
    feed_fits(&feed, &hosts);
    if !clusters.is_empty() {
        history_fits(&feed, &history, clusters);
    }
    acknowledged_is_in(&feed, ledger);
    hosts
}

/// The cluster it is bound to, or will be when it is back.
async fn destination(served: &Served, infra_env: Uuid, host: &HostSummary) -> Option<Uuid> {
    match host.cluster_id {
        Some(cluster) => Some(cluster),
        None => served
            .hub
            .host_move(infra_env, host.id)
            .await
            .ok()
            .map(|view| view.to),
    }
}

async fn hosts(served: &Served, infra_env: Uuid) -> Vec<HostSummary> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let query = HostsQuery {
            infra_env_id: Some(infra_env),
            after: after.take(),
            ..HostsQuery::default()
        };
        let page = served.hub.host_page(&query).await.unwrap();
        all.extend(page.hosts);
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

async fn members(served: &Served, clusters: &[Uuid]) -> Vec<(Uuid, Uuid)> {
    let mut all = Vec::new();
    for cluster in clusters {
        let hosts = served
            .hub
            .cluster_hosts(*cluster, &ClusterHostsQuery::default())
            .await
            .unwrap();
        all.extend(hosts.into_iter().map(|host| (*cluster, host.id)));
    }
    all
}

/// How often each host was bound to each cluster, as its history tells.
async fn bind_events(served: &Served, clusters: &[Uuid]) -> BTreeMap<(Uuid, Uuid), usize> {
    let mut counts = BTreeMap::new();
    for cluster in clusters {
        for event in events(served, *cluster).await {
            if event.name == "host_bind_succeeded" {
                *counts.entry((event.host_id.unwrap(), *cluster)).or_default() += 1;
            }
        }
    }
    counts
}

/// Page by page.
async fn events(served: &Served, cluster: Uuid) -> Vec<EventView> {
    const PAGE: i64 = 2_000;
    let mut all = Vec::new();
    loop {
        let query = EventsQuery {
            cluster_id: Some(cluster),
            limit: Some(PAGE),
            offset: Some(all.len() as i64),
            ..EventsQuery::default()
        };
        let page = served.hub.events(&query).await.unwrap();
        let last = (page.len() as i64) < PAGE;
        all.extend(page);
        if last {
            return all;
        }
    }
}

/// No number is missing, and the last word about each host is what its row says.
fn feed_fits(feed: &[Change], hosts: &[HostSummary]) {
    for (change, number) in feed.iter().zip(1..) {
        assert_eq!(change.seq, number, "the feed has no gaps");
    }
    let mut last: HashMap<Uuid, &Change> = HashMap::new();
    for change in feed.iter().filter(|change| change.kind == ChangeKind::Host) {
        last.insert(change.id, change);
    }
    for host in hosts {
        let told = last.remove(&host.id).expect("every host is in the feed");
        let row = (
            host.revision,
            host.cluster_id,
            Some(RowStatus::Host(host.status.clone())),
        );
        assert_eq!(
            (told.revision, told.cluster_id, told.status.clone()),
            row,
            "host {}",
            host.id
        );
    }
    let gone = last.into_values().find(|change| change.op == ChangeOp::Put);
    assert!(
        gone.is_none(),
        "the feed tells of a host that is not there: {gone:?}"
    );
}

/// Every time a host came to a cluster there is one event about it, and no event without that.
fn history_fits(feed: &[Change], history: &BTreeMap<(Uuid, Uuid), usize>, clusters: &[Uuid]) {
    let mut at: HashMap<Uuid, Option<Uuid>> = HashMap::new();
    let mut counts: BTreeMap<(Uuid, Uuid), usize> = BTreeMap::new();
    for change in feed.iter().filter(|change| change.kind == ChangeKind::Host) {
        let before = at.insert(change.id, change.cluster_id).flatten();
        let cluster = change
            .cluster_id
            .filter(|cluster| before != Some(*cluster) && clusters.contains(cluster));
        if let Some(cluster) = cluster {
            *counts.entry((change.id, cluster)).or_default() += 1;
        }
    }
    assert_eq!(&counts, history, "the feed and the history tell the same");
}

/// Each acknowledged request changed its host at least once.
fn acknowledged_is_in(feed: &[Change], ledger: &Ledger) {
    let mut counts: HashMap<Uuid, usize> = HashMap::new();
    for change in feed.iter().filter(|change| change.kind == ChangeKind::Host) {
        *counts.entry(change.id).or_default() += 1;
    }
    for (host, entry) in ledger.0.lock().unwrap().iter() {
        let told = counts.get(host).copied().unwrap_or_default();
        assert!(
            told > entry.history.len(),
            "host {host}: {told} changes for {entry:?}"
        );
    }
}
