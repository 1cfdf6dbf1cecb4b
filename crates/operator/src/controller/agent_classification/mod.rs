//! AgentClassification: shows how its query fares, and goes only after its labels.

pub mod plan;

use crate::crd::keys::label;
use crate::crd::{Agent, AgentClassification};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::context::index;
use crate::runtime::hook::Hooks;
use crate::runtime::patch::Writer;
use crate::runtime::work::Job;
use crate::runtime::{Change, Context, Next, clock};
use kube::ResourceExt;
use plan::Step;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const JOB: Job = Job {
    name: "agent-classification",
    queue: |ctx| &ctx.queues.agent_classification,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
    width: 1,
};

const WRITER: Writer = Writer("muster-agent-classification");

pub fn wire(hooks: &mut Hooks) {
    hooks.agent_classification.push(itself);
    hooks.agent.push(by_agent);
    hooks.everything.push(all);
}

fn itself(ctx: &Context, change: &Change<AgentClassification>) {
    ctx.queues.agent_classification.wake(change.key.clone());
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
            .mirrors
            .agent_classifications
            .by(index::CLASSIFICATION_NAMESPACE, &change.key.namespace);
        ctx.queues.agent_classification.wake_all(all);
    }
}

fn all(ctx: &Context) {
    let all = ctx.mirrors.agent_classifications.all();
    ctx.queues.agent_classification.wake_all(all);
}

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let Some(classification) = ctx.mirrors.agent_classifications.get(key) else {
        return Ok(Next::Rest);
    };
    let agents = ctx.mirrors.agents.by(index::AGENT_NAMESPACE, &key.namespace);
    let mirror = (
        &ctx.mirrors.agent_classifications,
        ctx.hooks.agent_classification.as_slice(),
    );
    for step in plan::plan(&classification, &agents, clock::now()) {
        match step {
            Step::Patch(patch) => ctx.patch(WRITER, mirror, &*classification, &patch).await?,
            Step::Status(status) => {
                ctx.patch_status(WRITER, mirror, &*classification, &status)
                    .await?
            }
        }
    }
    Ok(Next::Rest)
}
