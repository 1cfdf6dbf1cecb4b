//! A host is removed from its pool; its agent, if it runs, is told to register anew.

use crate::Hub;
use crate::error::Error;
use crate::turn::{Ask, contested};
use muster_domain::HostKey;
use muster_domain::host::{lifecycle, rules};
use muster_store::{Commit, HostWrite};

pub async fn host_delete(hub: &Hub, key: HostKey, ask: &Ask) -> Result<(), Error> {
    contested(|| delete_once(hub, key, ask)).await
}

async fn delete_once(hub: &Hub, key: HostKey, ask: &Ask) -> Result<(), Error> {
    let host = hub
        .store
        .host_find(key)
        .await?
        .ok_or_else(|| Error::missing("host", key.host))?;
    host.cluster.map_or(Ok(()), |id| hub.readable_cluster(id))?;
    let cluster = host.cluster.and_then(|id| hub.index.cluster(id));
    rules::deletable(&host, cluster.as_deref())?;
    let journal = lifecycle::farewell(&host, &hub.around(cluster.as_deref(), hub.now()));
    let commit = Commit {
        request_id: ask.request_id,
        hosts: vec![HostWrite::Delete {
            key,
            revision: host.revision,
        }],
        journal,
        ..Commit::new(hub.now())
    };
    let done = hub.store.commit(commit).await?;
    hub.index.drop_host(key, hub.now());
    hub.announce(done.seq);
    host.cluster.inspect(|cluster| hub.mark_dirty(*cluster));
    Ok(())
}
