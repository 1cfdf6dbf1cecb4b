//! Several hubs on one database: what another one made or deleted a moment ago is known here as soon as it matters.
//!
//! The feed brings everything within a second. An agent that registers through one hub and asks the next one a
//! millisecond later must not be told that it does not exist, so what a request names is looked up before it is denied.

use crate::Hub;
use crate::error::Error;
use crate::http::problem::{Problem, ProblemV1};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use muster_domain::cluster::Cluster;
use muster_domain::host::Host;
use muster_domain::infra_env::InfraEnv;
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_store::StoreError;
use std::sync::Arc;
use uuid::Uuid;

impl Hub {
    /// Whether others may write to the same database.
    pub fn has_company(&self) -> bool {
        self.settings.database == "postgresql"
    }

    pub async fn meet_host(&self, key: HostKey) -> Result<(), Error> {
        if self.has_company() && self.index.slot(key).is_none() {
            self.learn_host(key).await?;
        }
        Ok(())
    }

    /// Takes a host as the store has it, if it has it.
    pub async fn learn_host(&self, key: HostKey) -> Result<(), Error> {
        if let Some(host) = self.store.host_find(key).await? {
            let slot = self.index.put_host(host);
            self.remind(&slot);
        }
        Ok(())
    }

    pub async fn meet_cluster(&self, id: ClusterId) -> Result<(), Error> {
        if self.has_company()
            && self.index.cluster(id).is_none()
            && let Some(cluster) = self.store.cluster_find(id).await?
        {
            self.keep_cluster(cluster);
        }
        Ok(())
    }

    pub async fn meet_infra_env(&self, id: InfraEnvId) -> Result<(), Error> {
        if self.has_company()
            && self.index.infra_env(id).is_none()
            && let Some(infra_env) = self.store.infra_env_find(id).await?
        {
            self.index.put_infra_env(infra_env);
        }
        Ok(())
    }

    /// In every InfraEnv that knows it, and not older than what the feed has told: followers read the feed from the
    /// database, at any of the hubs, and may ask before working memory here has caught up.
    pub async fn newest_hosts(&self, id: HostId) -> Result<Vec<Host>, Error> {
        let rows = self.store.hosts_by_id(id).await?.into_iter();
        let newest = rows.map(|row| match self.index.host(row.key()) {
            Some(known) if known.revision >= row.revision => known,
            Some(_) | None => row,
        });
        Ok(newest.collect())
    }

    /// Not older than what the feed has told.
    pub async fn newest_cluster(&self, id: ClusterId) -> Result<Arc<Cluster>, Error> {
        let row = self.store.cluster_find(id).await?;
        let row = row.ok_or_else(|| Error::missing("cluster", id))?;
        Ok(match self.index.cluster(id) {
            Some(known) if known.revision >= row.revision => known,
            Some(_) | None => Arc::new(row),
        })
    }

    /// Not older than what the feed has told.
    pub async fn newest_infra_env(&self, id: InfraEnvId) -> Result<Arc<InfraEnv>, Error> {
        let row = self.store.infra_env_find(id).await?;
        let row = row.ok_or_else(|| Error::missing("infra-env", id))?;
        Ok(match self.index.infra_env(id) {
            Some(known) if known.revision >= row.revision => known,
            Some(_) | None => Arc::new(row),
        })
    }

    /// A commit was refused because something is not as we thought: see how it is.
    pub async fn relearn(&self, error: &Error) -> Result<(), Error> {
        let Error::Store(StoreError::Stale { kind, id }) = error else {
            return Ok(());
        };
        match (*kind, id.parse::<Uuid>()) {
            ("cluster", Ok(id)) => match self.store.cluster_find(ClusterId(id)).await? {
                Some(cluster) => drop(self.keep_cluster(cluster)),
                None => self.index.drop_cluster(ClusterId(id)),
            },
            ("infra-env", Ok(id)) => match self.store.infra_env_find(InfraEnvId(id)).await? {
                Some(infra_env) => drop(self.index.put_infra_env(infra_env)),
                None => self.index.drop_infra_env(InfraEnvId(id)),
            },
            _ => {}
        }
        Ok(())
    }
}

/// Before a request is answered, this hub gets to know what its path names.
pub async fn acquaint(State(hub): State<Hub>, request: Request, next: Next) -> Response {
    if hub.has_company()
        && let Err(error) = meet_all(&hub, request.uri().path()).await
    {
        let is_own = request.uri().path().starts_with(muster_contract::v1::BASE);
        return if is_own {
            ProblemV1::from(error).into_response()
        } else {
            Problem::from(error).into_response()
        };
    }
    next.run(request).await
}

/// What cannot be read is told by whoever needs it: a host, for one, goes on when its InfraEnv is set aside.
fn met(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(error) if error.is_set_aside() => Ok(()),
        done => done,
    }
}

async fn meet_all(hub: &Hub, path: &str) -> Result<(), Error> {
    let mut infra_env = None;
    let mut noun = "";
    for part in path.split('/') {
        if let Ok(id) = Uuid::try_parse(part) {
            match (noun, infra_env) {
                ("infra-envs" | "infra-env", _) => {
                    infra_env = Some(InfraEnvId(id));
                    met(hub.meet_infra_env(InfraEnvId(id)).await)?;
                }
                ("clusters", _) => met(hub.meet_cluster(ClusterId(id)).await)?,
                ("hosts", Some(infra_env)) => {
                    let key = HostKey {
                        infra_env,
                        host: HostId(id),
                    };
                    met(hub.meet_host(key).await)?;
                }
                _ => {}
            }
        }
        noun = part;
    }
    Ok(())
}
