//! The hub's working memory: every row of every noun, which rows refer to which, and who is alive.
//!
//! It is a copy. The database decides: a commit based on a stale copy is refused, read again and decided again.

mod table;

use crate::hourly::Hourly;
use crate::outstanding::Outstanding;
use jiff::Timestamp;
use muster_domain::checks::{self, Skew};
use muster_domain::cluster::Cluster;
use muster_domain::host::steps::UPGRADE_ATTEMPTS;
use muster_domain::host::{Host, Status};
use muster_domain::infra_env::InfraEnv;
use muster_domain::{ClusterId, HostKey, InfraEnvId};
use muster_store::{ChangeKind, Record, Row, RowId, RowKey, Visit, VisitKey};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use table::Table;

/// A row of any noun as it was put.
pub type AnyRow = Arc<dyn Any + Send + Sync>;

/// One host in memory: its row, and what changes at every poll and therefore is not in the row.
#[derive(Debug, Clone)]
pub struct Slot {
    row: Arc<RwLock<Arc<Host>>>,
    pub live: Arc<Live>,
}

/// Signs of life, written without a lock at every poll and flushed in batches.
#[derive(Debug, Default)]
pub struct Live {
    last_poll_micros: AtomicI64,
    clock: AtomicI64,
    unflushed: AtomicBool,
    /// How the host's clock was judged when its checks last ran: 0 unknown, 1 right, 2 wrong.
    pub skew: AtomicU8,
    /// How often the agent was asked to replace itself; asking for ever would keep it from working.
    upgrades: AtomicU8,
    /// News of this host that are reported at most once an hour.
    pub hourly: Hourly,
    /// When the machine that is known under this id last reported its hardware.
    machine_micros: AtomicI64,
    /// Long steps the agent is working on.
    pub outstanding: Outstanding,
    /// The earliest wake-up already queued for it; `i64::MAX` when none.
    pub queued_micros: AtomicI64,
}

impl Slot {
    pub fn row(&self) -> Arc<Host> {
        read(&self.row).clone()
    }

    /// The row with the newest signs of life filled in.
    pub fn host(&self) -> Host {
        let mut host = Host::clone(&self.row());
        host.checked_in_at = host.checked_in_at.max(self.live.last_poll());
        host.clock = self.live.clock.load(Ordering::Relaxed);
        host
    }
}

/// Stands for "and its checks know of it".
const UPGRADE_GIVEN_UP: u8 = UPGRADE_ATTEMPTS + 1;

/// The end of the year 9999. Clocks beyond it are as wrong as this, and can be reckoned with.
const FARTHEST_CLOCK: i64 = 253_402_300_799;

/// Coarse judgement of the host's clock, to notice when the check about it must run again.
pub fn skew(clock: i64, now: Timestamp) -> u8 {
    match checks::skew(clock, now) {
        Skew::Unknown => 0,
        Skew::Right => 1,
        Skew::Behind | Skew::Ahead => 2,
    }
}

impl Live {
    fn of(host: &Host) -> Self {
        Self {
            last_poll_micros: AtomicI64::new(host.checked_in_at.as_microsecond()),
            clock: AtomicI64::new(host.clock),
            // Who polled before this hub was there is not known: it counts as the machine that is listed.
            machine_micros: AtomicI64::new(host.checked_in_at.as_microsecond()),
            queued_micros: AtomicI64::new(i64::MAX),
            // As the checks saw it when they last ran: a hub that starts need not run them all again.
            skew: AtomicU8::new(skew(host.clock, host.checked_in_at)),
            ..Self::default()
        }
    }

    pub fn saw(&self, now: Timestamp, clock: Option<i64>) {
        self.last_poll_micros
            .fetch_max(now.as_microsecond(), Ordering::Relaxed);
        if let Some(clock) = clock {
            self.clock
                .store(clock.clamp(-FARTHEST_CLOCK, FARTHEST_CLOCK), Ordering::Relaxed);
        }
        self.unflushed.store(true, Ordering::Relaxed);
    }

