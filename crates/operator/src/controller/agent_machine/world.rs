//! What a decision about an AgentMachine may look at.

use super::plan::{bootstrap, claim};
use crate::crd::capi::Bootstrap;
use crate::crd::{Agent, AgentMachine};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::context::index;
use crate::runtime::lineage::Lineage;
use crate::runtime::{Context, clock};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct World {
    pub key: Key,
    pub machine: Arc<AgentMachine>,
    pub lineage: Lineage,
    pub data: Data,
    /// The Agent that its status names; without one, the one that carries its name: the claim comes first.
    pub agent: Option<Arc<Agent>>,
    /// Others that carry its name. A claim that nobody heard of when the next one was made leaves such Agents.
    pub strays: Vec<Arc<Agent>>,
    /// Those among which it may choose; read only while it has none.
    pub candidates: Vec<Arc<Agent>>,
    pub source: Source,
    /// The namespaces from which this operator takes Agents; empty: all it sees.
    pub pools: Vec<String>,
    /// Somebody else looks after the machines of this namespace.
    pub elsewhere: bool,
    pub retry: Duration,
    pub now: Timestamp,
}

/// Where a cluster takes its Agents from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Anywhere,
    Namespace(String),
    /// The control plane that would say so is not there.
    Unknown(String),
}

/// What the machine is to boot with.
#[derive(Clone)]
pub enum Data {
    /// Nobody has said anything.
    NotNamed,
    /// A bootstrap provider is going to say it.
    Promised,
    /// There is no such Secret.
    Absent(Key),
    Found {
        secret: Arc<Secret>,
        /// The Secret in which the token is kept for the Agent.
        token: Option<Arc<Secret>>,
    },
}

// Holds secrets: only their presence is printed.
impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNamed => f.write_str("NotNamed"),
            Self::Promised => f.write_str("Promised"),
            Self::Absent(key) => write!(f, "Absent({key})"),
            Self::Found { token, .. } => write!(f, "Found {{ token: {} }}", token.is_some()),
        }
    }
}

/// What is to be expected of a Machine that names no boot data.
fn unnamed(bootstrap: &Bootstrap) -> Data {
    let provider = bootstrap
        .rest
        .get("configRef")
        .and_then(|config| config.get("name"));
    match provider.and_then(Value::as_str) {
        None | Some("") => Data::NotNamed,
        Some(_) => Data::Promised,
    }
}

impl World {
    pub async fn read(ctx: &Context, key: &Key) -> Result<Option<Self>, Error> {
        let Some(machine) = ctx.mirrors.agent_machines.get(key) else {
            return Ok(None);
        };
        let mut world = Self {
            key: key.clone(),
            lineage: ctx.lineage(&machine).await?,
            machine,
            data: Data::NotNamed,
            agent: None,
            strays: Vec::new(),
            candidates: Vec::new(),
            source: Source::Anywhere,
            pools: ctx.providers.pools().to_vec(),
            elsewhere: ctx.is_provided_elsewhere(&key.namespace).await?,
            retry: ctx.retry,
            now: clock::now(),
        };
        world.read_agent(ctx).await?;
        if !world.is_leaving() {
            world.read_data(ctx).await?;
            world.read_candidates(ctx).await?;
        }
        Ok(Some(world))
    }

    async fn read_agent(&mut self, ctx: &Context) -> Result<(), Error> {
        let labelled = ctx.mirrors.agents.by(index::AGENT_MACHINE, &self.key.name);
        let mine: Vec<_> = labelled
            .into_iter()
            .filter(|agent| claim::is_mine(self, agent))
            .collect();
        let kept = claim::kept(self, &mine);
        self.agent = match (self.named_agent(), &kept) {
            (Some(key), _) => ctx.mirrors.agents.find(&key).await?,
            (None, Some(key)) => mine.iter().find(|agent| Key::of(&***agent) == *key).cloned(),
            (None, None) => None,
        };
        self.strays = mine
            .into_iter()
            .filter(|agent| Some(Key::of(&**agent)) != kept)
            .collect();
        Ok(())
    }

    async fn read_data(&mut self, ctx: &Context) -> Result<(), Error> {
        let Some(machine) = &self.lineage.machine else {
            return Ok(());
        };
        let Some(name) = &machine.spec.bootstrap.data_secret_name else {
            self.data = unnamed(&machine.spec.bootstrap);
            return Ok(());
        };
        let key = Key::new(&self.key.namespace, name);
        self.data = match ctx.mirrors.secrets.find(&key).await? {
            None => Data::Absent(key),
            Some(secret) => Data::Found {
                secret,
                token: ctx.mirrors.secrets.find(&bootstrap::token_key(&key)).await?,
            },
        };
        Ok(())
    }

    async fn read_candidates(&mut self, ctx: &Context) -> Result<(), Error> {
        if self.agent.is_some() || self.named_agent().is_some() || self.lineage.deployment().is_none() {
            return Ok(());
        }
        self.source = self.read_source(ctx).await?;
        let agents = &ctx.mirrors.agents;
        let of = |namespace: &String| agents.by(index::AGENT_NAMESPACE, namespace);
        self.candidates = match &self.source {
            Source::Namespace(namespace) if self.may_take_from(namespace) => of(namespace),
            Source::Anywhere if self.pools.is_empty() => agents.all(),
            Source::Anywhere => self.pools.iter().flat_map(of).collect(),
            Source::Namespace(_) | Source::Unknown(_) => Vec::new(),
        };
        Ok(())
    }

    /// Whether Agents of this namespace may become machines.
    pub fn may_take_from(&self, namespace: &str) -> bool {
        self.pools.is_empty() || self.pools.iter().any(|pool| pool == namespace)
    }

    async fn read_source(&self, ctx: &Context) -> Result<Source, Error> {
        let cluster = self.lineage.cluster.as_ref();
        let Some(reference) = cluster.and_then(|cluster| cluster.spec.control_plane_ref.as_ref()) else {
            return Ok(Source::Anywhere);
        };
        let plane = ctx.control_plane(&self.key.namespace, reference).await?;
        if plane.is_none() && reference.is_hosted() {
            return Ok(Source::Unknown(format!("{} {}", reference.kind, reference.name)));
        }
        let named = plane.map(|plane| plane.spec.platform.agent.agent_namespace.clone());
        let named = named.filter(|name| !name.is_empty());
        Ok(named.map_or(Source::Anywhere, Source::Namespace))
    }

    /// The Agent that the status names.
    pub fn named_agent(&self) -> Option<Key> {
        let reference = self.machine.status.as_ref()?.agent_ref.as_ref()?;
        (!reference.name.is_empty()).then(|| Key::from(reference))
    }

    /// It, or the Machine it belongs to, is to be deleted.
    pub fn is_leaving(&self) -> bool {
        let machine = self.lineage.machine.as_ref();
        self.machine.metadata.deletion_timestamp.is_some()
            || machine.is_some_and(|machine| machine.metadata.deletion_timestamp.is_some())
    }
}
