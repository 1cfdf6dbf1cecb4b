//! Who has the machine: once a cluster runs on it, the bare metal operator keeps its hands off.
//!
//! It is detached first. Only when the bare metal operator has really let go is it paused, with its status saved beside
//! the pause: from a backup the host is then restored as one that nobody touches. A site may do without the pause.

use super::{Draft, Go, has, takes_agent_along, unpause, waits_to_be_fetched};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::BareMetalHost;
use crate::crd::keys::annotation;
use crate::crd::metal3::{self, state};
use crate::options::MetalBoot;
use kube::ResourceExt;
use muster_vocabulary::Stage;
use serde_json::Value;

/// The value by which others recognise these annotations.
const OURS: &str = "assisted-service-controller";
/// The machine is cleaned before it goes.
const DELAYED: &str = r#"{"deleteAction":"delay"}"#;

pub(super) fn stage(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    if has(&draft.host, annotation::BMAC_HOST_MANAGEMENT) {
        if snapshot.way() == MetalBoot::Converged && !takes_agent_along(snapshot) {
            draft.host.annotations_mut().remove(annotation::METAL3_DETACHED);
            unpause(&mut draft.host);
            return Go::On;
        }
        draft.mistake(
            "allow-provisioned-host-management needs the converged flow, and cannot be combined with \
             remove-agent-and-node-on-delete.",
        );
    }
    if waits_to_be_fetched(snapshot.agent.as_deref()).is_none() && has_been_installed(snapshot) {
        detach(snapshot, &mut draft.host);
    }
    pause(snapshot, &mut draft.host);
    Go::On
}

/// The disk is written, or will not be.
fn ends_custody(stage: Stage) -> bool {
    match stage {
        Stage::Rebooting | Stage::Joined | Stage::Done | Stage::Failed => true,
        Stage::Starting
        | Stage::WaitingForControlPlane
        | Stage::WaitingForBootkube
        | Stage::WaitingForController
        | Stage::Installing
        | Stage::Writing
        | Stage::Copying
        | Stage::WaitingForIgnition
        | Stage::Configuring => false,
    }
}

fn has_been_installed(snapshot: &Snapshot) -> bool {
    match snapshot.way() {
        MetalBoot::Converged => snapshot.host.state() == state::PROVISIONED,
        MetalBoot::LiveImage => {
            let status = snapshot.agent.as_ref().and_then(|agent| agent.status.as_ref());
            let progress = status.and_then(|status| status.progress.as_ref());
            progress.is_some_and(|progress| progress.current_stage.is(ends_custody))
        }
    }
}

/// A value that is neither of ours is somebody else's.
fn detach(snapshot: &Snapshot, host: &mut BareMetalHost) {
    let (wanted, other) = match takes_agent_along(snapshot) {
        true => (DELAYED, OURS),
        false => (OURS, DELAYED),
    };
    let now = host.annotations().get(annotation::METAL3_DETACHED);
    if now.is_none_or(|now| now == other) {
        host.annotations_mut()
            .insert(annotation::METAL3_DETACHED.into(), wanted.into());
    }
}

fn pause(snapshot: &Snapshot, host: &mut BareMetalHost) {
    let (paused, saved) = (
        has(host, annotation::METAL3_PAUSED),
        has(host, annotation::METAL3_STATUS),
    );
    if host.state().is_empty() {
        // Restored from a backup: let go, so that its status is restored from the annotation.
        return unpause(host);
    }
    if !snapshot.pauses {
        return;
    }
    let let_go = has(host, annotation::METAL3_DETACHED) && host.operational_status() == metal3::DETACHED;
    let theirs = paused && !saved;
    let Some(status) = host.status.clone().filter(|_| let_go && !theirs) else {
        return;
    };
    let annotations = host.annotations_mut();
    let noted = annotations.get(annotation::METAL3_STATUS);
    let noted = noted.and_then(|text| serde_json::from_str::<Value>(text).ok());
    if noted.as_ref() != Some(&status.0) {
        annotations.insert(annotation::METAL3_STATUS.into(), status.0.to_string());
    }
    let paused = annotations.entry(annotation::METAL3_PAUSED.into());
    paused.or_insert_with(|| OURS.into());
}
