//! An InfraEnv goes together with its hosts, as long as none of them was ever lent: a part of them at a time, so that no
//! commit is large, and the InfraEnv with the last part. Asking again goes on where it ended.

use crate::Hub;
use crate::change::{Decision, OpContext};
use crate::error::Error;
use crate::infra_env_change::{InfraEnvSnapshot, OneInfraEnv};
use crate::usecase::infra_env_delete::farewell;
use muster_domain::host::event::Around;
use muster_domain::host::{Host, lifecycle, rules};
use muster_domain::infra_env::InfraEnv;
use muster_domain::{InfraEnvId, Refused};
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
pub fn fates(snapshot: &InfraEnvSnapshot) -> Fates {
    let mut fates = Fates {
        hosts: Vec::new(),
        blockers: Vec::new(),
    };
    for host in &snapshot.hosts {
        match rules::goes_with_pool(host).and_then(|()| rules::deletable(host, None)) {
            Ok(()) => fates.hosts.push(host.clone()),
            Err(refused) => fates.blockers.push((host.clone(), refused)),
        }
    }
    fates
}

pub async fn infra_env_delete_hosts(
    hub: &Hub,
    id: InfraEnvId,
    most: usize,
    opctx: &OpContext,
) -> Result<Deletion, Error> {
    let most = most.clamp(1, MOST_AT_A_TIME);
    let scope = OneInfraEnv {
        id,
        hosts: Some(most),
    };
    let done = hub.change(&scope, opctx, |snapshot| {
        hub.whole_infra_env(&snapshot.infra_env)?;
        decide_delete(snapshot, most, &hub.around(None, snapshot.now))
    });
    let total = done.await?.snapshot.hosts.len();
    let deleted = most.min(total);
    Ok(Deletion {
        deleted,
        left: total - deleted,
        done: deleted == total,
    })
}

/// As many as may go at a time, and with the last of them the InfraEnv itself.
fn decide_delete(snapshot: &InfraEnvSnapshot, most: usize, around: &Around<'_>) -> Result<Decision, Error> {
    let infra_env = &*snapshot.infra_env;
    let fates = fates(snapshot);
    refuse(infra_env, &fates.blockers)?;
    let mut deleted = Decision::because("a person wants them gone");
    for host in fates.hosts.iter().take(most) {
        deleted.journal.extend(lifecycle::farewell(host, around));
        deleted.delete(&**host);
    }
    if fates.hosts.len() <= most {
        deleted.journal.push(farewell(infra_env));
        deleted.delete(infra_env);
    }
    Ok(deleted)
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
