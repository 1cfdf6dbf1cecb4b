//! The return to the pool: the machine of an Agent that waits for somebody to boot it is booted.
//!
//! The operator removes the image that the machine runs, so that the bare metal operator cleans it up; when it is
//! available again the stage `boot` gives it discovery, as on the first day.

use super::{Draft, Go, has, unpause, waits_to_be_fetched};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::BareMetalHost;
use crate::crd::keys::annotation;
use crate::crd::metal3::state;
use crate::options::MetalBoot;
use kube::ResourceExt;

pub(super) fn stage(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    let host = &mut draft.host;
    let Some(waits) = waits_to_be_fetched(snapshot.agent.as_deref()) else {
        host.annotations_mut().remove(annotation::BMAC_RETURN_BEGUN);
        return Go::On;
    };
    let since = waits.last_transition_time.as_ref();
    let since = since.map(|since| since.0.to_string()).unwrap_or_default();
    // Noted, because a machine that boots discovery looks like one that was never fetched until its agent registers.
    let begins = host.annotations().get(annotation::BMAC_RETURN_BEGUN) != Some(&since)
        || has(host, annotation::METAL3_DETACHED);
    host.annotations_mut()
        .insert(annotation::BMAC_RETURN_BEGUN.into(), since);
    unpause(host);
    for key in [
        annotation::METAL3_DETACHED,
        annotation::METAL3_HARDWARE_DETAILS,
        annotation::BMAC_SPOKE_CREATED,
    ] {
        host.annotations_mut().remove(key);
    }
    match snapshot.way() {
        MetalBoot::LiveImage => live_image(host, begins),
        MetalBoot::Converged => converged(snapshot, host, begins),
    }
}

fn live_image(host: &mut BareMetalHost, begins: bool) -> Go {
    if !begins {
        return Go::On;
    }
    host.spec.image = None;
    Go::Stop
}

fn converged(snapshot: &Snapshot, host: &mut BareMetalHost, begins: bool) -> Go {
    match host.state() {
        state::PROVISIONED => {}
        // A host whose installation was cancelled or failed.
        state::PROVISIONING if begins || host.spec.custom_deploy.is_none() => {}
        state::DEPROVISIONING => return Go::Stop,
        _ => return Go::On,
    }
    host.spec.custom_deploy = None;
    // Without its deploy step it would look like one that boots live images, as the others do.
    if snapshot.boot == MetalBoot::LiveImage {
        host.annotations_mut()
            .insert(annotation::BMAC_RETURNS_CONVERGED.into(), "true".into());
    }
    Go::Stop
}
