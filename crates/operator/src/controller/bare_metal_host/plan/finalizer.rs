//! Whether the BareMetalHost is ours, and how it goes.

use super::{Draft, Go, Step, drain, takes_agent_along, unpause};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::keys::{self, annotation, finalizer, label};
use crate::crd::metal3::state;
use crate::crd::{Agent, BareMetalHost};
use kube::ResourceExt;

pub(super) fn stage(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    // Without the label this controller does not manage it, or not any more.
    if !snapshot.host.labels().contains_key(label::INFRA_ENV) {
        let_go(&mut draft.host);
        return Go::Stop;
    }
    if snapshot.host.metadata.deletion_timestamp.is_some() {
        leave(snapshot, draft);
        return Go::Stop;
    }
    if snapshot.infra_env.is_some() {
        let backup = draft.host.labels_mut().entry(label::BACKUP.into());
        backup.or_insert_with(|| "true".into());
    }
    if !keys::has_finalizer(&*snapshot.host, finalizer::BARE_METAL_HOST) {
        draft
            .host
            .finalizers_mut()
            .push(finalizer::BARE_METAL_HOST.into());
    }
    Go::On
}

/// A paused host would never be deleted, a detached one not be cleaned.
fn leave(snapshot: &Snapshot, draft: &mut Draft) {
    if !takes_agent_along(snapshot) {
        unpause(&mut draft.host);
        return let_go(&mut draft.host);
    }
    // As long as it is detached, the bare metal operator waits.
    if is_to_be_wiped(snapshot) && drain::goes_on(snapshot, draft) {
        return;
    }
    let host = &mut draft.host;
    unpause(host);
    host.annotations_mut().remove(annotation::METAL3_DETACHED);
    if !keys::has_finalizer(&*snapshot.host, finalizer::BARE_METAL_HOST) {
        return;
    }
    if snapshot.agent.is_none() {
        return let_go(host);
    }
    if is_to_be_wiped(snapshot) {
        // The machine is wiped first; the watch reports when it is.
        host.spec.automated_cleaning_mode = Some("metadata".into());
        return;
    }
    draft.first.push(Step::DeleteAgent);
    let_go(host);
}

/// It is part of a cluster, and nobody has begun to wipe it.
pub(super) fn is_to_be_wiped(snapshot: &Snapshot) -> bool {
    let lent = |agent: &Agent| agent.spec.cluster_deployment_name.is_some();
    keys::has_finalizer(&*snapshot.host, finalizer::BARE_METAL_HOST)
        && snapshot.agent.as_deref().is_some_and(lent)
        && snapshot.host.state() != state::DELETING
}

fn let_go(host: &mut BareMetalHost) {
    host.finalizers_mut()
        .retain(|name| name != finalizer::BARE_METAL_HOST);
}
