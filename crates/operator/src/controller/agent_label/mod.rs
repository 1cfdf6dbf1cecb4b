//! Labels of Agents that AgentClassifications ask for.

pub mod plan;
pub mod query;

use crate::crd::{Agent, AgentClassification};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::context::index;
use crate::runtime::hook::Hooks;
use crate::runtime::patch::Writer;
use crate::runtime::work::Job;
use crate::runtime::{Change, Context, Next};
use kube::ResourceExt;

pub const JOB: Job = Job {
    name: "agent-label",
    queue: |ctx| &ctx.queues.agent_label,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
    width: 2,
};

const WRITER: Writer = Writer("muster-agent-label");

pub fn wire(hooks: &mut Hooks) {
    hooks.agent.push(itself);
    hooks.agent_classification.push(by_classification);
    hooks.everything.push(all);
}

/// Only what a query can see, and what it decides.
fn itself(ctx: &Context, change: &Change<Agent>) {
    let differs = change.differs_in(|agent| {
        let status = agent.status.as_ref();
        (status.map(|status| &status.inventory), agent.labels())
    });
    if change.after.is_some() && differs {
        ctx.queues.agent_label.wake(change.key.clone());
    }
}

fn by_classification(ctx: &Context, change: &Change<AgentClassification>) {
    if change.differs_in(|one| (&one.spec, one.metadata.deletion_timestamp.is_some())) {
        ctx.queues.agent_label.wake_all(
            ctx.mirrors
                .agents
                .by(index::AGENT_NAMESPACE, &change.key.namespace),
        );
    }
}

fn all(ctx: &Context) {
    ctx.queues.agent_label.wake_all(ctx.mirrors.agents.all());
}

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let Some(agent) = ctx.mirrors.agents.get(key) else {
        return Ok(Next::Rest);
    };
    let all = ctx
        .mirrors
        .agent_classifications
        .by(index::CLASSIFICATION_NAMESPACE, &key.namespace);
    // Queries are computations: they must not keep the other controllers' threads.
    let asked = agent.clone();
    let plan = tokio::task::spawn_blocking(move || plan::plan(&asked, &all));
    if let Some(patch) = plan.await.map_err(|_| Error::Panic)? {
        ctx.patch(
            WRITER,
            (&ctx.mirrors.agents, ctx.hooks.agent.as_slice()),
            &*agent,
            &patch,
        )
        .await?;
    }
    Ok(Next::Rest)
}
