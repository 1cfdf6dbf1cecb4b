//! Muster's decisions, pure: lifecycles, checks, planners and rendering; time and fresh ids arrive as arguments.

pub mod access;
pub mod catalog;
pub mod checks;
pub mod cluster;
pub mod host;
pub mod image_name;
pub mod infra_env;
pub mod input;
pub mod inventory;
pub mod journal;
mod networks;
pub mod refusal;
pub mod render;
pub mod requirements;

/// The typed ids.
pub mod id {
    pub use muster_vocabulary::{ClusterId, HostId, HostKey, InfraEnvId};
}

pub use access::Caller;
pub use jiff::{SignedDuration, Timestamp};
pub use journal::{Entry, Severity};
pub use muster_vocabulary::{ClusterId, HostId, HostKey, InfraEnvId};
pub use refusal::Refused;
