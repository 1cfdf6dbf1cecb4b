//! What is to be done about an AgentCluster. Pure: the snapshot in, steps out.

mod deployment;
mod endpoint;
#[cfg(test)]
mod tests;

use super::snapshot::Snapshot;
use crate::crd::agent_cluster::{AgentClusterStatus, condition, reason};
use crate::crd::condition::{Finding, set_standard};
use crate::crd::keys::{self, finalizer, label};
use crate::crd::reference::ClusterRef;
use crate::crd::{AgentClusterInstall, ClusterDeployment, capi};
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::lineage::Plane;
use crate::runtime::merge;
use crate::runtime::patch::finalizers;
use crate::runtime::reconciler::{self, Then};
use kube::ResourceExt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

pub type Plan = reconciler::Plan<Step>;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Metadata of the object.
    Patch(Value),
    Status(Value),
    Tell(News),
    CreateDeployment(Box<ClusterDeployment>),
    /// Its label and its owners.
    PatchDeployment(Value),
    CreateInstall(Box<AgentClusterInstall>),
    LabelSecret(Key, BTreeMap<String, String>),
}

/// Control planes that are not HyperShift's are not watched: one that is there and not ready is asked so often.
const WAIT: Duration = Duration::from_secs(5);

pub fn plan(snapshot: &Snapshot) -> Plan {
    if snapshot.elsewhere {
        return Plan::of(Vec::new(), Then::After(snapshot.retry));
    }
    let held = snapshot
        .owner
        .as_ref()
        .is_some_and(|owner| owner.spec.paused == Some(true));
    let cluster = &*snapshot.cluster;
    let (leaving, paused) = (
        cluster.metadata.deletion_timestamp.is_some(),
        capi::is_paused(cluster),
    );
    if held && !(leaving && paused) {
        return Plan::default();
    }
    if leaving {
        return leave(snapshot, paused);
    }
    if let Some(patch) = metadata(snapshot, paused) {
        return Plan::of(vec![Step::Patch(patch)], Then::Again);
    }
    if paused {
        return Plan::of(deployment::orphan(snapshot), Then::Rest);
    }
    match &snapshot.deployment {
        Some(deployment) => keep(snapshot, deployment),
        None => make(snapshot),
    }
}

/// What it owns goes with it, unless somebody moves it elsewhere meanwhile.
fn leave(snapshot: &Snapshot, paused: bool) -> Plan {
    if !keys::has_finalizer(&*snapshot.cluster, finalizer::AGENT_CLUSTER) {
        return Plan::default();
    }
    let mut steps = if paused {
        deployment::orphan(snapshot)
    } else {
        Vec::new()
    };
    let left = finalizers(&*snapshot.cluster, None, Some(finalizer::AGENT_CLUSTER));
    steps.push(Step::Patch(json!({ "metadata": { "finalizers": left } })));
    Plan::of(steps, Then::Rest)
}

fn metadata(snapshot: &Snapshot, paused: bool) -> Option<Value> {
    let cluster = &*snapshot.cluster;
    let mut metadata = Map::new();
    if !keys::has_finalizer(cluster, finalizer::AGENT_CLUSTER) {
        let all = finalizers(cluster, Some(finalizer::AGENT_CLUSTER), None);
        metadata.insert("finalizers".into(), all);
    }
    if !paused && !cluster.labels().contains_key(label::BACKUP) {
        metadata.insert("labels".into(), json!({ label::BACKUP: "true" }));
    }
    (!metadata.is_empty()).then(|| json!({ "metadata": metadata }))
}

/// The name of the ClusterDeployment is another AgentCluster's.
const TAKEN: &str = "ClusterDeploymentTaken";

fn make(snapshot: &Snapshot) -> Plan {
    if let Some(gone) = snapshot.named() {
        // Made anew it would be another cluster to the hub; a restore may still bring it.
        let text = format!("ClusterDeployment {gone} does not exist.");
        return shown(snapshot, reason::NO_CLUSTER_DEPLOYMENT, text, Then::Rest);
    }
    if let Some(taken) = &snapshot.taken {
        let other = taken.labels().get(label::AGENT_CLUSTER);
        let text = format!(
            "ClusterDeployment {} belongs to AgentCluster {}: its label {} says so.",
            snapshot.key,
            other.map_or("", String::as_str),
            label::AGENT_CLUSTER
        );
        return shown(snapshot, TAKEN, text, Then::Rest);
    }
    match deployment::new(snapshot) {
        Ok(deployment) => {
            let mut steps = label_secrets(snapshot);
            steps.push(Step::CreateDeployment(Box::new(deployment)));
            Plan::of(steps, Then::Again)
        }
        Err(text) => shown(snapshot, reason::WAITING_FOR_CONTROL_PLANE, text, again(snapshot)),
    }
}

