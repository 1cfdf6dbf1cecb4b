//! What is to be done about an InfraEnv. Pure: the snapshot in, steps out.

mod desired;
pub mod network;
mod status;
#[cfg(test)]
mod tests;

use super::snapshot::{Cluster, DesiredIronic, Known, Member, Snapshot};
use crate::crd::infra_env::reason;
use crate::crd::keys::{self, annotation, finalizer};
use crate::error::Refusal;
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::patch::finalizers;
use crate::runtime::reconciler::{self, Then};
use crate::runtime::secret::Found;
use kube::ResourceExt;
use muster_contract::v1::infra_env::InfraEnvSetting;
use muster_contract::v2::infra_env::{CreateInfraEnv, UpdateInfraEnv};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

pub type Plan = reconciler::Plan<Step>;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Metadata of the object.
    Patch(Value),
    /// Status of the object.
    Status(Value),
    LabelSecret(Key, BTreeMap<String, String>),
    LabelConfigMap(Key, BTreeMap<String, String>),
    Tell(News),
    Create(Box<CreateInfraEnv>),
    Update(Box<UpdateInfraEnv>),
    /// What an update cannot remove.
    Clear(InfraEnvSetting),
    /// Hosts belong to this cluster from now on; the one before is gone.
    Join(Uuid),
    DeleteHost(Uuid),
    DeleteInfraEnv,
}

/// Why there is no image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidSpec {
    /// The cluster it is for is not there.
    NoCluster(String),
    /// Another cluster has to go first; nothing wakes the operator then.
    OtherCluster(String),
    /// Only a change of the object helps.
    Input(String),
    /// Something that is not watched may help.
    Missing(String),
}

/// Conflicts of the image and failures of the hub go by: two retries, twenty seconds by default.
fn soon(snapshot: &Snapshot) -> Then {
    Then::After(2 * snapshot.retry)
}

/// What keeps an InfraEnv from being deleted takes longer: a minute by default.
fn later(snapshot: &Snapshot) -> Then {
    Then::After(6 * snapshot.retry)
}

pub fn plan(snapshot: &Snapshot) -> Plan {
    if snapshot.is_deleting() {
        return leave(snapshot);
    }
    if let Some(rival) = &snapshot.rival {
        let text = format!(
            "InfraEnv {rival} has the same id; remove the annotation {} here",
            annotation::INFRA_ENV_ID
        );
        return flawed(snapshot, &InvalidSpec::Input(text));
    }
    if let Some(patch) = adoption(snapshot) {
        return Plan::of(vec![Step::Patch(patch)], Then::Again);
    }
    if let Some(failure) = &snapshot.failure {
        return hub_failed(snapshot, failure);
    }
    match desired::desired(snapshot) {
        Err(mistake) => flawed(snapshot, &mistake),
        Ok(desired) => fulfil(snapshot, desired),
    }
}

/// Before the hub gets it, the object carries its id, and a finalizer that remembers to delete it there.
fn adoption(snapshot: &Snapshot) -> Option<Value> {
    let noted = snapshot.infra_env.annotations().get(annotation::INFRA_ENV_ID);
    let has_id = noted.is_some_and(|noted| *noted == snapshot.id.to_string());
    if has_id && keys::has_finalizer(&*snapshot.infra_env, finalizer::INFRA_ENV) {
        return None;
    }
    Some(json!({ "metadata": {
        "annotations": { annotation::INFRA_ENV_ID: snapshot.id.to_string() },
        "finalizers": finalizers(&*snapshot.infra_env, Some(finalizer::INFRA_ENV), None),
    }}))
}

/// The hub gets what is wanted; then the object shows what the hub has.
fn fulfil(snapshot: &Snapshot, desired: CreateInfraEnv) -> Plan {
    let mut steps = labels(snapshot);
    let moves = snapshot
        .row
        .as_ref()
        .and_then(|row| desired::moves(&row.view, &desired));
    if let Some(cluster) = moves {
        steps.push(Step::Join(cluster));
        return Plan::of(steps, Then::Again);
    }
    match &snapshot.row {
        None => steps.push(Step::Create(Box::new(desired))),
        Some(row) => match desired::difference(&row.view, &desired, snapshot.known) {
            Some(update) => steps.push(Step::Update(Box::new(update))),
            None if desired::drops_key(&row.view, &desired) => {
                steps.push(Step::Clear(InfraEnvSetting::SshAuthorizedKey));
            }
            None => {
                steps.extend(status::steps(snapshot, status::available(snapshot, row)));
                return Plan::of(steps, Then::Rest);
            }
        },
    }
    Plan::of(steps, Then::Again)
}

