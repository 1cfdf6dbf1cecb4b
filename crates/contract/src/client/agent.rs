//! The calls an agent makes.

use super::{HubClient, Result, host_path, v2};
use crate::v2::host::{RegisterHost, RegisteredHostView};
use crate::v2::install::ReportHostProgress;
use crate::v2::step::{NextStepsQuery, PostStepReply, StepsView};
use reqwest::Method;
use uuid::Uuid;

impl HubClient {
    pub async fn register_host(&self, infra_env: Uuid, body: &RegisterHost) -> Result<RegisteredHostView> {
        self.post(v2(format!("/infra-envs/{infra_env}/hosts")), body)
            .await
    }

    pub async fn next_steps(&self, infra_env: Uuid, host: Uuid, query: &NextStepsQuery) -> Result<StepsView> {
        self.find(host_path(infra_env, host, "/instructions"), query)
            .await
    }

    pub async fn post_step_reply(&self, infra_env: Uuid, host: Uuid, body: &PostStepReply) -> Result<()> {
        self.tell(
            Method::POST,
            host_path(infra_env, host, "/instructions"),
            Some(body),
        )
        .await
    }

    pub async fn report_host_progress(
        &self,
        infra_env: Uuid,
        host: Uuid,
        body: &ReportHostProgress,
    ) -> Result<()> {
        self.tell(Method::PUT, host_path(infra_env, host, "/progress"), Some(body))
            .await
    }
}