/// Everything else that is waited for is watched.
fn again(snapshot: &Snapshot) -> Then {
    let owner = snapshot.owner.as_ref();
    let reference = owner.and_then(|owner| owner.spec.control_plane_ref.as_ref());
    match (reference, &snapshot.control_plane) {
        (None, _) => Then::Rest,
        (Some(reference), _) if reference.is_hosted() => Then::Rest,
        (Some(_), Plane::Found(_)) => Then::After(WAIT),
        (Some(_), refusal) => Then::After(refusal.refusal_holds()),
    }
}

fn keep(snapshot: &Snapshot, deployment: &ClusterDeployment) -> Plan {
    if is_leaving(deployment) {
        let text = match snapshot.named() {
            Some(_) => format!("ClusterDeployment {} is being deleted.", Key::of(deployment)),
            None => format!(
                "ClusterDeployment {} is still being deleted. The operator creates a new one when it is gone.",
                Key::of(deployment)
            ),
        };
        return shown(snapshot, reason::NO_CLUSTER_DEPLOYMENT, text, Then::Rest);
    }
    if let Some(patch) = deployment::adoption(snapshot, deployment) {
        return Plan::of(vec![Step::PatchDeployment(patch)], Then::Again);
    }
    if snapshot.install.is_none() {
        return match endpoint::install(snapshot, deployment) {
            Ok(install) => {
                let mut steps = label_secrets(snapshot);
                steps.push(Step::CreateInstall(Box::new(install)));
                Plan::of(steps, Then::Again)
            }
            Err(text) => shown(snapshot, reason::BAD_IGNITION_ENDPOINT, text, Then::Rest),
        };
    }
    let endpoint = snapshot.cluster.spec.control_plane_endpoint.as_ref();
    match endpoint.filter(|endpoint| !endpoint.host.is_empty() && endpoint.port.is_some()) {
        Some(_) => shown(
            snapshot,
            reason::READY,
            "The cluster can take Agents.".into(),
            Then::Rest,
        ),
        None => {
            let text = "spec.controlPlaneEndpoint has no host and port yet.".into();
            shown(snapshot, reason::WAITING_FOR_ENDPOINT, text, Then::Rest)
        }
    }
}

fn is_leaving(deployment: &ClusterDeployment) -> bool {
    deployment.metadata.deletion_timestamp.is_some()
}

fn label_secrets(snapshot: &Snapshot) -> Vec<Step> {
    let lacking = snapshot.unlabelled.iter();
    lacking
        .map(|(key, labels)| Step::LabelSecret(key.clone(), labels.clone()))
        .collect()
}

/// The status with this finding, and its event.
fn shown(snapshot: &Snapshot, why: &'static str, text: String, then: Then) -> Plan {
    let before = snapshot.cluster.status.clone();
    let mut status = before.clone().unwrap_or_default();
    let ready = why == reason::READY;
    let was = status
        .conditions
        .iter()
        .find(|known| known.type_ == condition::READY);
    let news = was.is_none_or(|was| was.reason != why).then(|| News {
        warning: matches!(
            why,
            reason::NO_CLUSTER_DEPLOYMENT | reason::BAD_IGNITION_ENDPOINT | TAKEN
        ),
        reason: why.into(),
        note: text.clone(),
    });
    // Ready is never taken back.
    status.ready |= ready;
    // One that goes is not this cluster's: whatever is named here is waited for when it is gone.
    if let Some(deployment) = snapshot.deployment.as_ref().filter(|found| !is_leaving(found)) {
        let key = Key::of(&**deployment);
        status.cluster_deployment_reference = ClusterRef {
            name: key.name,
            namespace: key.namespace,
        };
    }
    let finding = Finding::new(condition::READY, ready, why, text);
    let generation = snapshot.cluster.metadata.generation;
    set_standard(&mut status.conditions, finding, generation, snapshot.now);
    let mut steps = Vec::new();
    if let Some(patch) = difference(before.as_ref(), &status) {
        steps.push(Step::Status(patch));
        steps.extend(news.map(Step::Tell));
    }
    Plan::of(steps, then)
}

/// Nothing written yet is not the same as nothing to say: some fields must be there from the first time on.
fn difference(before: Option<&AgentClusterStatus>, status: &AgentClusterStatus) -> Option<Value> {
    match before {
        Some(before) => merge::diff(before, status),
        None => merge::diff(&Value::Null, status),
    }
}
