//! Calls out the hosts of an InfraEnv, so that those which registered while nobody listened get their Agents. What happens
//! while somebody listens is told by the feed.

use crate::crd::InfraEnv;
use crate::crd::keys::{self, annotation};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::hook::Hooks;
use crate::runtime::work::Job;
use crate::runtime::{Change, Context, Next};
use muster_contract::ClientError;
use muster_contract::v1::host::HostsQuery;

pub const JOB: Job = Job {
    name: "agent-arrival",
    queue: |ctx| &ctx.queues.agent_arrival,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
    width: 1,
};

pub fn wire(hooks: &mut Hooks) {
    hooks.infra_env.push(came);
    hooks.everything.push(all);
}

fn came(ctx: &Context, change: &Change<InfraEnv>) {
    match (&change.before, &change.after) {
        (None, _) => ctx.queues.agent_arrival.wake(change.key.clone()),
        // A copy of it has its hosts from now on.
        (Some(gone), None) => {
            let id = keys::hub_id(&**gone, annotation::INFRA_ENV_ID);
            let heir = id.and_then(|id| ctx.infra_env_of(id));
            ctx.queues.agent_arrival.wake_all(heir);
        }
        (Some(_), Some(_)) => {}
    }
}

fn all(ctx: &Context) {
    ctx.queues.agent_arrival.wake_all(ctx.mirrors.infra_envs.all());
}

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let Some(infra_env) = ctx.mirrors.infra_envs.get(key) else {
        return Ok(Next::Rest);
    };
    if ctx.rival_infra_env(&infra_env).is_some() {
        return Ok(Next::Rest);
    }
    let mut query = HostsQuery {
        infra_env_id: keys::hub_id(&*infra_env, annotation::INFRA_ENV_ID),
        ..HostsQuery::default()
    };
    loop {
        let page = match ctx.hub.host_page(&query).await {
            Ok(page) => page,
            Err(ClientError::NotFound(_)) => return Ok(Next::Rest),
            Err(error) => return Err(error.into()),
        };
        for host in &page.hosts {
            let agent = Key::new(&key.namespace, host.id.to_string());
            if ctx.mirrors.agents.get(&agent).is_none() {
                ctx.queues.agent.wake(agent);
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(Next::Rest),
        }
    }
}
