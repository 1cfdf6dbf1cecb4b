//! What is to be done about a PreprovisioningImage. Pure: the snapshot in, steps out.

pub mod published;
#[cfg(test)]
mod tests;

use super::ironic;
use super::snapshot::Snapshot;
use super::whereabouts::Whereabouts;
use crate::controller::bare_metal_host::plan::way;
use crate::crd::condition::{Finding, find_service, set_standard};
use crate::crd::infra_env::{self, IMAGE_CREATED};
use crate::crd::keys::{self, annotation, finalizer, label};
use crate::crd::metal3::{NO_CLEANING, PreprovisioningImageStatus, state};
use crate::crd::{BareMetalHost, InfraEnv};
use crate::key::Key;
use crate::options::MetalBoot;
use crate::runtime::merge;
use crate::runtime::patch::finalizers;
use crate::runtime::reconciler::{self, Then};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

pub type Plan = reconciler::Plan<Step>;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Metadata of the object.
    Patch(Value),
    Status(Value),
    PatchHost(Value),
    AnnotateInfraEnv(Value),
    LabelSecret(Key, BTreeMap<String, String>),
    /// Ironic moved: the InfraEnv is reconciled. Nothing is written here.
    WakeInfraEnv,
}

/// What people and the bare metal operator read of an image; they are API.
pub mod reason {
    pub const BAD_FORMAT: &str = "UnsupportedImageFormat";
    pub const NO_INFRA_ENV: &str = "InfraEnvNotAvailable";
    pub const OTHER_ARCHITECTURE: &str = "InfraEnvArchMismatch";
    pub const NO_IRONIC_AGENT: &str = "IronicAgentIgnitionUpdateFailure";
    pub const NO_IMAGE: &str = "WaitingForInfraEnvImageToBeCreated";
    pub const COOLS_DOWN: &str = "WaitingForInfraEnvImageToCoolDown";
}

const READY: &str = "Ready";
const ERROR: &str = "Error";

/// Why the image cannot be published.
struct Held {
    reason: &'static str,
    message: String,
    /// Somebody has to do something about it.
    error: bool,
    then: Then,
}

pub fn plan(snapshot: &Snapshot) -> Plan {
    if snapshot.image.metadata.deletion_timestamp.is_some() {
        return leave(snapshot);
    }
    if !is_converged(snapshot) {
        return Plan::default();
    }
    if let Some(patch) = adoption(snapshot) {
        return Plan::of(vec![Step::Patch(patch)], Then::Again);
    }
    // What is published is still good.
    if snapshot.hub_is_silent {
        return Plan::of(Vec::new(), Then::After(snapshot.retry));
    }
    let mut plan = match judge(snapshot) {
        Ok(infra_env) => published::plan(snapshot, infra_env),
        Err(held) => hold(snapshot, held),
    };
    if ironic_moved(snapshot) {
        plan.steps.push(Step::WakeInfraEnv);
    }
    plan.steps.extend(watch(snapshot));
    plan
}

impl Snapshot {
    /// The operator polls for what it does not watch. Six retries: once a minute by default.
    fn later(&self) -> Duration {
        self.retry * 6
    }

    /// Images that are in order ask less often, because there may be thousands: every five minutes by default.
    fn much_later(&self) -> Duration {
        self.retry * 30
    }

    /// The image of the InfraEnv was asked to contain Ironic's agent, and follows where Ironic is.
    fn follows_ironic(&self) -> bool {
        let infra_env = self.infra_env.as_ref();
        let asked =
            infra_env.and_then(|infra_env| infra_env.annotations().get(annotation::ENABLE_IRONIC_AGENT));
        asked.is_some_and(|asked| asked == "true")
    }
}

/// The Secret is watched from now on, so that images follow what it says.
fn watch(snapshot: &Snapshot) -> Option<Step> {
    let Whereabouts {
        secret,
        missing_labels,
        ..
    } = &snapshot.whereabouts;
    let wanted = snapshot.follows_ironic() && !missing_labels.is_empty();
    wanted.then(|| Step::LabelSecret(secret.clone(), missing_labels.clone()))
}

