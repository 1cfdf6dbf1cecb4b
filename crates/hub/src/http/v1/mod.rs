//! Muster's own API: one file per matter. Errors are problem details.

pub mod changes;
pub mod explain;
pub mod hosts;
pub mod ignition;
pub mod input;
pub mod plan;
pub mod status;

use crate::Hub;
use axum::Router;

pub fn routes() -> Router<Hub> {
    Router::new()
        .merge(changes::routes())
        .merge(explain::routes())
        .merge(hosts::routes())
        .merge(ignition::routes())
        .merge(plan::routes())
        .merge(status::routes())
}
