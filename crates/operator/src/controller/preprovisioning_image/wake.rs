//! Whose PreprovisioningImages a change concerns.

use crate::controller::bare_metal_host::machines_of;
use crate::crd::{Agent, BareMetalHost, InfraEnv, PreprovisioningImage};
use crate::key::Key;
use crate::runtime::context::index;
use crate::runtime::hook::Hooks;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::Secret;
use muster_contract::v1::change::{Change as HubChange, ChangeKind};

pub fn wire(hooks: &mut Hooks) {
    hooks.preprovisioning_image.push(itself);
    hooks.bare_metal_host.push(by_host);
    hooks.agent.push(by_agent);
    hooks.infra_env.push(by_infra_env);
    hooks.secret.push(by_network);
    hooks.secret.push(by_ironic);
    hooks.hub.push(by_hub);
    hooks.everything.push(all);
}

fn itself(ctx: &Context, change: &Change<PreprovisioningImage>) {
    ctx.queues.preprovisioning_image.wake(change.key.clone());
}

/// Named like its image, which waits for it to be cleaned.
fn by_host(ctx: &Context, change: &Change<BareMetalHost>) {
    if ctx.mirrors.preprovisioning_images.get(&change.key).is_some() {
        ctx.queues.preprovisioning_image.wake(change.key.clone());
    }
}

/// Its machine may be waiting to be booted anew until it may be disturbed.
fn by_agent(ctx: &Context, change: &Change<Agent>) {
    if !change.differs_in(Agent::state) {
        return;
    }
    for key in change.objects().flat_map(|agent| machines_of(ctx, agent)) {
        if ctx.mirrors.preprovisioning_images.get(&key).is_some() {
            ctx.queues.preprovisioning_image.wake(key);
        }
    }
}

fn by_infra_env(ctx: &Context, change: &Change<InfraEnv>) {
    of_infra_env(ctx, &change.key);
}

/// The hub may have changed the image before its InfraEnv tells it.
fn by_hub(ctx: &Context, change: &HubChange) {
    match change.kind {
        ChangeKind::InfraEnv => {
            let named = ctx
                .mirrors
                .infra_envs
                .by(index::INFRA_ENV_ID, &change.id.to_string());
            for infra_env in named {
                of_infra_env(ctx, &Key::of(&*infra_env));
            }
        }
        ChangeKind::Cluster | ChangeKind::Host => {}
    }
}

fn of_infra_env(ctx: &Context, infra_env: &Key) {
    ctx.queues.preprovisioning_image.wake_all(
        ctx.mirrors
            .preprovisioning_images
            .by(index::IMAGE_INFRA_ENV, &infra_env.to_string()),
    );
}

fn by_network(ctx: &Context, change: &Change<Secret>) {
    ctx.queues.preprovisioning_image.wake_all(
        ctx.mirrors
            .preprovisioning_images
            .by(index::IMAGE_NETWORK, &change.key.to_string()),
    );
}

/// It tells all of them where Ironic is.
fn by_ironic(ctx: &Context, change: &Change<Secret>) {
    if change.key == ctx.ironic {
        all(ctx);
    }
}

fn all(ctx: &Context) {
    ctx.queues
        .preprovisioning_image
        .wake_all(ctx.mirrors.preprovisioning_images.all());
}
