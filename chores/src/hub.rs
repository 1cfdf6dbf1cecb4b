//! The hub as `up` starts it, and what test hubs need besides.

pub mod installer;

pub use xtask::hub::{Hub, Options, tail};
