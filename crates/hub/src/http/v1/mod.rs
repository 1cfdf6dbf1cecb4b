//! Muster's own API: one file per matter. Errors are problem details.

pub mod changes;
pub mod chosen;
pub mod downloads;
pub mod explain;
pub mod host_detail;
pub mod hosts;
pub mod ignition;
pub mod infra_env_change;
pub mod input;
pub mod links;
pub mod plan;
pub mod releases;
pub mod status;
pub mod trust;

use crate::Hub;
use axum::Router;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

pub fn routes() -> Router<Hub> {
    Router::new()
        .merge(changes::routes())
        .merge(chosen::routes())
        .merge(downloads::routes())
        .merge(explain::routes())
        .merge(host_detail::routes())
        .merge(hosts::routes())
        .merge(ignition::routes())
        .merge(infra_env_change::routes())
        .merge(links::routes())
        .merge(plan::routes())
        .merge(releases::routes())
        .merge(status::routes())
        .merge(trust::routes())
}

/// The same routes for people.
pub fn docs() -> Vec<OpenApi> {
    vec![
        plan::Doc::openapi(),
        explain::Doc::openapi(),
        hosts::Doc::openapi(),
        host_detail::Doc::openapi(),
        downloads::Doc::openapi(),
        ignition::Doc::openapi(),
        changes::Doc::openapi(),
        chosen::Doc::openapi(),
        infra_env_change::Doc::openapi(),
        links::Doc::openapi(),
        releases::Doc::openapi(),
        status::Doc::openapi(),
        trust::Doc::openapi(),
    ]
}
