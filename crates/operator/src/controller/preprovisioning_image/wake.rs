//! Whose PreprovisioningImages a change concerns.

use crate::crd::{BareMetalHost, InfraEnv, PreprovisioningImage};
use crate::runtime::context::index;
use crate::runtime::hook::Hooks;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::Secret;

pub fn wire(hooks: &mut Hooks) {
    hooks.preprovisioning_image.push(itself);
    hooks.bare_metal_host.push(by_host);
    hooks.infra_env.push(by_infra_env);
    hooks.secret.push(by_network);
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

fn by_infra_env(ctx: &Context, change: &Change<InfraEnv>) {
    ctx.queues.preprovisioning_image.wake_all(
        ctx.mirrors
            .preprovisioning_images
            .by(index::IMAGE_INFRA_ENV, &change.key.to_string()),
    );
}

fn by_network(ctx: &Context, change: &Change<Secret>) {
    ctx.queues.preprovisioning_image.wake_all(
        ctx.mirrors
            .preprovisioning_images
            .by(index::IMAGE_NETWORK, &change.key.to_string()),
    );
}

fn all(ctx: &Context) {
    ctx.queues
        .preprovisioning_image
        .wake_all(ctx.mirrors.preprovisioning_images.all());
}
