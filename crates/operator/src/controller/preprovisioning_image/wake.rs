//! Whose PreprovisioningImages a change concerns.

use super::index::{IMAGES_BY_INFRA_ENV, IMAGES_BY_NETWORK};
use crate::controller::bare_metal_host::machines_of;
use crate::controller::infra_env::index::INFRA_ENVS_BY_ID;
use crate::crd::{
    Agent, AgentClusterInstall, BareMetalHost, ClusterDeployment, InfraEnv, PreprovisioningImage,
};
use crate::key::Key;
use crate::runtime::registry::Registry;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::Secret;
use muster_contract::v1::change::{Change as HubChange, ChangeKind};

pub fn register(registry: &mut Registry) {
    registry
        .index(IMAGES_BY_INFRA_ENV)
        .index(IMAGES_BY_NETWORK)
        .reads::<AgentClusterInstall>()
        .reads::<ClusterDeployment>()
        .on(itself)
        .on(by_host)
        .on(by_agent)
        .on(by_infra_env)
        .on(by_network)
        .on(by_ironic)
        .on_hub(by_hub)
        .on_start_over(all);
}

fn itself(ctx: &Context, change: &Change<PreprovisioningImage>) {
    ctx.queue(&super::CONTROLLER).wake(change.key.clone());
}

/// Named like its image, which waits for it to be cleaned.
fn by_host(ctx: &Context, change: &Change<BareMetalHost>) {
    if ctx.cache::<PreprovisioningImage>().get(&change.key).is_some() {
        ctx.queue(&super::CONTROLLER).wake(change.key.clone());
    }
}

/// Its machine may be waiting to be booted anew until it may be disturbed.
fn by_agent(ctx: &Context, change: &Change<Agent>) {
    if !change.differs_in(Agent::state) {
        return;
    }
    for key in change.objects().flat_map(|agent| machines_of(ctx, agent)) {
        if ctx.cache::<PreprovisioningImage>().get(&key).is_some() {
            ctx.queue(&super::CONTROLLER).wake(key);
        }
    }
}

fn by_infra_env(ctx: &Context, change: &Change<InfraEnv>) {
    of_infra_env(ctx, &change.key);
}

/// The hub may have changed the image before its InfraEnv shows it.
fn by_hub(ctx: &Context, change: &HubChange) {
    match change.kind.known() {
        Some(ChangeKind::InfraEnv) => {
            let named = ctx
                .cache::<InfraEnv>()
                .by(INFRA_ENVS_BY_ID, &change.id.to_string());
            for infra_env in named {
                of_infra_env(ctx, &Key::of(&*infra_env));
            }
        }
        Some(ChangeKind::Cluster | ChangeKind::Host) | None => {}
    }
}

fn of_infra_env(ctx: &Context, infra_env: &Key) {
    ctx.queue(&super::CONTROLLER).wake_all(
        ctx.cache::<PreprovisioningImage>()
            .by(IMAGES_BY_INFRA_ENV, &infra_env.to_string()),
    );
}

fn by_network(ctx: &Context, change: &Change<Secret>) {
    ctx.queue(&super::CONTROLLER).wake_all(
        ctx.cache::<PreprovisioningImage>()
            .by(IMAGES_BY_NETWORK, &change.key.to_string()),
    );
}

/// It says for all of them where Ironic is.
fn by_ironic(ctx: &Context, change: &Change<Secret>) {
    if change.key == ctx.ironic {
        all(ctx);
    }
}

fn all(ctx: &Context) {
    ctx.queue(&super::CONTROLLER)
        .wake_all(ctx.cache::<PreprovisioningImage>().all());
}
