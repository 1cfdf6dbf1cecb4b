//! Before the hub gets a cluster, its objects carry its id, and finalizers that remember to delete it there.

use super::{Snapshot, Step};
use crate::crd::keys::{annotation, finalizer, has_finalizer};
use crate::crd::{AgentClusterInstall, ClusterDeployment};
use crate::runtime::patch::finalizers;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

pub fn step(
    snapshot: &Snapshot,
    deployment: &ClusterDeployment,
    install: &AgentClusterInstall,
) -> Option<Step> {
    let id = snapshot.id?.to_string();
    let noted = |object: &dyn Fn() -> Option<String>| object().is_some_and(|noted| noted == id);
    let of_deployment = || deployment.annotations().get(annotation::CLUSTER_ID).cloned();
    if !noted(&of_deployment) || !has_finalizer(deployment, finalizer::CLUSTER_DEPLOYMENT) {
        return Some(Step::PatchDeployment(json!({ "metadata": {
            "annotations": { annotation::CLUSTER_ID: id },
            "finalizers": finalizers(deployment, Some(finalizer::CLUSTER_DEPLOYMENT), None),
        }})));
    }
    let of_install = || install.annotations().get(annotation::CLUSTER_ID).cloned();
    let owned = install
        .owner_references()
        .iter()
        .any(|owner| Some(&owner.uid) == deployment.metadata.uid.as_ref());
    if noted(&of_install) && owned && has_finalizer(install, finalizer::AGENT_CLUSTER_INSTALL) {
        return None;
    }
    Some(Step::PatchInstall(json!({ "metadata": {
        "annotations": { annotation::CLUSTER_ID: id },
        "finalizers": finalizers(install, Some(finalizer::AGENT_CLUSTER_INSTALL), None),
        "ownerReferences": owners(deployment, install),
    }})))
}

/// Theirs, without one of the same name that is gone, and ours.
fn owners(deployment: &ClusterDeployment, install: &AgentClusterInstall) -> Vec<Value> {
    let name = deployment.name_any();
    let others = install
        .owner_references()
        .iter()
        .filter(|owner| owner.kind != "ClusterDeployment" || owner.name != name);
    let others = others.map(|owner| json!(owner));
    others.chain([owner(deployment)]).collect()
}

/// A reference to the ClusterDeployment: what belongs to it goes with it.
pub fn owner(deployment: &ClusterDeployment) -> Value {
    json!({
        "apiVersion": ClusterDeployment::api_version(&()),
        "kind": ClusterDeployment::kind(&()),
        "name": deployment.name_any(),
        "uid": deployment.metadata.uid,
    })
}
