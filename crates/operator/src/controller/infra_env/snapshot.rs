//! What a decision about an InfraEnv depends on: a snapshot of everything it may use.

use super::index::NMSTATE_CONFIGS_BY_NAMESPACE;
use crate::controller::preprovisioning_image::ironic::Ironic;
use crate::controller::preprovisioning_image::whereabouts;
use crate::crd::keys::{self, annotation};
use crate::crd::{ClusterDeployment, InfraEnv, NMStateConfig};
use crate::error::{Error, Refusal};
use crate::key::Key;
use crate::options::MetalBoot;
use crate::runtime::Context;
use crate::runtime::secret::Found;
use jiff::Timestamp;
use kube::ResourceExt;
use muster_contract::v1::link::InfraEnvLinks;
use muster_contract::v2::host::HostView;
use muster_contract::v2::infra_env::{InfraEnvView, Proxy};
use muster_contract::{ClientError, HubClient, Secret};
use muster_domain::input::proxy;
use muster_vocabulary::{HostStatus, Word};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct Snapshot {
    pub infra_env: Arc<InfraEnv>,
    /// The hub's id.
    pub id: Uuid,
    /// An older object that claims the same id.
    pub rival: Option<Key>,
    pub cluster: Cluster,
    /// Whether the operator watches the ClusterDeployment that is named.
    pub is_cluster_watched: bool,
    pub pull_secret: Option<Found>,
    pub known: Known,
    /// What `mirrorRegistryRef` names.
    pub mirrors: Option<Found>,
    pub ironic: DesiredIronic,
    /// All of the namespace.
    pub networks: Vec<Arc<NMStateConfig>>,
    /// As the hub has it.
    pub row: Option<Row>,
    /// The cluster that the hub's InfraEnv belongs to, when that is another than the one that is wanted and still exists.
    pub held_by: Option<Uuid>,
    /// What the hub gives those that name no time source.
    pub default_ntp: String,
    /// Those of the InfraEnv; read only when it is to be deleted.
    pub hosts: Vec<Member>,
    /// What the hub said to the last step, or why it cannot be asked.
    pub failure: Option<Refusal>,
    pub retry: Duration,
    pub now: Timestamp,
}

/// A host of the InfraEnv.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub id: Uuid,
    /// What people call it; empty as long as nobody has said so.
    pub name: String,
    pub status: Word<HostStatus>,
}

impl Member {
    /// The hub does not forget a machine whose disk is being written.
    pub fn is_being_written(&self) -> bool {
        self.status.is(HostStatus::is_writing)
    }
}

/// As the hub has an InfraEnv.
#[derive(Debug, Clone)]
pub struct Row {
    pub view: InfraEnvView,
    pub links: InfraEnvLinks,
}

impl Row {
    pub async fn find(hub: &HubClient, id: Uuid) -> Result<Option<Self>, ClientError> {
        let Some(view) = found(hub.infra_env(id).await)? else {
            return Ok(None);
        };
        let links = hub.infra_env_links(id).await?;
        Ok(Some(Self { view, links }))
    }

    /// Since when the image is what it is. If the hub does not say, the image is as old as its settings.
    pub fn image_changed_at(&self) -> Option<Timestamp> {
        self.links.image_changed_at.0.or(self.view.updated_at.0)
    }
}

/// What the hub already has of the values that it does not show, or shows in other words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    pub pull_secret: bool,
    pub version: bool,
    /// Also when it has no password, and is shown as it is.
    pub proxy: bool,
}

/// The cluster that `clusterRef` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cluster {
    /// None is named.
    NotWanted,
    /// There is no such ClusterDeployment.
    Absent,
    /// The hub does not have it yet.
    NotInHub,
    Found {
        id: Uuid,
        version: String,
        installed: bool,
    },
}

/// Names under which `SentValues` remembers what the hub has.
const PULL_SECRET: &str = "pull-secret";
const VERSION: &str = "version";
const PROXY: &str = "proxy";

/// Whether Ironic's agent is to be in the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredIronic {
    NotWanted,
    /// Nobody knows where Ironic is, or not for the moment.
    Unknown,
    Known(Ironic),
}

