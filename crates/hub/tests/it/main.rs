//! The hub through its door, on a real store.

mod clusters;
mod docs;
mod door;
mod events;
mod infra_envs;
mod openapi;
mod recorded;
mod rest;
mod simulation;
mod v1;
