//! InfraEnvs, events and versions.

use super::{HubClient, Result, v2};
use crate::v2::event::{EventView, EventsQuery};
use crate::v2::infra_env::*;
use crate::v2::version::{ComponentVersionsView, OpenshiftVersionsQuery, OpenshiftVersionsView};
use uuid::Uuid;

impl HubClient {
    pub async fn create_infra_env(&self, body: &CreateInfraEnv) -> Result<InfraEnvView> {
        self.post(v2("/infra-envs"), body).await
    }

    pub async fn infra_envs(&self, query: &InfraEnvsQuery) -> Result<Vec<InfraEnvView>> {
        self.find(v2("/infra-envs"), query).await
    }

    pub async fn infra_env(&self, id: Uuid) -> Result<InfraEnvView> {
        self.get(v2(format!("/infra-envs/{id}"))).await
    }

    pub async fn update_infra_env(&self, id: Uuid, body: &UpdateInfraEnv) -> Result<InfraEnvView> {
        self.patch(v2(format!("/infra-envs/{id}")), body).await
    }

    pub async fn delete_infra_env(&self, id: Uuid) -> Result<()> {
        self.delete(v2(format!("/infra-envs/{id}"))).await
    }

    pub async fn image_url(&self, id: Uuid) -> Result<PresignedUrlView> {
        self.get(v2(format!("/infra-envs/{id}/downloads/image-url")))
            .await
    }

    pub async fn infra_env_file(&self, id: Uuid, query: &InfraEnvFilesQuery) -> Result<Vec<u8>> {
        self.download(v2(format!("/infra-envs/{id}/downloads/files")), query)
            .await
    }

    pub async fn events(&self, query: &EventsQuery) -> Result<Vec<EventView>> {
        self.find(v2("/events"), query).await
    }

    pub async fn component_versions(&self) -> Result<ComponentVersionsView> {
        self.get(v2("/component-versions")).await
    }

    pub async fn openshift_versions(&self, query: &OpenshiftVersionsQuery) -> Result<OpenshiftVersionsView> {
        self.find(v2("/openshift-versions"), query).await
    }

    pub async fn supported_operators(&self) -> Result<Vec<String>> {
        self.get(v2("/supported-operators")).await
    }
}
