//! Whether the running cluster's own machinery may reboot workers: not while hosts join that get labels and a pool. What
//! was paused is noted on the AgentClusterInstall first, so that it ends even when the hosts or the operator go away.

use super::{SOON, Step, Then, World};
use crate::crd::keys::annotation;
use crate::crd::{Agent, AgentClusterInstall};
use kube::ResourceExt;
use serde_json::json;

/// The pool of workers of a running cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Pool {
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

/// `None` when nobody joins in that way, so that the pool is somebody else's matter.
pub fn wanted(world: &World) -> Option<bool> {
    let mut joining = world
        .agents
        .iter()
        .map(|(agent, _)| &**agent)
        .filter(|agent| is_concerned(agent))
        .peekable();
    match joining.peek() {
        Some(_) => Some(joining.any(is_under_way)),
        None => world.install.as_deref().is_some_and(is_noted).then_some(false),
    }
}

/// A pause of ours that has not ended, as far as is known.
pub fn is_noted(install: &AgentClusterInstall) -> bool {
    install.annotations().contains_key(annotation::WORKERS_PAUSED)
}

pub fn steps(world: &World, install: &AgentClusterInstall) -> Vec<Step> {
    let note = |value: Option<&str>| {
        let noted = is_noted(install);
        let patch = json!({ "metadata": { "annotations": { annotation::WORKERS_PAUSED: value } } });
        (noted != value.is_some()).then_some(Step::PatchInstall(patch))
    };
    match (wanted(world), &world.pool) {
        (Some(true), Pool::Found { paused: false }) => {
            // The note changes the object that the guard of a second write would look at, so each has its own look.
            vec![note(Some("true")).unwrap_or(Step::PausePool(true))]
        }
        (Some(false), Pool::Found { paused: true }) => vec![Step::PausePool(false)],
        (Some(false), Pool::Found { paused: false } | Pool::Absent) => note(None).into_iter().collect(),
        (Some(true), Pool::Found { paused: true } | Pool::Absent)
        | (Some(_), Pool::NotAsked | Pool::Unknown(_))
        | (None, _) => Vec::new(),
    }
}

/// A cluster that did not answer is asked again: nothing else would bring the matter up.
pub fn then(world: &World) -> Then {
    match &world.pool {
        Pool::Unknown(_) => Then::After(SOON),
        Pool::NotAsked | Pool::Absent | Pool::Found { .. } => Then::Rest,
    }
}

fn is_concerned(agent: &Agent) -> bool {
    !agent.spec.node_labels.is_empty()
        && !agent.spec.machine_config_pool.is_empty()
        && state(agent) != "installed"
}

fn is_under_way(agent: &Agent) -> bool {
    let progress = agent.status.as_ref().and_then(|status| status.progress.as_ref());
    let done = progress.is_some_and(|progress| progress.current_stage == "Done");
    !done && matches!(state(agent), "installing" | "installing-in-progress")
}

fn state(agent: &Agent) -> &str {
    agent
        .status
        .as_ref()
        .map(|status| status.debug_info.state.as_str())
        .unwrap_or_default()
}
