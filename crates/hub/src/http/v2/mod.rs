//! REST v2, wire-compatible with what people already run: one file per noun.

pub mod agent;
pub mod clusters;
pub mod downloads;
pub mod events;
pub mod hosts;
pub mod infra_envs;
pub mod later;
pub mod versions;

use crate::Hub;
use axum::Router;

pub fn routes() -> Router<Hub> {
    Router::new()
        .merge(agent::routes())
        .merge(clusters::routes())
        .merge(downloads::routes())
        .merge(events::routes())
        .merge(hosts::routes())
        .merge(infra_envs::routes())
        .merge(versions::routes())
        .merge(later::routes())
}
