//! Muster's own API: plans, explanations, moves, pages of hosts and the feed of changes.

use super::{HubClient, Result, v1};
use crate::v1::change::{ChangesPage, ChangesQuery};
use crate::v1::download::DownloadsView;
use crate::v1::explain::ExplainView;
use crate::v1::host::{
    ChangeHost, HostDetail, HostPage, HostRows, HostSummary, HostsQuery, MoveHost, MoveView,
};
use crate::v1::infra_env::{ChangeInfraEnv, DeleteWithHostsQuery, DeletionView};
use crate::v1::plan::{PlanRequest, PlanView};
use crate::v1::status::HubStatus;
use crate::v2::infra_env::InfraEnvView;
use uuid::Uuid;

impl HubClient {
    pub async fn plan(&self, body: &PlanRequest) -> Result<PlanView> {
        self.post(v1("/plan"), body).await
    }

    pub async fn explain_host(&self, infra_env: Uuid, host: Uuid) -> Result<ExplainView> {
        self.get(v1(format!("/infra-envs/{infra_env}/hosts/{host}/explain")))
            .await
    }

    /// With regard to a cluster: the roles of its release, and what binding or moving the host there would do.
    pub async fn explain_host_for(
        &self,
        infra_env: Uuid,
        host: Uuid,
        cluster_id: Uuid,
    ) -> Result<ExplainView> {
        let path = format!("/infra-envs/{infra_env}/hosts/{host}/explain");
        self.find(v1(path), &[("cluster_id", cluster_id)]).await
    }

    pub async fn explain_cluster(&self, id: Uuid) -> Result<ExplainView> {
        self.get(v1(format!("/clusters/{id}/explain"))).await
    }

    pub async fn explain_infra_env(&self, id: Uuid) -> Result<ExplainView> {
        self.get(v1(format!("/infra-envs/{id}/explain"))).await
    }

    /// Changes what REST v2 cannot change.
    pub async fn change_infra_env(&self, id: Uuid, body: &ChangeInfraEnv) -> Result<InfraEnvView> {
        self.patch(v1(format!("/infra-envs/{id}")), body).await
    }

    /// Deletes some of the hosts of an InfraEnv, and the InfraEnv with the last of them. To be repeated until it is done.
    pub async fn delete_infra_env_with_hosts(&self, id: Uuid) -> Result<DeletionView> {
        let query = DeleteWithHostsQuery::default();
        self.remove(v1(format!("/infra-envs/{id}/with-hosts")), &query)
            .await
    }

    /// How far machines have read the images of an InfraEnv.
    pub async fn downloads(&self, infra_env: Uuid) -> Result<DownloadsView> {
        self.get(v1(format!("/infra-envs/{infra_env}/downloads"))).await
    }

    pub async fn move_host(&self, infra_env: Uuid, host: Uuid, cluster_id: Uuid) -> Result<MoveView> {
        self.post(
            v1(format!("/infra-envs/{infra_env}/hosts/{host}/move")),
            &MoveHost { cluster_id },
        )
        .await
    }

    /// How far the last move of a host is.
    pub async fn host_move(&self, infra_env: Uuid, host: Uuid) -> Result<MoveView> {
        self.get(v1(format!("/infra-envs/{infra_env}/hosts/{host}/move")))
            .await
    }

    /// Takes back a host that runs its installed system: it fetches the discovery image itself and boots it.
    pub async fn reclaim_host(&self, infra_env: Uuid, host: Uuid) -> Result<HostSummary> {
        let path = format!("/infra-envs/{infra_env}/hosts/{host}/actions/reclaim");
        self.act(v1(path)).await
    }

    /// The host in every InfraEnv that knows it; none is no error.
    pub async fn host_rows(&self, host: Uuid) -> Result<HostRows> {
        self.get(v1(format!("/hosts/{host}"))).await
    }

    pub async fn change_host(&self, infra_env: Uuid, host: Uuid, body: &ChangeHost) -> Result<HostDetail> {
        self.patch(v1(format!("/infra-envs/{infra_env}/hosts/{host}")), body)
            .await
    }

    pub async fn host_page(&self, query: &HostsQuery) -> Result<HostPage> {
        self.find(v1("/hosts"), query).await
    }

    /// One look at the feed; with `wait_seconds` it waits for news.
    pub async fn changes(&self, query: &ChangesQuery) -> Result<ChangesPage> {
        self.find(v1("/changes"), query).await
    }

    /// Follows the feed from where the caller is; each call of `next` waits for news.
    pub fn follow(&self, after: i64) -> Feed {
        Feed {
            hub: self.clone(),
            after,
        }
    }

    pub async fn hub_status(&self) -> Result<HubStatus> {
        self.get(v1("/status")).await
    }
}

/// A place in the feed of changes.
#[derive(Debug, Clone)]
pub struct Feed {
    hub: HubClient,
    pub after: i64,
}

impl Feed {
    /// The next changes, or none after `wait_seconds` without news. The place moves on only with an answer.
    pub async fn next(&mut self, wait_seconds: u32) -> Result<ChangesPage> {
        let query = ChangesQuery {
            after: Some(self.after),
            limit: None,
            wait_seconds: Some(wait_seconds),
        };
        let page = self.hub.changes(&query).await?;
        self.after = page.next;
        Ok(page)
    }
}
