//! The hub's working memory: every host's row, who is alive, and which hosts a cluster or pool has.
//!
//! It is a copy. The database decides: a commit based on a stale copy is refused, read again and decided again.

use crate::hourly::Hourly;
use crate::outstanding::Outstanding;
use jiff::Timestamp;
use muster_domain::cluster::Cluster;
use muster_domain::host::{Host, Status};
use muster_domain::infra_env::InfraEnv;
use muster_domain::{ClusterId, HostKey, InfraEnvId};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// One host in memory: its row, and what changes at every poll and therefore is not in the row.
#[derive(Debug)]
pub struct Slot {
    host: RwLock<Arc<Host>>,
    pub live: Live,
}

/// Signs of life, written without a lock at every poll and flushed in batches.
#[derive(Debug, Default)]
pub struct Live {
    seen_micros: AtomicI64,
    clock: AtomicI64,
    unflushed: AtomicBool,
    /// How the host's clock was judged when its checks last ran: 0 unknown, 1 right, 2 wrong.
    pub skew: AtomicU8,
    /// How often the agent was asked to replace itself; asking for ever would keep it from working.
    upgrades: AtomicU8,
    /// What may be told of this host once an hour.
    pub hourly: Hourly,
    /// When the machine that is known under this id last told of its hardware.
    machine_micros: AtomicI64,
    /// Long steps the agent is working on.
    pub outstanding: Outstanding,
    /// What it reported last about its hardware could not be read.
    pub inventory_broken: AtomicBool,
    /// The earliest wake-up already queued for it; `i64::MAX` when none.
    pub queued_micros: AtomicI64,
}

impl Slot {
    fn new(host: Host) -> Self {
        let live = Live {
            seen_micros: AtomicI64::new(host.checked_in_at.as_microsecond()),
            clock: AtomicI64::new(host.clock),
            // Who polled before this hub was there is not known: it counts as the machine that is listed.
            machine_micros: AtomicI64::new(host.checked_in_at.as_microsecond()),
            queued_micros: AtomicI64::new(i64::MAX),
            // As the checks saw it when they last ran: a hub that starts need not run them all again.
            skew: AtomicU8::new(skew(host.clock, host.checked_in_at)),
            ..Live::default()
        };
        Self {
            host: RwLock::new(Arc::new(host)),
            live,
        }
    }

    pub fn row(&self) -> Arc<Host> {
        read(&self.host).clone()
    }

    /// The row with the newest signs of life filled in.
    pub fn host(&self) -> Host {
        let mut host = Host::clone(&self.row());
        host.checked_in_at = host.checked_in_at.max(self.live.seen());
        host.clock = self.live.clock.load(Ordering::Relaxed);
        host
    }
}

/// An agent that still differs after this many upgrades runs an alias of the same image; it is left alone.
const UPGRADE_ATTEMPTS: u8 = 3;
/// Stands for "and its checks know of it".
const UPGRADE_GIVEN_UP: u8 = UPGRADE_ATTEMPTS + 1;

/// The end of the year 9999. Clocks beyond it are as wrong as this, and can be reckoned with.
const FARTHEST_CLOCK: i64 = 253_402_300_799;

/// Coarse judgement of the host's clock, to notice when the check about it must run again.
pub fn skew(clock: i64, now: Timestamp) -> u8 {
    // The limits of the check itself: 20 minutes slow, 60 minutes fast.
    match clock {
        0 => 0,
        clock if now.as_second() - clock > 20 * 60 || clock - now.as_second() > 60 * 60 => 2,
        _ => 1,
    }
}

impl Live {
    pub fn saw(&self, now: Timestamp, clock: Option<i64>) {
        self.seen_micros
            .fetch_max(now.as_microsecond(), Ordering::Relaxed);
        if let Some(clock) = clock {
            self.clock
                .store(clock.clamp(-FARTHEST_CLOCK, FARTHEST_CLOCK), Ordering::Relaxed);
        }
        self.unflushed.store(true, Ordering::Relaxed);
    }

    /// Counts the host as seen at `at` without there being anything to write down.
    pub fn excuse(&self, at: Timestamp) {
        self.seen_micros.fetch_max(at.as_microsecond(), Ordering::Relaxed);
    }

