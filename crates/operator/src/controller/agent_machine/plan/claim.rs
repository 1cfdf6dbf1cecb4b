//! Whose an Agent is, and what it gets from whoever has it.

use super::bootstrap::Ignition;
use crate::controller::agent_machine::snapshot::Snapshot;
use crate::crd::Agent;
use crate::crd::agent_machine::Named;
use crate::crd::keys::{annotation, label};
use crate::crd::reference::ClusterRef;
use crate::key::Key;
use crate::runtime::merge;
use kube::ResourceExt;
use muster_vocabulary::HostStatus;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::sync::Arc;

/// Said of namespaces from which this operator takes no Agents.
pub const OUT_OF_BOUNDS: &str =
    "in a namespace from which this operator takes no Agents (`--agent-namespace` names those it does)";

/// The AgentMachine that the Agent says it belongs to, if it says so in full.
pub fn holder(agent: &Agent) -> Option<Key> {
    let name = agent.labels().get(label::AGENT_MACHINE)?;
    let namespace = agent.annotations().get(annotation::AGENT_MACHINE_NAMESPACE)?;
    Some(Key::new(namespace, name))
}

/// AgentMachines of several namespaces can have the same name. Where the namespace is missing, the cluster decides.
pub fn is_mine(snapshot: &Snapshot, agent: &Agent) -> bool {
    if agent.labels().get(label::AGENT_MACHINE) != Some(&snapshot.key.name) {
        return false;
    }
    match agent.annotations().get(annotation::AGENT_MACHINE_NAMESPACE) {
        Some(namespace) => *namespace == snapshot.key.namespace,
        None => is_of_cluster(snapshot, agent),
    }
}

/// The one Agent of a machine, of all that could be it: that which the machine names; else the first that carries its name.
pub fn kept(snapshot: &Snapshot, agents: &[Arc<Agent>]) -> Option<Arc<Agent>> {
    let kept = match snapshot.machine.named_agent() {
        Some(Named::Whole(key)) => agents.iter().find(|agent| Key::of(&***agent) == key),
        Some(Named::ById(name)) => {
            let named = agents.iter().filter(|agent| agent.name_any() == name);
            let known = named.filter(|agent| nearness(snapshot, agent).is_some());
            known.max_by_key(|agent| (nearness(snapshot, agent), Reverse(Key::of(&***agent))))
        }
        None => agents.iter().find(|agent| is_mine(snapshot, agent)),
    };
    kept.cloned()
}

/// Of Agents with the same name in several namespaces, which is rather the machine's. An id can be written by whoever
/// makes machines: of Agents that nobody has given to the machine it counts only where the machine could choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    InReach,
    OfItsCluster,
    Claimed,
}

fn nearness(snapshot: &Snapshot, agent: &Agent) -> Option<Nearness> {
    let namespace = agent.namespace().unwrap_or_default();
    if is_mine(snapshot, agent) {
        return Some(Nearness::Claimed);
    }
    if is_of_cluster(snapshot, agent) {
        return Some(Nearness::OfItsCluster);
    }
    snapshot.takes_from(&namespace).then_some(Nearness::InReach)
}

/// Those that carry the name of the machine and are not its Agent.
pub fn strays(snapshot: &Snapshot, agents: &[Arc<Agent>]) -> Vec<Arc<Agent>> {
    let kept = kept(snapshot, agents).map(|agent| Key::of(&*agent));
    let others = agents.iter().filter(|agent| Some(Key::of(&***agent)) != kept);
    others.filter(|agent| is_mine(snapshot, agent)).cloned().collect()
}

/// Nothing of any cluster is on the host, as far as anybody knows: it can be let go without harm to a node.
pub fn is_out(agent: &Agent) -> bool {
    agent.state().is(HostStatus::is_unbound)
}

/// It is bound, or to be bound, to the cluster of the machine.
pub fn is_of_cluster(snapshot: &Snapshot, agent: &Agent) -> bool {
    let wanted = agent.spec.cluster_deployment_name.as_ref();
    wanted.is_some() && wanted == snapshot.lineage.deployment()
}

/// Why the Agent is somebody else's by now.
pub fn stranger(snapshot: &Snapshot, agent: &Agent, cluster: &ClusterRef) -> Option<String> {
    let key = Key::of(agent);
    if agent.metadata.deletion_timestamp.is_some() {
        return Some(format!("Agent {key} is being deleted."));
    }
    if is_mine(snapshot, agent) {
        return None;
    }
    if let Some(other) = agent.labels().get(label::AGENT_MACHINE) {
        return Some(format!("AgentMachine {other} has taken Agent {key}."));
    }
    if !snapshot.may_take_from(&key.namespace) {
        return Some(format!("Agent {key} is {OUT_OF_BOUNDS}."));
    }
    let elsewhere = agent.spec.cluster_deployment_name.as_ref();
    let elsewhere = elsewhere.filter(|other| *other != cluster)?;
    Some(format!(
        "Somebody else bound Agent {key} to {}.",
        Key::from(elsewhere)
    ))
}

/// Claims the Agent, or keeps what was claimed as it should be; nothing when it is. All of it is one write: every
/// reader of the label gets the rest with it.
pub fn patch(
    snapshot: &Snapshot,
    agent: &Agent,
    cluster: &ClusterRef,
    ignition: Option<&Ignition>,
) -> Option<Value> {
    let mut patch = Map::new();
    let mut metadata = Map::new();
    let labelled = agent.labels().get(label::AGENT_MACHINE) == Some(&snapshot.key.name);
    if !labelled {
        metadata.insert(
            "labels".into(),
            json!({ label::AGENT_MACHINE: snapshot.key.name }),
        );
    }
    let noted = agent.annotations().get(annotation::AGENT_MACHINE_NAMESPACE);
    if noted != Some(&snapshot.key.namespace) {
        let note = json!({ annotation::AGENT_MACHINE_NAMESPACE: snapshot.key.namespace });
        metadata.insert("annotations".into(), note);
    }
    let mut spec = agent.spec.clone();
    // After the claim, a missing binding means that somebody removed it.
    if !labelled {
        spec.cluster_deployment_name = Some(cluster.clone());
    }
    if let Some(ignition) = ignition {
        spec.machine_config_pool.clone_from(&ignition.pool);
        spec.ignition_endpoint_token_reference = Some(ignition.token.clone());
        spec.ignition_endpoint_http_headers.clone_from(&ignition.headers);
    }
    if let Some(change) = merge::diff(&agent.spec, &spec) {
        patch.insert("spec".into(), change);
    }
    if !metadata.is_empty() {
        patch.insert("metadata".into(), metadata.into());
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// What is left of a claim is taken off; what people wrote about the host stays.
pub fn strip(agent: &Agent) -> Value {
    let mut spec = agent.spec.clone();
    spec.cluster_deployment_name = None;
    spec.machine_config_pool.clear();
    spec.ignition_endpoint_token_reference = None;
    spec.ignition_endpoint_http_headers.clear();
    json!({
        "metadata": {
            "labels": { label::AGENT_MACHINE: null },
            "annotations": { annotation::AGENT_MACHINE_NAMESPACE: null },
        },
        "spec": merge::diff(&agent.spec, &spec).unwrap_or_else(|| json!({})),
    })
}
