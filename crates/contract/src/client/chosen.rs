//! Objects under ids that the caller chose: asking twice makes one.

use super::{HubClient, NOTHING, Result, read, v1};
use crate::v1::link::InfraEnvLinks;
use crate::v2::cluster::ClusterView;
use crate::v2::cluster_request::{CreateCluster, ImportCluster};
use crate::v2::infra_env::{CreateInfraEnv, InfraEnvView};
use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

impl HubClient {
    /// Makes the InfraEnv unless there is one with this id already; an existing one is not changed.
    pub async fn put_infra_env(&self, id: Uuid, body: &CreateInfraEnv) -> Result<InfraEnvView> {
        self.put(v1(format!("/infra-envs/{id}")), body).await
    }

    /// Makes the cluster unless there is one with this id already; an existing one is not changed.
    pub async fn put_cluster(&self, id: Uuid, body: &CreateCluster) -> Result<ClusterView> {
        self.put(v1(format!("/clusters/{id}")), body).await
    }

    /// Makes a cluster installed elsewhere known unless there is one with this id already.
    pub async fn put_imported_cluster(&self, id: Uuid, body: &ImportCluster) -> Result<ClusterView> {
        self.put(v1(format!("/clusters/{id}/import")), body).await
    }

    pub async fn infra_env_links(&self, id: Uuid) -> Result<InfraEnvLinks> {
        self.get(v1(format!("/infra-envs/{id}/links"))).await
    }

    async fn put<T: DeserializeOwned>(&self, path: String, body: &impl Serialize) -> Result<T> {
        read(self.send(Method::PUT, path, NOTHING, Some(body)).await?).await
    }
}
