//! Several hubs on one database: what another one made or deleted a moment ago is known here as soon as it matters.
//!
//! The feed brings everything within a second. An agent that registers through one hub and asks the next one a
//! millisecond later must not get a 404, so the hub looks up what a request names before it denies it.

use crate::Hub;
use crate::error::Error;
use muster_domain::host::Host;
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_store::{Row, RowId, RowKey};
use std::sync::Arc;
use uuid::Uuid;

impl Hub {
    /// Whether others may write to the same database.
    pub fn shares_database(&self) -> bool {
        self.settings.database == "postgresql"
    }

    /// Takes a row as the database has it, unless memory has one: another hub may have made it a moment ago.
    pub async fn load_if_missing(&self, key: impl Into<RowKey>) -> Result<(), Error> {
        let key = key.into();
        if self.shares_database() && !self.index.has(key) {
            self.reload(key).await?;
        }
        Ok(())
    }

    /// In every InfraEnv that knows it, and not older than what the feed has reported: followers read the feed from the
    /// database, at any of the hubs, and may ask before working memory here has caught up.
    pub async fn newest_hosts(&self, id: HostId) -> Result<Vec<Host>, Error> {
        let rows = self.store.hosts_by_id(id).await?.into_iter();
        let newest = rows.map(|row| match self.index.host(row.key()) {
            Some(known) if known.revision >= row.revision => known,
            Some(_) | None => row,
        });
        Ok(newest.collect())
    }

    /// Not older than what the feed has reported.
    pub async fn newest<K: RowId>(&self, key: K) -> Result<Arc<K::Row>, Error> {
        let row = self.store.find(key).await?;
        let row = row.ok_or_else(|| Error::missing(K::Row::NOUN.word(), key))?;
        Ok(match self.index.get(key) {
            Some(known) if known.revision() >= row.revision() => known,
            Some(_) | None => Arc::new(row),
        })
    }
}

/// Before a request is answered, this hub gets to know what its path names.
pub async fn load_what_is_named(hub: &Hub, path: &str) -> Result<(), Error> {
    if hub.shares_database() {
        load_all_named(hub, path).await?;
    }
    Ok(())
}

/// Whoever needs a row reports that it cannot be read: a host, for one, goes on when its InfraEnv is set aside.
fn loaded(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(error) if error.is_set_aside() => Ok(()),
        done => done,
    }
}

async fn load_all_named(hub: &Hub, path: &str) -> Result<(), Error> {
    let mut infra_env = None;
    let mut noun = "";
    for part in path.split('/') {
        if let Ok(id) = Uuid::try_parse(part) {
            match (noun, infra_env) {
                ("infra-envs" | "infra-env", _) => {
                    infra_env = Some(InfraEnvId(id));
                    loaded(hub.load_if_missing(InfraEnvId(id)).await)?;
                }
                ("clusters", _) => loaded(hub.load_if_missing(ClusterId(id)).await)?,
                ("hosts", Some(infra_env)) => {
                    let key = HostKey {
                        infra_env,
                        host: HostId(id),
                    };
                    loaded(hub.load_if_missing(key).await)?;
                }
                _ => {}
            }
        }
        noun = part;
    }
    Ok(())
}
