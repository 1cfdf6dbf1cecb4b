//! The way of a machine that is to be deleted: its Agent leaves the cluster before the Machine goes on.

use super::{Plan, Step, Then, claim, let_go_strays, status};
use crate::controller::agent_machine::snapshot::Snapshot;
use crate::crd::agent::{condition, reason};
use crate::crd::condition::find_service;
use crate::crd::keys::{self, annotation, finalizer};
use crate::crd::{Agent, capi};
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::patch::finalizers;
use kube::ResourceExt;
use muster_vocabulary::HostStatus;
use serde_json::json;

/// How Cluster API says that it waits for the hook: in newer versions and in older ones.
const DELETING: &str = "Deleting";
const WAITING_FOR_HOOK: &str = "WaitingForPreTerminateHook";
const HOOK_SUCCEEDED: &str = "PreTerminateDeleteHookSucceeded";

pub fn plan(snapshot: &Snapshot, paused: bool) -> Plan {
    if !is_hooked(snapshot) && !keys::has_finalizer(&*snapshot.machine, finalizer::AGENT_MACHINE) {
        return Plan::default();
    }
    if paused {
        // Somebody moves the objects to another place; the host stays where it is.
        return if snapshot.machine.metadata.deletion_timestamp.is_some() {
            done(snapshot)
        } else {
            Plan::default()
        };
    }
    let strays = let_go_strays(snapshot);
    if !strays.is_empty() {
        // Nobody would ever find them again.
        return Plan::of(strays, Then::Again);
    }
    let Some(agent) = &snapshot.agent else {
        return done(snapshot);
    };
    if !is_due(snapshot) {
        return Plan::default();
    }
    if is_held(snapshot, agent) {
        let step = Step::PatchAgent(agent.clone(), claim::strip(agent));
        return match snapshot.noted_agent() {
            Some(_) => Plan::of(vec![step], Then::Again),
            // Only its label names the machine.
            None => Plan::of(status::leaving(snapshot, agent, waits_for(agent)), Then::Again),
        };
    }
    if belongs_to_another(snapshot, agent) || has_left(agent) {
        return done(snapshot);
    }
    // Its way out is watched.
    Plan::of(status::leaving(snapshot, agent, waits_for(agent)), Then::Rest)
}

/// What keeps the machine, in words.
fn waits_for(agent: &Agent) -> String {
    let state = agent.state();
    let state = match agent.metadata.deletion_timestamp.is_some() {
        true => "being deleted",
        false if state.is_empty() => "in an unknown state",
        false => state.as_str(),
    };
    let key = Key::of(agent);
    format!("The machine waits for Agent {key} to leave its cluster ({state}).")
}

/// The machine does not wait for an Agent that somebody else has claimed, or bound to another cluster by hand.
fn belongs_to_another(snapshot: &Snapshot, agent: &Agent) -> bool {
    if agent.labels().contains_key(keys::label::AGENT_MACHINE) {
        return !claim::is_mine(snapshot, agent);
    }
    agent.spec.cluster_deployment_name.is_some() && !claim::is_of_cluster(snapshot, agent)
}

/// The machine still claims the Agent.
fn is_held(snapshot: &Snapshot, agent: &Agent) -> bool {
    let unclaimed = !agent.labels().contains_key(keys::label::AGENT_MACHINE);
    agent.metadata.deletion_timestamp.is_none()
        && (claim::is_mine(snapshot, agent) || (unclaimed && claim::is_of_cluster(snapshot, agent)))
}

/// Before the hook is reached the node is still drained. Without a Machine, or without our hook on it, nobody waits.
fn is_due(snapshot: &Snapshot) -> bool {
    let Some(machine) = &snapshot.lineage.machine else {
        return true;
    };
    machine.metadata.deletion_timestamp.is_some() && (reached(machine) || !is_hooked(snapshot))
}

fn reached(machine: &capi::Machine) -> bool {
    let Some(status) = &machine.status else {
        return false;
    };
    let waits = status
        .condition(DELETING)
        .is_some_and(|deleting| deleting.reason == WAITING_FOR_HOOK);
    waits || status.condition(HOOK_SUCCEEDED).is_some()
}

/// The host is out of the cluster, or waits for somebody to fetch it. While it is on its way, its node may still be
/// needed to bring it back.
fn has_left(agent: &Agent) -> bool {
    let Some(status) = &agent.status else { return false };
    let state = agent.state();
    if state.is_empty() {
        return is_forgotten(agent);
    }
    // Also what it is before anybody has tried to take it out, so that must have been tried in vain.
    let refused = || {
        find_service(&status.conditions, condition::SPEC_SYNCED)
            .is_some_and(|synced| synced.status == "False" && synced.reason == reason::INPUT_ERROR)
    };
    state.is(HostStatus::is_to_be_fetched)
        || state.is(HostStatus::is_failed) && refused()
        || claim::is_out(agent)
}

/// The hub does not know the host, and nobody wants it anywhere: there is nothing that it could still leave.
fn is_forgotten(agent: &Agent) -> bool {
    let conditions = agent.status.as_ref().map(|status| status.conditions.as_slice());
    let lost = find_service(conditions.unwrap_or_default(), condition::BOUND)
        .is_some_and(|bound| bound.status == "Unknown" && bound.reason == reason::NOT_AVAILABLE);
    let claimed = agent.labels().contains_key(keys::label::AGENT_MACHINE);
    lost && !claimed && agent.spec.cluster_deployment_name.is_none()
}

/// The Machine waits for us before it goes.
fn is_hooked(snapshot: &Snapshot) -> bool {
    let machine = snapshot.lineage.machine.as_ref();
    machine.is_some_and(|machine| machine.annotations().contains_key(annotation::CAPI_DELETE_HOOK))
}

/// Nothing holds the Machine and this object any more.
fn done(snapshot: &Snapshot) -> Plan {
    let mut steps = Vec::new();
    if is_hooked(snapshot) {
        steps.push(Step::PatchMachine(
            json!({ "metadata": { "annotations": { annotation::CAPI_DELETE_HOOK: null } } }),
        ));
    }
    if keys::has_finalizer(&*snapshot.machine, finalizer::AGENT_MACHINE) {
        let left = finalizers(&*snapshot.machine, None, Some(finalizer::AGENT_MACHINE));
        steps.push(Step::Patch(json!({ "metadata": { "finalizers": left } })));
    }
    let beside = status::beside(snapshot);
    if !steps.is_empty() && !beside.is_empty() {
        let news = News {
            warning: true,
            reason: "AgentsLeftBehind".into(),
            note: format!("The operator lets the machine go.{beside}"),
        };
        steps.insert(0, Step::Tell(news));
    }
    Plan::of(steps, Then::Rest)
}
