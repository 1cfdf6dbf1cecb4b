//! An empty InfraEnv is removed; one with hosts stays, whoever they are lent to.

use crate::Hub;
use crate::error::Error;
use crate::turn::Ask;
use crate::usecase::infra_env_update::refresh;
use muster_domain::infra_env::InfraEnv;
use muster_domain::refusal::{Class, Refused};
use muster_domain::{Entry, InfraEnvId, Severity};
use muster_store::{Commit, InfraEnvWrite};

const ATTEMPTS: usize = 16;

pub async fn infra_env_delete(hub: &Hub, id: InfraEnvId, ask: &Ask) -> Result<(), Error> {
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            refresh(hub, id).await?;
        }
        let infra_env = hub
            .index
            .infra_env(id)
            .ok_or_else(|| Error::missing("infra-env", id))?;
        if let Err(refused) = may_delete(hub, &infra_env) {
            let text = format!("InfraEnv {} was not deleted: {refused}", infra_env.name);
            tell(
                hub,
                &infra_env,
                "infra_env_deregister_failed",
                Severity::Error,
                text,
                ask,
            )
            .await?;
            return Err(refused.into());
        }
        match delete_once(hub, &infra_env, ask).await {
            Err(error) if error.is_stale() => last = Some(error),
            done => return done,
        }
    }
    Err(last.unwrap_or_else(|| Error::missing("infra-env", id)))
}

/// The same answer for a plan.
pub fn may_delete(hub: &Hub, infra_env: &InfraEnv) -> Result<(), Refused> {
    hub.whole_infra_env(infra_env)?;
    match hub.index.count_of_infra_env(infra_env.id) {
        0 => Ok(()),
        count => Err(Refused::new(
            Class::Invalid,
            "pool-has-hosts",
            format!("InfraEnv {} still has {count} host(s).", infra_env.name),
            "Delete its hosts first, or all that were never lent together with it: muster infra-env delete --with-hosts.",
        )),
    }
}

async fn delete_once(hub: &Hub, infra_env: &InfraEnv, ask: &Ask) -> Result<(), Error> {
    let text = format!("InfraEnv {} was deleted.", infra_env.name);
    let entry = Entry::new("infra_env_deregistered", Severity::Info, text).of_infra_env(infra_env.id);
    let commit = Commit {
        request_id: ask.request_id,
        infra_envs: vec![InfraEnvWrite::Delete {
            id: infra_env.id,
            revision: infra_env.revision,
        }],
        journal: vec![entry],
        ..Commit::new(hub.now())
    };
    let done = hub.store.commit(commit).await?;
    hub.index.drop_infra_env(infra_env.id);
    hub.announce(done.seq);
    Ok(())
}

async fn tell(
    hub: &Hub,
    infra_env: &InfraEnv,
    name: &str,
    severity: Severity,
    text: String,
    ask: &Ask,
) -> Result<(), Error> {
    let entry = Entry::new(name, severity, text).of_infra_env(infra_env.id);
    let commit = Commit {
        request_id: ask.request_id,
        journal: vec![entry],
        ..Commit::new(hub.now())
    };
    let done = hub.store.commit(commit).await?;
    hub.announce(done.seq);
    Ok(())
}
