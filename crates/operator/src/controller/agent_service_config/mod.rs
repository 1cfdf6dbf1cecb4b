//! AgentServiceConfig: says which of its settings have no effect here, and where they are made instead.

pub mod plan;

use crate::crd::AgentServiceConfig;
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
    hooks.everything.push(all);
    hooks.hub_away.push(all);
}

fn itself(ctx: &Context, change: &Change<AgentServiceConfig>) {
    ctx.queues.agent_service_config.wake(change.key.clone());
}

fn all(ctx: &Context) {
    let all = ctx.mirrors.agent_service_configs.all();
    ctx.queues.agent_service_config.wake_all(all);
}

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let Some(config) = ctx.mirrors.agent_service_configs.get(key) else {
        return Ok(Next::Rest);
    };
    let mirror = (
        &ctx.mirrors.agent_service_configs,
        ctx.hooks.agent_service_config.as_slice(),
    );
    if let Some(status) = plan::plan(&config, ctx.metrics.is_hub_there(), clock::now()) {
        ctx.patch_status(WRITER, mirror, &*config, &status).await?;
    }
    Ok(Next::Rest)
}
