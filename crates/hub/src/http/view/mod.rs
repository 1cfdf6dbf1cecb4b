//! Rows to wire: what a row looks like outside. Rows themselves never leave.

pub mod cluster;
pub mod host;
pub mod infra_env;
