//! The image as the bare metal operator is to boot it, and who is rebooted for it.

use super::{ERROR, Plan, READY, Step, World, hold, no_image, tell};
use crate::controller::bare_metal_host::plan::anew;
use crate::crd::condition::{Finding, Truth, find_service};
use crate::crd::infra_env::{BootArtifacts, IMAGE_CREATED, InfraEnvStatus, reason};
use crate::crd::keys::annotation;
use crate::crd::metal3::{PreprovisioningImageStatus, state};
use crate::crd::{Agent, BareMetalHost, InfraEnv};
use crate::key::Key;
use crate::runtime::looks::Then;
use crate::runtime::merge;
use kube::ResourceExt;
use serde_json::json;

const ISO: &str = "iso";
const INITRD: &str = "initrd";

/// What an InfraEnv's image can be had as; the first that is accepted is taken.
pub const FORMATS: [&str; 2] = [ISO, INITRD];

/// The machine is switched off and on, whatever it does.
const AT_ONCE: &str = r#"{"force": true}"#;

pub fn plan(world: &World, infra_env: &InfraEnv) -> Plan {
    let Some(status) = status(world, infra_env) else {
        return hold(world, no_image(infra_env));
    };
    let before = world.image.status.clone().unwrap_or_default();
    let mut steps: Vec<Step> = label(world).into_iter().collect();
    match merge::diff(&before, &status) {
        Some(patch) => steps.push(Step::Status(patch)),
        // Only when the bare metal operator can see it.
        None => steps.extend(change(world, &status.image_url)),
    }
    let then = match steps.is_empty() {
        true => rest(world),
        false => Then::Look,
    };
    Plan::of(steps, then)
}

/// Until somebody has to ask again, because nobody tells.
fn rest(world: &World) -> Then {
    let mut then = Then::Rest;
    // A Secret that comes later comes without the label.
    if is_missing(world) || world.host.as_deref().is_some_and(|host| waits(world, host)) {
        then = then.or(Then::After(world.later()));
    }
    if world.follows_ironic() && !world.whereabouts.is_watched {
        then = then.or(Then::After(world.much_later()));
    }
    then
}

/// The Secret with network settings is named, and is not there.
fn is_missing(world: &World) -> bool {
    !world.image.spec.network_data_name.is_empty() && world.network.is_none()
}

/// `None` while the InfraEnv does not tell where the image is.
fn status(world: &World, infra_env: &InfraEnv) -> Option<PreprovisioningImageStatus> {
    let shown = infra_env.status.as_ref()?;
    let created = find_service(&shown.conditions, IMAGE_CREATED)?;
    let before = world.image.status.clone().unwrap_or_default();
    let spec = &world.image.spec;
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
    status.network_data = world.network.as_ref().map(|network| network.seen.clone());
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
        of_network(world, infra_env),
        of_ironic(world)
    );
    let failed = created.reason == reason::FAILED;
    tell(
        world,
        &mut status,
        Finding::new(READY, truth, &created.reason, &message),
    );
    tell(
        world,
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

/// What the bare metal operator believes to be in the image, and is not.
fn of_network(world: &World, infra_env: &InfraEnv) -> String {
    let name = &world.image.spec.network_data_name;
    let lab = infra_env.name_any();
    match (name.is_empty(), &world.network) {
        (true, _) => String::new(),
        (false, Some(_)) => format!(
            " Its network settings are those of the NMStateConfigs of InfraEnv {lab}; what is in Secret {name} is not used."
        ),
        (false, None) => format!(" The bare metal operator waits for Secret {name}, which is not there."),
    }
}

/// That the image stays as it is when Ironic moves.
fn of_ironic(world: &World) -> String {
    let hidden = world.whereabouts.hidden.iter().filter(|_| world.follows_ironic());
    hidden
        .map(|what| format!(" It is not noticed when Ironic moves: {what}."))
        .collect()
}

/// Watched from now on: the bare metal operator wants to know which version was seen.
fn label(world: &World) -> Option<Step> {
    let network = world.network.as_ref()?;
    let key = Key::new(&world.key.namespace, &network.seen.name);
    (!network.missing_labels.is_empty()).then(|| Step::LabelSecret(key, network.missing_labels.clone()))
}

/// The image that was published last, when it is another.
fn noted<'a>(world: &'a World, urls: &[&str]) -> Option<&'a str> {
    let noted = world.image.annotations().get(annotation::PUBLISHED_IMAGE)?;
    (!noted.is_empty() && urls.iter().all(|url| noted != url)).then_some(noted)
}

/// The Agent whose host the hub is asked for, because its machine would be booted anew with another image than it runs.
pub fn question(world: &World) -> Option<&Agent> {
    let shown = world.infra_env.as_ref()?.status.as_ref()?;
    let files = shown.boot_artifacts.as_ref();
    let initrd = files.map(|files| files.initrd.as_str()).unwrap_or_default();
    noted(world, &[&shown.iso_download_url, initrd])?;
    world.agent.as_deref()
}

/// A machine that runs the image before is booted anew, and then the new image is noted: in this order, so that it is
/// done again and not forgotten when something comes between.
fn change(world: &World, url: &str) -> Vec<Step> {
    let is_noted = world.image.annotations().get(annotation::PUBLISHED_IMAGE);
    if is_noted.is_some_and(|noted| noted == url) {
        return Vec::new();
    }
    let host = world.host.as_deref().filter(|_| noted(world, &[url]).is_some());
    let mut steps = match host.map(|host| fate(world, host)) {
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

fn fate(world: &World, host: &BareMetalHost) -> Fate {
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
    let told = world.told_by_hub.as_deref();
    match &world.agent {
        Some(agent) if !anew::may_be_booted(agent, told) => Fate::Waits,
        Some(_) | None => Fate::Reboots,
    }
}

/// Whether a machine is decided about later. Watches tell when; but the hub may be away, and does not.
fn waits(world: &World, host: &BareMetalHost) -> bool {
    let published = world
        .image
        .status
        .as_ref()
        .map(|status| status.image_url.as_str());
    noted(world, &[published.unwrap_or_default()]).is_some() && fate(world, host) == Fate::Waits
}
