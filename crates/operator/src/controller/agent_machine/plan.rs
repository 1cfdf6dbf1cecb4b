//! What is to be done about an AgentMachine. Pure: the snapshot in, steps out.

pub mod bootstrap;
mod choice;
pub mod claim;
mod release;
mod status;
#[cfg(test)]
mod tests;

use super::snapshot::Snapshot;
use crate::crd::agent_machine::{self, reason};
use crate::crd::keys::{self, annotation, finalizer, label};
use crate::crd::reference::ClusterRef;
use crate::crd::{Agent, capi};
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::patch::finalizers;
use crate::runtime::reconciler::{self, Then};
use bootstrap::{Boot, Ignition};
use choice::Choice;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub type Plan = reconciler::Plan<Step>;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Metadata of the object, and its `providerID`.
    Patch(Value),
    Status(Value),
    Tell(News),
    /// The hook of the Machine.
    PatchMachine(Value),
    /// Makes an Agent this machine's.
    Claim(Arc<Agent>, Value),
    /// Keeps its settings up to date, or lets it go.
    PatchAgent(Arc<Agent>, Value),
    LabelSecret(Key, BTreeMap<String, String>),
    CreateToken(Box<TokenSecret>),
    ChangeToken(Arc<Secret>, muster_contract::Secret),
}

/// Where the token of a machine's user data is kept for its Agent.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenSecret {
    pub key: Key,
    /// The user data: the token goes with it.
    pub owner: OwnerReference,
    pub token: muster_contract::Secret,
}

pub fn plan(snapshot: &Snapshot) -> Plan {
    if snapshot.elsewhere {
        return Plan::of(Vec::new(), Then::After(snapshot.retry));
    }
    let paused = capi::is_paused(&*snapshot.machine);
    if snapshot.lineage.is_paused() && !(paused && snapshot.is_leaving()) {
        return Plan::default();
    }
    if snapshot.is_leaving() {
        return release::plan(snapshot, paused);
    }
    if paused {
        return Plan::default();
    }
    let Some(machine) = &snapshot.lineage.machine else {
        return status::none(
            snapshot,
            reason::NOT_YET_FOUND,
            "No Machine owns this object yet.",
            Then::Rest,
        );
    };
    let steps = adopt(snapshot, machine);
    if !steps.is_empty() {
        return Plan::of(steps, Then::Again);
    }
    let mut plan = lend(snapshot);
    // Last: whatever keeps one of them must not keep the machine from its own.
    plan.steps.extend(let_go_strays(snapshot));
    plan
}

fn lend(snapshot: &Snapshot) -> Plan {
    match bootstrap::plan(snapshot) {
        Boot::Do(steps) => Plan::of(steps, Then::Again),
        Boot::Ready(ignition) => equip(snapshot, ignition.as_ref(), Then::Rest),
        Boot::Wait(text, then) => match &snapshot.agent {
            // What it was given before still holds.
            Some(_) => equip(snapshot, None, then),
            None => status::none(snapshot, reason::NOT_YET_FOUND, &text, then),
        },
    }
}

/// A machine has one Agent; any other that carries its name goes back to those who wait for one. One that is in a cluster
/// is left there: it may be a running node.
fn let_go_strays(snapshot: &Snapshot) -> Vec<Step> {
    let strays = snapshot.strays.iter().filter(|stray| claim::is_out(stray));
    strays
        .map(|stray| Step::PatchAgent(stray.clone(), claim::strip(stray)))
        .collect()
}

/// Before anything is taken, it is noted who gives it back: on this object, and on the Machine, which waits for that.
fn adopt(snapshot: &Snapshot, machine: &capi::Machine) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut metadata = Map::new();
    if !keys::has_finalizer(&*snapshot.machine, finalizer::AGENT_MACHINE) {
        let all = finalizers(&*snapshot.machine, Some(finalizer::AGENT_MACHINE), None);
        metadata.insert("finalizers".into(), all);
    }
    if !snapshot.machine.labels().contains_key(label::BACKUP) {
        metadata.insert("labels".into(), json!({ label::BACKUP: "true" }));
    }
    if !metadata.is_empty() {
        steps.push(Step::Patch(json!({ "metadata": metadata })));
    }
    if !machine.annotations().contains_key(annotation::CAPI_DELETE_HOOK) {
        steps.push(Step::PatchMachine(
            json!({ "metadata": { "annotations": { annotation::CAPI_DELETE_HOOK: "" } } }),
        ));
    }
    steps
}

