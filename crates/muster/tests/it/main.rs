//! The program as people use it: started as a process, seen through its output and exit code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall say where")]

mod canned;
mod commands;
mod config;
mod exit_codes;
mod help;
mod names;
mod program;
mod tour;