    /// Counts the host as seen at `at` without there being anything to write down.
    pub fn excuse(&self, at: Timestamp) {
        self.last_poll_micros
            .fetch_max(at.as_microsecond(), Ordering::Relaxed);
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

    pub fn last_poll(&self) -> Timestamp {
        crate::clock::from_micros(self.last_poll_micros.load(Ordering::Relaxed))
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

/// How many nouns there are.
const NOUNS: usize = ChangeKind::ALL.len();

#[derive(Debug)]
pub struct Index {
    /// One [`Table`] for each noun, made when it is first asked for.
    tables: [OnceLock<Box<dyn Any + Send + Sync>>; NOUNS],
    /// Of every host that has a row.
    lives: RwLock<HashMap<HostKey, Arc<Live>>>,
    /// Hosts that were deleted while their agents may still run.
    tombstones: RwLock<HashMap<HostKey, Timestamp>>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            tables: [const { OnceLock::new() }; NOUNS],
            lives: RwLock::default(),
            tombstones: RwLock::default(),
        }
    }
}

/// A row that memory took over.
pub struct Put {
    /// As it is now, which may be newer.
    pub row: AnyRow,
    /// The clusters whose findings depend on it, before and now.
    pub concerned: [Option<ClusterId>; 2],
}

/// For rows of any noun.
impl Index {
    fn table<R: Row>(&self) -> &Table<R> {
        let table = self.tables[R::NOUN as usize].get_or_init(|| Box::new(Table::<R>::default()));
        table.downcast_ref().expect("each noun has a table of its own")
    }

    pub fn get<K: RowId>(&self, key: K) -> Option<Arc<K::Row>> {
        self.table::<K::Row>().get(key)
    }

    /// All rows of a noun, in the order they were made.
    pub fn all<R: Row>(&self) -> Vec<Arc<R>> {
        let mut all = self.table::<R>().all();
        all.sort_by_key(|row| (row.created_at(), row.key()));
        all
    }

    pub fn has(&self, key: RowKey) -> bool {
        self.revision(key).is_some()
    }

    pub fn revision(&self, key: RowKey) -> Option<i64> {
        struct Revision<'a>(&'a Index);
        impl VisitKey for Revision<'_> {
            type Output = Option<i64>;
            fn key<K: RowId>(self, key: K) -> Option<i64> {
                self.0.get(key).map(|row| row.revision())
            }
        }
        key.visit(Revision(self))
    }

    /// Takes over a committed row, unless a newer one is here already.
    pub fn put(&self, record: Record) -> Put {
        struct Putting<'a>(&'a Index);
        impl Visit for Putting<'_> {
            type Output = Put;
            fn row<R: Row>(self, row: R) -> Put {
                let (before, now) = self.0.table::<R>().put(row);
                Put {
                    concerned: [before.and_then(|row| row.concerns()), now.concerns()],
                    row: now,
                }
            }
        }
        if let Record::Host(host) = &record {
            write(&self.tombstones).remove(&host.key());
            self.live_of(host);
        }
        record.visit(Putting(self))
    }

    /// Gives the cluster whose findings depended on it.
    pub fn remove(&self, key: RowKey, at: Timestamp) -> Option<ClusterId> {
        let concerned = self.set_aside(key);
        if let RowKey::Host(key) = key {
            write(&self.tombstones).insert(key, at);
        }
        concerned
    }

    /// It is still there, and nobody knows how it is.
    pub fn set_aside(&self, key: RowKey) -> Option<ClusterId> {
        struct Removing<'a>(&'a Index);
        impl VisitKey for Removing<'_> {
            type Output = Option<ClusterId>;
            fn key<K: RowId>(self, key: K) -> Option<ClusterId> {
                self.0.table::<K::Row>().remove(key)?.concerns()
            }
        }
        let concerned = key.visit(Removing(self));
        if let RowKey::Host(key) = key {
            write(&self.lives).remove(&key);
        }
        concerned
    }

    /// How many rows of a noun there are.
    pub fn count<R: Row>(&self) -> usize {
        self.table::<R>().count()
    }
}

/// Hosts, clusters and InfraEnvs.
impl Index {
    pub fn slot(&self, key: HostKey) -> Option<Slot> {
        let row = self.table::<Host>().entry(key)?;
        let live = read(&self.lives).get(&key).cloned();
        let live = live.unwrap_or_else(|| self.live_of(&read(&row)));
        Some(Slot { row, live })
    }

