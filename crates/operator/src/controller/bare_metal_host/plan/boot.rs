//! What the machine boots.

use super::{Draft, Go, LIVE, anew, asks_for_discovery, has};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::infra_env::reason;
use crate::crd::keys::annotation;
use crate::crd::metal3::{CustomDeploy, Image, NO_CLEANING, PreprovisioningImage, START_DISCOVERY, state};
use crate::crd::{Agent, InfraEnv};
use crate::options::MetalBoot;
use crate::runtime::reconciler::Then;
use kube::ResourceExt;

pub(super) fn stage(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    let Some(infra_env) = &snapshot.infra_env else {
        return Go::Stop;
    };
    if has(&draft.host, annotation::METAL3_DETACHED) {
        return Go::On;
    }
    match snapshot.way() {
        MetalBoot::LiveImage => live_image(snapshot, infra_env, draft),
        MetalBoot::Converged => converged(snapshot, draft),
    }
}

fn converged(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    let host = &mut draft.host;
    if asks_for_discovery(host) {
        host.annotations_mut().remove(annotation::BMAC_RETURNS_CONVERGED);
        return Go::On;
    }
    if snapshot.image.as_deref().is_some_and(is_of_infra_env) {
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

fn url_of(infra_env: &InfraEnv) -> Option<&str> {
    let url = infra_env.status.as_ref()?.iso_download_url.as_str();
    (!url.is_empty()).then_some(url)
}

/// The Agent whose host the hub is asked for, because its machine would be booted anew with another image than it runs.
pub fn question(snapshot: &Snapshot) -> Option<&Agent> {
    let (image, agent) = (snapshot.host.spec.image.as_ref()?, snapshot.agent.as_deref()?);
    let url = url_of(snapshot.infra_env.as_deref()?)?;
    let kept = has(&snapshot.host, annotation::METAL3_DETACHED) || !snapshot.is_managed_here();
    (!kept && snapshot.way() == MetalBoot::LiveImage && image.url != url).then_some(agent)
}

/// A machine without an Agent has not come as far as to be needed by anybody.
fn may_be_booted(snapshot: &Snapshot) -> bool {
    let states = snapshot.states_in_hub.as_deref();
    let agent = snapshot.agent.as_deref();
    agent.is_none_or(|agent| anew::may_be_booted(agent, states))
}

fn live_image(snapshot: &Snapshot, infra_env: &InfraEnv, draft: &mut Draft) -> Go {
    if asks_for_discovery(&snapshot.host) {
        draft.mistake(format!(
            "customDeploy {START_DISCOVERY} and a live image exclude each other: remove spec.image, or customDeploy."
        ));
        return Go::On;
    }
    let inspect = draft
        .host
        .annotations_mut()
        .entry(annotation::METAL3_INSPECT.into());
    inspect.or_insert_with(|| "disabled".into());
    let ready = matches!(snapshot.host.state(), state::READY | state::AVAILABLE);
    let spec = &mut draft.host.spec;
    spec.automated_cleaning_mode = Some(NO_CLEANING.into());
    let Some(url) = url_of(infra_env) else {
        return Go::Stop;
    };
    if spec.image.as_ref().is_some_and(|image| image.url == *url) {
        return Go::On;
    }
    if spec.image.is_some() && !may_be_booted(snapshot) {
        // A change of the Agent wakes the operator; a hub that is back does not.
        if snapshot.states_in_hub.is_none() {
            draft.then = Then::After(snapshot.later());
        }
        return Go::On;
    }
    let left = infra_env.cool_down_left(snapshot.now).unwrap_or_default();
    if !left.is_zero() {
        draft.then = Then::After(left);
        return Go::Stop;
    }
    if ready {
        spec.online = true;
        spec.image = Some(Image {
            url: url.to_owned(),
            format: Some(LIVE.into()),
            ..Image::default()
        });
    } else {
        // Given back first, or the machine would boot the copy that was fetched for it before.
        spec.image = None;
    }
    Go::Stop
}
