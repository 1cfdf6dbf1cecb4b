//! Whether the BareMetalHost is ours, and how it goes.

use super::{Draft, Go, Step, drain, takes_agent_along, unpause};
use crate::controller::bare_metal_host::world::World;
use crate::crd::keys::{self, annotation, finalizer, label};
use crate::crd::metal3::state;
use crate::crd::{Agent, BareMetalHost};
use kube::ResourceExt;

pub(super) fn stage(world: &World, draft: &mut Draft) -> Go {
    // Without the label it is none of our business, or not any more.
    if !world.host.labels().contains_key(label::INFRA_ENV) {
        let_go(&mut draft.host);
        return Go::Stop;
    }
    if world.host.metadata.deletion_timestamp.is_some() {
        leave(world, draft);
        return Go::Stop;
    }
    if world.infra_env.is_some() {
        let backup = draft.host.labels_mut().entry(label::BACKUP.into());
        backup.or_insert_with(|| "true".into());
    }
    if !keys::has_finalizer(&*world.host, finalizer::BARE_METAL_HOST) {
        draft
            .host
            .finalizers_mut()
            .push(finalizer::BARE_METAL_HOST.into());
    }
    Go::On
}

/// A paused host would never be deleted, a detached one not be cleaned.
fn leave(world: &World, draft: &mut Draft) {
    if !takes_agent_along(world) {
        unpause(&mut draft.host);
        return let_go(&mut draft.host);
    }
    // As long as it is detached, the bare metal operator waits.
    if is_to_be_wiped(world) && drain::goes_on(world, draft) {
        return;
    }
    let host = &mut draft.host;
    unpause(host);
    host.annotations_mut().remove(annotation::METAL3_DETACHED);
    if !keys::has_finalizer(&*world.host, finalizer::BARE_METAL_HOST) {
        return;
    }
    if world.agent.is_none() {
        return let_go(host);
    }
    if is_to_be_wiped(world) {
        // The machine is wiped first; the watch tells when it is.
        host.spec.automated_cleaning_mode = Some("metadata".into());
        return;
    }
    draft.first.push(Step::DeleteAgent);
    let_go(host);
}

/// It is part of a cluster, and nobody has begun to wipe it.
pub(super) fn is_to_be_wiped(world: &World) -> bool {
    let lent = |agent: &Agent| agent.spec.cluster_deployment_name.is_some();
    keys::has_finalizer(&*world.host, finalizer::BARE_METAL_HOST)
        && world.agent.as_deref().is_some_and(lent)
        && world.host.state() != state::DELETING
}

fn let_go(host: &mut BareMetalHost) {
    host.finalizers_mut()
        .retain(|name| name != finalizer::BARE_METAL_HOST);
}
