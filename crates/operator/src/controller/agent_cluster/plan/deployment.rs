//! The ClusterDeployment that stands for a cluster of Cluster API: as it is made, and whose it is.

use super::Step;
use crate::controller::agent_cluster::snapshot::Snapshot;
use crate::crd::agent_cluster_install::ClusterMetadata;
use crate::crd::capi::{self, ControlPlane};
use crate::crd::cluster_deployment::{AgentBareMetal, ClusterDeploymentSpec, ClusterInstallRef, Platform};
use crate::crd::keys::label;
use crate::crd::reference::LocalRef;
use crate::crd::{AgentCluster, AgentClusterInstall, ClusterDeployment};
use crate::runtime::lineage::Plane;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};

/// Nothing is to be installed: the cluster has a control plane already, and Agents are added to it. An error says what is
/// waited for.
pub fn new(snapshot: &Snapshot) -> Result<ClusterDeployment, String> {
    let owner = capi::owner(&*snapshot.cluster, capi::CLUSTER).ok_or("No Cluster owns this object yet.")?;
    let cluster = snapshot
        .owner
        .as_ref()
        .ok_or_else(|| format!("Cluster {} does not exist.", owner.name))?;
    let reference = cluster
        .spec
        .control_plane_ref
        .as_ref()
        .ok_or_else(|| format!("Cluster {} names no control plane yet.", owner.name))?;
    let whole = format!("{} {}", reference.kind, reference.name);
    let plane = match &snapshot.control_plane {
        Plane::Found(plane) => plane,
        Plane::Absent => {
            return Err(format!(
                "{whole} does not exist, or the operator cannot parse it."
            ));
        }
        Plane::NotAllowed(resource) => {
            return Err(format!(
                "The operator may not read {whole}. Grant its role the verb get on {resource}, or create the \
                 ClusterDeployment yourself, with the label {} and the name of this object.",
                label::AGENT_CLUSTER
            ));
        }
    };
    let given = |value: &str, what: &str| match value {
        "" => Err(format!("{whole} has no {what} yet.")),
        value => Ok(value.to_owned()),
    };
    let status = plane.status.clone().unwrap_or_default();
    let kubeconfig = given(&status.kube_config.name, "status.kubeConfig")?;
    let domain = given(&plane.spec.dns.base_domain, "spec.dns.baseDomain")?;
    let pull_secret = given(&plane.spec.pull_secret.name, "spec.pullSecret")?;
    let password = Some(status.kubeadmin_password.name).filter(|name| !name.is_empty());
    let metadata = ClusterMetadata {
        cluster_id: owner.uid.clone(),
        infra_id: owner.uid.clone(),
        admin_kubeconfig_secret_ref: LocalRef { name: kubeconfig },
        admin_password_secret_ref: password.map(|name| LocalRef { name }),
        ..ClusterMetadata::default()
    };
    Ok(ClusterDeployment {
        metadata: ObjectMeta {
            name: Some(snapshot.key.name.clone()),
            namespace: Some(snapshot.key.namespace.clone()),
            labels: Some([(label::AGENT_CLUSTER.to_owned(), snapshot.key.name.clone())].into()),
            owner_references: Some(vec![owner_reference(&snapshot.cluster)]),
            ..ObjectMeta::default()
        },
        spec: spec(snapshot, plane, domain, pull_secret, metadata),
        status: None,
    })
}

fn spec(
    snapshot: &Snapshot,
    plane: &ControlPlane,
    base_domain: String,
    pull_secret: String,
    metadata: ClusterMetadata,
) -> ClusterDeploymentSpec {
    ClusterDeploymentSpec {
        cluster_name: plane.name_any(),
        base_domain,
        platform: Some(Platform {
            agent_bare_metal: Some(AgentBareMetal::default()),
        }),
        pull_secret_ref: Some(LocalRef { name: pull_secret }),
        cluster_install_ref: Some(ClusterInstallRef {
            group: AgentClusterInstall::group(&()).into_owned(),
            version: AgentClusterInstall::version(&()).into_owned(),
            kind: AgentClusterInstall::kind(&()).into_owned(),
            name: snapshot.key.name.clone(),
        }),
        installed: true,
        cluster_metadata: Some(metadata),
        preserve_on_delete: false,
    }
}

fn owner_reference(cluster: &AgentCluster) -> OwnerReference {
    OwnerReference {
        api_version: AgentCluster::api_version(&()).into_owned(),
        kind: AgentCluster::kind(&()).into_owned(),
        name: cluster.name_any(),
        uid: cluster.uid().unwrap_or_default(),
        controller: None,
        block_owner_deletion: None,
    }
}

fn is_mine(snapshot: &Snapshot, owner: &OwnerReference) -> bool {
    owner.kind == AgentCluster::kind(&()) && owner.name == snapshot.key.name
}

/// Label and owner, where they are not as they should be.
pub fn adoption(snapshot: &Snapshot, deployment: &ClusterDeployment) -> Option<Value> {
    let mut metadata = Map::new();
    if deployment.labels().get(label::AGENT_CLUSTER) != Some(&snapshot.key.name) {
        metadata.insert(
            "labels".into(),
            json!({ label::AGENT_CLUSTER: snapshot.key.name }),
        );
    }
    let owner = owner_reference(&snapshot.cluster);
    let owners = deployment.owner_references();
    if !owners.iter().any(|known| known.uid == owner.uid) {
        // One of the same name that was there before is another object.
        let others = owners.iter().filter(|known| !is_mine(snapshot, known)).cloned();
        let all: Vec<_> = others.chain([owner]).collect();
        metadata.insert("ownerReferences".into(), json!(all));
    }
    (!metadata.is_empty()).then(|| json!({ "metadata": metadata }))
}

/// The ClusterDeployment outlives its AgentCluster.
pub fn orphan(snapshot: &Snapshot) -> Vec<Step> {
    let owners = snapshot.deployment.as_deref().map(ResourceExt::owner_references);
    let Some(owners) = owners.filter(|owners| owners.iter().any(|owner| is_mine(snapshot, owner))) else {
        return Vec::new();
    };
    let others: Vec<_> = owners.iter().filter(|owner| !is_mine(snapshot, owner)).collect();
    vec![Step::PatchDeployment(
        json!({ "metadata": { "ownerReferences": others } }),
    )]
}
