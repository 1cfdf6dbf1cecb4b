//! An empty InfraEnv is removed; one with hosts stays, whoever they are lent to.

use crate::Hub;
use crate::change::{Decision, OpContext};
use crate::error::Error;
use crate::infra_env_change::{InfraEnvSnapshot, OneInfraEnv};
use muster_domain::infra_env::InfraEnv;
use muster_domain::refusal::{Class, Refused};
use muster_domain::{Entry, InfraEnvId, Severity};

pub async fn infra_env_delete(hub: &Hub, id: InfraEnvId, opctx: &OpContext) -> Result<(), Error> {
    let scope = OneInfraEnv { id, hosts: None };
    let done = hub
        .change(&scope, opctx, |snapshot| decide_delete(hub, snapshot))
        .await;
    if let (Err(Error::Refused(refused)), Some(infra_env)) = (&done, hub.index.infra_env(id)) {
        let text = format!("InfraEnv {} was not deleted: {refused}", infra_env.name);
        let entry = Entry::new("infra_env_deregister_failed", Severity::Error, text);
        hub.tell(entry.of_infra_env(id), opctx).await?;
    }
    done.map(drop)
}

/// The same answer for a plan.
pub fn decide_delete(hub: &Hub, snapshot: &InfraEnvSnapshot) -> Result<Decision, Error> {
    let infra_env = &*snapshot.infra_env;
    hub.whole_infra_env(infra_env)?;
    match snapshot.host_count {
        0 => {}
        count => {
            return Err(Refused::new(
                Class::Invalid,
                "pool-has-hosts",
                format!("InfraEnv {} still has {count} host(s).", infra_env.name),
                "Delete its hosts first, or all that were never lent together with it: muster infra-env delete --with-hosts.",
            )
            .into());
        }
    }
    let mut deleted = Decision::because("a person wants it gone");
    deleted.journal.push(farewell(infra_env));
    deleted.delete(infra_env);
    Ok(deleted)
}

pub fn farewell(infra_env: &InfraEnv) -> Entry {
    let text = format!("InfraEnv {} was deleted.", infra_env.name);
    Entry::new("infra_env_deregistered", Severity::Info, text).of_infra_env(infra_env.id)
}
