//! The hub through its door, on a real store.

#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod clusters;
mod docs;
mod door;
mod events;
mod infra_envs;
mod openapi;
mod place;
mod races;
mod recorded;
mod replicas;
mod rest;
mod simulation;
mod v1;
