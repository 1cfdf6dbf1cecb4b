//! What is to be done about an InfraEnv. Pure: the world in, steps out.

pub mod network;
mod status;
#[cfg(test)]
mod tests;
mod wish;

use super::world::{Cluster, IronicWish, Member, Told, World};
use crate::crd::infra_env::reason;
use crate::crd::keys::{self, annotation, finalizer};
use crate::error::Trouble;
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::looks::{self, Then};
use crate::runtime::patch::finalizers;
use crate::runtime::secret::Found;
use kube::ResourceExt;
use muster_contract::v1::infra_env::InfraEnvSetting;
use muster_contract::v2::infra_env::{CreateInfraEnv, UpdateInfraEnv};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

pub type Plan = looks::Plan<Step>;

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
    /// What an update cannot take away.
    Clear(InfraEnvSetting),
    /// Hosts belong to this cluster from now on; the one before is gone.
    Join(Uuid),
    DeleteHost(Uuid),
    DeleteInfraEnv,
}

/// Why there is no image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// The cluster it is for is not there.
    NoCluster(String),
    /// Another cluster has to go first, of which nobody tells here.
    OtherCluster(String),
    /// Only a change of the object helps.
    Input(String),
    /// Something that is not watched may help.
    Missing(String),
}

/// Conflicts of the image and failures of the hub go by: two retries, twenty seconds unless told otherwise.
fn soon(world: &World) -> Then {
    Then::After(2 * world.retry)
}

/// What keeps an InfraEnv from being deleted takes longer: a minute unless told otherwise.
fn later(world: &World) -> Then {
    Then::After(6 * world.retry)
}

pub fn plan(world: &World) -> Plan {
    if world.is_deleting() {
        return leave(world);
    }
    if let Some(rival) = &world.rival {
        let text = format!(
            "InfraEnv {rival} has the same id; remove the annotation {} here",
            annotation::INFRA_ENV_ID
        );
        return flawed(world, &Flaw::Input(text));
    }
    if let Some(patch) = adoption(world) {
        return Plan::of(vec![Step::Patch(patch)], Then::Look);
    }
    if let Some(trouble) = &world.trouble {
        return troubled(world, trouble);
    }
    match wish::wish(world) {
        Err(flaw) => flawed(world, &flaw),
        Ok(wish) => fulfil(world, wish),
    }
}

/// Before the hub hears of it, the object carries its id, and a finalizer that remembers to take it back.
fn adoption(world: &World) -> Option<Value> {
    let noted = world.infra_env.annotations().get(annotation::INFRA_ENV_ID);
    let has_id = noted.is_some_and(|noted| *noted == world.id.to_string());
    if has_id && keys::has_finalizer(&*world.infra_env, finalizer::INFRA_ENV) {
        return None;
    }
    Some(json!({ "metadata": {
        "annotations": { annotation::INFRA_ENV_ID: world.id.to_string() },
        "finalizers": finalizers(&*world.infra_env, Some(finalizer::INFRA_ENV), None),
    }}))
}

/// The hub gets what is wanted; then the object shows what the hub has.
fn fulfil(world: &World, wish: CreateInfraEnv) -> Plan {
    let mut steps = labels(world);
    let moves = world.row.as_ref().and_then(|row| wish::moves(&row.view, &wish));
    if let Some(cluster) = moves {
        steps.push(Step::Join(cluster));
        return Plan::of(steps, Then::Look);
    }
    match &world.row {
        None => steps.push(Step::Create(Box::new(wish))),
        Some(row) => match wish::difference(&row.view, &wish, world.told) {
            Some(update) => steps.push(Step::Update(Box::new(update))),
            None if wish::drops_key(&row.view, &wish) => {
                steps.push(Step::Clear(InfraEnvSetting::SshAuthorizedKey));
            }
            None => {
                steps.extend(status::steps(world, status::available(world, row)));
                return Plan::of(steps, Then::Rest);
            }
        },
    }
    Plan::of(steps, Then::Look)
}

