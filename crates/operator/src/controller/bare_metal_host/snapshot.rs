//! What a decision about a BareMetalHost depends on: a snapshot of everything it may use.

use super::plan::agent::cluster_named;
use super::plan::drain::{self, Drained};
use super::plan::{authority, boot, fencing, machine};
use super::spoke;
use crate::controller::agent::index::{AGENTS_BY_MAC, mac_of};
use crate::crd::keys::label;
use crate::crd::reference::ClusterRef;
use crate::crd::{
    Agent, AgentClusterInstall, BareMetalHost, ClusterDeployment, InfraEnv, PreprovisioningImage,
};
use crate::error::Error;
use crate::key::Key;
use crate::options::MetalBoot;
use crate::runtime::Context;
use crate::runtime::secret::Found;
use crate::runtime::spoke::NoSpoke;
use jiff::Timestamp;
use kube::ResourceExt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Snapshot {
    pub key: Key,
    pub host: Arc<BareMetalHost>,
    /// The newest of those with the interface that the machine boots from.
    pub agent: Option<Arc<Agent>>,
    /// The one its label names.
    pub infra_env: Option<Arc<InfraEnv>>,
    /// The hub's words for the host, one from each InfraEnv that knows it; asked for only before its machine is booted
    /// anew, and absent when the hub cannot be asked.
    pub states_in_hub: Option<Vec<String>>,
    /// What the machine boots before it is provisioned.
    pub image: Option<Arc<PreprovisioningImage>>,
    /// The ClusterDeployment that its annotation names, and the AgentClusterInstall of that.
    pub deployment: Option<Arc<ClusterDeployment>>,
    pub install: Option<Arc<AgentClusterInstall>>,
    /// The cluster that the Agent is bound to, or is to be.
    pub tenant: Option<Tenant>,
    /// Credentials of the power controller, and the copy of them for fencing; read only when the copy is wanted.
    pub credentials: Option<Found>,
    pub fencing: Option<Found>,
    /// The machine's node; read only while it is drained.
    pub node: Option<Result<Drained, NoSpoke>>,
    /// The authority behind the ignition of the cluster; read only while the host waits to be installed into it.
    pub authority: Option<Result<Option<authority::Found>, NoSpoke>>,
    /// What the cluster knows of its machines; read only until it knows this one.
    pub machines: Option<Result<machine::Known, NoSpoke>>,
    /// What kept the last step from being carried out in the cluster.
    pub failure: Option<String>,
    /// How machines boot of which nothing else is said.
    pub boot: MetalBoot,
    /// Machines that were let go are paused, too.
    pub pauses: bool,
    pub retry: Duration,
    pub now: Timestamp,
}

/// A cluster that hosts are lent to.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Of the ClusterDeployment.
    pub key: Key,
    pub deployment: Arc<ClusterDeployment>,
    pub install: Option<Arc<AgentClusterInstall>>,
}

impl Snapshot {
    pub async fn read(ctx: &Context, key: &Key, failure: Option<String>) -> Result<Option<Self>, Error> {
        let Some(host) = ctx.cache::<BareMetalHost>().get(key) else {
            return Ok(None);
        };
        let infra_env = host.labels().get(label::INFRA_ENV);
        let infra_env =
            infra_env.and_then(|name| ctx.cache::<InfraEnv>().get(&Key::new(&key.namespace, name)));
        let mut snapshot = Self {
            key: key.clone(),
            agent: agent_of(ctx, &host),
            host,
            infra_env,
            states_in_hub: None,
            image: ctx.cache::<PreprovisioningImage>().get(key),
            deployment: None,
            install: None,
            tenant: None,
            credentials: None,
            fencing: None,
            node: None,
            authority: None,
            machines: None,
            failure,
            boot: ctx.metal_boot,
            pauses: ctx.pause_provisioned,
            retry: ctx.retry,
            now: ctx.clock.now(),
        };
        snapshot.read_cluster(ctx).await?;
        snapshot.read_tenant(ctx).await?;
        snapshot.read_secrets(ctx).await?;
        snapshot.read_spoke(ctx).await;
        if let Some(agent) = boot::question(&snapshot) {
            snapshot.states_in_hub = states_of(ctx, agent).await;
        }
        Ok(Some(snapshot))
    }

    async fn read_tenant(&mut self, ctx: &Context) -> Result<(), Error> {
        let agent = self.agent.as_ref();
        let Some(reference) = agent.and_then(|agent| agent.spec.cluster_deployment_name.clone()) else {
            return Ok(());
        };
        if let Some((deployment, install)) = cluster(ctx, &reference).await? {
            self.tenant = Some(Tenant {
                key: Key::from(&reference),
                deployment,
                install,
            });
        }
        Ok(())
    }

    /// As far as a decision needs it.
    async fn read_spoke(&mut self, ctx: &Context) {
        if let Some(question) = drain::question(self) {
            self.node = Some(spoke::read(ctx, &question).await);
        }
        if let Some(cluster) = authority::question(self) {
            self.authority = Some(spoke::authority(ctx, &cluster).await);
        }
        if let Some(question) = machine::question(self) {
            self.machines = Some(spoke::machines(ctx, &question).await);
        }
    }

    async fn read_cluster(&mut self, ctx: &Context) -> Result<(), Error> {
        let Some(Ok(reference)) = cluster_named(&self.host) else {
            return Ok(());
        };
        if let Some((deployment, install)) = cluster(ctx, &reference).await? {
            self.deployment = Some(deployment);
            self.install = install;
        }
        Ok(())
    }

    async fn read_secrets(&mut self, ctx: &Context) -> Result<(), Error> {
        let Some(keys) = fencing::secrets(self) else {
            return Ok(());
        };
        self.credentials = ctx.secret(&keys.credentials).await?;
        self.fencing = ctx.secret(&keys.copy).await?;
        Ok(())
    }
}

type Cluster = (Arc<ClusterDeployment>, Option<Arc<AgentClusterInstall>>);

async fn cluster(ctx: &Context, reference: &ClusterRef) -> Result<Option<Cluster>, Error> {
    let key = Key::from(reference);
    let Some(deployment) = ctx.cache::<ClusterDeployment>().find(&key).await? else {
        return Ok(None);
    };
    let install = match deployment.install_name() {
        Some(name) => {
            let key = Key::new(&reference.namespace, name);
            ctx.cache::<AgentClusterInstall>().find(&key).await?
        }
        None => None,
    };
    Ok(Some((deployment, install)))
}

/// A machine that was taken out and put in again may have left an older Agent behind.
pub(crate) fn agent_of(ctx: &Context, host: &BareMetalHost) -> Option<Arc<Agent>> {
    let mac = mac_of(&host.namespace()?, &host.spec.boot_mac_address)?;
    let agents = ctx.cache::<Agent>().by(AGENTS_BY_MAC, &mac);
    let age = |agent: &Arc<Agent>| agent.creation_timestamp().map(|created| created.0);
    agents.into_iter().max_by_key(age)
}

/// The hub's words for the host of an Agent; `None` when it cannot be asked.
pub(crate) async fn states_of(ctx: &Context, agent: &Agent) -> Option<Vec<String>> {
    let id = agent.name_any().parse().ok()?;
    match ctx.hub.host_rows(id).await {
        Ok(rows) => {
            let words = rows.hosts.into_iter().map(|row| row.host.status.to_string());
            Some(words.collect())
        }
        Err(error) => {
            tracing::debug!(host = %id, %error, "the hub did not answer whether a machine may be rebooted");
            None
        }
    }
}
