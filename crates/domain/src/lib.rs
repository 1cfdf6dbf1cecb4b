//! Muster's decisions, pure: lifecycles, checks, planners and rendering; time and fresh ids arrive as arguments.

pub mod caller;
pub mod catalog;
pub mod checks;
pub mod cluster;
pub mod host;
pub mod id;
pub mod image_name;
pub mod infra_env;
pub mod input;
pub mod inventory;
pub mod journal;
mod networks;
pub mod refusal;
pub mod render;
pub mod requirements;

pub use caller::Caller;
pub use id::{ClusterId, HostId, HostKey, InfraEnvId};
pub use jiff::{SignedDuration, Timestamp};
pub use journal::{Entry, Severity};
pub use refusal::Refused;
