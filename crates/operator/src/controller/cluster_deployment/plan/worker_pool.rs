//! Whether the running cluster's own machinery may reboot workers: not while hosts join that get labels and a pool.
//! What was paused is noted on the AgentClusterInstall first, so that it ends even when the hosts are deleted or the
//! operator restarts.

use super::stage::Kind;
use super::{Failure, LATER, Plan, SOON, Snapshot, Step, Then};
use crate::crd::keys::annotation;
use crate::crd::{Agent, AgentClusterInstall};
use crate::runtime::event::News;
use kube::ResourceExt;
use muster_vocabulary::{HostStatus, Stage};
use serde_json::json;
use std::time::Duration;

/// The pool of workers of a running cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WorkerPool {
    /// Nobody has to know.
    #[default]
    NotAsked,
    /// The cluster has no such thing.
    Absent,
    Found {
        paused: bool,
    },
    /// The cluster did not answer.
    Unknown(String),
}

impl WorkerPool {
    /// Why nothing is known of it, although it was asked for.
    fn silence(&self) -> Option<&str> {
        match self {
            Self::Unknown(why) => Some(why),
            Self::NotAsked | Self::Absent | Self::Found { .. } => None,
        }
    }
}

/// Whether the workers have to hold still. `None` when the pool is somebody else's matter: only a pause of ours is ended.
pub fn wanted(snapshot: &Snapshot) -> Option<bool> {
    let noted = snapshot.install.as_deref().is_some_and(is_noted);
    if snapshot.is_leaving() {
        let is_ours = noted && !snapshot.is_stray && snapshot.rival.is_none() && snapshot.hub_error.is_none();
        return is_ours.then_some(false);
    }
    let mut agents = snapshot.agents.iter().map(|(agent, _)| &**agent);
    match snapshot.row.as_ref()?.kind() {
        Kind::AddsHosts if agents.any(|agent| is_concerned(agent) && is_under_way(agent)) => Some(true),
        Kind::AddsHosts => noted.then_some(false),
        Kind::New | Kind::Other => None,
    }
}

/// A pause of ours that has not ended, as far as is known.
pub fn is_noted(install: &AgentClusterInstall) -> bool {
    install.annotations().contains_key(annotation::WORKERS_PAUSED)
}

pub fn steps(snapshot: &Snapshot, install: &AgentClusterInstall) -> Vec<Step> {
    match (wanted(snapshot), &snapshot.worker_pool) {
        (Some(true), WorkerPool::Found { paused: false }) => {
            // The note changes the object that guards the second write, so each has a round of its own.
            vec![note(install, Some("true")).unwrap_or(Step::PausePool(true))]
        }
        (Some(false), WorkerPool::Found { paused: true }) => vec![Step::PausePool(false)],
        (Some(false), WorkerPool::Found { paused: false } | WorkerPool::Absent) => {
            note(install, None).into_iter().collect()
        }
        (Some(true), WorkerPool::Found { paused: true } | WorkerPool::Absent)
        | (Some(_), WorkerPool::NotAsked | WorkerPool::Unknown(_))
        | (None, _) => Vec::new(),
    }
}

/// Before the cluster goes, what was paused for its hosts goes on. That is tried once: a cluster that cannot be reached
/// any more must not keep its objects, but somebody has to know.
pub fn release(snapshot: &Snapshot) -> Option<Plan> {
    let install = snapshot.install.as_deref().filter(|install| is_noted(install))?;
    let failed = snapshot.failure.as_ref().and_then(Failure::of_pool);
    let forget = || note(install, None).into_iter();
    let steps = match (failed.or(snapshot.worker_pool.silence()), &snapshot.worker_pool) {
        (Some(why), _) => {
            let event = [Step::Tell(news(false, why))];
            event.into_iter().chain(forget()).collect()
        }
        (None, WorkerPool::Found { paused: true }) => vec![Step::PausePool(false)],
        (None, WorkerPool::Found { paused: false } | WorkerPool::Absent) => forget().collect(),
        (None, WorkerPool::NotAsked | WorkerPool::Unknown(_)) => return None,
    };
    Some(Plan::of(steps, Then::Again))
}

fn note(install: &AgentClusterInstall, value: Option<&str>) -> Option<Step> {
    let patch = json!({ "metadata": { "annotations": { annotation::WORKERS_PAUSED: value } } });
    (is_noted(install) != value.is_some()).then_some(Step::PatchInstall(patch))
}

/// That the pool cannot be made to hold still, or to go on.
pub fn news(pause: bool, why: &str) -> News {
    let (reason, what) = match pause {
        true => (
            "WorkersNotPaused",
            "Hosts with labels join the cluster. The operator cannot pause its pool of workers meanwhile, so \
             workers may reboot",
        ),
        false => (
            "WorkersStayPaused",
            "The operator paused the cluster's pool of workers while hosts joined, and cannot resume it",
        ),
    };
    News {
        warning: true,
        reason: reason.into(),
        note: format!("{what}: {why}. Set spec.paused of its MachineConfigPool worker to {pause}."),
    }
}

/// A cluster that did not answer is asked again: nothing else would bring the matter up.
pub fn then(snapshot: &Snapshot) -> Then {
    let asks = |_| Then::After(again(snapshot));
    snapshot.worker_pool.silence().map_or(Then::Rest, asks)
}

/// Hosts that join are at the door soon; a pause that is over is no danger.
pub fn again(snapshot: &Snapshot) -> Duration {
    match wanted(snapshot) {
        Some(true) => SOON,
        Some(false) | None => LATER,
    }
}

/// The cluster was asked, and did not answer.
pub fn complaint(snapshot: &Snapshot) -> Option<Step> {
    let (why, pause) = (snapshot.worker_pool.silence()?, wanted(snapshot)?);
    Some(Step::Tell(news(pause, why)))
}

fn is_concerned(agent: &Agent) -> bool {
    !agent.spec.node_labels.is_empty() && !agent.spec.machine_config_pool.is_empty()
}

fn is_under_way(agent: &Agent) -> bool {
    let progress = agent.status.as_ref().and_then(|status| status.progress.as_ref());
    let done = progress.is_some_and(|progress| progress.current_stage == Stage::Done);
    !done && agent.state().is(HostStatus::is_writing)
}
