//! Clusters.

use super::{HubClient, Result, v2};
use crate::v2::cluster::{ClusterView, CredentialsView};
use crate::v2::cluster_request::*;
use crate::v2::host::{ClusterHostsQuery, HostView};
use crate::v2::requirement::PreflightRequirementsView;
use uuid::Uuid;

impl HubClient {
    pub async fn create_cluster(&self, body: &CreateCluster) -> Result<ClusterView> {
        self.post(v2("/clusters"), body).await
    }

    pub async fn import_cluster(&self, body: &ImportCluster) -> Result<ClusterView> {
        self.post(v2("/clusters/import"), body).await
    }

    pub async fn clusters(&self, query: &ClustersQuery) -> Result<Vec<ClusterView>> {
        self.find(v2("/clusters"), query).await
    }

    pub async fn cluster(&self, id: Uuid) -> Result<ClusterView> {
        self.get(v2(format!("/clusters/{id}"))).await
    }

    pub async fn update_cluster(&self, id: Uuid, body: &UpdateCluster) -> Result<ClusterView> {
        self.patch(v2(format!("/clusters/{id}")), body).await
    }

    pub async fn delete_cluster(&self, id: Uuid) -> Result<()> {
        self.delete(v2(format!("/clusters/{id}"))).await
    }

    pub async fn cluster_hosts(&self, id: Uuid, query: &ClusterHostsQuery) -> Result<Vec<HostView>> {
        self.find(v2(format!("/clusters/{id}/hosts")), query).await
    }

    pub async fn install_cluster(&self, id: Uuid) -> Result<ClusterView> {
        self.act(v2(format!("/clusters/{id}/actions/install"))).await
    }

    pub async fn cancel_cluster(&self, id: Uuid) -> Result<ClusterView> {
        self.act(v2(format!("/clusters/{id}/actions/cancel"))).await
    }

    pub async fn reset_cluster(&self, id: Uuid) -> Result<ClusterView> {
        self.act(v2(format!("/clusters/{id}/actions/reset"))).await
    }

    pub async fn allow_add_hosts(&self, id: Uuid) -> Result<ClusterView> {
        self.act(v2(format!("/clusters/{id}/actions/allow-add-hosts")))
            .await
    }

    pub async fn cluster_file(&self, id: Uuid, file_name: ClusterFile) -> Result<Vec<u8>> {
        self.download(
            v2(format!("/clusters/{id}/downloads/files")),
            &ClusterFilesQuery { file_name },
        )
        .await
    }

    pub async fn credential_file(&self, id: Uuid, file_name: CredentialFile) -> Result<Vec<u8>> {
        let path = v2(format!("/clusters/{id}/downloads/credentials"));
        self.download(path, &CredentialFilesQuery { file_name }).await
    }

    pub async fn credentials(&self, id: Uuid) -> Result<CredentialsView> {
        self.get(v2(format!("/clusters/{id}/credentials"))).await
    }

    pub async fn preflight_requirements(&self, id: Uuid) -> Result<PreflightRequirementsView> {
        self.get(v2(format!("/clusters/{id}/preflight-requirements")))
            .await
    }
}
