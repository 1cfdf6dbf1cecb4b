//! What all controllers stand on: caches of objects, queues of keys, the hub's feed, patches, leases, metrics.

pub mod cache;
pub mod clock;
pub mod context;
pub mod copies;
pub mod event;
pub mod feed;
pub mod foreign;
pub mod joining;
pub mod last_clusters;
pub mod lease;
pub mod lineage;
pub mod listener;
pub mod merge;
pub mod metrics;
pub mod object;
pub mod patch;
pub mod provider;
pub mod queue;
pub mod reconciler;
pub mod registry;
pub mod secret;
pub mod sent;
pub mod spoke;
pub mod trust;
pub mod work;

pub use cache::{Change, ObjectCache};
pub use context::Context;
pub use queue::Queue;
pub use work::Next;
