//! Muster's own API, under [`BASE`].
//!
//! | method | path | body | answer |
//! |---|---|---|---|
//! | POST | `/plan` | [`plan::PlanRequest`] | [`plan::PlanView`] |
//! | GET | `/infra-envs/{infra_env_id}/explain` | – | [`explain::ExplainView`] |
//! | GET | `/infra-envs/{infra_env_id}/hosts/{host_id}/explain` | – | [`explain::ExplainView`] |
//! | GET | `/clusters/{cluster_id}/explain` | – | [`explain::ExplainView`] |
//! | GET | `/infra-envs/{infra_env_id}/downloads` | – | [`download::DownloadsView`] |
//! | GET | `/infra-envs/{infra_env_id}/links` | – | [`link::InfraEnvLinks`] |
//! | GET | `/clusters/{cluster_id}/links` | – | [`link::ClusterLinks`] |
//! | GET | `/releases` ([`release::ReleaseQuery`]) | – | [`release::ReleaseView`] |
//! | PUT | `/infra-envs/{infra_env_id}` | [`CreateInfraEnv`](crate::v2::infra_env::CreateInfraEnv) | [`InfraEnvView`](crate::v2::infra_env::InfraEnvView) |
//! | PATCH | `/infra-envs/{infra_env_id}` | [`infra_env::ChangeInfraEnv`] | [`InfraEnvView`](crate::v2::infra_env::InfraEnvView) |
//! | PUT | `/clusters/{cluster_id}` | [`CreateCluster`](crate::v2::cluster_request::CreateCluster) | [`ClusterView`](crate::v2::cluster::ClusterView) |
//! | PUT | `/clusters/{cluster_id}/import` | [`ImportCluster`](crate::v2::cluster_request::ImportCluster) | [`ClusterView`](crate::v2::cluster::ClusterView) |
//! | POST, GET | `/infra-envs/{infra_env_id}/hosts/{host_id}/move` | [`host::MoveHost`] | [`host::MoveView`] |
//! | PATCH | `/infra-envs/{infra_env_id}/hosts/{host_id}` | [`host::ChangeHost`] | [`host::HostDetail`] |
//! | GET | `/hosts/{host_id}` | – | [`host::HostRows`] |
//! | PUT | `/clusters/{cluster_id}/ignition/{role}` | an Ignition config | [`ignition::UploadedIgnitionView`] |
//! | GET, DELETE | `/clusters/{cluster_id}/ignition/{role}` | – | the config; nothing |
//! | GET | `/hosts` ([`host::HostsQuery`]) | – | [`host::HostPage`] |
//! | GET | `/changes` ([`change::ChangesQuery`]) | – | [`change::ChangesPage`] |
//! | GET | `/status` | – | [`status::HubStatus`] |
//! | GET | `/trust` | – | [`trust::TrustView`] |
//!
//! Errors are [`problem::Problem`].

pub mod change;
pub mod download;
pub mod explain;
pub mod host;
pub mod ignition;
pub mod infra_env;
pub mod link;
pub mod plan;
pub mod problem;
pub mod release;
pub mod row_status;
pub mod status;
pub mod trust;

pub const BASE: &str = "/api/muster/v1";
