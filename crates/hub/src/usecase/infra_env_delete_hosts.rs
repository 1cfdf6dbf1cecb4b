//! An InfraEnv goes together with its hosts, as long as none of them was ever lent: a part of them at a time, so that no
//! commit is large, and the InfraEnv with the last part. Asking again goes on where it ended.

use crate::Hub;
use crate::error::Error;
use crate::turn::{Ask, contested};
use crate::usecase::infra_env_update::refresh;
use muster_domain::host::{Host, lifecycle, rules};
use muster_domain::infra_env::InfraEnv;
use muster_domain::{Entry, HostKey, InfraEnvId, Refused, Severity};
use muster_store::{Commit, HostWrite, InfraEnvWrite};
use std::sync::Arc;

/// A commit of this size keeps other writers waiting for some milliseconds.
pub const MOST_AT_A_TIME: usize = 500;
/// As many blockers as people read.
const NAMED: usize = 20;

/// What one request has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    pub deleted: usize,
    pub left: usize,
    pub done: bool,
}

/// The hosts that would go, or those that stand in the way.
pub struct Fates {
    pub hosts: Vec<Arc<Host>>,
    pub blockers: Vec<(Arc<Host>, Refused)>,
}

/// The same answer for a plan.
pub fn fates(hub: &Hub, id: InfraEnvId) -> Fates {
    let mut fates = Fates {
        hosts: Vec::new(),
        blockers: Vec::new(),
    };
    for slot in hub
        .index
        .hosts_of_infra_env(id)
        .into_iter()
        .filter_map(|key| hub.index.slot(key))
    {
        let host = slot.row();
        match rules::goes_with_pool(&host).and_then(|()| rules::deletable(&host, None)) {
            Ok(()) => fates.hosts.push(host),
            Err(refused) => fates.blockers.push((host, refused)),
        }
    }
    fates
}

pub async fn infra_env_delete_hosts(
    hub: &Hub,
    id: InfraEnvId,
    most: usize,
    ask: &Ask,
) -> Result<Deletion, Error> {
    contested(|| delete_once(hub, id, most, ask)).await
}

async fn delete_once(hub: &Hub, id: InfraEnvId, most: usize, ask: &Ask) -> Result<Deletion, Error> {
    let infra_env = hub
        .index
        .infra_env(id)
        .ok_or_else(|| Error::missing("infra-env", id))?;
    hub.whole_infra_env(&infra_env)?;
    let fates = fates(hub, id);
    refuse(&infra_env, &fates.blockers)?;
    let part = &fates.hosts[..most.clamp(1, MOST_AT_A_TIME).min(fates.hosts.len())];
    let done = delete_part(hub, &infra_env, part, fates.hosts.len() - part.len(), ask).await;
    if done.as_ref().is_err_and(Error::is_stale) {
        catch_up(hub, id, part).await?;
    }
    done
}

fn refuse(infra_env: &InfraEnv, blockers: &[(Arc<Host>, Refused)]) -> Result<(), Refused> {
    if blockers.is_empty() {
        return Ok(());
    }
    let mut reasons: Vec<_> = blockers
        .iter()
        .take(NAMED)
        .map(|(_, refused)| refused.reason.clone())
        .collect();
    if blockers.len() > NAMED {
        reasons.push(format!("And {} more.", blockers.len() - NAMED));
    }
    Err(Refused::conflict(
        "pool-has-lent-hosts",
        format!(
            "InfraEnv {} stays because of hosts that clusters had: {}",
            infra_env.name,
            reasons.join(" ")
        ),
        "Delete those by themselves, then ask again.",
    ))
}

async fn delete_part(
    hub: &Hub,
    infra_env: &InfraEnv,
    part: &[Arc<Host>],
    left: usize,
    ask: &Ask,
) -> Result<Deletion, Error> {
    let now = hub.now();
    let done = left == 0;
    let around = hub.around(None, now);
    let mut journal: Vec<Entry> = part
        .iter()
        .flat_map(|host| lifecycle::farewell(host, &around))
        .collect();
    let mut infra_envs = Vec::new();
    if done {
        let text = format!("InfraEnv {} was deleted.", infra_env.name);
        journal.push(Entry::new("infra_env_deregistered", Severity::Info, text).of_infra_env(infra_env.id));
        infra_envs.push(InfraEnvWrite::Delete {
            id: infra_env.id,
            revision: infra_env.revision,
        });
    }
    let delete = |host: &Arc<Host>| HostWrite::Delete {
        key: host.key(),
        revision: host.revision,
    };
    let commit = Commit {
        request_id: ask.request_id,
        hosts: part.iter().map(delete).collect(),
        infra_envs,
        journal,
        ..Commit::new(now)
    };
    let committed = hub.store.commit(commit).await?;
    part.iter().for_each(|host| hub.index.drop_host(host.key(), now));
    if done {
        hub.index.drop_infra_env(infra_env.id);
    }
    hub.announce(committed.seq);
    Ok(Deletion {
        deleted: part.len(),
        left,
        done,
    })
}

/// Something of it changed meanwhile, here or at another hub.
async fn catch_up(hub: &Hub, id: InfraEnvId, part: &[Arc<Host>]) -> Result<(), Error> {
    refresh(hub, id).await?;
    let keys: Vec<HostKey> = part.iter().map(|host| host.key()).collect();
    for key in keys {
        match hub.store.host_find(key).await? {
            Some(host) => drop(hub.index.put_host(host)),
            None => hub.index.drop_host(key, hub.now()),
        }
    }
    Ok(())
}
