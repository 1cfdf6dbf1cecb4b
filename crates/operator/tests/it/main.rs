//! The operator against a real API server, a real hub and simulated hosts. `cargo xtask test --only kube` runs it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod admission;
mod admission_frozen;
mod agent;
mod agent_classification;
mod agent_copies;
mod agent_day_two;
mod agent_doubt;
mod agent_first;
mod agent_kinds;
mod agent_reclaim;
mod agent_service_config;
mod agent_settings;
mod apiserver;
mod bare_metal_host;
mod capi;
mod capi_agents;
mod capi_clusters;
mod capi_fleet;
mod capi_guide;
mod capi_killed;
mod capi_older;
mod capi_race;
mod capi_restore;
mod capi_return;
mod capi_whole;
mod cluster;
mod cluster_mend;
mod cluster_return;
mod conflict;
mod described;
mod gate;
mod gitops;
mod guides;
mod hub_outage;
mod infra_env;
mod infra_env_namespaces;
mod infra_env_site;
mod joined;
mod joined_watched;
mod killed;
mod leader;
mod lent;
mod log;
mod machines;
mod manifests;
mod metal;
mod metal_joins;
mod metal_leaves;
mod own_server;
mod preprovisioning_image;
mod runtime;
mod secrets;
mod served;
mod world;