    fn live_of(&self, host: &Host) -> Arc<Live> {
        let known = read(&self.lives).get(&host.key()).cloned();
        match known {
            Some(live) => {
                live.excuse(host.checked_in_at);
                live
            }
            None => write(&self.lives)
                .entry(host.key())
                .or_insert_with(|| Arc::new(Live::of(host)))
                .clone(),
        }
    }

    pub fn host(&self, key: HostKey) -> Option<Host> {
        self.slot(key).map(|slot| slot.host())
    }

    pub fn cluster(&self, id: ClusterId) -> Option<Arc<Cluster>> {
        self.get(id)
    }

    pub fn infra_env(&self, id: InfraEnvId) -> Option<Arc<InfraEnv>> {
        self.get(id)
    }

    pub fn clusters(&self) -> Vec<Arc<Cluster>> {
        self.all()
    }

    pub fn infra_envs(&self) -> Vec<Arc<InfraEnv>> {
        self.all()
    }

    pub fn hosts_of_cluster(&self, id: ClusterId) -> Vec<Slot> {
        let keys = self.table::<Host>().keys_by(id.into());
        keys.into_iter().filter_map(|key| self.slot(key)).collect()
    }

    /// Hosts on their way to a cluster that they are not in yet.
    pub fn hosts_moving_to(&self, id: ClusterId) -> Vec<HostKey> {
        let all = self.table::<Host>().all().into_iter();
        let moving = all.filter(|host| host.moving_to == Some(id));
        moving.map(|host| host.key()).collect()
    }

    pub fn count_of_cluster(&self, id: ClusterId) -> usize {
        self.table::<Host>().count_by(id.into())
    }

    pub fn hosts_of_infra_env(&self, id: InfraEnvId) -> Vec<HostKey> {
        self.table::<Host>().keys_by(id.into())
    }

    pub fn count_of_infra_env(&self, id: InfraEnvId) -> usize {
        self.table::<Host>().count_by(id.into())
    }

    pub fn keys(&self) -> Vec<HostKey> {
        self.table::<Host>().keys()
    }

    pub fn counts(&self) -> (usize, usize, usize) {
        (
            self.count::<Host>(),
            self.count::<Cluster>(),
            self.count::<InfraEnv>(),
        )
    }

    /// Hosts of that name, or whose id begins with it; names are not unique.
    pub fn named(&self, name: &str) -> Vec<Host> {
        let prefix = name.to_ascii_lowercase();
        let meant = |row: &Arc<Host>| row.id.to_string().starts_with(&prefix) || row.name() == name;
        let all = self.table::<Host>().all().into_iter();
        let mut found: Vec<_> = all.filter(meant).filter_map(|row| self.host(row.key())).collect();
        found.sort_by_key(Host::key);
        found
    }

    /// How many hosts are in each status, for metrics.
    pub fn hosts_by_status(&self) -> HashMap<Status, u64> {
        let mut counts = HashMap::new();
        for row in self.table::<Host>().all() {
            *counts.entry(row.status()).or_default() += 1;
        }
        counts
    }

    pub fn is_deleted(&self, key: HostKey) -> bool {
        read(&self.tombstones).contains_key(&key)
    }

    pub fn put_tombstone(&self, key: HostKey, at: Timestamp) {
        write(&self.tombstones).insert(key, at);
    }

    pub fn forget_tombstones(&self, before: Timestamp) {
        write(&self.tombstones).retain(|_, at| *at >= before);
    }

    /// Signs of life that are not in the database yet.
    pub fn take_unflushed(&self) -> Vec<(HostKey, Timestamp, i64)> {
        read(&self.lives)
            .iter()
            .filter(|(_, live)| live.unflushed.swap(false, Ordering::Relaxed))
            .map(|(key, live)| (*key, live.last_poll(), live.clock()))
            .collect()
    }

    /// They could not be written after all.
    pub fn keep_unflushed(&self, keys: impl Iterator<Item = HostKey>) {
        for slot in keys.filter_map(|key| self.slot(key)) {
            slot.live.unflushed.store(true, Ordering::Relaxed);
        }
    }
}

// A panic while a lock was held leaves a copy that the database corrects; going on is right.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
