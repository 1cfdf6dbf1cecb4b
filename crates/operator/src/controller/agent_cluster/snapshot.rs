//! What a decision about an AgentCluster depends on: a snapshot of everything it may use.

use crate::controller::cluster_deployment::index::DEPLOYMENTS_BY_AGENT_CLUSTER;
use crate::crd::capi;
use crate::crd::keys::label;
use crate::crd::{AgentCluster, AgentClusterInstall, ClusterDeployment};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::Context;
use crate::runtime::lineage::Plane;
use jiff::Timestamp;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Snapshot {
    pub key: Key,
    pub cluster: Arc<AgentCluster>,
    /// The Cluster that owns it.
    pub owner: Option<Arc<capi::Cluster>>,
    /// Absent as long as the owner names none; read only while there is no ClusterDeployment.
    pub control_plane: Plane,
    /// The one its status names; else the one that carries its name in a label; else the one of the same name.
    pub deployment: Option<Arc<ClusterDeployment>>,
    /// The one of the same name, when it is another AgentCluster's.
    pub taken: Option<Arc<ClusterDeployment>>,
    pub install: Option<Arc<AgentClusterInstall>>,
    /// Secrets that the new objects are going to name, with the labels they lack.
    pub unlabelled: Vec<(Key, BTreeMap<String, String>)>,
    /// Another provider manages the clusters of this namespace.
    pub elsewhere: bool,
    pub retry: std::time::Duration,
    pub now: Timestamp,
}

impl Snapshot {
    pub async fn read(ctx: &Context, key: &Key) -> Result<Option<Self>, Error> {
        let Some(cluster) = ctx.cache::<AgentCluster>().get(key) else {
            return Ok(None);
        };
        let mut snapshot = Self {
            key: key.clone(),
            owner: None,
            control_plane: Plane::Absent,
            deployment: None,
            taken: None,
            install: None,
            unlabelled: Vec::new(),
            elsewhere: ctx.is_provided_elsewhere(&key.namespace).await?,
            retry: ctx.retry,
            now: ctx.clock.now(),
            cluster,
        };
        if let Some(owner) = capi::owner(&*snapshot.cluster, capi::CLUSTER) {
            let owner = Key::new(&key.namespace, &owner.name);
            snapshot.owner = ctx.cache::<capi::Cluster>().find(&owner).await?;
        }
        snapshot.read_deployment(ctx).await?;
        if snapshot.deployment.is_none() {
            snapshot.read_control_plane(ctx).await?;
        }
        snapshot.read_secrets(ctx).await?;
        Ok(Some(snapshot))
    }

    async fn read_deployment(&mut self, ctx: &Context) -> Result<(), Error> {
        let all = &ctx.cache::<ClusterDeployment>();
        self.deployment = match self.named() {
            Some(key) => all.find(&key).await?,
            None => self.labelled(ctx),
        };
        if self.deployment.is_none() && self.named().is_none() {
            let same = all.find(&self.key).await?;
            // One that belongs to another AgentCluster is not taken for its name alone.
            let is_taken = |found: &Arc<ClusterDeployment>| found.labels().contains_key(label::AGENT_CLUSTER);
            (self.taken, self.deployment) = match same {
                Some(found) if is_taken(&found) => (Some(found), None),
                found => (None, found),
            };
        }
        if let Some(deployment) = &self.deployment {
            let key = install_key(deployment);
            self.install = ctx.cache::<AgentClusterInstall>().find(&key).await?;
        }
        Ok(())
    }

    /// The one that carries its name, rather one that stays.
    fn labelled(&self, ctx: &Context) -> Option<Arc<ClusterDeployment>> {
        let all = &ctx.cache::<ClusterDeployment>();
        let labelled = all.by(DEPLOYMENTS_BY_AGENT_CLUSTER, &self.key.name).into_iter();
        let here = labelled.filter(|found| Key::of(&**found).namespace == self.key.namespace);
        here.min_by_key(|found| found.metadata.deletion_timestamp.is_some())
    }

    async fn read_control_plane(&mut self, ctx: &Context) -> Result<(), Error> {
        let owner = self.owner.as_ref();
        let reference = owner.and_then(|owner| owner.spec.control_plane_ref.clone());
        if let Some(reference) = reference {
            self.control_plane = ctx.control_plane(&self.key.namespace, &reference).await?;
        }
        Ok(())
    }

    /// Only before the objects that name them are made.
    async fn read_secrets(&mut self, ctx: &Context) -> Result<(), Error> {
        let mut keys = Vec::new();
        if let (Plane::Found(plane), None) = (&self.control_plane, &self.deployment) {
            let status = plane.status.as_ref();
            let names = [
                Some(&plane.spec.pull_secret.name),
                status.map(|status| &status.kube_config.name),
                status.map(|status| &status.kubeadmin_password.name),
            ];
            let named = names.into_iter().flatten().filter(|name| !name.is_empty());
            keys.extend(named.map(|name| Key::new(&self.key.namespace, name)));
        }
        if self.install.is_none() {
            let endpoint = self.cluster.spec.ignition_endpoint.as_ref();
            let authority = endpoint.and_then(|endpoint| endpoint.ca_certificate_reference.as_ref());
            keys.extend(authority.map(Key::from));
        }
        for key in keys {
            if let Some(found) = ctx.secret(&key).await?
                && !found.missing_labels.is_empty()
            {
                self.unlabelled.push((key, found.missing_labels));
            }
        }
        Ok(())
    }

    /// The ClusterDeployment that the status names.
    pub fn named(&self) -> Option<Key> {
        self.cluster.deployment().map(Key::from)
    }
}

/// The AgentClusterInstall of a ClusterDeployment, whether it is there or not.
pub fn install_key(deployment: &ClusterDeployment) -> Key {
    let key = Key::of(deployment);
    match deployment.install_name() {
        Some(name) => Key::new(key.namespace, name),
        None => key,
    }
}
