//! The image as the bare metal operator is to boot it, and who is rebooted for it.

use super::{ERROR, Plan, READY, Snapshot, Step, hold, no_image, tell};
use crate::controller::bare_metal_host::plan::anew;
use crate::crd::condition::{Finding, Truth, find_service};
use crate::crd::infra_env::{BootArtifacts, IMAGE_CREATED, InfraEnvStatus, reason};
use crate::crd::keys::annotation;
use crate::crd::metal3::{PreprovisioningImageStatus, state};
use crate::crd::{Agent, BareMetalHost, InfraEnv};
use crate::key::Key;
use crate::runtime::merge;
use crate::runtime::reconciler::Then;
use kube::ResourceExt;
use serde_json::json;

const ISO: &str = "iso";
const INITRD: &str = "initrd";

/// What an InfraEnv's image can be had as; the first that is accepted is taken.
pub const FORMATS: [&str; 2] = [ISO, INITRD];

/// The machine is switched off and on, whatever it does.
const AT_ONCE: &str = r#"{"force": true}"#;

pub fn plan(snapshot: &Snapshot, infra_env: &InfraEnv) -> Plan {
    let Some(status) = status(snapshot, infra_env) else {
        return hold(snapshot, no_image(infra_env));
    };
    let before = snapshot.image.status.clone().unwrap_or_default();
    let mut steps: Vec<Step> = label(snapshot).into_iter().collect();
    match merge::diff(&before, &status) {
        Some(patch) => steps.push(Step::Status(patch)),
        // Only when the bare metal operator can see it.
        None => steps.extend(change(snapshot, &status.image_url)),
    }
    let then = match steps.is_empty() {
        true => rest(snapshot),
        false => Then::Again,
    };
    Plan::of(steps, then)
}

/// Until the operator has to ask again, because nothing wakes it.
fn rest(snapshot: &Snapshot) -> Then {
    let mut then = Then::Rest;
    // A Secret that comes later comes without the label.
    if is_missing(snapshot) || snapshot.host.as_deref().is_some_and(|host| waits(snapshot, host)) {
        then = then.or(Then::After(snapshot.later()));
    }
    if snapshot.follows_ironic() && !snapshot.whereabouts.is_watched {
        then = then.or(Then::After(snapshot.much_later()));
    }
    then
}

/// The Secret with network settings is named, and is not there.
fn is_missing(snapshot: &Snapshot) -> bool {
    !snapshot.image.spec.network_data_name.is_empty() && snapshot.network.is_none()
}

/// `None` while the InfraEnv does not say where the image is.
fn status(snapshot: &Snapshot, infra_env: &InfraEnv) -> Option<PreprovisioningImageStatus> {
    let shown = infra_env.status.as_ref()?;
    let created = find_service(&shown.conditions, IMAGE_CREATED)?;
    let before = snapshot.image.status.clone().unwrap_or_default();
    let spec = &snapshot.image.spec;
    let iso = spec.accept_formats.iter().any(|format| format == ISO);
    let mut status = match iso {
        true => of_iso(shown)?,
        false => of_initrd(infra_env, shown.boot_artifacts.as_ref()?)?,
    };
    // Word by word what was asked for: the bare metal operator compares letters.
    status.architecture = match spec.architecture.as_str() {
        "" => infra_env.spec.cpu_architecture.clone(),
        word => word.to_owned(),
    };
    status.network_data = snapshot.network.as_ref().map(|network| network.secret.clone());
    status.conditions = before.conditions;
    status.rest = before.rest;
    let truth = match created.status.as_str() {
        "True" => Truth::True,
        "False" => Truth::False,
        _ => Truth::Unknown,
    };
    let message = format!(
        "{}{}{}",
        created.message,
        of_network(snapshot, infra_env),
        of_ironic(snapshot)
    );
    let failed = created.reason == reason::FAILED;
    tell(
        snapshot,
        &mut status,
        Finding::new(READY, truth, &created.reason, &message),
    );
    tell(
        snapshot,
        &mut status,
        Finding::new(ERROR, failed, &created.reason, message),
    );
    Some(status)
}

fn of_iso(shown: &InfraEnvStatus) -> Option<PreprovisioningImageStatus> {
    (!shown.iso_download_url.is_empty()).then(|| PreprovisioningImageStatus {
        image_url: shown.iso_download_url.clone(),
        format: ISO.into(),
        ..PreprovisioningImageStatus::default()
    })
}

fn of_initrd(infra_env: &InfraEnv, files: &BootArtifacts) -> Option<PreprovisioningImageStatus> {
    let all = [&files.initrd, &files.kernel, &files.rootfs];
    let arguments = infra_env.spec.kernel_arguments.iter();
    let appended = arguments.filter(|argument| matches!(argument.operation.as_str(), "" | "append"));
    let mut parameters = vec![
        format!("coreos.live.rootfs_url={}", files.rootfs),
        // The interface that the machine booted from is not the only one it may use.
        "rd.bootif=0".into(),
    ];
    parameters.extend(appended.map(|argument| argument.value.clone()));
    all.iter()
        .all(|file| !file.is_empty())
        .then(|| PreprovisioningImageStatus {
            image_url: files.initrd.clone(),
            kernel_url: files.kernel.clone(),
            extra_kernel_params: parameters.join(" "),
            format: INITRD.into(),
            ..PreprovisioningImageStatus::default()
        })
}

