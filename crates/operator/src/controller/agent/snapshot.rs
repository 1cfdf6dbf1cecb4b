//! What a decision about an Agent depends on: a snapshot of everything it may use.

use super::plan::ask::{Purpose, Question};
use super::plan::keepsake::Keepsake;
use super::spoke::Spoke;
use crate::controller::agent_machine;
use crate::controller::agent_machine::index::MACHINES_BY_AGENT;
use crate::crd::keys::{self, annotation, data};
use crate::crd::reference::ClusterRef;
use crate::crd::{
    Agent, AgentClusterInstall, AgentMachine, BareMetalHost, ClusterDeployment, InfraEnv, capi,
};
use crate::error::{Error, Refusal};
use crate::key::Key;
use crate::runtime::Context;
use crate::runtime::joining::NodeWatch;
use crate::runtime::secret::Found;
use crate::runtime::spoke::NoSpoke;
use jiff::Timestamp;
use kube::ResourceExt;
use muster_contract::ClientError;
use muster_contract::v1::host::HostDetail;
use muster_contract::v1::trust::TrustView;
use muster_vocabulary::{ClusterStatus, Word};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct Snapshot {
    pub key: Key,
    /// Absent before the host has one.
    pub agent: Option<Arc<Agent>>,
    /// That of the row; without a row, the one the Agent's label names.
    pub infra_env: Option<Arc<InfraEnv>>,
    /// As the hub has the host: of several InfraEnvs of the namespace, the one it registered with last.
    pub row: Option<HostDetail>,
    /// The others.
    pub stale: Vec<HostDetail>,
    /// The ClusterDeployment of the cluster that the host is in.
    pub tenant: Option<Key>,
    /// The machine that still counts on the host; read only when the Agent is made, or made anew.
    pub claim: Option<Claim>,
    /// Those that name the Agent; read only when it is to be deleted.
    pub machines: Vec<Arc<AgentMachine>>,
    /// What the Agent wants to be bound to.
    pub target: Target,
    /// The ClusterDeployment and AgentClusterInstall of the target.
    pub deployment: Option<Arc<ClusterDeployment>>,
    pub install: Option<Arc<AgentClusterInstall>>,
    pub token: Option<Found>,
    pub token_is_known: bool,
    pub headers_are_known: bool,
    pub fencing_is_known: bool,
    pub fencing: Option<Found>,
    /// The BareMetalHost that the Agent names is there.
    pub has_metal: bool,
    /// A BareMetalHost of the Agent has put objects into its cluster; read only when the Agent is to be
    /// deleted or its node comes up.
    pub metal_joined: bool,
    /// The cluster the host becomes or was a node of; read only when somebody asks.
    pub spoke: Option<Result<Spoke, NoSpoke>>,
    /// How the operator watches its node there, while it comes up.
    pub node_watch: NodeWatch,
    /// With what hosts are fetched back from the inside; absent: not at all.
    pub reclaim_image: Option<String>,
    /// How the agent that does it knows the hub; read only then.
    pub trust: TrustView,
    /// The hub cannot be asked.
    pub hub_error: Option<String>,
    /// What became of the last step.
    pub failure: Option<Failure>,
    pub retry: Duration,
    pub now: Timestamp,
}

/// A step that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    Hub(Refusal),
    Spoke(String),
}

/// A machine of Cluster API that names the Agent as its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub machine: Key,
    /// The ClusterDeployment of its cluster.
    pub cluster: ClusterRef,
    /// What it has kept of an Agent that was deleted.
    pub keepsake: Option<Keepsake>,
}

/// The cluster that `clusterDeploymentName` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// None is named.
    NotWanted,
    /// There is no such ClusterDeployment.
    Absent,
    /// The hub does not have it yet.
    NotInHub,
    Found {
        id: Uuid,
        status: Word<ClusterStatus>,
        architecture: String,
    },
}

/// What is remembered in `SentValues`.
pub const TOKEN: &str = "ignition-token";
pub const HEADERS: &str = "ignition-headers";
pub const FENCING: &str = "fencing";

