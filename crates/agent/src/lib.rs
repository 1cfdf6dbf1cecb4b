//! The agent on a discovered machine: it registers with the hub, asks for steps, does them and tells what came of them.
//!
//! It is its own runner: where the reference starts a container for each session, this agent starts a session in the
//! same process. It never freezes: whatever a hub answers, it asks again, more and more slowly.

pub mod clock;
pub mod collect;
pub mod discovery;
pub mod dns;
pub mod http;
pub mod hub;
pub mod identity;
pub mod ignition;
pub mod init;
pub mod install;
pub mod log;
pub mod media;
pub mod power;
pub mod probe;
pub mod replies;
pub mod runner;
pub mod settings;
pub mod steps;
pub mod sys;
pub mod system;
