//! AgentClassification: shows how its query fares, and goes only after its labels.

pub mod index;
pub mod plan;

use crate::controller::agent::index::AGENTS_BY_NAMESPACE;
use crate::crd::keys::label;
use crate::crd::{Agent, AgentClassification};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group, Registry};
use crate::runtime::{Change, Context, Next};
use index::CLASSIFICATIONS_BY_NAMESPACE;
use kube::ResourceExt;
use plan::Step;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const CONTROLLER: Controller = Controller {
    name: "agent-classification",
    group: Group::Service,
    workers: 1,
    register,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
};

const WRITER: Writer = Writer("muster-agent-classification");

fn register(registry: &mut Registry) {
    registry
        .index(CLASSIFICATIONS_BY_NAMESPACE)
        .on(itself)
        .on(by_agent)
        .on_start_over(all);
}

fn itself(ctx: &Context, change: &Change<AgentClassification>) {
    ctx.queue(&CONTROLLER).wake(change.key.clone());
}

fn by_agent(ctx: &Context, change: &Change<Agent>) {
    let counted = |agent: &Option<Arc<Agent>>| -> BTreeMap<String, String> {
        let agent = agent
            .iter()
            .filter(|agent| agent.metadata.deletion_timestamp.is_none());
        let labels = agent.flat_map(|agent| agent.labels().clone());
        labels
            .filter(|(key, _)| key.starts_with(label::CLASSIFICATION_PREFIX))
            .collect()
    };
    if counted(&change.before) != counted(&change.after) {
        let all = ctx
            .cache::<AgentClassification>()
            .by(CLASSIFICATIONS_BY_NAMESPACE, &change.key.namespace);
        ctx.queue(&CONTROLLER).wake_all(all);
    }
}

fn all(ctx: &Context) {
    let all = ctx.cache::<AgentClassification>().all();
    ctx.queue(&CONTROLLER).wake_all(all);
}

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let Some(classification) = ctx.cache::<AgentClassification>().get(key) else {
        return Ok(Next::Rest);
    };
    let agents = ctx.cache::<Agent>().by(AGENTS_BY_NAMESPACE, &key.namespace);
    for step in plan::plan(&classification, &agents, ctx.clock.now()) {
        match step {
            Step::Patch(patch) => ctx.patch(WRITER, &*classification, &patch).await?,
            Step::Status(status) => ctx.patch_status(WRITER, &*classification, &status).await?,
        }
    }
    Ok(Next::Rest)
}
