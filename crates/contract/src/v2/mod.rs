//! REST v2, under [`BASE`]: requests are verbs and strict, answers are nouns and follow the rules real clients rely on.
//!
//! In requests null and absent mean the same. In answers, optional scalars are left out when empty, dates and lists
//! never are; a list that was not computed is null.

pub mod agent;
pub mod cluster;
pub mod cluster_request;
pub mod cluster_setting;
pub mod error;
pub mod event;
pub mod host;
pub mod infra_env;
pub mod install;
pub mod manifest;
pub mod network;
pub mod operator;
pub mod requirement;
pub mod step;
pub mod validation;
pub mod version;

pub const BASE: &str = "/api/assisted-install/v2";
