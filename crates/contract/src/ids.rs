//! The typed ids, for callers that hold no other part of the domain. Wire types carry plain UUIDs.

pub use muster_domain::id::{ClusterId, HostId, InfraEnvId};
