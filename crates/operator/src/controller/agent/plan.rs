//! What is to be done about an Agent. Pure: the snapshot in, steps out.

pub mod ask;
mod birth;
mod cleanup;
mod conditions;
pub mod csr;
pub mod day_two;
mod doubt;
mod hold;
pub mod inventory;
pub mod keepsake;
mod leave;
mod lending;
pub mod metadata;
mod reclaim;
pub mod settings;
mod status;
#[cfg(test)]
mod tests;

pub use csr::Wants;

use super::snapshot::{Failure, Snapshot};
use crate::crd::keys::label;
use crate::crd::{Agent, AgentMachine};
use crate::error::Refusal;
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::reconciler::{self, Then};
use kube::ResourceExt;
use lending::Lending;
use muster_contract::v1::host::{ChangeHost, HostDetail};
use muster_contract::v2::host::UpdateHost;
use muster_vocabulary::{HostKind, HostStatus, Stage, Word};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

pub type Plan = reconciler::Plan<Step>;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Create(Box<Agent>),
    /// Spec and metadata of the object.
    Patch(Value),
    /// Status of the object.
    Status(Value),
    /// Metadata of the machine that has the Agent.
    Keep(Arc<AgentMachine>, Value),
    LabelSecret(Key, BTreeMap<String, String>),
    Tell(News),
    Hub(Call),
    Spoke(Deed),
}

/// What the hub is asked to do with the host.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    Bind(Uuid),
    Move(Uuid),
    Unbind,
    Reclaim,
    /// Of a host that is being installed into a running cluster.
    Reset,
    Update(Box<UpdateHost>),
    InstallerArgs(Vec<String>),
    Ignition(String),
    Change(ChangeHost),
    Progress(Stage, String),
    /// In the InfraEnv with this id.
    Delete(Uuid),
}

impl Call {
    /// For the log.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Bind(_) => "bind host",
            Self::Move(_) => "move host",
            Self::Unbind => "unbind host",
            Self::Reclaim => "reclaim host",
            Self::Reset => "reset host",
            Self::Update(_) => "update host",
            Self::InstallerArgs(_) => "set installer arguments",
            Self::Ignition(_) => "set ignition",
            Self::Change(_) => "change host",
            Self::Progress(..) => "report progress",
            Self::Delete(_) => "delete host",
        }
    }
}

/// What is done to the cluster that the host becomes or was a node of.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// It goes next, and without being drained: the host is gone already.
    DoomMachine(Key),
    /// It shrinks with its hosts.
    ShrinkMachineSet(Key),
    DeleteMetal(Key),
    DeleteMachine(Key),
    DeleteNode(String),
    LabelNode(String, BTreeMap<String, String>),
    ApproveCsr(String),
    Apply(Box<Value>),
}

/// Whether the host has what the object asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sync {
    Done,
    /// On its way from one cluster to another.
    Moving,
    /// It passes, or somebody else has to act.
    Backend(String),
    /// The object must be changed.
    Input(String),
}

impl Sync {
    /// As it follows from the result of a step.
    fn after(failure: &Failure) -> Self {
        match failure {
            Failure::Hub(Refusal::Input(text)) => Self::Input(text.clone()),
            Failure::Hub(Refusal::Internal(text) | Refusal::Conflict(text)) | Failure::Spoke(text) => {
                Self::Backend(text.clone())
            }
        }
    }

    /// Mistakes wait for a change of the object; the operator tries everything else again.
    fn then(&self, snapshot: &Snapshot) -> Then {
        match self {
            Self::Done | Self::Moving | Self::Input(_) => Then::Rest,
            Self::Backend(_) => Then::After(snapshot.retry),
        }
    }
}

pub fn plan(snapshot: &Snapshot) -> Plan {
    // A restart of the hub must not write thousands of statuses: only what goes or is claimed must not be chosen.
    if snapshot.hub_error.is_some() {
        return Plan::of(leave::hide(snapshot), Then::After(snapshot.retry));
    }
    let Some(agent) = &snapshot.agent else {
        return birth::make(snapshot);
    };
    if agent.metadata.deletion_timestamp.is_some() {
        return leave::plan(snapshot, agent);
    }
    let Some(row) = &snapshot.row else {
        return orphan(snapshot, agent);
    };
    match birth::rehome(snapshot, agent, row) {
        Some(plan) => plan,
        None => keep(snapshot, agent, row),
    }
}

/// The host booted the image of another InfraEnv than its Agent belongs to.
pub fn is_rehomed(snapshot: &Snapshot) -> bool {
    let agent = snapshot.agent.as_ref();
    agent.is_some_and(|agent| birth::new_home(snapshot, agent).is_some())
}

/// The hub does not know the host. It may come back: the object, with all that people wrote into it, stays.
fn orphan(snapshot: &Snapshot, agent: &Agent) -> Plan {
    let sync = match snapshot.host_id() {
        Some(_) => Sync::Backend(
            "The hub does not know this host. The operator waits until the host registers.".into(),
        ),
        None => Sync::Input("An Agent has the id of its host as its name; this name is not an id.".into()),
    };
    Plan::of(status::lost(snapshot, agent, &sync), Then::Rest)
}

