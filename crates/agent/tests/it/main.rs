//! The agent against a hub that plays a script over real HTTP, on a clock that only moves when the agent sleeps.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cable;
mod coreos;
mod dhcp;
mod faults;
mod installation;
mod protocol;
mod registries;
mod steps;
mod system;
mod trust;
mod world;