/// What is used is watched from now on, and part of backups.
fn labels(world: &World) -> Vec<Step> {
    let missing = |found: &Option<Found>| {
        found
            .as_ref()
            .map(|found| found.missing_labels.clone())
            .unwrap_or_default()
    };
    let spec = &world.infra_env.spec;
    let mut steps = Vec::new();
    let secret = missing(&world.pull_secret);
    if !secret.is_empty() {
        let key = Key::new(world.key().namespace, &spec.pull_secret_ref.name);
        steps.push(Step::LabelSecret(key, secret));
    }
    let map = missing(&world.mirrors);
    if let Some(reference) = spec.mirror_registry_ref.as_ref().filter(|_| !map.is_empty()) {
        steps.push(Step::LabelConfigMap(reference.into(), map));
    }
    steps
}

/// The image cannot be had as the object is.
fn flawed(world: &World, flaw: &Flaw) -> Plan {
    let steps = status::steps(world, status::flawed(world, flaw));
    let then = match flaw {
        // The object itself is watched, and so are clusters in namespaces that are seen.
        Flaw::Input(_) => Then::Rest,
        Flaw::NoCluster(_) if world.is_cluster_watched => Then::Rest,
        Flaw::NoCluster(_) | Flaw::OtherCluster(_) | Flaw::Missing(_) => soon(world),
    };
    Plan::of(steps, then)
}

/// The hub did not do what it was asked.
fn troubled(world: &World, trouble: &Trouble) -> Plan {
    let has_image = world
        .infra_env
        .status
        .as_ref()
        .is_some_and(|status| !status.iso_download_url.is_empty());
    match trouble {
        // The image that is there is still good, so nobody needs to be alarmed.
        Trouble::Internal(_) if has_image => Plan::of(Vec::new(), soon(world)),
        Trouble::Internal(text) => Plan {
            then: soon(world),
            ..flawed(world, &Flaw::Missing(text.clone()))
        },
        Trouble::Conflict(text) if status::reason_now(world) != Some(reason::FAILED) => {
            let steps = status::steps(world, status::in_preparation(world, text));
            Plan::of(steps, soon(world))
        }
        Trouble::Conflict(_) => Plan::of(Vec::new(), soon(world)),
        Trouble::Input(text) => flawed(world, &Flaw::Input(text.clone())),
    }
}

/// Hosts, then the InfraEnv, leave the hub; then the object may go. It does not wait for Agents: they go with it. It does
/// wait for machines whose disks are being written, and then for all of them: half a pool helps nobody.
fn leave(world: &World) -> Plan {
    if !keys::has_finalizer(&*world.infra_env, finalizer::INFRA_ENV) {
        return Plan::default();
    }
    let let_go = Step::Patch(json!({ "metadata": {
        "finalizers": finalizers(&*world.infra_env, None, Some(finalizer::INFRA_ENV)),
    }}));
    // What the hub has belongs to the other.
    if world.rival.is_some() {
        return Plan::of(vec![let_go], Then::Rest);
    }
    if let Some(text) = being_written(world) {
        let steps = status::delayed(world, reason::HOSTS_ARE_INSTALLING, text);
        return Plan::of(steps, later(world));
    }
    // Hosts that run register again as soon as they were deleted: those are deleted, too.
    let more_hosts = matches!(world.trouble, Some(Trouble::Input(_))) && !world.hosts.is_empty();
    if let Some(trouble) = world.trouble.as_ref().filter(|_| !more_hosts) {
        let steps = status::delayed(world, reason::CLEANUP_FAILED, trouble.text().to_owned());
        return Plan::of(steps, later(world));
    }
    if world.row.is_none() {
        return Plan::of(vec![let_go], Then::Rest);
    }
    let hosts = world.hosts.iter().map(|host| Step::DeleteHost(host.id));
    Plan::of(hosts.chain([Step::DeleteInfraEnv]).collect(), Then::Look)
}

/// Which hosts keep the InfraEnv, and what to do about it.
fn being_written(world: &World) -> Option<String> {
    let named = |host: &Member| match host.name.as_str() {
        "" => host.id.to_string(),
        name => format!("{name} ({})", host.id),
    };
    let busy = world.hosts.iter().filter(|host| host.is_being_written());
    let mut busy: Vec<String> = busy.map(named).collect();
    busy.sort();
    (!busy.is_empty()).then(|| {
        format!(
            "{} being installed; it goes when that is over. Delete the ClusterDeployment to cancel the installation.",
            match busy.as_slice() {
                [one] => format!("{one} is"),
                many => format!("{} are", many.join(", ")),
            }
        )
    })
}