/// The agent in the image uses Ironic elsewhere, or is another one.
fn ironic_moved(snapshot: &Snapshot) -> bool {
    let (Ok(ironic), Some(row)) = (&snapshot.whereabouts.ironic, &snapshot.row) else {
        return false;
    };
    let ignition = &row.view.ignition_config_override;
    snapshot.follows_ironic() && ironic::is_in(ignition) && !ironic::finds(ignition, ironic)
}

/// Other machines boot live images, and whoever makes their preprovisioning images is left alone.
fn is_converged(snapshot: &Snapshot) -> bool {
    match &snapshot.host {
        Some(host) => way(snapshot.boot, host) == MetalBoot::Converged,
        None => snapshot.boot == MetalBoot::Converged,
    }
}

/// The image is needed until its machine is clean, so it must not go before. Restored from a backup it would name an
/// image that is long gone.
fn adoption(snapshot: &Snapshot) -> Option<Value> {
    let image = &*snapshot.image;
    let kept = keys::has_finalizer(image, finalizer::PREPROVISIONING_IMAGE);
    let labelled = image
        .labels()
        .get(label::NOT_IN_BACKUP)
        .is_some_and(|value| value == "true");
    (!kept || !labelled).then(|| {
        json!({ "metadata": {
            "labels": { label::NOT_IN_BACKUP: "true" },
            "finalizers": finalizers(image, Some(finalizer::PREPROVISIONING_IMAGE), None),
        }})
    })
}

/// The watch of the machine reports when it does not need its image any more.
fn leave(snapshot: &Snapshot) -> Plan {
    let ours = keys::has_finalizer(&*snapshot.image, finalizer::PREPROVISIONING_IMAGE);
    if !ours || snapshot.host.as_deref().is_some_and(is_still_to_be_cleaned) {
        return Plan::default();
    }
    let let_go = json!({ "metadata": {
        "finalizers": finalizers(&*snapshot.image, None, Some(finalizer::PREPROVISIONING_IMAGE)),
    }});
    Plan::of(vec![Step::Patch(let_go)], Then::Rest)
}

fn is_still_to_be_cleaned(host: &BareMetalHost) -> bool {
    let is_clean = host.metadata.deletion_timestamp.is_some()
        && matches!(host.state(), state::POWERING_OFF | state::DELETING);
    host.spec.automated_cleaning_mode.as_deref() != Some(NO_CLEANING) && !is_clean
}

/// The InfraEnv whose image can be published, or why there is none.
fn judge(snapshot: &Snapshot) -> Result<&InfraEnv, Held> {
    format(snapshot)?;
    let infra_env = present(snapshot)?;
    same_architecture(snapshot, infra_env)?;
    let row = snapshot.row.as_ref().ok_or_else(|| no_image(infra_env))?;
    if !ironic::is_in(&row.view.ignition_config_override) {
        return Err(without_ironic(snapshot, infra_env));
    }
    let created = infra_env
        .cool_down_left(snapshot.now)
        .ok_or_else(|| no_image(infra_env))?;
    // The hub may have changed the image already, and the object not show it yet.
    let changed = row
        .image_changed_at()
        .map(|changed| infra_env::cool_down_left(changed, snapshot.now));
    let left = changed.unwrap_or_default().max(created);
    if left.is_zero() {
        return Ok(infra_env);
    }
    Err(Held {
        reason: reason::COOLS_DOWN,
        message: "The image has just changed and may change again.".into(),
        error: false,
        then: Then::After(left),
    })
}

fn format(snapshot: &Snapshot) -> Result<(), Held> {
    let accepted = &snapshot.image.spec.accept_formats;
    match published::FORMATS
        .iter()
        .any(|format| accepted.iter().any(|one| one == format))
    {
        true => Ok(()),
        false => Err(failed(
            reason::BAD_FORMAT,
            format!("acceptFormats is {accepted:?}; the hub has iso and initrd."),
        )),
    }
}

