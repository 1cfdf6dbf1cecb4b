//! What a decision about a cluster depends on: a snapshot of everything it may use.

mod answer;

use super::plan::stage::{Kind, Stage};
use super::plan::worker_pool::WorkerPool;
use super::plan::{manifest, worker_pool};
use crate::controller::agent::index::AGENTS_BY_CLUSTER;
use crate::controller::infra_env::secret_proxy;
use crate::crd::keys::{self, annotation, data};
use crate::crd::{Agent, AgentClusterInstall, ClusterDeployment, ClusterImageSet, InfraEnv};
use crate::error::{Error, Refusal};
use crate::key::Key;
use crate::runtime::Context;
use crate::runtime::secret::Found;
use answer::{found, login, made, manifests, or_refusal, text};
use jiff::Timestamp;
use kube::ResourceExt;
use muster_contract::v1::link::ClusterLinks;
use muster_contract::v1::release::ReleaseView;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::cluster_request::CredentialFile;
use muster_contract::v2::host::{ClusterHostsQuery, HostView};
use muster_contract::v2::manifest::ManifestFolder;
use muster_contract::{ClientError, Secret};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Of the ClusterDeployment, also when there is none.
    pub key: Key,
    pub deployment: Option<Arc<ClusterDeployment>>,
    /// The AgentClusterInstall that the ClusterDeployment names and that names it.
    pub install: Option<Arc<AgentClusterInstall>>,
    /// The ClusterDeployment is there, but does not name this AgentClusterInstall: then nothing of it is read.
    pub is_stray: bool,
    /// The hub's id of the cluster.
    pub id: Option<Uuid>,
    /// An older ClusterDeployment that claims the same id.
    pub rival: Option<Key>,
    pub pull_secret: Option<Found>,
    /// The hub has this pull secret already.
    pub pull_secret_is_known: bool,
    /// Also when it has no password, and is shown as it is.
    pub proxy_is_known: bool,
    pub image_set: Option<Arc<ClusterImageSet>>,
    /// What the hub says of the image set's release; asked only before there is a cluster.
    pub release: Option<Result<ReleaseView, Refusal>>,
    /// What `mirrorRegistryRef` names.
    pub mirrors: Option<Found>,
    /// What `ignitionEndpoint.caCertificateReference` names.
    pub ignition_ca: Option<Found>,
    /// Those of the named ConfigMaps with manifests that are there.
    pub config_maps: BTreeMap<String, Found>,
    /// Credentials of the cluster as they are kept already; read only when they are to be written.
    pub kept: Kept,
    /// Agents that want to be bound to this cluster, each with its InfraEnv.
    pub agents: Vec<(Arc<Agent>, Option<Arc<InfraEnv>>)>,
    /// The running cluster's pool of workers; read only while hosts join that care.
    pub worker_pool: WorkerPool,
    /// As the hub has it.
    pub row: Option<Row>,
    /// Why the hub did not answer; nothing is known of the cluster then.
    pub hub_error: Option<String>,
    /// What became of the last step.
    pub failure: Option<Failure>,
    pub now: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub struct Row {
    pub view: ClusterView,
    pub hosts: Vec<Member>,
    pub links: ClusterLinks,
    /// Manifests of users, by name; read only when they may not be as wanted.
    pub manifests: Option<BTreeMap<String, Manifest>>,
    pub credentials: Credentials,
}

/// A host of the cluster.
#[derive(Debug, Clone, Default)]
pub struct Member {
    pub host: HostView,
    pub agent: Option<Arc<Agent>>,
    /// The InfraEnv of the Agent.
    pub infra_env: Option<Arc<InfraEnv>>,
    /// In the hub the InfraEnv binds its hosts to a cluster as they register; read only when the cluster is to go.
    pub is_tied: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub folder: ManifestFolder,
    pub content: Vec<u8>,
}

/// How to get into the cluster; read only while that is of use.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    pub kubeconfig: Option<Secret>,
    pub login: Option<Login>,
}

#[derive(Debug, Clone, Default)]
pub struct Login {
    pub username: String,
    pub password: Secret,
}

#[derive(Debug, Clone, Default)]
pub struct Kept {
    pub kubeconfig: Option<Found>,
    pub password: Option<Found>,
}

/// A step that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The hub does not take what is wanted.
    Hub(Refusal),
    /// The hub does not take the manifests.
    Manifests(Refusal),
    /// The cluster is in another state than it was a moment ago.
    NotNow(String),
    /// The operator could not pause or resume the cluster's pool of workers.
    WorkerPool { pause: bool, why: String },
}

/// Where to read a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Of the ClusterDeployment.
    pub key: Key,
    /// The AgentClusterInstall, by its own name, where no ClusterDeployment names it.
    pub orphan: Option<Key>,
}

