//! Hosts.

use super::{HubClient, Result, host_path, v2};
use crate::v2::host::*;
use reqwest::Method;
use uuid::Uuid;

impl HubClient {
    pub async fn hosts(&self, infra_env: Uuid) -> Result<Vec<HostView>> {
        self.get(v2(format!("/infra-envs/{infra_env}/hosts"))).await
    }

    pub async fn host(&self, infra_env: Uuid, host: Uuid) -> Result<HostView> {
        self.get(host_path(infra_env, host, "")).await
    }

    pub async fn update_host(&self, infra_env: Uuid, host: Uuid, body: &UpdateHost) -> Result<HostView> {
        self.patch(host_path(infra_env, host, ""), body).await
    }

    pub async fn delete_host(&self, infra_env: Uuid, host: Uuid) -> Result<()> {
        self.delete(host_path(infra_env, host, "")).await
    }

    pub async fn bind_host(&self, infra_env: Uuid, host: Uuid, cluster_id: Uuid) -> Result<HostView> {
        self.post(
            host_path(infra_env, host, "/actions/bind"),
            &BindHost { cluster_id },
        )
        .await
    }

    pub async fn unbind_host(&self, infra_env: Uuid, host: Uuid) -> Result<HostView> {
        self.act(host_path(infra_env, host, "/actions/unbind")).await
    }

    pub async fn reset_host(&self, infra_env: Uuid, host: Uuid) -> Result<HostView> {
        self.act(host_path(infra_env, host, "/actions/reset")).await
    }

    pub async fn install_host(&self, infra_env: Uuid, host: Uuid) -> Result<HostView> {
        self.act(host_path(infra_env, host, "/actions/install")).await
    }

    pub async fn set_installer_args(
        &self,
        infra_env: Uuid,
        host: Uuid,
        body: &SetInstallerArgs,
    ) -> Result<HostView> {
        self.patch(host_path(infra_env, host, "/installer-args"), body)
            .await
    }

    pub async fn set_host_ignition(&self, infra_env: Uuid, host: Uuid, body: &SetHostIgnition) -> Result<()> {
        self.tell(Method::PATCH, host_path(infra_env, host, "/ignition"), Some(body))
            .await
    }

    pub async fn host_ignition(&self, infra_env: Uuid, host: Uuid) -> Result<HostIgnitionView> {
        self.get(host_path(infra_env, host, "/ignition")).await
    }
}
