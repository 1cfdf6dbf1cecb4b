//! The program as people use it: started as a process, seen through its output and exit code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall say where")]

mod agent;
mod bad_input;
mod canned;
mod chaos;
mod cluster_files;
mod cluster_tour;
mod commands;
mod config;
mod downloads;
mod durability;
mod exit_codes;
mod help;
mod image;
mod installs;
mod ledger;
mod lost;
mod machines;
mod names;
mod program;
mod replicas;
mod served;
mod tls;
mod tour;
mod wire;