impl Snapshot {
    /// `None` when there is neither an object nor a host to make one for.
    pub async fn read(ctx: &Context, key: &Key, failure: Option<Failure>) -> Result<Option<Self>, Error> {
        let agent = ctx.cache::<Agent>().get(key);
        let mut snapshot = Self {
            key: key.clone(),
            agent,
            infra_env: None,
            row: None,
            stale: Vec::new(),
            tenant: None,
            claim: None,
            machines: Vec::new(),
            target: Target::NotWanted,
            deployment: None,
            install: None,
            token: None,
            token_is_known: false,
            headers_are_known: false,
            fencing_is_known: false,
            fencing: None,
            has_metal: false,
            metal_joined: false,
            spoke: None,
            node_watch: NodeWatch::None,
            reclaim_image: ctx.reclaim_image.clone(),
            trust: TrustView::default(),
            hub_error: None,
            failure,
            retry: ctx.retry,
            now: ctx.clock.now(),
        };
        if let Err(error) = snapshot.read_rows(ctx).await {
            snapshot.hub_error = Some(error.to_string());
        }
        if snapshot.agent.is_none() && snapshot.row.is_none() && snapshot.hub_error.is_none() {
            ctx.joining.leave(key);
            return Ok(None);
        }
        snapshot.read_infra_env(ctx);
        snapshot.read_claim(ctx).await?;
        snapshot.read_target(ctx).await?;
        snapshot.read_secrets(ctx).await?;
        snapshot.read_metal(ctx).await?;
        snapshot.read_spoke(ctx).await;
        Ok(Some(snapshot))
    }

    async fn read_metal(&mut self, ctx: &Context) -> Result<(), Error> {
        let agent = self.agent.as_ref();
        let name = agent.and_then(|agent| agent.labels().get(keys::label::BARE_METAL_HOST));
        if let Some(name) = name {
            let key = Key::new(&self.key.namespace, name);
            self.has_metal = ctx.cache::<BareMetalHost>().find(&key).await?.is_some();
        }
        self.metal_joined = super::spoke::metal_joined(ctx, self).await?;
        Ok(())
    }

    async fn read_spoke(&mut self, ctx: &Context) {
        if self.hub_error.is_some() {
            return;
        }
        let question = super::plan::ask::question(self);
        self.watch_node(ctx, question.as_ref()).await;
        let Some(question) = question else { return };
        if question.purpose == Purpose::Reclaim {
            match ctx.hub.trust().await {
                Ok(trust) => self.trust = trust,
                // An older hub.
                Err(ClientError::NotFound(_)) => {}
                Err(error) => {
                    self.hub_error = Some(error.to_string());
                    return;
                }
            }
        }
        self.spoke = Some(super::spoke::read(ctx, &question).await);
    }

    /// Before anything is read, so that no change after that is missed.
    async fn watch_node(&mut self, ctx: &Context, question: Option<&Question>) {
        let Some(joins) = question.filter(|question| question.purpose == Purpose::Follow) else {
            return ctx.joining.leave(&self.key);
        };
        match ctx.watch_node(&joins.cluster, &self.key, &joins.node).await {
            Ok(node_watch) => self.node_watch = node_watch,
            // The reconcile itself reports it.
            Err(_) => ctx.joining.leave(&self.key),
        }
    }

    /// Rows of InfraEnvs that are objects of this namespace; what others do with the same machine is theirs.
    async fn read_rows(&mut self, ctx: &Context) -> Result<(), ClientError> {
        let Some(id) = self.host_id() else { return Ok(()) };
        let mut rows = ctx.hosts.rows(&ctx.hub, id).await?.to_vec();
        rows.retain(|row| infra_env_of(ctx, row.host.infra_env_id, &self.key.namespace).is_some());
        rows.sort_by_key(|row| row.host.registered_at);
        self.row = rows.pop();
        self.stale = rows;
        let cluster = self.row.as_ref().and_then(|row| row.host.cluster_id);
        self.tenant = cluster
            .and_then(|id| ctx.deployment_of(id))
            .map(|deployment| Key::of(&*deployment));
        Ok(())
    }

    fn read_infra_env(&mut self, ctx: &Context) {
        let of_row = self.row.as_ref().map(|row| row.host.infra_env_id);
        let of_row = of_row.and_then(|id| infra_env_of(ctx, id, &self.key.namespace));
        let named = self
            .agent
            .as_ref()
            .and_then(|agent| agent.labels().get(keys::label::INFRA_ENV).cloned());
        let named = named.map(|name| Key::new(&self.key.namespace, name));
        self.infra_env = of_row.or_else(|| ctx.cache::<InfraEnv>().get(&named?));
    }