fn keep(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Plan {
    let mut steps = birth::forget_stale(snapshot);
    if let Some(patch) = metadata::patch(snapshot, agent, row) {
        let touches_spec = patch.get("spec").is_some();
        steps.push(Step::Patch(patch));
        if touches_spec {
            return Plan::of(steps, Then::Again);
        }
    }
    let mut shown = status::Shown::of(snapshot, agent, row);
    let mut then = shown.until_hold_ends();
    match cleanup::after_return(snapshot, agent, row) {
        cleanup::Outcome::Nothing => {}
        cleanup::Outcome::Clean(deeds) => {
            steps.extend(deeds);
            shown.status.deprovision_info = None;
        }
        cleanup::Outcome::Failed(info) => {
            shown.status.deprovision_info = Some(info);
            then = then.or(Then::After(snapshot.retry));
        }
    }
    let (sync, more) = match lending::decide(snapshot, agent, row) {
        Lending::InPlace => in_place(snapshot, agent, row, &mut shown, &mut steps),
        Lending::Do(calls) => {
            steps.extend(calls);
            return Plan::of(steps, Then::Again);
        }
        Lending::Bind(to) => {
            // The hub judges the host by what it has, so it gets that first.
            let (given, more) = give(snapshot, agent, row, &mut steps);
            if !asks_hub(&steps) && !matches!(snapshot.failure, Some(Failure::Hub(_))) {
                steps.push(Step::Hub(Call::Bind(to)));
            }
            (given, more)
        }
        Lending::Prepare(waits) => {
            // The host may not be ready because it lacks a setting, such as a name. The feed says when it is ready.
            let (given, more) = give(snapshot, agent, row, &mut steps);
            match given {
                Sync::Done | Sync::Moving => (waits, more),
                Sync::Backend(_) if snapshot.failure.is_none() => (waits, more),
                Sync::Backend(_) | Sync::Input(_) => (given, more),
            }
        }
        Lending::Wait(sync, wait) => (sync, wait),
    };
    if asks_hub(&steps) {
        return Plan::of(steps, Then::Again);
    }
    steps.extend(shown.steps(snapshot, agent, &sync));
    Plan::of(steps, then.or(more))
}

fn asks_hub(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Hub(_)))
}

/// Gives the host what it should have, and returns how that went. A mistake in the object comes before everything
/// else: until somebody mends it nothing arrives. What the hub refused is not sent again in the same reconcile.
fn give(snapshot: &Snapshot, agent: &Agent, row: &HostDetail, steps: &mut Vec<Step>) -> (Sync, Then) {
    let settings = settings::settings(snapshot, agent, row);
    steps.extend(settings.labels);
    let failed = snapshot.failure.as_ref().map(Sync::after);
    let retry = failed.as_ref().map_or(Then::Rest, |failed| failed.then(snapshot));
    let sync = match (settings.calls, failed) {
        (Err(mistake @ Sync::Input(_)), _) => mistake,
        (Err(_), Some(failed)) => failed,
        (Err(missing), None) => missing,
        (Ok(calls), failed) => {
            let was_refused = matches!(snapshot.failure, Some(Failure::Hub(_)));
            steps.extend(calls.into_iter().filter(|_| !was_refused));
            failed.unwrap_or(Sync::Done)
        }
    };
    (sync, retry.or(settings.then))
}

/// The host is where it should be: now it gets what it should have, and its node is followed.
fn in_place(
    snapshot: &Snapshot,
    agent: &Agent,
    row: &HostDetail,
    shown: &mut status::Shown,
    steps: &mut Vec<Step>,
) -> (Sync, Then) {
    let (mut sync, given) = give(snapshot, agent, row, steps);
    let following = day_two::follow(snapshot, agent, row);
    if snapshot.failure.is_none() {
        steps.extend(following.steps);
    }
    if let Some(csr) = following.csr {
        shown.status.csr_status = Some(csr);
    }
    if let (Some(why), Sync::Done) = (following.failed, &sync) {
        sync = Sync::Backend(why);
    }
    let then = sync.then(snapshot).or(given).or(following.then);
    (sync, then)
}

pub fn is_installing(status: &Word<HostStatus>) -> bool {
    status.is(HostStatus::belongs_to_an_installation)
}

fn is_returning(status: &Word<HostStatus>) -> bool {
    status.is(HostStatus::is_returning)
}

/// A machine with a power controller is made known to a running cluster as soon as its installation begins.
fn begins_with_metal(agent: &Agent, row: &HostDetail) -> bool {
    let has_metal = agent.labels().contains_key(label::BARE_METAL_HOST);
    has_metal && is_day_two(row) && is_installing(&row.host.status)
}

fn is_day_two(row: &HostDetail) -> bool {
    row.host.kind == HostKind::AddToExistingClusterHost
}

fn stage(row: &HostDetail) -> Word<Stage> {
    let progress = row.host.progress.as_ref();
    progress.map_or_else(Word::default, |progress| progress.current_stage.clone())
}

/// The name of the node that the host becomes.
fn node_name(agent: Option<&Agent>, row: Option<&HostDetail>) -> String {
    let given = row
        .map(|row| row.host.requested_hostname.clone())
        .filter(|name| !name.is_empty());
    let wanted = || {
        agent
            .map(|agent| agent.spec.hostname.clone())
            .filter(|name| !name.is_empty())
    };
    let found = || {
        agent?
            .status
            .as_ref()
            .map(|status| status.inventory.hostname.clone())
    };
    given.or_else(wanted).or_else(found).unwrap_or_default()
}
