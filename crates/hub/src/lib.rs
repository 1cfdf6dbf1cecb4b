//! The hub: one way in (http), one place that decides (domain), one place that writes (store), workers beside them.

pub mod agenda;
pub mod archive;
pub mod aside;
pub mod carry;
pub mod caught_up;
pub mod change;
pub mod clock;
pub mod cluster_change;
pub mod config;
pub mod doors;
pub mod error;
pub mod host_change;
pub mod hourly;
pub mod http;
pub mod ignition;
pub mod index;
pub mod infra_env_change;
pub mod measure;
pub mod outstanding;
pub mod replica;
pub mod serve;
pub mod shared_facts;
pub mod site;
pub mod stale_clusters;
pub mod steps;
pub mod threads;
pub mod tls;
pub mod usecase;
pub mod worker;

pub use clock::Clock;
pub use config::{Config, Settings};
pub use error::Error;
pub use site::Site;

use index::Slot;
use jiff::{SignedDuration, Timestamp};
use muster_domain::cluster::{self, Cluster};
use muster_domain::host::event::Around;
use muster_domain::host::{Host, deadline};
use muster_domain::{ClusterId, HostKey};
use muster_image::Images;
use muster_store::{RowKey, Store};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tls::Tls;
use tokio::sync::{Notify, watch};

/// Cheap to clone; everything behind it is shared.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

pub struct Inner {
    pub store: Store,
    pub clock: Clock,
    pub settings: Settings,
    pub index: index::Index,
    pub shared_facts: shared_facts::AllSharedFacts,
    pub agenda: agenda::Agenda<HostKey>,
    pub cluster_agenda: agenda::Agenda<ClusterId>,
    pub workers: worker::Board,
    pub metrics: http::metrics::Metrics,
    pub started_at: Timestamp,
    /// Clusters whose newest changes are not reflected in their findings yet.
    pub stale_clusters: stale_clusters::StaleClusters,
    /// For looks at clusters.
    pub reconcile_threads: threads::Threads,
    /// For what images are made of. Nobody's settings keep looks waiting.
    pub image_threads: threads::Threads,
    /// What deadlines, limits and the feed failed at rests for a while.
    pub resting: worker::Resting,
    /// Ring when the outbox has work: for what is done at once, and for files, which take their time.
    pub outbox_bell: Notify,
    pub files_bell: Notify,
    /// The newest change, for everyone who waits on the feed.
    pub newest_change: watch::Sender<i64>,
    /// Up to where memory surely has every change, whoever made it. Not `newest_change`: of changes that are committed at
    /// the same moment, by us or by others, a later one may be known first.
    feed_read_to: AtomicI64,
    /// Who follows them; one at a time.
    feed_turn: tokio::sync::Mutex<()>,
    /// The minute of the last log line about no room for more hosts.
    told_full: AtomicI64,
    /// Set once the hub serves images itself.
    images: OnceLock<Images>,
    /// Set when its own listener speaks https.
    tls: OnceLock<Tls>,
}

/// For what the hub itself owns.
#[derive(Clone)]
pub struct WeakHub(Weak<Inner>);

impl WeakHub {
    /// `None` when the hub is gone.
    pub fn get(&self) -> Option<Hub> {
        self.0.upgrade().map(Hub)
    }
}

