//! Labels, annotations, owner and finalizer of an Agent, and the little of its spec that is not written by people.

use super::{doubt, inventory};
use crate::controller::agent::snapshot::Snapshot;
use crate::crd::keys::{self, annotation, finalizer, label};
use crate::crd::{Agent, InfraEnv};
use crate::runtime::merge;
use crate::runtime::patch::finalizers;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use muster_contract::v1::host::HostDetail;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// All annotations of an object together may have 256 KiB; larger inventories are left out.
const LARGEST_ANNOTATION: usize = 180 * 1024;

/// One patch for all of it; nothing when everything is as it should be.
pub fn patch(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Option<Value> {
    let mut metadata = Map::new();
    let mut spec = Map::new();
    if !keys::has_finalizer(agent, finalizer::AGENT) {
        metadata.insert(
            "finalizers".into(),
            finalizers(agent, Some(finalizer::AGENT), None),
        );
    }
    let mut annotations = restore_annotations(snapshot, agent, row);
    let mut gone = Vec::new();
    if !doubt::is_installed(&row.host.status) && !doubt::may_run(agent, row) {
        gone.push(annotation::INSTALLED_IN);
    }
    if let Some(infra_env) = snapshot.infra_env.as_deref() {
        if let Some(owners) = owners(agent, infra_env) {
            metadata.insert("ownerReferences".into(), owners);
        }
        if !agent.spec.approved && auto_approves(infra_env) {
            spec.insert("approved".into(), json!(true));
        }
        let inherited = inherit(infra_env, &agent.spec.node_labels, &noted(agent));
        if let Some(change) = differing(&agent.spec.node_labels, &inherited.node_labels) {
            spec.insert("nodeLabels".into(), change);
        }
        let notes = inherited_annotations(&inherited.values);
        if notes.is_empty() {
            gone.extend([annotation::INHERITED_NODE_LABELS, annotation::INHERITED_VALUES]);
        }
        annotations.extend(notes);
    }
    let wanted = labels(snapshot, agent, row);
    let labels = wanted
        .into_iter()
        .filter(|(key, value)| agent.labels().get(key) != Some(value));
    add(
        &mut metadata,
        "labels",
        labels.map(|(key, value)| (key, json!(value))).collect(),
    );
    let changed = annotations
        .into_iter()
        .filter(|(key, value)| agent.annotations().get(key) != Some(value));
    let changed = changed.map(|(key, value)| (key, json!(value)));
    let gone = gone
        .into_iter()
        .filter(|key| agent.annotations().contains_key(*key));
    let gone = gone.map(|key| (key.to_owned(), Value::Null));
    add(&mut metadata, "annotations", changed.chain(gone).collect());
    let mut patch = Map::new();
    add(&mut patch, "metadata", metadata);
    add(&mut patch, "spec", spec);
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// A new object with all of it.
pub fn whole(snapshot: &Snapshot, agent: Agent, row: &HostDetail) -> Agent {
    let Some(patch) = patch(snapshot, &agent, row) else {
        return agent;
    };
    let mut wire = serde_json::to_value(&agent).unwrap_or_default();
    merge::apply(&mut wire, &patch);
    // Without what it lacks it would get that in a second write.
    serde_json::from_value(wire).unwrap_or(agent)
}

fn add(to: &mut Map<String, Value>, name: &str, value: Map<String, Value>) {
    if !value.is_empty() {
        to.insert(name.into(), Value::Object(value));
    }
}

fn labels(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> BTreeMap<String, String> {
    // Without an inventory, as while the host is handed over, the labels of the last one stay.
    let mut labels = inventory::parse(row)
        .ok()
        .flatten()
        .map(|found| inventory::labels(&found))
        .unwrap_or_default();
    if let Some(infra_env) = &snapshot.infra_env {
        labels.insert(label::INFRA_ENV.into(), infra_env.name_any());
    }
    // Together with the reference: others find the Agents of a cluster by it.
    let namespace = agent
        .spec
        .cluster_deployment_name
        .as_ref()
        .map(|cluster| cluster.namespace.clone());
    labels.insert(
        label::CLUSTER_DEPLOYMENT_NAMESPACE.into(),
        namespace.unwrap_or_default(),
    );
    labels
}

/// What the hub knows, for a restore from the objects alone.
fn restore_annotations(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> BTreeMap<String, String> {
    let host = &row.host;
    let mut annotations = BTreeMap::new();
    if !doubt::may_run(agent, row) {
        annotations.extend([
            (annotation::AGENT_STATE.to_owned(), host.status.to_string()),
            (annotation::AGENT_ROLE.to_owned(), host.role.to_string()),
            (annotation::AGENT_STAGE.to_owned(), super::stage(row).to_string()),
        ]);
    }
    if let Some(tenant) = snapshot
        .tenant
        .as_ref()
        .filter(|_| doubt::is_installed(&host.status))
    {
        annotations.insert(annotation::INSTALLED_IN.to_owned(), tenant.to_string());
    }
    let small = |text: &str| {
        if text.len() > LARGEST_ANNOTATION {
            String::new()
        } else {
            text.to_owned()
        }
    };
    let inventory = small(&host.inventory);
    // While the host is handed over it has neither; what was known before is worth more than nothing.
    if !inventory.is_empty() {
        let version = annotation::INVENTORY_VERSION_VALUE.to_owned();
        annotations.insert(annotation::INVENTORY_VERSION.to_owned(), version);
        annotations.insert(annotation::AGENT_INVENTORY.to_owned(), inventory);
    }
    if !host.validations_info.is_empty() && host.validations_info.len() < LARGEST_ANNOTATION / 4 {
        annotations.insert(
            annotation::AGENT_VALIDATIONS.to_owned(),
            host.validations_info.clone(),
        );
    }
    annotations
}

pub fn auto_approves(infra_env: &InfraEnv) -> bool {
    infra_env
        .spec
        .agent_approval
        .as_ref()
        .is_some_and(|approval| approval.auto_approve)
}

pub fn owner(infra_env: &InfraEnv) -> OwnerReference {
    OwnerReference {
        api_version: InfraEnv::api_version(&()).into_owned(),
        kind: InfraEnv::kind(&()).into_owned(),
        name: infra_env.name_any(),
        uid: infra_env.uid().unwrap_or_default(),
        controller: None,
        block_owner_deletion: None,
    }
}

pub fn is_infra_env(owner: &OwnerReference) -> bool {
    owner.kind == InfraEnv::kind(&()) && owner.api_version.starts_with(&*InfraEnv::group(&()))
}

/// The owners with the InfraEnv among them; one of the same name that was there before is another object.
fn owners(agent: &Agent, infra_env: &InfraEnv) -> Option<Value> {
    let owner = owner(infra_env);
    let ours = |known: &OwnerReference| known.kind == owner.kind && known.name == owner.name;
    if agent
        .owner_references()
        .iter()
        .any(|known| ours(known) && known.uid == owner.uid)
    {
        return None;
    }
    let others = agent
        .owner_references()
        .iter()
        .filter(|known| !ours(known))
        .cloned();
    Some(json!(others.chain([owner.clone()]).collect::<Vec<_>>()))
}

/// Node labels together with those that come from the InfraEnv.
#[derive(Debug, PartialEq, Eq)]
pub struct Inherited {
    pub node_labels: BTreeMap<String, String>,
    /// Those that came from there.
    pub values: BTreeMap<String, String>,
}

/// Labels that came from the InfraEnv before. The value is not known of those that others have noted.
pub type Noted = BTreeMap<String, Option<String>>;

pub fn noted(agent: &Agent) -> Noted {
    let text = |name| agent.annotations().get(name).map_or("", String::as_str);
    let mut values: BTreeMap<String, String> =
        serde_json::from_str(text(annotation::INHERITED_VALUES)).unwrap_or_default();
    let keys = text(annotation::INHERITED_NODE_LABELS).split(',');
    keys.filter(|key| !key.is_empty())
        .map(|key| (key.to_owned(), values.remove(key)))
        .collect()
}

/// A value that somebody chose wins: for one that comes from the InfraEnv it is taken only as long as it is as it was noted.
pub fn inherit(infra_env: &InfraEnv, now: &BTreeMap<String, String>, noted: &Noted) -> Inherited {
    let list = infra_env
        .annotations()
        .get(annotation::PROPAGATE_NODE_LABELS)
        .cloned()
        .unwrap_or_default();
    let listed = list.split(',').map(str::trim).filter(|key| !key.is_empty());
    let offered: BTreeMap<&str, &String> = listed
        .filter_map(|key| Some((key, infra_env.labels().get(key)?)))
        .collect();
    let is_as_noted = |key: &str, own: &String| noted.get(key).and_then(Option::as_ref) == Some(own);
    let mut node_labels = now.clone();
    node_labels.retain(|key, own| {
        let was_inherited = is_as_noted(key, own) || noted.get(key) == Some(&None);
        !was_inherited || offered.contains_key(key.as_str())
    });
    let mut values = BTreeMap::new();
    for (key, value) in offered {
        let is_theirs = now
            .get(key)
            .is_some_and(|own| own != value && !is_as_noted(key, own));
        if !is_theirs {
            node_labels.insert(key.to_owned(), value.clone());
            values.insert(key.to_owned(), value.clone());
        }
    }
    Inherited { node_labels, values }
}

pub fn inherited_annotations(values: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    if values.is_empty() {
        return BTreeMap::new();
    }
    let keys: Vec<&str> = values.keys().map(String::as_str).collect();
    BTreeMap::from([
        (annotation::INHERITED_NODE_LABELS.to_owned(), keys.join(",")),
        (annotation::INHERITED_VALUES.to_owned(), json!(values).to_string()),
    ])
}

fn differing(now: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> Option<Value> {
    merge::diff(now, wanted)
}
