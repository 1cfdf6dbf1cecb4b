//! The operator against a real API server, a real hub and simulated hosts. `cargo xtask test --only kube` runs it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod admission;
mod agent;
mod agent_classification;
mod agent_day_two;
mod infra_env;
mod leader;
mod lent;
mod world;
