//! What the machine boots.

use super::{Draft, Go, LIVE, asks_for_discovery, has, is_installing};
use crate::controller::bare_metal_host::world::World;
use crate::crd::InfraEnv;
use crate::crd::infra_env::reason;
use crate::crd::keys::annotation;
use crate::crd::metal3::{CustomDeploy, Image, NO_CLEANING, PreprovisioningImage, START_DISCOVERY, state};
use crate::options::MetalBoot;
use crate::runtime::looks::Then;
use kube::ResourceExt;

pub(super) fn stage(world: &World, draft: &mut Draft) -> Go {
    let Some(infra_env) = &world.infra_env else {
        return Go::Stop;
    };
    if has(&draft.host, annotation::METAL3_DETACHED) {
        return Go::On;
    }
    match world.way() {
        MetalBoot::LiveImage => live_image(world, infra_env, draft),
        MetalBoot::Converged => converged(world, draft),
    }
}

fn converged(world: &World, draft: &mut Draft) -> Go {
    let host = &mut draft.host;
    if asks_for_discovery(host) {
        host.annotations_mut().remove(annotation::BMAC_RETURNS_CONVERGED);
        return Go::On;
    }
    if world.image.as_deref().is_some_and(is_of_infra_env) {
        host.annotations_mut().remove(annotation::BMAC_RETURNS_CONVERGED);
        host.spec.custom_deploy = Some(CustomDeploy {
            method: START_DISCOVERY.into(),
            ..CustomDeploy::default()
        });
    }
    Go::Stop
}

/// The bare metal operator has images of its own, which are ready too and do not discover anything.
fn is_of_infra_env(image: &PreprovisioningImage) -> bool {
    let mut conditions = image.status.iter().flat_map(|status| &status.conditions);
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    ready.is_some_and(|ready| ready.status == "True" && ready.reason == reason::AVAILABLE)
}

fn live_image(world: &World, infra_env: &InfraEnv, draft: &mut Draft) -> Go {
    if asks_for_discovery(&world.host) {
        draft.flaw(format!(
            "customDeploy {START_DISCOVERY} and a live image exclude each other: remove spec.image, or customDeploy."
        ));
        return Go::On;
    }
    let inspect = draft
        .host
        .annotations_mut()
        .entry(annotation::METAL3_INSPECT.into());
    inspect.or_insert_with(|| "disabled".into());
    let ready = matches!(world.host.state(), state::READY | state::AVAILABLE);
    let spec = &mut draft.host.spec;
    spec.automated_cleaning_mode = Some(NO_CLEANING.into());
    let status = infra_env.status.as_ref();
    let Some(url) = status
        .map(|status| &status.iso_download_url)
        .filter(|url| !url.is_empty())
    else {
        return Go::Stop;
    };
    if spec.image.as_ref().is_some_and(|image| image.url == *url) {
        return Go::On;
    }
    // Another image is a reboot; a machine without one does not run anyway.
    if spec.image.is_some() && world.agent.as_deref().is_some_and(is_installing) {
        return Go::On;
    }
    let left = infra_env.cool_down_left(world.now).unwrap_or_default();
    if !left.is_zero() {
        draft.then = Then::After(left);
        return Go::Stop;
    }
    if ready {
        spec.online = true;
        spec.image = Some(Image {
            url: url.clone(),
            format: Some(LIVE.into()),
            ..Image::default()
        });
    } else {
        // Given back first, or the machine would boot the copy that was fetched for it before.
        spec.image = None;
    }
    Go::Stop
}
