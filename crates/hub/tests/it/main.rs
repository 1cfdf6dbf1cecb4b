//! The hub through its door, on a real store.

#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod abandoned;
mod agents;
mod aside;
mod bounds;
mod caught_up;
mod client;
mod clusters;
mod disk_choice;
mod docs;
mod door;
mod events;
mod fake_installer;
mod feed;
mod findings;
mod frozen;
mod health;
mod identity;
mod ignition;
mod images;
mod infra_envs;
mod install_files;
mod installation;
mod listening;
mod logs;
mod manifests;
mod networks;
mod openapi;
mod operator;
mod operators;
mod place;
mod pool_limits;
mod races;
mod recorded;
mod releases;
mod replicas;
mod rest;
mod restored;
mod simulation;
mod threads;
mod tls;
mod v1;
mod workers;
mod world;