impl std::ops::Deref for Hub {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// An agent gives up after 15 minutes without the hub and registers again; a little more than that after our
/// start, such a registration says nothing about the host.
const GRACE_AFTER_START: SignedDuration = SignedDuration::from_mins(20);

/// An upload that has not grown for this long was given up: those who send are not waited for nearly as long.
const UPLOADS_LAST: SignedDuration = SignedDuration::from_hours(1);

impl Hub {
    /// Opens the hub on a store: reads everything that decisions need, and starts nothing.
    pub async fn open(store: Store, settings: Settings, clock: Clock) -> Result<Self, Error> {
        let newest = store.changes_last().await?;
        // What a hub before us was sent and never finished. Another one that is alive keeps what it is being sent.
        let forgotten = match settings.database {
            "postgresql" => clock.now() - UPLOADS_LAST,
            _ => clock.now(),
        };
        store.uploads_prune(forgotten).await?;
        let hub = Self(Arc::new(Inner {
            started_at: clock.now(),
            store,
            clock,
            settings,
            index: index::Index::default(),
            shared_facts: shared_facts::AllSharedFacts::default(),
            agenda: agenda::Agenda::default(),
            cluster_agenda: agenda::Agenda::default(),
            workers: worker::Board::default(),
            metrics: http::metrics::Metrics::default(),
            stale_clusters: stale_clusters::StaleClusters::default(),
            reconcile_threads: threads::Threads::default(),
            image_threads: threads::Threads::default(),
            resting: worker::Resting::default(),
            outbox_bell: Notify::new(),
            files_bell: Notify::new(),
            newest_change: watch::Sender::new(newest),
            feed_read_to: AtomicI64::new(newest),
            feed_turn: tokio::sync::Mutex::default(),
            told_full: AtomicI64::new(0),
            images: OnceLock::new(),
            tls: OnceLock::new(),
        }));
        worker::load::everything(&hub).await?;
        Ok(hub)
    }

    pub fn weak(&self) -> WeakHub {
        WeakHub(Arc::downgrade(&self.0))
    }

    /// The images this hub serves; `None` while it serves none.
    pub fn images(&self) -> Option<&Images> {
        self.images.get()
    }

    /// From now on these are shown to people and metrics. The first ones stay.
    pub fn set_images(&self, images: Images) {
        self.images.set(images).ok();
    }

    /// `None` while the hub's own listener speaks http.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.get()
    }

    /// From now on this is looked after, and shown to people and metrics. The first one stays.
    pub fn set_tls(&self, tls: Tls) {
        self.tls.set(tls).ok();
    }

    /// The place in the feed up to which memory surely has everything.
    pub fn followed_to(&self) -> i64 {
        self.feed_read_to.load(Ordering::Relaxed)
    }

    pub fn ring_outbox(&self) {
        self.outbox_bell.notify_one();
        self.files_bell.notify_one();
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn around(&self, cluster: Option<&Cluster>, now: Timestamp) -> Around<'_> {
        Around {
            now,
            timers: &self.settings.timers,
            cluster: cluster.map(Cluster::state),
            hub_was_down: now < self.started_at + GRACE_AFTER_START && self.settings.was_here_before,
        }
    }

    /// When the clock must evaluate a host. Whoever installs or comes back by itself had no chance to report while we
    /// were away: nothing of that comes due before they had the time to.
    pub fn due_at(&self, host: &Host) -> Option<Timestamp> {
        let cluster = host.cluster.and_then(|id| self.index.cluster(id));
        let around = self.around(cluster.as_deref(), self.now());
        let due = deadline::of(host, &around)?;
        Some(if host.phase.comes_back_by_itself() && around.hub_was_down {
            due.max(self.started_at + GRACE_AFTER_START)
        } else {
            due
        })
    }

    /// Puts the row's next deadline on the agenda, if it has one.
    pub fn remind(&self, key: RowKey) {
        if let RowKey::Host(key) = key
            && let Some(slot) = self.index.slot(key)
        {
            self.remind_of_host(&slot);
        } else if let RowKey::Cluster(id) = key
            && let Some(cluster) = self.index.cluster(id)
            && let Some(due) = cluster::deadline::of(&cluster, &self.settings.cluster_timers)
        {
            self.cluster_agenda.add(due.as_microsecond(), id);
        }
    }

    /// The same, unless an earlier check is planned already.
    pub fn remind_of_host(&self, slot: &Slot) {
        let host = slot.host();
        let Some(due) = self.due_at(&host) else {
            return;
        };
        let due = due.as_microsecond();
        if slot.live.queued_micros.fetch_min(due, Ordering::Relaxed) > due {
            self.agenda.add(due, host.key());
        }
    }

    /// Something about a cluster or its hosts changed: the worker reconciles it, soon and once.
    pub fn mark_dirty(&self, cluster: ClusterId) {
        self.stale_clusters.mark(cluster);
    }

    /// Clusters whose newest changes are not reflected in their findings yet.
    pub fn clusters_to_reconcile(&self) -> usize {
        self.stale_clusters.count()
    }
}
