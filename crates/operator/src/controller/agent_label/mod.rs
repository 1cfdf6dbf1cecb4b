//! Labels of Agents that AgentClassifications ask for.

pub mod plan;
pub mod query;

use crate::controller::agent::index::AGENTS_BY_NAMESPACE;
use crate::controller::agent_classification::index::CLASSIFICATIONS_BY_NAMESPACE;
use crate::crd::keys::label;
use crate::crd::{Agent, AgentClassification};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group, Registry};
use crate::runtime::{Change, Context, Next};
use kube::ResourceExt;

pub const CONTROLLER: Controller = Controller {
    name: "agent-label",
    group: Group::Service,
    workers: 2,
    register,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
};

const WRITER: Writer = Writer("muster-agent-label");

fn register(registry: &mut Registry) {
    registry.on(itself).on(by_classification).on_start_over(all);
}

/// Only what a query can see, and what it decides.
fn itself(ctx: &Context, change: &Change<Agent>) {
    let differs = change.differs_in(|agent| {
        let status = agent.status.as_ref();
        (status.map(|status| &status.inventory), agent.labels())
    });
    if change.after.is_some() && differs {
        ctx.queue(&CONTROLLER).wake(change.key.clone());
    }
}

fn by_classification(ctx: &Context, change: &Change<AgentClassification>) {
    if change.differs_in(|one| (&one.spec, one.metadata.deletion_timestamp.is_some())) {
        ctx.queue(&CONTROLLER).wake_all(
            ctx.cache::<Agent>()
                .by(AGENTS_BY_NAMESPACE, &change.key.namespace),
        );
    }
}

fn all(ctx: &Context) {
    ctx.queue(&CONTROLLER).wake_all(ctx.cache::<Agent>().all());
}

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let Some(agent) = ctx.cache::<Agent>().get(key) else {
        return Ok(Next::Rest);
    };
    let all = ctx
        .cache::<AgentClassification>()
        .by(CLASSIFICATIONS_BY_NAMESPACE, &key.namespace);
    let is_ours = |key: &String| key.starts_with(label::CLASSIFICATION_PREFIX);
    if all.is_empty() && !agent.labels().keys().any(is_ours) {
        return Ok(Next::Rest);
    }
    // Queries are computations: they must not keep the other controllers' threads.
    let asked = agent.clone();
    let plan = tokio::task::spawn_blocking(move || plan::plan(&asked, &all));
    if let Some(patch) = plan.await.map_err(|_| Error::Panic)? {
        ctx.patch(WRITER, &*agent, &patch).await?;
    }
    Ok(Next::Rest)
}
