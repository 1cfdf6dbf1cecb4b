//! Whose InfraEnvs a change concerns.

use super::plan::network;
use crate::crd::{ClusterDeployment, InfraEnv, NMStateConfig};
use crate::key::Key;
use crate::runtime::context::index;
use crate::runtime::hook::Hooks;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use muster_contract::v1::change::{Change as HubChange, ChangeKind};
use std::sync::Arc;

pub fn wire(hooks: &mut Hooks) {
    hooks.infra_env.push(itself);
    hooks.nmstate_config.push(by_network);
    hooks.cluster_deployment.push(by_cluster);
    hooks.secret.push(by_secret);
    hooks.config_map.push(by_config_map);
    hooks.hub.push(by_hub);
    hooks.everything.push(all);
}

fn itself(ctx: &Context, change: &Change<InfraEnv>) {
    ctx.queues.infra_env.wake(change.key.clone());
    // Two with the same id: when one goes, the other may have it.
    for infra_env in change.before.iter().filter(|_| change.after.is_none()) {
        let id = crate::crd::keys::hub_id(&**infra_env, crate::crd::keys::annotation::INFRA_ENV_ID);
        id.iter().for_each(|id| {
            ctx.queues
                .infra_env
                .wake_all(ctx.mirrors.infra_envs.by(index::INFRA_ENV_ID, &id.to_string()))
        });
    }
}

/// Only within the namespace, and by the whole selector. A config that no longer fits concerns those it fitted.
fn by_network(ctx: &Context, change: &Change<NMStateConfig>) {
    for config in change.objects() {
        let neighbours = ctx
            .mirrors
            .infra_envs
            .by(index::INFRA_ENV_NAMESPACE, &change.key.namespace);
        let chosen = |infra_env: &Arc<InfraEnv>| network::chooses(infra_env, config).unwrap_or(true);
        ctx.queues
            .infra_env
            .wake_all(neighbours.into_iter().filter(chosen));
    }
}

fn by_cluster(ctx: &Context, change: &Change<ClusterDeployment>) {
    ctx.queues.infra_env.wake_all(
        ctx.mirrors
            .infra_envs
            .by(index::INFRA_ENV_CLUSTER, &change.key.to_string()),
    );
}

fn by_secret(ctx: &Context, change: &Change<Secret>) {
    let neighbours = ctx
        .mirrors
        .infra_envs
        .by(index::INFRA_ENV_NAMESPACE, &change.key.namespace);
    let uses = |infra_env: &Arc<InfraEnv>| infra_env.spec.pull_secret_ref.name == change.key.name;
    ctx.queues.infra_env.wake_all(neighbours.into_iter().filter(uses));
}

fn by_config_map(ctx: &Context, change: &Change<ConfigMap>) {
    let uses = |infra_env: &Arc<InfraEnv>| {
        let mirror = infra_env.spec.mirror_registry_ref.as_ref();
        mirror.is_some_and(|mirror| Key::from(mirror) == change.key)
    };
    ctx.queues
        .infra_env
        .wake_all(ctx.mirrors.infra_envs.all().into_iter().filter(uses));
}

fn by_hub(ctx: &Context, change: &HubChange) {
    let id = change.id.to_string();
    match change.kind {
        ChangeKind::InfraEnv => ctx
            .queues
            .infra_env
            .wake_all(ctx.mirrors.infra_envs.by(index::INFRA_ENV_ID, &id)),
        ChangeKind::Cluster => {
            for cluster in ctx.mirrors.cluster_deployments.by(index::CLUSTER_ID, &id) {
                let key = Key::of(&*cluster).to_string();
                ctx.queues
                    .infra_env
                    .wake_all(ctx.mirrors.infra_envs.by(index::INFRA_ENV_CLUSTER, &key));
            }
        }
        // Those that wait for their hosts before they go.
        ChangeKind::Host => {
            let pool = change.infra_env_id.map(|id| id.to_string()).unwrap_or_default();
            let all = ctx.mirrors.infra_envs.by(index::INFRA_ENV_ID, &pool);
            let leaving = |infra_env: &Arc<InfraEnv>| infra_env.metadata.deletion_timestamp.is_some();
            ctx.queues.infra_env.wake_all(all.into_iter().filter(leaving));
        }
    }
}

fn all(ctx: &Context) {
    ctx.queues.infra_env.wake_all(ctx.mirrors.infra_envs.all());
}