    /// An Agent that was deleted and comes back is still that of its machine, whose provider writes its settings only
    /// once; and so is one whose host booted another image of the namespace.
    async fn read_claim(&mut self, ctx: &Context) -> Result<(), Error> {
        let machines = &ctx.cache::<AgentMachine>();
        if let Some(agent) = &self.agent
            && agent.metadata.deletion_timestamp.is_some()
        {
            self.machines = machines.by(MACHINES_BY_AGENT, &self.key.to_string());
        }
        if self.agent.is_some() && !super::plan::is_rehomed(self) {
            return Ok(());
        }
        let by_id = machines.by(MACHINES_BY_AGENT, &self.key.name);
        let whole = machines.by(MACHINES_BY_AGENT, &self.key.to_string());
        // What a machine says in full counts more.
        for machine in by_id.into_iter().chain(whole) {
            let lineage = ctx.lineage(&machine).await?;
            let leaves = |owner: &Arc<capi::Machine>| owner.metadata.deletion_timestamp.is_some();
            let stays = machine.metadata.deletion_timestamp.is_none()
                && !lineage.machine.as_ref().is_some_and(leaves);
            let Some(cluster) = lineage.deployment().filter(|_| stays) else {
                continue;
            };
            if agent_machine::snapshot::may_have(ctx, &machine, &lineage, &self.key).await? {
                self.claim = Some(Claim {
                    machine: Key::of(&*machine),
                    cluster: cluster.clone(),
                    keepsake: Keepsake::of(&machine, &self.key),
                });
            }
        }
        Ok(())
    }

    async fn read_target(&mut self, ctx: &Context) -> Result<(), Error> {
        let agent = self.agent.clone();
        let Some(reference) = agent
            .as_ref()
            .and_then(|agent| agent.spec.cluster_deployment_name.as_ref())
        else {
            return Ok(());
        };
        self.deployment = ctx.cache::<ClusterDeployment>().find(&reference.into()).await?;
        let Some(deployment) = &self.deployment else {
            self.target = Target::Absent;
            return Ok(());
        };
        if let Some(name) = deployment.install_name() {
            let key = Key::new(&reference.namespace, name);
            self.install = ctx.cache::<AgentClusterInstall>().find(&key).await?;
        }
        let id = keys::hub_id(&**deployment, annotation::CLUSTER_ID);
        // A copy of another one has no cluster of its own.
        let Some(id) = id.filter(|_| ctx.rival_deployment(deployment).is_none()) else {
            self.target = Target::NotInHub;
            return Ok(());
        };
        match ctx.clusters.facts(&ctx.hub, id).await {
            Ok(cluster) => {
                self.target = Target::Found {
                    id,
                    status: cluster.status,
                    architecture: cluster.architecture,
                };
            }
            Err(ClientError::NotFound(_)) => self.target = Target::NotInHub,
            Err(error) => self.hub_error = Some(error.to_string()),
        }
        Ok(())
    }

    async fn read_secrets(&mut self, ctx: &Context) -> Result<(), Error> {
        let (Some(agent), Some(id)) = (&self.agent, self.host_id()) else {
            return Ok(());
        };
        if agent.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        if let Some(reference) = &agent.spec.ignition_endpoint_token_reference {
            self.token = ctx.secret(&reference.into()).await?;
            let value = self
                .token
                .as_ref()
                .and_then(|found| found.value(data::IGNITION_TOKEN));
            self.token_is_known = value.is_some_and(|value| ctx.sent.knows(id, TOKEN, value));
        }
        let headers = super::plan::settings::headers_text(&agent.spec);
        self.headers_are_known = ctx.sent.knows(id, HEADERS, &headers);
        if !agent.spec.fencing_credentials_secret_ref.is_empty() {
            let key = Key::new(&self.key.namespace, &agent.spec.fencing_credentials_secret_ref);
            self.fencing = ctx.secret(&key).await?;
            let text = self.fencing.as_ref().map(super::plan::settings::fencing_text);
            self.fencing_is_known = text.is_some_and(|text| ctx.sent.knows(id, FENCING, &text));
        }
        Ok(())
    }

    /// Agents are named after hosts; one that is not cannot have any.
    pub fn host_id(&self) -> Option<Uuid> {
        self.key.name.parse().ok()
    }

    /// The InfraEnv binds its hosts as they register, for good.
    pub fn is_early_bound(&self) -> bool {
        self.infra_env
            .as_ref()
            .is_some_and(|infra_env| infra_env.spec.cluster_ref.is_some())
    }
}

fn infra_env_of(ctx: &Context, id: Uuid, namespace: &str) -> Option<Arc<InfraEnv>> {
    ctx.infra_env_of(id)
        .filter(|infra_env| infra_env.namespace().as_deref() == Some(namespace))
}