/// Gives the machine an Agent, or its Agent what it needs.
fn equip(snapshot: &Snapshot, ignition: Option<&Ignition>, then: Then) -> Plan {
    let ready = snapshot
        .machine
        .status
        .as_ref()
        .is_some_and(|status| status.ready);
    let cluster = match deployment(snapshot) {
        Ok(cluster) => cluster,
        // It has all it will ever get from there.
        Err(_) if ready => return Plan::of(Vec::new(), then),
        Err(text) => return status::none(snapshot, reason::NOT_YET_FOUND, &text, then),
    };
    match (&snapshot.agent, snapshot.machine.named_agent()) {
        (Some(agent), _) => keep(snapshot, agent, cluster, ignition, then),
        (None, Some(_)) if ready => Plan::of(Vec::new(), then),
        // Never another one: the node may be running, with its Agent yet to be restored.
        (None, Some(named)) => {
            let text = format!(
                "Agent {named} of this machine does not exist. The operator waits for it. If its host is gone for \
                 good, delete the Machine: a new one takes another Agent."
            );
            status::none(snapshot, reason::NOT_YET_FOUND, &text, then)
        }
        (None, None) => choose(snapshot, cluster, ignition, then),
    }
}

/// What the machine's Agent is bound to. An error says what is waited for.
fn deployment(snapshot: &Snapshot) -> Result<&ClusterRef, String> {
    let lineage = &snapshot.lineage;
    let cluster = lineage
        .cluster
        .as_ref()
        .ok_or("This machine has no Cluster yet.")?;
    let name = cluster.name_any();
    let agent_cluster = lineage
        .agent_cluster
        .as_ref()
        .ok_or_else(|| format!("Cluster {name} has no AgentCluster yet."))?;
    let wait = || {
        format!(
            "AgentCluster {} has no ClusterDeployment yet.",
            agent_cluster.name_any()
        )
    };
    lineage.deployment().ok_or_else(wait)
}

fn choose(snapshot: &Snapshot, cluster: &ClusterRef, ignition: Option<&Ignition>, then: Then) -> Plan {
    match choice::choose(snapshot) {
        Choice::Take(agent, why) => {
            let claim = claim::patch(snapshot, &agent, cluster, ignition).unwrap_or_default();
            let mut steps = vec![Step::Claim(agent.clone(), claim)];
            steps.extend(provider_id(snapshot, &agent));
            steps.extend(status::with(snapshot, &agent, Some(why)));
            Plan::of(steps, Then::Again)
        }
        Choice::Nothing(why) => status::none(snapshot, reason::NO_SUITABLE_AGENTS, &why, then),
        Choice::Unreadable(why) => status::none(snapshot, reason::NOT_YET_FOUND, &why, then),
    }
}

fn keep(
    snapshot: &Snapshot,
    agent: &Arc<Agent>,
    cluster: &ClusterRef,
    ignition: Option<&Ignition>,
    then: Then,
) -> Plan {
    let ready = snapshot
        .machine
        .status
        .as_ref()
        .is_some_and(|status| status.ready);
    if let Some(why) = claim::stranger(snapshot, agent, cluster) {
        return if ready {
            Plan::of(Vec::new(), then)
        } else {
            status::none(snapshot, reason::NOT_YET_FOUND, &why, then)
        };
    }
    // An installed host has booted with what it was given.
    let ignition = ignition.filter(|_| !ready);
    if let Some(patch) = claim::patch(snapshot, agent, cluster, ignition) {
        let step = match claim::is_mine(snapshot, agent) {
            true => Step::PatchAgent(agent.clone(), patch),
            false => Step::Claim(agent.clone(), patch),
        };
        return Plan::of(vec![step], Then::Again);
    }
    if ready {
        return Plan::of(status::completed(snapshot, agent), then);
    }
    let mut steps = provider_id(snapshot, agent);
    steps.extend(status::with(snapshot, agent, None));
    Plan::of(steps, then)
}

/// How Cluster API finds the node of the machine.
fn provider_id(snapshot: &Snapshot, agent: &Agent) -> Vec<Step> {
    let id = agent_machine::provider_id(&agent.name_any());
    match &snapshot.machine.spec.provider_id {
        Some(known) if *known == id => Vec::new(),
        _ => vec![Step::Patch(json!({ "spec": { "providerID": id } }))],
    }
}
