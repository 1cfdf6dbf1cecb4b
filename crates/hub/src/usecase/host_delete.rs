//! A host is removed from its pool; its agent, if it runs, is told to register anew.

use crate::Hub;
use crate::error::Error;
use crate::turn::Ask;
use muster_domain::host::{Host, rules};
use muster_domain::{Entry, HostKey, Severity};
use muster_store::{Commit, HostWrite};

pub async fn host_delete(hub: &Hub, key: HostKey, ask: &Ask) -> Result<(), Error> {
    loop {
        let host = hub
            .store
            .host_find(key)
            .await?
            .ok_or_else(|| Error::missing("host", key.host))?;
        rules::deletable(&host)?;
        let entry = deregistered(&host);
        let commit = Commit {
            request_id: ask.request_id,
            hosts: vec![HostWrite::Delete {
                key,
                revision: host.revision,
            }],
            journal: vec![entry],
            ..Commit::new(hub.now())
        };
        match hub.store.commit(commit).await {
            Ok(done) => {
                hub.index.drop_host(key, hub.now());
                hub.announce(done.seq);
                host.cluster.inspect(|cluster| hub.mark_dirty(*cluster));
                return Ok(());
            }
            Err(muster_store::StoreError::Stale { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

pub fn deregistered(host: &Host) -> Entry {
    host.entry(
        "host_deregistered",
        Severity::Info,
        format!("Host {} was removed.", host.name()),
    )
}
