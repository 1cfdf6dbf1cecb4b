//! Whose InfraEnvs a change concerns.

use super::index::{
    INFRA_ENVS_BY_CLUSTER, INFRA_ENVS_BY_ID, INFRA_ENVS_BY_NAMESPACE, NMSTATE_CONFIGS_BY_NAMESPACE,
};
use super::plan::network;
use crate::controller::cluster_deployment::index::DEPLOYMENTS_BY_ID;
use crate::crd::{ClusterDeployment, InfraEnv, NMStateConfig};
use crate::key::Key;
use crate::runtime::registry::Registry;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use muster_contract::v1::change::{Change as HubChange, ChangeKind};
use std::sync::Arc;

pub fn register(registry: &mut Registry) {
    registry
        .index(INFRA_ENVS_BY_ID)
        .index(INFRA_ENVS_BY_CLUSTER)
        .index(INFRA_ENVS_BY_NAMESPACE)
        .index(NMSTATE_CONFIGS_BY_NAMESPACE)
        .on(itself)
        .on(by_network)
        .on(by_cluster)
        .on(by_secret)
        .on(by_config_map)
        .on_hub(by_hub)
        .on_start_over(all);
}

fn itself(ctx: &Context, change: &Change<InfraEnv>) {
    ctx.queue(&super::CONTROLLER).wake(change.key.clone());
    // Two with the same id: when one goes, the other may have it.
    for infra_env in change.before.iter().filter(|_| change.after.is_none()) {
        let id = crate::crd::keys::hub_id(&**infra_env, crate::crd::keys::annotation::INFRA_ENV_ID);
        id.iter().for_each(|id| {
            ctx.queue(&super::CONTROLLER)
                .wake_all(ctx.cache::<InfraEnv>().by(INFRA_ENVS_BY_ID, &id.to_string()))
        });
    }
}

/// Only within the namespace, and by the whole selector. A config that no longer fits concerns those it fitted.
fn by_network(ctx: &Context, change: &Change<NMStateConfig>) {
    for config in change.objects() {
        let neighbours = ctx
            .cache::<InfraEnv>()
            .by(INFRA_ENVS_BY_NAMESPACE, &change.key.namespace);
        let chosen = |infra_env: &Arc<InfraEnv>| network::chooses(infra_env, config).unwrap_or(true);
        ctx.queue(&super::CONTROLLER)
            .wake_all(neighbours.into_iter().filter(chosen));
    }
}

fn by_cluster(ctx: &Context, change: &Change<ClusterDeployment>) {
    ctx.queue(&super::CONTROLLER).wake_all(
        ctx.cache::<InfraEnv>()
            .by(INFRA_ENVS_BY_CLUSTER, &change.key.to_string()),
    );
}

fn by_secret(ctx: &Context, change: &Change<Secret>) {
    let neighbours = ctx
        .cache::<InfraEnv>()
        .by(INFRA_ENVS_BY_NAMESPACE, &change.key.namespace);
    let uses = |infra_env: &Arc<InfraEnv>| infra_env.spec.pull_secret_ref.name == change.key.name;
    ctx.queue(&super::CONTROLLER)
        .wake_all(neighbours.into_iter().filter(uses));
}

fn by_config_map(ctx: &Context, change: &Change<ConfigMap>) {
    let uses = |infra_env: &Arc<InfraEnv>| {
        let mirror = infra_env.spec.mirror_registry_ref.as_ref();
        mirror.is_some_and(|mirror| Key::from(mirror) == change.key)
    };
    ctx.queue(&super::CONTROLLER)
        .wake_all(ctx.cache::<InfraEnv>().all().into_iter().filter(uses));
}

fn by_hub(ctx: &Context, change: &HubChange) {
    let id = change.id.to_string();
    match change.kind.known() {
        Some(ChangeKind::InfraEnv) => ctx
            .queue(&super::CONTROLLER)
            .wake_all(ctx.cache::<InfraEnv>().by(INFRA_ENVS_BY_ID, &id)),
        Some(ChangeKind::Cluster) => {
            for cluster in ctx.cache::<ClusterDeployment>().by(DEPLOYMENTS_BY_ID, &id) {
                let key = Key::of(&*cluster).to_string();
                ctx.queue(&super::CONTROLLER)
                    .wake_all(ctx.cache::<InfraEnv>().by(INFRA_ENVS_BY_CLUSTER, &key));
            }
        }
        // Those that wait for their hosts before they go.
        Some(ChangeKind::Host) => {
            let pool = change.infra_env_id.map(|id| id.to_string()).unwrap_or_default();
            let all = ctx.cache::<InfraEnv>().by(INFRA_ENVS_BY_ID, &pool);
            let leaving = |infra_env: &Arc<InfraEnv>| infra_env.metadata.deletion_timestamp.is_some();
            ctx.queue(&super::CONTROLLER)
                .wake_all(all.into_iter().filter(leaving));
        }
        // Of what only a newer hub knows, nobody here has a part.
        None => {}
    }
}

fn all(ctx: &Context) {
    ctx.queue(&super::CONTROLLER)
        .wake_all(ctx.cache::<InfraEnv>().all());
}
