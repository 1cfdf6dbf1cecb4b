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
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

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

/// The same routes for people.
pub fn docs() -> Vec<OpenApi> {
    vec![
        infra_envs::Doc::openapi(),
        hosts::Doc::openapi(),
        clusters::Doc::openapi(),
        downloads::Doc::openapi(),
        events::Doc::openapi(),
        versions::Doc::openapi(),
        agent::Doc::openapi(),
        manifests::Doc::openapi(),
        files::Doc::openapi(),
        credentials::Doc::openapi(),
        install_config::Doc::openapi(),
        operators::Doc::openapi(),
        logs::Doc::openapi(),
        install::Doc::openapi(),
        later::Doc::openapi(),
    ]
}
