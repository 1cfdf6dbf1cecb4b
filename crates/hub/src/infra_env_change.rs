//! What a decision about an InfraEnv looks at: the InfraEnv with how many hosts it has, or with the hosts themselves.

use crate::Hub;
use crate::change::Scope;
use crate::error::Error;
use jiff::Timestamp;
use muster_domain::InfraEnvId;
use muster_domain::host::Host;
use muster_domain::infra_env::InfraEnv;
use std::sync::Arc;

/// An InfraEnv with its hosts.
#[derive(Debug)]
pub struct InfraEnvSnapshot {
    pub infra_env: Arc<InfraEnv>,
    pub host_count: usize,
    /// In the order of their keys; empty if the scope is without hosts.
    pub hosts: Vec<Arc<Host>>,
    pub now: Timestamp,
}

/// One InfraEnv.
#[derive(Debug, Clone, Copy)]
pub struct OneInfraEnv {
    pub id: InfraEnvId,
    /// `Some`: with its hosts, of which a decision changes at most so many.
    pub hosts: Option<usize>,
}

impl Scope for OneInfraEnv {
    type Snapshot = InfraEnvSnapshot;

    async fn read(&self, hub: &Hub, now: Timestamp, fresh: bool) -> Result<InfraEnvSnapshot, Error> {
        let Self { id, hosts } = *self;
        if fresh {
            hub.reload(id.into()).await?;
            let changed = hosts.unwrap_or(0);
            for key in hub.index.hosts_of_infra_env(id).into_iter().take(changed) {
                hub.reload(key.into()).await?;
            }
        }
        let infra_env = hub
            .index
            .infra_env(id)
            .ok_or_else(|| Error::missing("infra-env", id))?;
        let rows = match hosts {
            Some(_) => hub
                .index
                .hosts_of_infra_env(id)
                .into_iter()
                .filter_map(|key| hub.index.get(key))
                .collect(),
            None => Vec::new(),
        };
        Ok(InfraEnvSnapshot {
            infra_env,
            host_count: hub.index.count_of_infra_env(id),
            hosts: rows,
            now,
        })
    }
}
