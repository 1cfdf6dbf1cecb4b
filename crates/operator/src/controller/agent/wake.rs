//! Whose Agents a change concerns.

use super::index::{
    AGENTS_BY_CLUSTER, AGENTS_BY_INFRA_ENV, AGENTS_BY_MAC, AGENTS_BY_MACHINE, AGENTS_BY_NAME,
    AGENTS_BY_NAMESPACE, AGENTS_BY_TOKEN,
};
use crate::crd::{
    Agent, AgentCluster, AgentClusterInstall, AgentMachine, BareMetalHost, ClusterDeployment, InfraEnv, capi,
};
use crate::key::Key;
use crate::runtime::registry::Registry;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use muster_contract::v1::change::{Change as HubChange, ChangeKind};
use muster_vocabulary::HostStatus;
use std::sync::Arc;

pub fn register(registry: &mut Registry) {
    registry
        .index(AGENTS_BY_CLUSTER)
        .index(AGENTS_BY_INFRA_ENV)
        .index(AGENTS_BY_TOKEN)
        .index(AGENTS_BY_MACHINE)
        .index(AGENTS_BY_MAC)
        .index(AGENTS_BY_NAME)
        .index(AGENTS_BY_NAMESPACE)
        .reads::<AgentMachine>()
        .reads::<AgentCluster>()
        .reads::<capi::Machine>()
        .reads::<capi::Cluster>()
        .reads::<BareMetalHost>()
        .reads::<capi::ControlPlane>()
        .on(itself)
        .on(by_infra_env)
        .on(by_cluster)
        .on(by_install)
        .on(by_secret)
        .on_hub(by_hub)
        .on_start_over(all);
}

fn itself(ctx: &Context, change: &Change<Agent>) {
    ctx.queue(&super::CONTROLLER).wake(change.key.clone());
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
        ctx.queue(&super::CONTROLLER).wake_all(
            ctx.cache::<Agent>()
                .by(AGENTS_BY_INFRA_ENV, &change.key.to_string()),
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
    ctx.queue(&super::CONTROLLER)
        .wake_all(ctx.cache::<Agent>().by(AGENTS_BY_CLUSTER, &cluster.to_string()));
}

/// Tokens may be in any namespace, credentials for fencing are in that of the Agent.
fn by_secret(ctx: &Context, change: &Change<Secret>) {
    ctx.queue(&super::CONTROLLER)
        .wake_all(ctx.cache::<Agent>().by(AGENTS_BY_TOKEN, &change.key.to_string()));
    let neighbours = ctx
        .cache::<Agent>()
        .by(AGENTS_BY_NAMESPACE, &change.key.namespace);
    let uses = |agent: &Arc<Agent>| agent.spec.fencing_credentials_secret_ref == change.key.name;
    ctx.queue(&super::CONTROLLER)
        .wake_all(neighbours.into_iter().filter(uses));
}

fn by_hub(ctx: &Context, change: &HubChange) {
    match change.kind.known() {
        // Named after the host, beside the InfraEnv it belongs to; perhaps not there yet.
        Some(ChangeKind::Host) => {
            if let Some(infra_env) = change.infra_env_id.and_then(|id| ctx.infra_env_of(id)) {
                let namespace = infra_env.namespace().unwrap_or_default();
                ctx.queue(&super::CONTROLLER)
                    .wake(Key::new(namespace, change.id.to_string()));
            }
        }
        // Those that wait for it.
        Some(ChangeKind::Cluster) => {
            if let Some(deployment) = ctx.deployment_of(change.id) {
                let key = Key::of(&*deployment);
                let agents = ctx.cache::<Agent>().by(AGENTS_BY_CLUSTER, &key.to_string());
                ctx.queue(&super::CONTROLLER)
                    .wake_all(agents.into_iter().filter(waits));
            }
        }
        Some(ChangeKind::InfraEnv) | None => {}
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
    ctx.queue(&super::CONTROLLER).wake_all(ctx.cache::<Agent>().all());
}
