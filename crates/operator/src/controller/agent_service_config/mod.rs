//! AgentServiceConfig: says which of its settings have no effect here, and where they are made instead. The one of a
//! hosted cluster says that nobody serves it from here.

pub mod plan;

use crate::crd::{AgentServiceConfig, HypershiftAgentServiceConfig};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::hook::Hooks;
use crate::runtime::patch::Writer;
use crate::runtime::work::Job;
use crate::runtime::{Change, Context, Next, clock};

pub const JOB: Job = Job {
    name: "agent-service-config",
    queue: |ctx| &ctx.queues.agent_service_config,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
    width: 1,
};

const WRITER: Writer = Writer("muster-agent-service-config");

pub fn wire(hooks: &mut Hooks) {
    hooks.agent_service_config.push(itself);
    hooks.hosted_service_config.push(hosted);
    hooks.everything.push(all);
    hooks.hub_away.push(all);
}

fn itself(ctx: &Context, change: &Change<AgentServiceConfig>) {
    ctx.queues.agent_service_config.wake(change.key.clone());
}

fn hosted(ctx: &Context, change: &Change<HypershiftAgentServiceConfig>) {
    ctx.queues.agent_service_config.wake(change.key.clone());
}

fn all(ctx: &Context) {
    let queue = &ctx.queues.agent_service_config;
    queue.wake_all(ctx.mirrors.agent_service_configs.all());
    queue.wake_all(ctx.mirrors.hosted_service_configs.all());
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
    let Some(config) = ctx.mirrors.agent_service_configs.get(key) else {
        return Ok(());
    };
    let mirror = (
        &ctx.mirrors.agent_service_configs,
        ctx.hooks.agent_service_config.as_slice(),
    );
    if let Some(status) = plan::plan(&config, ctx.metrics.is_hub_there(), clock::now()) {
        ctx.patch_status(WRITER, mirror, &*config, &status).await?;
    }
    Ok(())
}

async fn judge_hosted(ctx: &Context, key: &Key) -> Result<(), Error> {
    let Some(config) = ctx.mirrors.hosted_service_configs.get(key) else {
        return Ok(());
    };
    let mirror = (
        &ctx.mirrors.hosted_service_configs,
        ctx.hooks.hosted_service_config.as_slice(),
    );
    if let Some(status) = plan::hosted(&config, clock::now()) {
        ctx.patch_status(WRITER, mirror, &*config, &status).await?;
    }
    Ok(())
}