/// What is used is watched from now on, and part of backups.
fn labels(snapshot: &Snapshot) -> Vec<Step> {
    let missing = |found: &Option<Found>| {
        found
            .as_ref()
            .map(|found| found.missing_labels.clone())
            .unwrap_or_default()
    };
    let spec = &snapshot.infra_env.spec;
    let mut steps = Vec::new();
    let secret = missing(&snapshot.pull_secret);
    if !secret.is_empty() {
        let key = Key::new(snapshot.key().namespace, &spec.pull_secret_ref.name);
        steps.push(Step::LabelSecret(key, secret));
    }
    let map = missing(&snapshot.mirrors);
    if let Some(reference) = spec.mirror_registry_ref.as_ref().filter(|_| !map.is_empty()) {
        steps.push(Step::LabelConfigMap(reference.into(), map));
    }
    steps
}

/// The image cannot be had as the object is.
fn flawed(snapshot: &Snapshot, mistake: &InvalidSpec) -> Plan {
    let steps = status::steps(snapshot, status::flawed(snapshot, mistake));
    let then = match mistake {
        // The object itself is watched, and so are clusters in namespaces that the operator watches.
        InvalidSpec::Input(_) => Then::Rest,
        InvalidSpec::NoCluster(_) if snapshot.is_cluster_watched => Then::Rest,
        InvalidSpec::NoCluster(_) | InvalidSpec::OtherCluster(_) | InvalidSpec::Missing(_) => soon(snapshot),
    };
    Plan::of(steps, then)
}

/// The hub did not do what it was asked.
fn hub_failed(snapshot: &Snapshot, failure: &Refusal) -> Plan {
    let has_image = snapshot
        .infra_env
        .status
        .as_ref()
        .is_some_and(|status| !status.iso_download_url.is_empty());
    match failure {
        // The image that is there is still good, so nobody needs to be alarmed.
        Refusal::Internal(_) if has_image => Plan::of(Vec::new(), soon(snapshot)),
        Refusal::Internal(text) => Plan {
            then: soon(snapshot),
            ..flawed(snapshot, &InvalidSpec::Missing(text.clone()))
        },
        Refusal::Conflict(text) if status::reason_now(snapshot) != Some(reason::FAILED) => {
            let steps = status::steps(snapshot, status::in_preparation(snapshot, text));
            Plan::of(steps, soon(snapshot))
        }
        Refusal::Conflict(_) => Plan::of(Vec::new(), soon(snapshot)),
        Refusal::Input(text) => flawed(snapshot, &InvalidSpec::Input(text.clone())),
    }
}

/// Hosts, then the InfraEnv, leave the hub; then the object may go. It does not wait for Agents: they go with it. It does
/// wait for machines whose disks are being written, and then for all of them: half a pool helps nobody.
fn leave(snapshot: &Snapshot) -> Plan {
    if !keys::has_finalizer(&*snapshot.infra_env, finalizer::INFRA_ENV) {
        return Plan::default();
    }
    let let_go = Step::Patch(json!({ "metadata": {
        "finalizers": finalizers(&*snapshot.infra_env, None, Some(finalizer::INFRA_ENV)),
    }}));
    // What the hub has belongs to the other.
    if snapshot.rival.is_some() {
        return Plan::of(vec![let_go], Then::Rest);
    }
    if let Some(text) = being_written(snapshot) {
        let steps = status::delayed(snapshot, reason::HOSTS_ARE_INSTALLING, text);
        return Plan::of(steps, later(snapshot));
    }
    // Hosts that run register again as soon as they were deleted: those are deleted, too.
    let more_hosts = matches!(snapshot.failure, Some(Refusal::Input(_))) && !snapshot.hosts.is_empty();
    if let Some(failure) = snapshot.failure.as_ref().filter(|_| !more_hosts) {
        let steps = status::delayed(snapshot, reason::CLEANUP_FAILED, failure.text().to_owned());
        return Plan::of(steps, later(snapshot));
    }
    if snapshot.row.is_none() {
        return Plan::of(vec![let_go], Then::Rest);
    }
    let hosts = snapshot.hosts.iter().map(|host| Step::DeleteHost(host.id));
    Plan::of(hosts.chain([Step::DeleteInfraEnv]).collect(), Then::Again)
}

/// Which hosts keep the InfraEnv, and what to do about it.
fn being_written(snapshot: &Snapshot) -> Option<String> {
    let named = |host: &Member| match host.name.as_str() {
        "" => host.id.to_string(),
        name => format!("{name} ({})", host.id),
    };
    let busy = snapshot.hosts.iter().filter(|host| host.is_being_written());
    let mut busy: Vec<String> = busy.map(named).collect();
    busy.sort();
    (!busy.is_empty()).then(|| {
        format!(
            "{} being installed; the operator waits until that is over. Delete the ClusterDeployment to cancel the \
             installation.",
            match busy.as_slice() {
                [one] => format!("{one} is"),
                many => format!("{} are", many.join(", ")),
            }
        )
    })
}
