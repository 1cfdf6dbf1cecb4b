//! What happens when the ground gives way: disks, databases, clocks and the hub itself, while people and machines go on.
//!
//! These tests take a minute each, mount a file system, and freeze servers of their own: `cargo xtask test --only
//! chaos` runs them, and brings what they need.

mod book;
mod claims;
mod clock;
mod crew;
mod database;
mod disk;
mod frozen;
mod killed;
mod postgres;
mod processes;
mod storage;
mod trial;
mod watch;
