//! Whether the BareMetalHost is ours, and how it goes.

use super::{Draft, Go, Step, takes_agent_along, unpause};
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
    let host = &mut draft.host;
    unpause(host);
    if !takes_agent_along(world) {
        return let_go(host);
    }
    host.annotations_mut().remove(annotation::METAL3_DETACHED);
    if !keys::has_finalizer(&*world.host, finalizer::BARE_METAL_HOST) {
        return;
    }
    let Some(agent) = &world.agent else {
        return let_go(host);
    };
    if is_lent(agent) && world.host.state() != state::DELETING {
        // The machine is wiped first; the watch tells when it is.
        host.spec.automated_cleaning_mode = Some("metadata".into());
        return;
    }
    draft.first.push(Step::DeleteAgent);
    let_go(host);
}

fn is_lent(agent: &Agent) -> bool {
    agent.spec.cluster_deployment_name.is_some()
}

fn let_go(host: &mut BareMetalHost) {
    host.finalizers_mut()
        .retain(|name| name != finalizer::BARE_METAL_HOST);
}
