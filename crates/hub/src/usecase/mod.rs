//! What can be asked of the hub: one file per verb, each reads, decides and commits.

pub mod cluster_create;
pub mod cluster_delete;
pub mod cluster_import;
pub mod cluster_look;
pub mod cluster_update;
pub mod explain;
pub mod host_bind;
pub mod host_delete;
pub mod host_due;
pub mod host_poll;
pub mod host_progress;
pub mod host_register;
pub mod host_report;
pub mod host_update;
pub mod infra_env_create;
pub mod infra_env_delete;
pub mod infra_env_update;
pub mod plan;
