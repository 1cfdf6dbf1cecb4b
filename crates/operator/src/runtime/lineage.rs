//! From a machine to its cluster: the objects of Cluster API that stand between an AgentMachine and its ClusterDeployment.

use super::Context;
use super::mirror::parse;
use crate::crd::capi::{self, ControlPlane, ForeignRef};
use crate::crd::keys::label;
use crate::crd::reference::ClusterRef;
use crate::crd::{AgentCluster, AgentMachine};
use crate::error::Error;
use crate::key::Key;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::{Resource, ResourceExt};
use std::sync::Arc;

/// As much of the chain as there is.
#[derive(Debug, Clone, Default)]
pub struct Lineage {
    pub machine: Option<Arc<capi::Machine>>,
    pub cluster: Option<Arc<capi::Cluster>>,
    pub agent_cluster: Option<Arc<AgentCluster>>,
}

impl Lineage {
    /// The ClusterDeployment that stands for the cluster, once there is one.
    pub fn deployment(&self) -> Option<&ClusterRef> {
        let status = self.agent_cluster.as_ref()?.status.as_ref()?;
        let reference = &status.cluster_deployment_reference;
        (!reference.name.is_empty()).then_some(reference)
    }

    /// Nobody may touch anything of the cluster.
    pub fn is_paused(&self) -> bool {
        let cluster = self.cluster.as_ref();
        cluster.is_some_and(|cluster| cluster.spec.paused == Some(true))
    }
}

impl Context {
    pub async fn lineage(&self, of: &AgentMachine) -> Result<Lineage, Error> {
        let namespace = Key::of(of).namespace;
        let find = |name: &str| Key::new(&namespace, name);
        let mut lineage = Lineage::default();
        if let Some(owner) = capi::owner(of, capi::MACHINE) {
            lineage.machine = self.mirrors.machines.find(&find(&owner.name)).await?;
        }
        let machine = lineage.machine.as_deref();
        let named = machine.and_then(|machine| machine.labels().get(label::CAPI_CLUSTER).cloned());
        let named = named.or_else(|| machine?.spec.cluster_name.clone());
        let Some(name) = named.or_else(|| of.labels().get(label::CAPI_CLUSTER).cloned()) else {
            return Ok(lineage);
        };
        lineage.cluster = self.mirrors.clusters.find(&find(&name)).await?;
        let infrastructure = lineage
            .cluster
            .as_ref()
            .and_then(|cluster| cluster.spec.infrastructure_ref.as_ref());
        if let Some(reference) = infrastructure.filter(|reference| is_agent_cluster(reference)) {
            lineage.agent_cluster = self.mirrors.agent_clusters.find(&find(&reference.name)).await?;
        }
        Ok(lineage)
    }

    /// What runs the control plane of a cluster in this namespace. `None` when it is not there or may not be seen.
    pub async fn control_plane(
        &self,
        namespace: &str,
        reference: &ForeignRef,
    ) -> Result<Option<Arc<ControlPlane>>, Error> {
        if reference.is_hosted() {
            let key = Key::new(namespace, &reference.name);
            return self.mirrors.control_planes.find(&key).await;
        }
        // Newer references do not tell the version.
        for version in ["v1beta1", "v1beta2"] {
            let kind = GroupVersionKind::gvk(reference.group(), version, &reference.kind);
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.kube.clone(), namespace, &ApiResource::from_gvk(&kind));
            match api.get(&reference.name).await {
                Ok(object) => return Ok(parse(object).map(Arc::new)),
                Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

fn is_agent_cluster(reference: &ForeignRef) -> bool {
    reference.group() == AgentCluster::group(&()) && reference.kind == AgentCluster::kind(&())
}