/// The Secret that the bare metal operator believes to be in the image, but is not.
fn of_network(snapshot: &Snapshot, infra_env: &InfraEnv) -> String {
    let name = &snapshot.image.spec.network_data_name;
    let lab = infra_env.name_any();
    match (name.is_empty(), &snapshot.network) {
        (true, _) => String::new(),
        (false, Some(_)) => format!(
            " Its network settings are those of the NMStateConfigs of InfraEnv {lab}; the hub does not use Secret \
             {name}."
        ),
        (false, None) => format!(" The bare metal operator waits for Secret {name}, which does not exist."),
    }
}

/// That the image stays as it is when Ironic moves.
fn of_ironic(snapshot: &Snapshot) -> String {
    let hidden = snapshot
        .whereabouts
        .hidden
        .iter()
        .filter(|_| snapshot.follows_ironic());
    hidden
        .map(|what| format!(" The operator does not notice when Ironic moves: {what}."))
        .collect()
}

/// Watched from now on: the bare metal operator wants to know which version was read.
fn label(snapshot: &Snapshot) -> Option<Step> {
    let network = snapshot.network.as_ref()?;
    let key = Key::new(&snapshot.key.namespace, &network.secret.name);
    (!network.missing_labels.is_empty()).then(|| Step::LabelSecret(key, network.missing_labels.clone()))
}

/// The image that was published last, when it is another.
fn noted<'a>(snapshot: &'a Snapshot, urls: &[&str]) -> Option<&'a str> {
    let noted = snapshot.image.annotations().get(annotation::PUBLISHED_IMAGE)?;
    (!noted.is_empty() && urls.iter().all(|url| noted != url)).then_some(noted)
}

/// The Agent whose host the hub is asked for, because its machine would be booted anew with another image than it runs.
pub fn question(snapshot: &Snapshot) -> Option<&Agent> {
    let shown = snapshot.infra_env.as_ref()?.status.as_ref()?;
    let files = shown.boot_artifacts.as_ref();
    let initrd = files.map(|files| files.initrd.as_str()).unwrap_or_default();
    noted(snapshot, &[&shown.iso_download_url, initrd])?;
    snapshot.agent.as_deref()
}

/// A machine that runs the image before is booted anew, and then the new image is noted: in this order, so that it is
/// done again and not forgotten when something comes between.
fn change(snapshot: &Snapshot, url: &str) -> Vec<Step> {
    let is_noted = snapshot.image.annotations().get(annotation::PUBLISHED_IMAGE);
    if is_noted.is_some_and(|noted| noted == url) {
        return Vec::new();
    }
    let host = snapshot
        .host
        .as_deref()
        .filter(|_| noted(snapshot, &[url]).is_some());
    let mut steps = match host.map(|host| fate(snapshot, host)) {
        Some(Fate::Waits) => return Vec::new(),
        Some(Fate::Reboots) => {
            let now = json!({ "metadata": { "annotations": { annotation::METAL3_REBOOT: AT_ONCE } } });
            vec![Step::PatchHost(now)]
        }
        Some(Fate::Stays) | None => Vec::new(),
    };
    let note = json!({ "metadata": { "annotations": { annotation::PUBLISHED_IMAGE: url } } });
    steps.push(Step::Patch(note));
    steps
}

/// What another image means for a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It runs the image before.
    Reboots,
    /// It runs something else, goes, or is about to be booted anyway.
    Stays,
    /// It must not be disturbed, and is decided about when that is over.
    Waits,
}

fn fate(snapshot: &Snapshot, host: &BareMetalHost) -> Fate {
    let has = |annotation: &str| host.annotations().contains_key(annotation);
    let leaves = host.metadata.deletion_timestamp.is_some();
    if leaves || has(annotation::METAL3_DETACHED) || has(annotation::METAL3_REBOOT) {
        return Fate::Stays;
    }
    match host.state() {
        state::PROVISIONED | state::EXTERNALLY_PROVISIONED | state::POWERING_OFF | state::DELETING => {
            return Fate::Stays;
        }
        // It is being cleaned: an order to reboot would lie there until it is done, and the image it is cleaned with may be
        // either.
        state::DEPROVISIONING => return Fate::Waits,
        _ => {}
    }
    let states = snapshot.states_in_hub.as_deref();
    match &snapshot.agent {
        Some(agent) if !anew::may_be_booted(agent, states) => Fate::Waits,
        Some(_) | None => Fate::Reboots,
    }
}

/// Whether a machine is decided about later. Watches report when; a hub that does not answer does not.
fn waits(snapshot: &Snapshot, host: &BareMetalHost) -> bool {
    let published = snapshot
        .image
        .status
        .as_ref()
        .map(|status| status.image_url.as_str());
    noted(snapshot, &[published.unwrap_or_default()]).is_some() && fate(snapshot, host) == Fate::Waits
}
