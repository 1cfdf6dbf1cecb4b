//! From a machine to its cluster: the objects of Cluster API that stand between an AgentMachine and its ClusterDeployment.

use super::Context;
use super::cache::{Choose, parse};
use super::object::RawObject;
use super::registry::Cached;
use crate::crd::capi::{self, ControlPlane, ForeignRef};
use crate::crd::keys::label;
use crate::crd::reference::ClusterRef;
use crate::crd::{AgentCluster, AgentMachine};
use crate::error::Error;
use crate::key::Key;
use kube::api::{Api, ApiResource, GroupVersionKind};
use kube::{Resource, ResourceExt};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

impl Cached for capi::Machine {
    fn resource() -> ApiResource {
        capi::machines()
    }

    fn chooses_version() -> Option<Choose> {
        Some(capi::newest)
    }
}

impl Cached for capi::Cluster {
    fn resource() -> ApiResource {
        capi::clusters()
    }

    fn chooses_version() -> Option<Choose> {
        Some(capi::newest)
    }
}

/// Those of HyperShift.
impl Cached for ControlPlane {
    fn resource() -> ApiResource {
        capi::hosted_control_planes()
    }
}

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
        self.agent_cluster.as_ref()?.deployment()
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
            lineage.machine = self.cache::<capi::Machine>().find(&find(&owner.name)).await?;
        }
        let machine = lineage.machine.as_deref();
        let named = machine.and_then(|machine| machine.labels().get(label::CAPI_CLUSTER).cloned());
        let named = named.or_else(|| machine?.spec.cluster_name.clone());
        let Some(name) = named.or_else(|| of.labels().get(label::CAPI_CLUSTER).cloned()) else {
            return Ok(lineage);
        };
        lineage.cluster = self.cache::<capi::Cluster>().find(&find(&name)).await?;
        let infrastructure = lineage
            .cluster
            .as_ref()
            .and_then(|cluster| cluster.spec.infrastructure_ref.as_ref());
        if let Some(reference) = infrastructure.filter(|reference| is_agent_cluster(reference)) {
            lineage.agent_cluster = self.cache::<AgentCluster>().find(&find(&reference.name)).await?;
        }
        Ok(lineage)
    }

    /// What runs the control plane of a cluster in this namespace. Those of HyperShift are watched; others are asked for,
    /// and a refusal is believed for a while.
    pub async fn control_plane(&self, namespace: &str, reference: &ForeignRef) -> Result<Plane, Error> {
        if reference.is_hosted() {
            let key = Key::new(namespace, &reference.name);
            let found = self.cache::<capi::ControlPlane>().find(&key).await?;
            return Ok(found.map_or(Plane::Absent, Plane::Found));
        }
        let question = (Key::new(namespace, &reference.name), reference.clone());
        if let Some(refusal) = self.planes.refused(&question) {
            return Ok(refusal);
        }
        let answer = self.ask_for_control_plane(namespace, reference).await?;
        self.planes.remember(question, &answer);
        Ok(answer)
    }

    async fn ask_for_control_plane(&self, namespace: &str, reference: &ForeignRef) -> Result<Plane, Error> {
        // Newer references do not name the version.
        for version in ["v1beta1", "v1beta2"] {
            let kind = GroupVersionKind::gvk(reference.group(), version, &reference.kind);
            let resource = ApiResource::from_gvk(&kind);
            let api: Api<RawObject> = Api::namespaced_with(self.kube.clone(), namespace, &resource);
            match api.get(&reference.name).await {
                Ok(object) => {
                    let plane = parse(&object).map(Arc::new);
                    return Ok(plane.map_or(Plane::Absent, Plane::Found));
                }
                // Rights are the same for all versions.
                Err(kube::Error::Api(status)) if status.code == 403 => {
                    let what = format!("{}.{}", resource.plural, resource.group);
                    return Ok(Plane::NotAllowed(what));
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Plane::Absent)
    }
}

/// A control plane, or why there is none.
#[derive(Debug, Clone)]
pub enum Plane {
    Found(Arc<ControlPlane>),
    Absent,
    /// Nobody gave the operator the right to read these resources.
    NotAllowed(String),
}

impl Plane {
    /// How long it is believed that a control plane is not there or may not be read: each machine that waits for an Agent
    /// would ask again whenever any Agent changes. Objects come sooner than rights.
    pub fn refusal_holds(&self) -> Duration {
        match self {
            Self::Found(_) => Duration::ZERO,
            Self::Absent => Duration::from_secs(15),
            Self::NotAllowed(_) => Duration::from_secs(60),
        }
    }
}

/// Which control plane was asked for, where.
type Question = (Key, ForeignRef);

/// Control planes that could not be read lately.
#[derive(Debug, Default)]
pub struct Planes {
    refusals: Mutex<HashMap<Question, (Instant, Plane)>>,
}

impl Planes {
    fn refused(&self, question: &Question) -> Option<Plane> {
        let refusals = self.refusals();
        let known = refusals.get(question).filter(|known| holds(known));
        known.map(|(_, refusal)| refusal.clone())
    }

    fn remember(&self, question: Question, answer: &Plane) {
        let mut refusals = self.refusals();
        refusals.retain(|_, known| holds(known));
        if !answer.refusal_holds().is_zero() {
            refusals.insert(question, (Instant::now(), answer.clone()));
        }
    }

    fn refusals(&self) -> MutexGuard<'_, HashMap<Question, (Instant, Plane)>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn holds((at, refusal): &(Instant, Plane)) -> bool {
    at.elapsed() < refusal.refusal_holds()
}

fn is_agent_cluster(reference: &ForeignRef) -> bool {
    reference.group() == AgentCluster::group(&()) && reference.kind == AgentCluster::kind(&())
}