impl Snapshot {
    /// `None` when the object is gone or has no id.
    pub async fn read(ctx: &Context, key: &Key, failure: Option<Refusal>) -> Result<Option<Self>, Error> {
        let Some(infra_env) = ctx.cache::<InfraEnv>().get(key) else {
            return Ok(None);
        };
        let Some(id) = keys::hub_id(&*infra_env, annotation::INFRA_ENV_ID) else {
            return Ok(None);
        };
        let mut snapshot = Self {
            id,
            rival: ctx.rival_infra_env(&infra_env),
            cluster: Cluster::NotWanted,
            is_cluster_watched: true,
            pull_secret: None,
            known: Known::default(),
            mirrors: None,
            ironic: DesiredIronic::NotWanted,
            networks: ctx
                .cache::<NMStateConfig>()
                .by(NMSTATE_CONFIGS_BY_NAMESPACE, &key.namespace),
            row: None,
            held_by: None,
            default_ntp: String::new(),
            hosts: Vec::new(),
            failure,
            retry: ctx.retry,
            now: ctx.clock.now(),
            infra_env,
        };
        let deployment = snapshot.read_kube(ctx).await?;
        if let Err(error) = snapshot.read_hub(ctx, deployment.as_deref()).await {
            snapshot.failure.get_or_insert(error.into());
        }
        snapshot.known = snapshot.known(ctx);
        Ok(Some(snapshot))
    }

    /// Gives back the ClusterDeployment that `clusterRef` names.
    async fn read_kube(&mut self, ctx: &Context) -> Result<Option<Arc<ClusterDeployment>>, Error> {
        if self.is_deleting() {
            return Ok(None);
        }
        let pull_secret = Key::new(self.key().namespace, &self.infra_env.spec.pull_secret_ref.name);
        self.pull_secret = ctx.secret(&pull_secret).await?;
        if let Some(reference) = &self.infra_env.spec.mirror_registry_ref {
            self.mirrors = ctx.config_map(&reference.into()).await?;
        }
        self.ironic = self.read_ironic(ctx).await?;
        match &self.infra_env.spec.cluster_ref {
            Some(reference) => {
                let deployments = &ctx.cache::<ClusterDeployment>();
                self.is_cluster_watched = deployments.covers(&reference.namespace);
                deployments.find(&reference.into()).await
            }
            None => Ok(None),
        }
    }

    /// Only where machines belong to Ironic's agent: others would wait for it for ever.
    async fn read_ironic(&self, ctx: &Context) -> Result<DesiredIronic, Error> {
        let asked = self.infra_env.annotations().get(annotation::ENABLE_IRONIC_AGENT);
        if ctx.metal_boot != MetalBoot::Converged || asked.is_none_or(|asked| asked != "true") {
            return Ok(DesiredIronic::NotWanted);
        }
        Ok(match whereabouts::find(ctx, &self.infra_env).await?.ironic {
            Ok(ironic) => DesiredIronic::Known(ironic),
            Err(_) => DesiredIronic::Unknown,
        })
    }

    async fn read_hub(
        &mut self,
        ctx: &Context,
        deployment: Option<&ClusterDeployment>,
    ) -> Result<(), ClientError> {
        self.row = Row::find(&ctx.hub, self.id).await?;
        if self.is_deleting() {
            let hosts = if self.row.is_some() {
                ctx.hub.hosts(self.id).await?
            } else {
                Vec::new()
            };
            let member = |host: HostView| Member {
                id: host.id,
                name: host.requested_hostname,
                status: host.status,
            };
            self.hosts = hosts.into_iter().map(member).collect();
            return Ok(());
        }
        self.cluster = self.read_cluster(ctx, deployment).await?;
        self.held_by = self.read_holder(ctx).await?;
        let spec = &self.infra_env.spec;
        if spec.additional_ntp_sources.is_empty() && spec.ntp_sources.is_empty() {
            self.default_ntp = ctx.hub.cluster_defaults().await?.ntp_source;
        }
        Ok(())
    }

