//! Names of the objects that others point to, so that tables show `demo` and not an id.

use crate::exit::Outcome;
use crate::output::short;
use jiff::Timestamp;
use muster_contract::client::HubClient;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::cluster_request::ClustersQuery;
use muster_contract::v2::infra_env::{InfraEnvView, InfraEnvsQuery};
use std::collections::HashMap;
use uuid::Uuid;

/// What tables need beside the rows.
pub struct Names {
    pub now: Timestamp,
    known: HashMap<Uuid, String>,
}

impl Names {
    pub fn none() -> Self {
        Self {
            now: Timestamp::now(),
            known: HashMap::new(),
        }
    }

    /// The names of all clusters and InfraEnvs.
    pub async fn load(hub: &HubClient) -> Outcome<Self> {
        let mut names = Self::none();
        for cluster in hub.clusters(&ClustersQuery::default()).await? {
            names.add_cluster(&cluster);
        }
        for infra_env in hub.infra_envs(&InfraEnvsQuery::default()).await? {
            names.add_infra_env(&infra_env);
        }
        Ok(names)
    }

    pub fn add_cluster(&mut self, cluster: &ClusterView) {
        self.known.insert(cluster.id, cluster.name.clone());
    }

    pub fn add_infra_env(&mut self, infra_env: &InfraEnvView) {
        self.known.insert(infra_env.id, infra_env.name.clone());
    }

    /// The name, or the first part of the id when there is none.
    pub fn of(&self, id: Uuid) -> String {
        self.known.get(&id).cloned().unwrap_or_else(|| short(id))
    }

    pub fn of_some(&self, id: Option<Uuid>) -> String {
        id.map(|id| self.of(id)).unwrap_or_default()
    }
}
