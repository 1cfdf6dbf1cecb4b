//! Muster's own API, under [`BASE`].
//!
//! | method | path | body | answer |
//! |---|---|---|---|
//! | POST | `/plan` | [`plan::PlanRequest`] | [`plan::PlanView`] |
//! | GET | `/infra-envs/{infra_env_id}/explain` | – | [`explain::ExplainView`] |
//! | GET | `/infra-envs/{infra_env_id}/hosts/{host_id}/explain` | – | [`explain::ExplainView`] |
//! | GET | `/clusters/{cluster_id}/explain` | – | [`explain::ExplainView`] |
//! | POST, GET | `/infra-envs/{infra_env_id}/hosts/{host_id}/move` | [`host::MoveHost`] | [`host::MoveView`] |
//! | PUT | `/clusters/{cluster_id}/ignition/{role}` | an Ignition config | [`ignition::UploadedIgnitionView`] |
//! | GET, DELETE | `/clusters/{cluster_id}/ignition/{role}` | – | the config; nothing |
//! | GET | `/hosts` ([`host::HostsQuery`]) | – | [`host::HostPage`] |
//! | GET | `/changes` ([`change::ChangesQuery`]) | – | [`change::ChangesPage`] |
//! | GET | `/status` | – | [`status::HubStatus`] |
//!
//! Errors are [`problem::Problem`].

pub mod change;
pub mod explain;
pub mod host;
pub mod ignition;
pub mod plan;
pub mod problem;
pub mod status;

pub const BASE: &str = "/api/muster/v1";
