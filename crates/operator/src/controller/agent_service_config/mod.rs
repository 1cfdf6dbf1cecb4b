//! AgentServiceConfig: says which of its settings have no effect here, and where they are made instead. The one of a
//! hosted cluster says that nobody serves it from here.

pub mod index;
pub mod plan;

use crate::crd::{AgentServiceConfig, HypershiftAgentServiceConfig};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group, Registry};
use crate::runtime::{Change, Context, Next};

pub const CONTROLLER: Controller = Controller {
    name: "agent-service-config",
    group: Group::Service,
    workers: 1,
    register,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
};

const WRITER: Writer = Writer("muster-agent-service-config");

fn register(registry: &mut Registry) {
    registry.on(itself).on(hosted).on_start_over(all).on_hub_lost(all);
}

fn itself(ctx: &Context, change: &Change<AgentServiceConfig>) {
    ctx.queue(&CONTROLLER).wake(change.key.clone());
}

fn hosted(ctx: &Context, change: &Change<HypershiftAgentServiceConfig>) {
    ctx.queue(&CONTROLLER).wake(change.key.clone());
}

fn all(ctx: &Context) {
    let queue = &ctx.queue(&CONTROLLER);
    queue.wake_all(ctx.cache::<AgentServiceConfig>().all());
    queue.wake_all(ctx.cache::<HypershiftAgentServiceConfig>().all());
}

/// Only those of hosted clusters have a namespace.
async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    match key.namespace.is_empty() {
        true => judge(ctx, key).await?,
        false => judge_hosted(ctx, key).await?,
    }
    Ok(Next::Rest)
}

async fn judge(ctx: &Context, key: &Key) -> Result<(), Error> {
    let Some(config) = ctx.cache::<AgentServiceConfig>().get(key) else {
        return Ok(());
    };
    if let Some(status) = plan::plan(&config, ctx.metrics.is_hub_there(), ctx.clock.now()) {
        ctx.patch_status(WRITER, &*config, &status).await?;
    }
    Ok(())
}

async fn judge_hosted(ctx: &Context, key: &Key) -> Result<(), Error> {
    let Some(config) = ctx.cache::<HypershiftAgentServiceConfig>().get(key) else {
        return Ok(());
    };
    if let Some(status) = plan::hosted(&config, ctx.clock.now()) {
        ctx.patch_status(WRITER, &*config, &status).await?;
    }
    Ok(())
}