fn present(snapshot: &Snapshot) -> Result<&InfraEnv, Held> {
    let here = snapshot.infra_env.as_deref();
    here.filter(|infra_env| infra_env.metadata.deletion_timestamp.is_none())
        .ok_or_else(|| {
            let name = snapshot
                .image
                .labels()
                .get(label::INFRA_ENV)
                .cloned()
                .unwrap_or_default();
            Held {
                reason: reason::NO_INFRA_ENV,
                message: format!("There is no InfraEnv {name:?} in this namespace, or it is being deleted."),
                error: false,
                then: Then::Rest,
            }
        })
}

fn same_architecture(snapshot: &Snapshot, infra_env: &InfraEnv) -> Result<(), Held> {
    let (wanted, has) = (
        &snapshot.image.spec.architecture,
        &infra_env.spec.cpu_architecture,
    );
    if wanted.is_empty() || ironic::architecture(wanted) == ironic::architecture(has) {
        return Ok(());
    }
    let message = format!(
        "The machine is {wanted}, InfraEnv {} is for {has}.",
        infra_env.name_any()
    );
    Err(failed(reason::OTHER_ARCHITECTURE, message))
}

fn failed(reason: &'static str, message: String) -> Held {
    Held {
        reason,
        message,
        error: true,
        then: Then::Rest,
    }
}

fn no_image(infra_env: &InfraEnv) -> Held {
    let conditions = infra_env
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    let why = find_service(conditions.unwrap_or_default(), IMAGE_CREATED);
    let why = why
        .map(|condition| condition.message.as_str())
        .unwrap_or_default();
    Held {
        reason: reason::NO_IMAGE,
        message: format!("InfraEnv {} has no image yet. {why}", infra_env.name_any())
            .trim_end()
            .into(),
        error: false,
        then: Then::Rest,
    }
}

/// It is on its way when all is known that is needed for it.
fn without_ironic(snapshot: &Snapshot, infra_env: &InfraEnv) -> Held {
    match &snapshot.whereabouts.ironic {
        Ok(_) => Held {
            reason: reason::NO_IMAGE,
            message: format!(
                "InfraEnv {} is getting an image with Ironic's agent.",
                infra_env.name_any()
            ),
            error: false,
            then: Then::Rest,
        },
        Err(why) => Held {
            then: Then::After(snapshot.later()),
            ..failed(reason::NO_IRONIC_AGENT, why.clone())
        },
    }
}

fn hold(snapshot: &Snapshot, held: Held) -> Plan {
    let before = snapshot.image.status.clone().unwrap_or_default();
    let mut status = PreprovisioningImageStatus {
        conditions: before.conditions.clone(),
        rest: before.rest.clone(),
        ..PreprovisioningImageStatus::default()
    };
    tell(
        snapshot,
        &mut status,
        Finding::new(READY, false, held.reason, &held.message),
    );
    tell(
        snapshot,
        &mut status,
        Finding::new(ERROR, held.error, held.reason, held.message),
    );
    let mut steps: Vec<Step> = merge::diff(&before, &status)
        .map(Step::Status)
        .into_iter()
        .collect();
    steps.extend(desired(snapshot));
    let then = match steps.is_empty() {
        true => held.then,
        false => Then::Again,
    };
    Plan::of(steps, then)
}

/// The InfraEnv is asked for an image with Ironic's agent.
fn desired(snapshot: &Snapshot) -> Option<Step> {
    let infra_env = present(snapshot).ok()?;
    let row = snapshot.row.as_ref()?;
    let asked = infra_env.annotations().get(annotation::ENABLE_IRONIC_AGENT);
    let wanted = snapshot.whereabouts.ironic.is_ok()
        && format(snapshot).is_ok()
        && same_architecture(snapshot, infra_env).is_ok()
        && !ironic::is_in(&row.view.ignition_config_override)
        && asked.is_none_or(|asked| asked != "true");
    wanted.then(|| {
        Step::AnnotateInfraEnv(
            json!({ "metadata": { "annotations": { annotation::ENABLE_IRONIC_AGENT: "true" } } }),
        )
    })
}

fn tell(snapshot: &Snapshot, status: &mut PreprovisioningImageStatus, finding: Finding) {
    set_standard(
        &mut status.conditions,
        finding,
        snapshot.image.metadata.generation,
        snapshot.now,
    );
}