    /// Whether the agent may be asked once more; if so it counts as asked.
    pub fn ask_to_upgrade(&self) -> bool {
        self.upgrades
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |asked| {
                (asked < UPGRADE_ATTEMPTS).then_some(asked + 1)
            })
            .is_ok()
    }

    /// The last asking was never heard.
    pub fn not_asked_to_upgrade(&self) {
        let once_less = |asked: u8| (asked <= UPGRADE_ATTEMPTS).then_some(asked.saturating_sub(1));
        // Whoever was given up meanwhile stays so.
        let _asked = self
            .upgrades
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, once_less);
    }

    /// True once, after the last attempt.
    pub fn give_up_upgrading(&self) -> bool {
        self.upgrades
            .compare_exchange(
                UPGRADE_ATTEMPTS,
                UPGRADE_GIVEN_UP,
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// The checks do not know of it yet.
    pub fn may_give_up_upgrading(&self) {
        let _asked = self.upgrades.compare_exchange(
            UPGRADE_GIVEN_UP,
            UPGRADE_ATTEMPTS,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    pub fn agent_stays(&self) -> bool {
        self.upgrades.load(Ordering::Relaxed) == UPGRADE_GIVEN_UP
    }

    pub fn seen(&self) -> Timestamp {
        crate::clock::from_micros(self.seen_micros.load(Ordering::Relaxed))
    }

    pub fn heard_machine(&self, now: Timestamp) {
        self.machine_micros
            .fetch_max(now.as_microsecond(), Ordering::Relaxed);
    }

    pub fn machine_heard(&self) -> Timestamp {
        crate::clock::from_micros(self.machine_micros.load(Ordering::Relaxed))
    }

    pub fn clock(&self) -> i64 {
        self.clock.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub struct Index {
    hosts: RwLock<HashMap<HostKey, Arc<Slot>>>,
    by_cluster: RwLock<HashMap<ClusterId, BTreeSet<HostKey>>>,
    by_infra_env: RwLock<HashMap<InfraEnvId, BTreeSet<HostKey>>>,
    clusters: RwLock<HashMap<ClusterId, Arc<Cluster>>>,
    infra_envs: RwLock<HashMap<InfraEnvId, Arc<InfraEnv>>>,
    /// Hosts that were deleted while their agents may still run.
    tombstones: RwLock<HashMap<HostKey, Timestamp>>,
}

impl Index {
    pub fn slot(&self, key: HostKey) -> Option<Arc<Slot>> {
        read(&self.hosts).get(&key).cloned()
    }

    pub fn host(&self, key: HostKey) -> Option<Host> {
        self.slot(key).map(|slot| slot.host())
    }

    pub fn cluster(&self, id: ClusterId) -> Option<Arc<Cluster>> {
        read(&self.clusters).get(&id).cloned()
    }

    pub fn infra_env(&self, id: InfraEnvId) -> Option<Arc<InfraEnv>> {
        read(&self.infra_envs).get(&id).cloned()
    }

    pub fn clusters(&self) -> Vec<Arc<Cluster>> {
        let mut all: Vec<_> = read(&self.clusters).values().cloned().collect();
        all.sort_by_key(|cluster| (cluster.created_at, cluster.id));
        all
    }

    pub fn infra_envs(&self) -> Vec<Arc<InfraEnv>> {
        let mut all: Vec<_> = read(&self.infra_envs).values().cloned().collect();
        all.sort_by_key(|infra_env| (infra_env.created_at, infra_env.id));
        all
    }

    pub fn hosts_of_cluster(&self, id: ClusterId) -> Vec<Arc<Slot>> {
        let keys: Vec<_> = read(&self.by_cluster)
            .get(&id)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        keys.into_iter().filter_map(|key| self.slot(key)).collect()
    }

    /// Hosts on their way to a cluster that they are not in yet.
    pub fn hosts_moving_to(&self, id: ClusterId) -> Vec<HostKey> {
        let all = read(&self.hosts);
        let moving = all.iter().filter(|(_, slot)| slot.row().moving_to == Some(id));
        moving.map(|(key, _)| *key).collect()
    }

    pub fn count_of_cluster(&self, id: ClusterId) -> usize {
        read(&self.by_cluster).get(&id).map_or(0, BTreeSet::len)
    }

    pub fn hosts_of_infra_env(&self, id: InfraEnvId) -> Vec<HostKey> {
        read(&self.by_infra_env)
            .get(&id)
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    pub fn count_of_infra_env(&self, id: InfraEnvId) -> usize {
        read(&self.by_infra_env).get(&id).map_or(0, BTreeSet::len)
    }

    pub fn keys(&self) -> Vec<HostKey> {
        read(&self.hosts).keys().copied().collect()
    }

    pub fn counts(&self) -> (usize, usize, usize) {
        (
            read(&self.hosts).len(),
            read(&self.clusters).len(),
            read(&self.infra_envs).len(),
        )
    }

    /// Hosts of that name, or whose id begins with it; names are not unique.
    pub fn named(&self, name: &str) -> Vec<Host> {
        let prefix = name.to_ascii_lowercase();
        let meant = |slot: &&Arc<Slot>| {
            let row = slot.row();
            row.id.to_string().starts_with(&prefix) || row.name() == name
        };
        let mut found: Vec<_> = read(&self.hosts)
            .values()
            .filter(meant)
            .map(|slot| slot.host())
            .collect();
        found.sort_by_key(Host::key);
        found
    }

    /// How many hosts are in each status, for metrics.
    pub fn hosts_by_status(&self) -> HashMap<Status, u64> {
        let mut counts = HashMap::new();
        for slot in read(&self.hosts).values() {
            *counts.entry(slot.row().status()).or_default() += 1;
        }
        counts
    }

    pub fn is_deleted(&self, key: HostKey) -> bool {
        read(&self.tombstones).contains_key(&key)
    }

    /// Takes over a committed row, unless a newer one is here already.
    pub fn put_host(&self, host: Host) -> Arc<Slot> {
        let key = host.key();
        let (cluster, infra_env) = (host.cluster, host.infra_env);
        let mut hosts = write(&self.hosts);
        write(&self.tombstones).remove(&key);
        let (slot, before) = match hosts.get(&key) {
            Some(slot) => {
                let mut row = write(&slot.host);
                if row.revision >= host.revision {
                    drop(row);
                    return slot.clone();
                }
                let before = row.cluster;
                slot.live
                    .seen_micros
                    .fetch_max(host.checked_in_at.as_microsecond(), Ordering::Relaxed);
                *row = Arc::new(host);
                drop(row);
                (slot.clone(), before)
            }
            None => {
                let slot = Arc::new(Slot::new(host));
                hosts.insert(key, slot.clone());
                link(&self.by_infra_env, infra_env, key);
                (slot, None)
            }
        };
        if before != cluster {
            before.inspect(|old| unlink(&self.by_cluster, old, key));
        }
        cluster.inspect(|new| link(&self.by_cluster, *new, key));
        slot
    }

    pub fn drop_host(&self, key: HostKey, at: Timestamp) {
        self.set_host_aside(key);
        write(&self.tombstones).insert(key, at);
    }

    /// It is still there, and nobody knows how it is.
    pub fn set_host_aside(&self, key: HostKey) {
        let removed = write(&self.hosts).remove(&key);
        unlink(&self.by_infra_env, &key.infra_env, key);
        if let Some(cluster) = removed.and_then(|slot| slot.row().cluster) {
            unlink(&self.by_cluster, &cluster, key);
        }
    }

    pub fn put_tombstone(&self, key: HostKey, at: Timestamp) {
        write(&self.tombstones).insert(key, at);
    }

    pub fn forget_tombstones(&self, before: Timestamp) {
        write(&self.tombstones).retain(|_, at| *at >= before);
    }

    pub fn put_cluster(&self, cluster: Cluster) -> Arc<Cluster> {
        put(&self.clusters, cluster.id, Arc::new(cluster), |row| row.revision)
    }

    pub fn drop_cluster(&self, id: ClusterId) {
        write(&self.clusters).remove(&id);
        write(&self.by_cluster).remove(&id);
    }

    /// It is still there, and so are its hosts.
    pub fn set_cluster_aside(&self, id: ClusterId) {
        write(&self.clusters).remove(&id);
    }

    /// The same.
    pub fn set_infra_env_aside(&self, id: InfraEnvId) {
        write(&self.infra_envs).remove(&id);
    }

    pub fn put_infra_env(&self, infra_env: InfraEnv) -> Arc<InfraEnv> {
        put(&self.infra_envs, infra_env.id, Arc::new(infra_env), |row| {
            row.revision
        })
    }

    pub fn drop_infra_env(&self, id: InfraEnvId) {
        write(&self.infra_envs).remove(&id);
        write(&self.by_infra_env).remove(&id);
    }

    /// Signs of life that are not in the database yet.
    pub fn take_unflushed(&self) -> Vec<(HostKey, Timestamp, i64)> {
        read(&self.hosts)
            .iter()
            .filter(|(_, slot)| slot.live.unflushed.swap(false, Ordering::Relaxed))
            .map(|(key, slot)| (*key, slot.live.seen(), slot.live.clock()))
            .collect()
    }

    /// They could not be written after all.
    pub fn keep_unflushed(&self, keys: impl Iterator<Item = HostKey>) {
        for slot in keys.filter_map(|key| self.slot(key)) {
            slot.live.unflushed.store(true, Ordering::Relaxed);
        }
    }
}

fn put<K: Hash + Eq, V: Clone>(
    map: &RwLock<HashMap<K, V>>,
    key: K,
    row: V,
    revision: impl Fn(&V) -> i64,
) -> V {
    let mut map = write(map);
    match map.get(&key) {
        Some(known) if revision(known) >= revision(&row) => known.clone(),
        _ => {
            map.insert(key, row.clone());
            row
        }
    }
}

fn link<K: Hash + Eq>(map: &RwLock<HashMap<K, BTreeSet<HostKey>>>, at: K, key: HostKey) {
    write(map).entry(at).or_default().insert(key);
}

fn unlink<K: Hash + Eq>(map: &RwLock<HashMap<K, BTreeSet<HostKey>>>, at: &K, key: HostKey) {
    if let Some(keys) = write(map).get_mut(at) {
        keys.remove(&key);
    }
}

// A panic while a lock was held leaves a copy that the database corrects; going on is right.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
