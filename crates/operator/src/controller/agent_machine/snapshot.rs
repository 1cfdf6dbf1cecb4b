//! What a decision about an AgentMachine depends on: a snapshot of everything it may use.

use super::plan::{bootstrap, claim};
use crate::controller::agent::index::{AGENTS_BY_MACHINE, AGENTS_BY_NAME, AGENTS_BY_NAMESPACE};
use crate::crd::agent_machine::Named;
use crate::crd::capi::Bootstrap;
use crate::crd::{Agent, AgentMachine};
use crate::error::Error;
use crate::key::Key;
use crate::runtime::Context;
use crate::runtime::lineage::{Lineage, Plane};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Snapshot {
    pub key: Key,
    pub machine: Arc<AgentMachine>,
    pub lineage: Lineage,
    pub data: Data,
    /// The Agent that it names; when it names none, the one that carries its name: the claim comes first.
    pub agent: Option<Arc<Agent>>,
    /// Others that carry its name. A claim that was not yet visible when the next one was made leaves such Agents.
    pub strays: Vec<Arc<Agent>>,
    /// Those among which it may choose; read only while it has none and names none.
    pub candidates: Vec<Arc<Agent>>,
    /// Read only while its status names no Agent.
    pub source: Source,
    /// The namespaces from which this operator takes Agents; empty: all that it watches.
    pub agent_namespaces: Vec<String>,
    /// Another provider manages the machines of this namespace.
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

impl Source {
    pub async fn read(ctx: &Context, namespace: &str, lineage: &Lineage) -> Result<Self, Error> {
        let cluster = lineage.cluster.as_ref();
        let Some(reference) = cluster.and_then(|cluster| cluster.spec.control_plane_ref.as_ref()) else {
            return Ok(Self::Anywhere);
        };
        let plane = match ctx.control_plane(namespace, reference).await? {
            Plane::Found(plane) => plane,
            Plane::Absent if reference.is_hosted() => {
                return Ok(Self::Unknown(format!("{} {}", reference.kind, reference.name)));
            }
            Plane::Absent | Plane::NotAllowed(_) => return Ok(Self::Anywhere),
        };
        let named = plane.spec.platform.agent.agent_namespace.clone();
        Ok(match named.is_empty() {
            true => Self::Anywhere,
            false => Self::Namespace(named),
        })
    }

    fn has(&self, namespace: &str) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Namespace(named) => named == namespace,
            Self::Unknown(_) => false,
        }
    }
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

impl Snapshot {
    pub async fn read(ctx: &Context, key: &Key) -> Result<Option<Self>, Error> {
        let Some(machine) = ctx.cache::<AgentMachine>().get(key) else {
            return Ok(None);
        };
        let mut snapshot = Self {
            key: key.clone(),
            lineage: ctx.lineage(&machine).await?,
            machine,
            data: Data::NotNamed,
            agent: None,
            strays: Vec::new(),
            candidates: Vec::new(),
            source: Source::Anywhere,
            agent_namespaces: ctx.providers.agent_namespaces().to_vec(),
            elsewhere: ctx.is_provided_elsewhere(&key.namespace).await?,
            retry: ctx.retry,
            now: ctx.clock.now(),
        };
        let leaves = snapshot.is_leaving();
        if !leaves && snapshot.noted_agent().is_none() && snapshot.lineage.deployment().is_some() {
            snapshot.source = Source::read(ctx, &key.namespace, &snapshot.lineage).await?;
        }
        snapshot.read_agent(ctx).await?;
        if !leaves {
            snapshot.read_data(ctx).await?;
            snapshot.read_candidates(ctx);
        }
        Ok(Some(snapshot))
    }

    async fn read_agent(&mut self, ctx: &Context) -> Result<(), Error> {
        let agents = &ctx.cache::<Agent>();
        let mut known = agents.by(AGENTS_BY_MACHINE, &self.key.name);
        match self.machine.named_agent() {
            Some(Named::Whole(key)) => known.extend(agents.find(&key).await?),
            Some(Named::ById(name)) => known.extend(agents.by(AGENTS_BY_NAME, &name)),
            None => {}
        }
        self.agent = claim::kept(self, &known);
        self.strays = claim::strays(self, &known);
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
        self.data = match ctx.cache::<Secret>().find(&key).await? {
            None => Data::Absent(key),
            Some(secret) => Data::Found {
                secret,
                token: ctx.cache::<Secret>().find(&bootstrap::token_key(&key)).await?,
            },
        };
        Ok(())
    }

    fn read_candidates(&mut self, ctx: &Context) {
        let named = self.machine.named_agent().is_some();
        if named || self.agent.is_some() || self.lineage.deployment().is_none() {
            return;
        }
        let agents = &ctx.cache::<Agent>();
        let of = |namespace: &String| agents.by(AGENTS_BY_NAMESPACE, namespace);
        self.candidates = match &self.source {
            Source::Namespace(namespace) if self.may_take_from(namespace) => of(namespace),
            Source::Anywhere if self.agent_namespaces.is_empty() => agents.all(),
            Source::Anywhere => self.agent_namespaces.iter().flat_map(of).collect(),
            Source::Namespace(_) | Source::Unknown(_) => Vec::new(),
        };
    }

    /// Whether Agents of this namespace may become machines.
    pub fn may_take_from(&self, namespace: &str) -> bool {
        is_agent_namespace(&self.agent_namespaces, namespace)
    }

    /// Whether Agents of this namespace may become machines of this cluster.
    pub fn takes_from(&self, namespace: &str) -> bool {
        self.may_take_from(namespace) && self.source.has(namespace)
    }

    /// The Agent that the status names.
    pub fn noted_agent(&self) -> Option<Key> {
        match self.machine.named_agent()? {
            Named::Whole(key) => Some(key),
            Named::ById(_) => None,
        }
    }

    /// It, or the Machine it belongs to, is to be deleted.
    pub fn is_leaving(&self) -> bool {
        let machine = self.lineage.machine.as_ref();
        self.machine.metadata.deletion_timestamp.is_some()
            || machine.is_some_and(|machine| machine.metadata.deletion_timestamp.is_some())
    }
}

/// Whether an Agent that is not there can be the machine's. Its status is written by its provider only; its id may be
/// written by whoever makes machines, and counts where the machine could choose.
pub async fn may_have(
    ctx: &Context,
    machine: &AgentMachine,
    lineage: &Lineage,
    agent: &Key,
) -> Result<bool, Error> {
    match machine.named_agent() {
        Some(Named::Whole(key)) => Ok(key == *agent),
        Some(Named::ById(name)) => {
            let source = Source::read(ctx, &Key::of(machine).namespace, lineage).await?;
            let agent_namespaces = ctx.providers.agent_namespaces();
            Ok(name == agent.name
                && is_agent_namespace(agent_namespaces, &agent.namespace)
                && source.has(&agent.namespace))
        }
        None => Ok(false),
    }
}

fn is_agent_namespace(agent_namespaces: &[String], namespace: &str) -> bool {
    agent_namespaces.is_empty() || agent_namespaces.iter().any(|pool| pool == namespace)
}
