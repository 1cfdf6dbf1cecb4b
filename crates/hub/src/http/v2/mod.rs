//! REST v2, wire-compatible with what people already run: one file per noun.

pub mod agent;
pub mod clusters;
pub mod credentials;
pub mod downloads;
pub mod events;
pub mod files;
pub mod hosts;
pub mod infra_envs;
pub mod install;
pub mod install_config;
pub mod later;
pub mod logs;
pub mod manifests;
pub mod operators;
pub mod versions;

use crate::Hub;
use axum::Router;

pub fn routes() -> Router<Hub> {
    Router::new()
        .merge(agent::routes())
        .merge(clusters::routes())
        .merge(credentials::routes())
        .merge(downloads::routes())
        .merge(events::routes())
        .merge(files::routes())
        .merge(hosts::routes())
        .merge(infra_envs::routes())
        .merge(install::routes())
        .merge(install_config::routes())
        .merge(logs::routes())
        .merge(manifests::routes())
        .merge(operators::routes())
        .merge(versions::routes())
        .merge(later::routes())
}
