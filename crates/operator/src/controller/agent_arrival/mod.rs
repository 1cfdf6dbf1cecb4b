//! Calls out the hosts of an InfraEnv, so that those which registered while no operator ran get their Agents. The
//! feed reports the others.

use crate::controller::agent;
use crate::crd::keys::{self, annotation};
use crate::crd::{Agent, InfraEnv};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::registry::{Controller, Group, Registry};
use crate::runtime::{Change, Context, Next};
use muster_contract::ClientError;
use muster_contract::v1::host::HostsQuery;

pub const CONTROLLER: Controller = Controller {
    name: "agent-arrival",
    group: Group::Service,
    workers: 1,
    register,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
};

fn register(registry: &mut Registry) {
    registry.reads::<Agent>().on(came).on_start_over(all);
}

fn came(ctx: &Context, change: &Change<InfraEnv>) {
    match (&change.before, &change.after) {
        (None, _) => ctx.queue(&CONTROLLER).wake(change.key.clone()),
        // A copy of it has its hosts from now on.
        (Some(gone), None) => {
            let id = keys::hub_id(&**gone, annotation::INFRA_ENV_ID);
            let heir = id.and_then(|id| ctx.infra_env_of(id));
            ctx.queue(&CONTROLLER).wake_all(heir);
        }
        (Some(_), Some(_)) => {}
    }
}

fn all(ctx: &Context) {
    ctx.queue(&CONTROLLER).wake_all(ctx.cache::<InfraEnv>().all());
}

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let Some(infra_env) = ctx.cache::<InfraEnv>().get(key) else {
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
            if ctx.cache::<Agent>().get(&agent).is_none() {
                ctx.queue(&agent::CONTROLLER).wake(agent);
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(Next::Rest),
        }
    }
}