    async fn read_holder(&self, ctx: &Context) -> Result<Option<Uuid>, ClientError> {
        let Cluster::Found { id, .. } = self.cluster else {
            return Ok(None);
        };
        let now = self.row.as_ref().and_then(|row| row.view.cluster_id);
        let Some(other) = now.filter(|now| *now != id) else {
            return Ok(None);
        };
        Ok(found(ctx.hub.cluster_without_hosts(other).await)?.map(|_| other))
    }

    async fn read_cluster(
        &self,
        ctx: &Context,
        deployment: Option<&ClusterDeployment>,
    ) -> Result<Cluster, ClientError> {
        if self.infra_env.spec.cluster_ref.is_none() {
            return Ok(Cluster::NotWanted);
        }
        let Some(deployment) = deployment else {
            return Ok(Cluster::Absent);
        };
        let id = keys::hub_id(deployment, annotation::CLUSTER_ID);
        // A copy of another one has no cluster of its own.
        let Some(id) = id.filter(|_| ctx.rival_deployment(deployment).is_none()) else {
            return Ok(Cluster::NotInHub);
        };
        Ok(match found(ctx.hub.cluster_without_hosts(id).await)? {
            Some(cluster) => Cluster::Found {
                id,
                version: cluster.openshift_version,
                installed: deployment.spec.installed,
            },
            None => Cluster::NotInHub,
        })
    }

    pub fn key(&self) -> Key {
        Key::of(&*self.infra_env)
    }

    pub fn is_deleting(&self) -> bool {
        self.infra_env.metadata.deletion_timestamp.is_some()
    }

    /// Hosts of a cluster boot its own release until the cluster is installed, whatever else is asked for.
    pub fn passes_over_version(&self) -> bool {
        let is_new = matches!(self.cluster, Cluster::Found { installed: false, .. });
        is_new && !self.infra_env.spec.os_image_version.is_empty()
    }

    /// Which operating system hosts are to boot: the one that is asked for, else that of the cluster's release.
    pub fn version(&self) -> Option<&str> {
        let asked = Some(self.infra_env.spec.os_image_version.as_str());
        let asked = asked.filter(|version| !version.is_empty() && !self.passes_over_version());
        match &self.cluster {
            Cluster::Found { version, .. } => asked.or(Some(version)),
            Cluster::NotWanted | Cluster::Absent | Cluster::NotInHub => asked,
        }
    }

    fn known(&self, ctx: &Context) -> Known {
        let pull_secret = self
            .pull_secret
            .as_ref()
            .and_then(|secret| secret.value(keys::data::PULL_SECRET));
        let knows =
            |what, value: Option<&str>| value.is_none_or(|value| ctx.sent.knows(self.id, what, value));
        Known {
            pull_secret: knows(PULL_SECRET, pull_secret),
            version: knows(VERSION, self.version()),
            proxy: knows(PROXY, self.secret_proxy().as_deref()),
        }
    }

    /// The addresses of its proxies, if a password is among them.
    fn secret_proxy(&self) -> Option<String> {
        let proxy = self.infra_env.spec.proxy.as_ref()?;
        secret_proxy(&proxy.http_proxy, &proxy.https_proxy)
    }

    /// The hub knows these from now on.
    pub fn remember(
        &self,
        ctx: &Context,
        pull_secret: Option<&Secret>,
        version: Option<&String>,
        proxy: Option<&Proxy>,
    ) {
        proxy
            .and_then(|_| self.secret_proxy())
            .iter()
            .for_each(|proxy| ctx.sent.remember(self.id, PROXY, proxy));
        pull_secret
            .iter()
            .for_each(|secret| ctx.sent.remember(self.id, PULL_SECRET, &secret.0));
        version
            .iter()
            .for_each(|version| ctx.sent.remember(self.id, VERSION, version));
    }
}

/// Two addresses as one text, if either has a password, which the hub does not show.
pub fn secret_proxy(http: &str, https: &str) -> Option<String> {
    let hides = |url: &str| proxy::shown(url) != url;
    (hides(http) || hides(https)).then(|| format!("{http}\n{https}"))
}

fn found<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(ClientError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
