//! Machines that run somebody else's system: a label alone, perhaps put on all at once, is no order to wipe them.

use super::{Draft, Go, runs_live};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::BareMetalHost;

/// One that has an Agent has run discovery, and is served whatever else is written on it.
pub(super) fn stage(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    if snapshot.agent.is_some() {
        return Go::On;
    }
    let Some(what) = owned_by_others(&snapshot.host) else {
        return Go::On;
    };
    draft.mistake(format!(
        "Somebody else uses this machine: it has {what}. The operator does not touch it. To discover it, remove \
         that; otherwise remove its InfraEnv label."
    ));
    Go::Stop
}

/// What is written on it by which others have it.
fn owned_by_others(host: &BareMetalHost) -> Option<&'static str> {
    let consumer = host.spec.rest.get("consumerRef");
    if consumer.is_some_and(|consumer| !consumer.is_null()) {
        return Some("spec.consumerRef");
    }
    let image = host.spec.image.as_ref();
    let written = image.is_some_and(|image| !image.url.is_empty()) && !runs_live(host);
    written.then_some("an image in spec.image to write to its disk")
}