impl Place {
    pub fn of(key: &Key) -> Self {
        Self {
            key: key.clone(),
            orphan: None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

fn secret_proxy_of(install: &AgentClusterInstall) -> Option<String> {
    let proxy = install.spec.proxy.as_ref()?;
    secret_proxy(&proxy.http_proxy, &proxy.https_proxy)
}

/// What is remembered in `SentValues`.
const PULL_SECRET: &str = "pull-secret";
const PROXY: &str = "proxy";
const MANIFESTS: &str = "manifests";
const POOL: &str = "worker-pool";

impl Snapshot {
    /// One that names this cluster, or of a host that the hub has in it, as it was read.
    pub fn agent(&self, key: &Key) -> Option<&Agent> {
        let own = self.agents.iter().map(|(agent, _)| agent);
        let members = self.row.iter().flat_map(|row| &row.hosts);
        let mut all = own.chain(members.filter_map(|member| member.agent.as_ref()));
        all.find(|agent| Key::of(&***agent) == *key).map(|agent| &**agent)
    }

    pub async fn read(
        ctx: &Context,
        Place { key, orphan }: &Place,
        failure: Option<Failure>,
    ) -> Result<Option<Self>, Error> {
        let deployment = ctx.cache::<ClusterDeployment>().get(key);
        let named = deployment.as_ref().and_then(|named| install_of(ctx, named));
        let install = match orphan {
            Some(orphan) => ctx.cache::<AgentClusterInstall>().get(orphan),
            None => named.clone(),
        };
        // One that is named by now is reconciled with its ClusterDeployment.
        let is_named = orphan.is_some() && named.as_deref().map(Key::of) == *orphan;
        let is_stray = orphan.is_some() && deployment.is_some();
        let deployment = deployment.filter(|_| !is_stray);
        if is_named || (deployment.is_none() && install.is_none()) {
            return Ok(None);
        }
        let id = match (&deployment, &install) {
            (Some(deployment), _) => keys::hub_id(&**deployment, annotation::CLUSTER_ID),
            // What the hub has belongs to the ClusterDeployment.
            (None, _) if is_stray => None,
            (None, install) => install.as_ref().and_then(|install| noted_id(install)),
        };
        let mut snapshot = Self {
            rival: deployment
                .as_ref()
                .and_then(|deployment| ctx.rival_deployment(deployment)),
            key: key.clone(),
            deployment,
            install,
            is_stray,
            id,
            pull_secret: None,
            pull_secret_is_known: false,
            proxy_is_known: false,
            image_set: None,
            release: None,
            mirrors: None,
            ignition_ca: None,
            config_maps: BTreeMap::new(),
            kept: Kept::default(),
            agents: if is_stray { Vec::new() } else { agents(ctx, key) },
            worker_pool: WorkerPool::NotAsked,
            row: None,
            hub_error: None,
            failure,
            now: ctx.clock.now(),
        };
        snapshot.read_kube(ctx).await?;
        if let Err(error) = snapshot.read_hub(ctx).await {
            snapshot.hub_error = Some(error.to_string());
        }
        snapshot.read_kept(ctx).await?;
        snapshot.read_pool(ctx).await;
        Ok(Some(snapshot))
    }

    async fn read_kube(&mut self, ctx: &Context) -> Result<(), Error> {
        let (Some(deployment), Some(install)) = (&self.deployment, &self.install) else {
            return Ok(());
        };
        if self.is_leaving() {
            return Ok(());
        }
        let here = |name: &str| Key::new(&self.key.namespace, name);
        if let Some(reference) = &deployment.spec.pull_secret_ref {
            self.pull_secret = ctx.secret(&here(&reference.name)).await?;
            let value = self
                .pull_secret
                .as_ref()
                .and_then(|secret| secret.value(data::PULL_SECRET));
            let known = |value, id| ctx.sent.knows(id, PULL_SECRET, value);
            self.pull_secret_is_known = value.zip(self.id).is_some_and(|(value, id)| known(value, id));
        }
        let proxy = secret_proxy_of(install);
        let known = |(value, id): (&String, _)| ctx.sent.knows(id, PROXY, value);
        self.proxy_is_known = proxy.is_none() || proxy.as_ref().zip(self.id).is_some_and(known);
        let spec = &install.spec;
        if let Some(reference) = &spec.image_set_ref {
            self.image_set = ctx.cache::<ClusterImageSet>().get(&Key::new("", &reference.name));
        }
        if let Some(reference) = &spec.mirror_registry_ref {
            self.mirrors = ctx.config_map(&reference.into()).await?;
        }
        let ca = spec
            .ignition_endpoint
            .as_ref()
            .and_then(|endpoint| endpoint.ca_certificate_reference.as_ref());
        if let Some(reference) = ca {
            self.ignition_ca = ctx.secret(&reference.into()).await?;
        }
        for name in manifest::config_maps(spec) {
            if let Some(found) = ctx.config_map(&here(&name)).await? {
                self.config_maps.insert(name, found);
            }
        }
        Ok(())
    }

    async fn read_hub(&mut self, ctx: &Context) -> Result<(), ClientError> {
        let Some(id) = self.id.filter(|_| self.rival.is_none()) else {
            return Ok(());
        };
        let Some(view) = found(ctx.hub.cluster_without_hosts(id).await)? else {
            if let Some(set) = &self.image_set {
                self.release = Some(or_refusal(
                    ctx.hub.release_of_image(&set.spec.release_image).await,
                )?);
            }
            return Ok(());
        };
        let hosts = ctx.hub.cluster_hosts(id, &ClusterHostsQuery::default()).await?;
        ctx.last_clusters
            .note(id, hosts.iter().map(|host| (host.infra_env_id, host.id)));
        let tied = match self.is_leaving() {
            true => tied(ctx, &hosts).await?,
            false => BTreeSet::new(),
        };
        let member = |host: HostView| {
            let agent = agent_of(ctx, &host);
            let infra_env = agent.as_ref().and_then(|agent| infra_env_named(ctx, agent));
            Member {
                is_tied: tied.contains(&host.infra_env_id),
                host,
                agent,
                infra_env,
            }
        };
        let mut row = Row {
            view,
            hosts: hosts.into_iter().map(member).collect(),
            links: ctx.hub.cluster_links(id).await?,
            manifests: None,
            credentials: Credentials::default(),
        };
        if !self.is_leaving() {
            if row.kind() == Kind::New && row.stage().takes_settings() && !self.manifests_are_known(ctx) {
                row.manifests = Some(manifests(ctx, id).await?);
            }
            row.credentials = self.credentials(ctx, id, &row).await?;
        }
        self.row = Some(row);
        Ok(())
    }

    /// Early a kubeconfig that is good for the API, at the end everything.
    async fn credentials(&self, ctx: &Context, id: Uuid, row: &Row) -> Result<Credentials, ClientError> {
        let mut found = Credentials::default();
        if row.kind() != Kind::New {
            return Ok(found);
        }
        let file = |name| async move { text(made(ctx.hub.credential_file(id, name).await)?) };
        match row.stage() {
            Stage::Installing | Stage::Finalizing if self.metadata().is_none() => {
                found.kubeconfig = file(CredentialFile::KubeconfigNoingress).await?;
            }
            Stage::Installed => {
                found.kubeconfig = file(CredentialFile::Kubeconfig).await?;
                found.login = made(ctx.hub.credentials(id).await)?.map(login);
            }
            Stage::Installing
            | Stage::Finalizing
            | Stage::Insufficient
            | Stage::PendingForInput
            | Stage::Ready
            | Stage::Preparing
            | Stage::PendingUserAction
            | Stage::AddingHosts
            | Stage::Error
            | Stage::Cancelled
            | Stage::Other => {}
        }
        Ok(found)
    }

    async fn read_kept(&mut self, ctx: &Context) -> Result<(), Error> {
        let Some(row) = &self.row else { return Ok(()) };
        if row.credentials.kubeconfig.is_some() {
            self.kept.kubeconfig = ctx.secret(&self.kubeconfig_key()).await?;
        }
        if row.credentials.login.is_some() {
            self.kept.password = ctx.secret(&self.password_key()).await?;
        }
        Ok(())
    }

    /// The cluster itself is asked only while hosts join whose labels need it to hold still, and once after that.
    async fn read_pool(&mut self, ctx: &Context) {
        let Some(id) = self.id else { return };
        let Some(wanted) = worker_pool::wanted(self) else {
            // Whoever joins next finds it as others left it.
            return ctx.sent.forget_one(id, POOL);
        };
        let known = ctx.sent.knows(id, POOL, &wanted.to_string());
        // A note that is left over wants to be sure.
        let noted = self.install.as_deref().is_some_and(worker_pool::is_noted);
        if known && (wanted || !noted) {
            return;
        }
        let pool = super::worker_pool_of(ctx, &self.key).await;
        if let WorkerPool::Unknown(why) = &pool {
            tracing::info!(key = %self.key, %why, "cannot read the cluster's pool of workers");
        }
        if pool == (WorkerPool::Found { paused: wanted }) {
            ctx.sent.remember(id, POOL, &wanted.to_string());
        }
        self.worker_pool = pool;
    }

    pub fn kubeconfig_key(&self) -> Key {
        Key::new(&self.key.namespace, format!("{}-admin-kubeconfig", self.key.name))
    }

    pub fn password_key(&self) -> Key {
        Key::new(&self.key.namespace, format!("{}-admin-password", self.key.name))
    }

    /// What the object says of the installed cluster.
    pub fn metadata(&self) -> Option<&crate::crd::agent_cluster_install::ClusterMetadata> {
        self.install.as_ref()?.spec.cluster_metadata.as_ref()
    }

    /// Either of the two objects is to be deleted, and with them the cluster.
    pub fn is_leaving(&self) -> bool {
        let deployment = self.deployment.as_ref().map(|deployment| &deployment.metadata);
        let install = self.install.as_ref().map(|install| &install.metadata);
        deployment
            .iter()
            .chain(&install)
            .any(|meta| meta.deletion_timestamp.is_some())
    }

    /// The hub has this pull secret from now on.
    pub fn remember_pull_secret(&self, ctx: &Context, secret: &Secret) {
        if let Some(id) = self.id {
            ctx.sent.remember(id, PULL_SECRET, &secret.0);
        }
    }

    /// The hub has the proxies as they are wanted.
    pub fn remember_proxy(&self, ctx: &Context) {
        let proxy = self.install.as_ref().and_then(|install| secret_proxy_of(install));
        if let Some((id, proxy)) = self.id.zip(proxy) {
            ctx.sent.remember(id, PROXY, &proxy);
        }
    }

    /// The hub has the manifests as they are wanted.
    pub fn remember_manifests(&self, ctx: &Context) {
        if let Some(id) = self.id {
            ctx.sent
                .remember(id, MANIFESTS, &manifest::fingerprint(&self.config_maps));
        }
    }

    fn manifests_are_known(&self, ctx: &Context) -> bool {
        let known = |id| {
            ctx.sent
                .knows(id, MANIFESTS, &manifest::fingerprint(&self.config_maps))
        };
        self.id.is_some_and(known)
    }
}

impl Failure {
    pub fn text(&self) -> &str {
        match self {
            Self::Hub(failure) | Self::Manifests(failure) => failure.text(),
            Self::NotNow(text) | Self::WorkerPool { why: text, .. } => text,
        }
    }

    pub fn of_pool(&self) -> Option<&str> {
        match self {
            Self::WorkerPool { why, .. } => Some(why),
            Self::Hub(_) | Self::Manifests(_) | Self::NotNow(_) => None,
        }
    }
}

impl Row {
    pub fn stage(&self) -> Stage {
        Stage::of(&self.view.status)
    }

    pub fn kind(&self) -> Kind {
        Kind::of(&self.view.kind)
    }
}

/// Each must name the other: otherwise two ClusterDeployments could share one installation.
pub fn install_of(ctx: &Context, deployment: &ClusterDeployment) -> Option<Arc<AgentClusterInstall>> {
    let name = deployment.install_name()?;
    let key = Key::new(deployment.namespace().unwrap_or_default(), name);
    let install = ctx.cache::<AgentClusterInstall>().get(&key)?;
    (install.spec.cluster_deployment_ref.name == deployment.name_any()).then_some(install)
}

fn noted_id(install: &AgentClusterInstall) -> Option<Uuid> {
    install.annotations().get(annotation::CLUSTER_ID)?.parse().ok()
}

fn agents(ctx: &Context, key: &Key) -> Vec<(Arc<Agent>, Option<Arc<InfraEnv>>)> {
    let agents = ctx
        .cache::<Agent>()
        .by(AGENTS_BY_CLUSTER, &key.to_string())
        .into_iter();
    agents
        .map(|agent| {
            let infra_env = infra_env_named(ctx, &agent);
            (agent, infra_env)
        })
        .collect()
}

fn infra_env_named(ctx: &Context, agent: &Agent) -> Option<Arc<InfraEnv>> {
    let name = agent.labels().get(keys::label::INFRA_ENV)?;
    let namespace = agent.namespace().unwrap_or_default();
    ctx.cache::<InfraEnv>().get(&Key::new(namespace, name))
}

/// Those of the hosts' InfraEnvs that bind them to a cluster.
async fn tied(ctx: &Context, hosts: &[HostView]) -> Result<BTreeSet<Uuid>, ClientError> {
    let mut tied: BTreeSet<Uuid> = hosts.iter().map(|host| host.infra_env_id).collect();
    for id in tied.clone() {
        let infra_env = found(ctx.hub.infra_env(id).await)?;
        if infra_env.is_none_or(|infra_env| infra_env.cluster_id.is_none()) {
            tied.remove(&id);
        }
    }
    Ok(tied)
}

/// The object that stands for a host of the hub.
fn agent_of(ctx: &Context, host: &HostView) -> Option<Arc<Agent>> {
    let namespace = ctx.infra_env_of(host.infra_env_id)?.namespace()?;
    ctx.cache::<Agent>()
        .get(&Key::new(namespace, host.id.to_string()))
}
