//! The typed ids. Wire types carry plain UUIDs.

pub use muster_vocabulary::{ClusterId, HostId, InfraEnvId};
