//! Whose Agents a change concerns.

use crate::crd::{Agent, AgentClusterInstall, ClusterDeployment, InfraEnv};
use crate::key::Key;
use crate::runtime::context::index;
use crate::runtime::hook::Hooks;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use muster_contract::v1::change::{Change as HubChange, ChangeKind};
use muster_vocabulary::HostStatus;
use std::sync::Arc;

pub fn wire(hooks: &mut Hooks) {
    hooks.agent.push(itself);
    hooks.infra_env.push(by_infra_env);
    hooks.cluster_deployment.push(by_cluster);
    hooks.agent_cluster_install.push(by_install);
    hooks.secret.push(by_secret);
    hooks.hub.push(by_hub);
    hooks.everything.push(all);
}

fn itself(ctx: &Context, change: &Change<Agent>) {
    ctx.queues.agent.wake(change.key.clone());
}

/// What Agents take over from their InfraEnv: approval and node labels; and that it is there at all.
fn by_infra_env(ctx: &Context, change: &Change<InfraEnv>) {
    if change.differs_in(|infra_env| {
        (
            &infra_env.metadata.uid,
            &infra_env.spec.agent_approval,
            &infra_env.spec.cluster_ref,
            infra_env.labels(),
            infra_env.annotations(),
            infra_env.metadata.deletion_timestamp.is_some(),
        )
    }) {
        ctx.queues.agent.wake_all(
            ctx.mirrors
                .agents
                .by(index::AGENT_INFRA_ENV, &change.key.to_string()),
        );
    }
}

fn by_cluster(ctx: &Context, change: &Change<ClusterDeployment>) {
    of_cluster(ctx, &change.key);
}

fn by_install(ctx: &Context, change: &Change<AgentClusterInstall>) {
    // What it shows of its progress is no news to Agents.
    if change.differs_in(|install| (install.metadata.generation, &install.metadata.deletion_timestamp)) {
        for install in change.objects() {
            let name = &install.spec.cluster_deployment_ref.name;
            of_cluster(ctx, &Key::new(&change.key.namespace, name));
        }
    }
}

fn of_cluster(ctx: &Context, cluster: &Key) {
    ctx.queues
        .agent
        .wake_all(ctx.mirrors.agents.by(index::AGENT_CLUSTER, &cluster.to_string()));
}

/// Tokens may be in any namespace, credentials for fencing are in that of the Agent.
fn by_secret(ctx: &Context, change: &Change<Secret>) {
    ctx.queues
        .agent
        .wake_all(ctx.mirrors.agents.by(index::AGENT_TOKEN, &change.key.to_string()));
    let neighbours = ctx
        .mirrors
        .agents
        .by(index::AGENT_NAMESPACE, &change.key.namespace);
    let uses = |agent: &Arc<Agent>| agent.spec.fencing_credentials_secret_ref == change.key.name;
    ctx.queues.agent.wake_all(neighbours.into_iter().filter(uses));
}

fn by_hub(ctx: &Context, change: &HubChange) {
    match change.kind {
        // Named after the host, beside the InfraEnv it belongs to; perhaps not there yet.
        ChangeKind::Host => {
            if let Some(infra_env) = change.infra_env_id.and_then(|id| ctx.infra_env_of(id)) {
                let namespace = infra_env.namespace().unwrap_or_default();
                ctx.queues.agent.wake(Key::new(namespace, change.id.to_string()));
            }
        }
        // Those that wait for it.
        ChangeKind::Cluster => {
            if let Some(deployment) = ctx.deployment_of(change.id) {
                let key = Key::of(&*deployment);
                let agents = ctx.mirrors.agents.by(index::AGENT_CLUSTER, &key.to_string());
                ctx.queues.agent.wake_all(agents.into_iter().filter(waits));
            }
        }
        ChangeKind::InfraEnv => {}
    }
}

/// A cluster changes with each of its hosts; only Agents that are not where they want to be must know.
fn waits(agent: &Arc<Agent>) -> bool {
    let status = agent.status.as_ref();
    let state = agent.state();
    let unsynced = status.is_none_or(|status| {
        let synced = crate::crd::condition::find_service(
            &status.conditions,
            crate::crd::agent::condition::SPEC_SYNCED,
        );
        synced.is_none_or(|synced| synced.status != "True")
    });
    unsynced || state.is_empty() || state.is(HostStatus::is_unbound)
}

fn all(ctx: &Context) {
    ctx.queues.agent.wake_all(ctx.mirrors.agents.all());
}
