//! Simulated hosts that speak the agent protocol, cheap enough for 100,000 in one process.
//!
//! Two layers. [`SimHost`] is one machine with its agent: a state machine without I/O, clock or hidden randomness.
//! Call [`SimHost::poll`] with the time; perform the [`Request`] it asks for; hand the [`Outcome`] to
//! [`SimHost::receive`]. Tests drive it against a hub in the same process, on a clock they move. [`Fleet`] drives
//! many of them over HTTP/1.1 against a running hub.
//!
//! ```
//! use muster_simfleet::{Next, Outcome, Setup, SimHost};
//! use std::sync::Arc;
//!
//! let setup = Arc::new(Setup { seed: 7, ..Setup::default() });
//! let mut host = SimHost::new(setup, 0, 1_000);
//! assert!(matches!(host.poll(0), Next::WaitUntil(1_000)));
//! let Next::Send(register) = host.poll(1_000) else { panic!("the agent registers first") };
//! assert!(register.path.ends_with("/hosts"));
//! host.receive(1_010, register.tag, Outcome::Lost);
//! assert!(matches!(host.poll(1_010), Next::WaitUntil(_)), "it tries again a little later");
//! ```
//!
//! Hosts that the hub tells to install do it like real ones: see [`install`]. Afterwards they run their own system, and
//! come back with [`SimHost::boot_discovery`], by a reclaim, or because someone looks after them (`return_boots`).
//! Whatever can go wrong on the way is in [`fault`].
//!
//! Everything a host is and does follows from the seed and its index: the same seed gives the same bytes.

pub mod answer;
pub mod fault;
pub mod fleet;
pub mod host;
pub mod install;
pub mod inventory;
pub mod job;
pub mod machine;
pub mod profile;
pub mod request;
pub mod seed;
pub mod setup;
pub mod stats;
pub mod stream;
pub mod wire;

pub use fault::{Fault, FaultKind, Victims, When};
pub use fleet::{Fleet, FleetConfig, FleetError, Power, Remote};
pub use host::{Condition, Installs, SimHost};
pub use machine::Machine;
pub use profile::Profile;
pub use request::{Next, Outcome, Request, Tag};
pub use setup::Setup;
pub use stats::{Stats, StatsView};
