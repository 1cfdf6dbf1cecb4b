//! What is kept of an Agent that is deleted while a machine of Cluster API has it: it gets that back when its host
//! comes again, because nobody writes it a second time.
//!
//! The machine keeps it, and only its status is believed about whose it is: who may make machines may name any host,
//! and must not approve one by that.

use crate::controller::agent::snapshot::Snapshot;
use crate::crd::agent_machine::Named;
use crate::crd::keys::{annotation, label};
use crate::crd::{Agent, AgentMachine};
use crate::key::Key;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keepsake {
    /// `namespace/name` of the Agent.
    agent: String,
    #[serde(default)]
    pub approved: bool,
    /// Those that people gave it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl Keepsake {
    /// What the machine has kept of the Agent with this key.
    pub fn of(machine: &AgentMachine, agent: &Key) -> Option<Self> {
        if !has(machine, agent) {
            return None;
        }
        let text = machine.annotations().get(annotation::KEEPSAKE)?;
        let mut kept: Self = serde_json::from_str(text).ok()?;
        kept.labels.retain(|key, _| is_of_people(key));
        (kept.agent == agent.to_string()).then_some(kept)
    }

    fn new(agent: &Agent) -> Self {
        let labels = agent.labels().iter().filter(|(key, _)| is_of_people(key));
        Self {
            agent: Key::of(agent).to_string(),
            approved: agent.spec.approved,
            labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
        }
    }
}

/// The machines that have the Agent and do not keep yet what is to be kept of it, each with the patch that makes it so.
pub fn kept_by(snapshot: &Snapshot, agent: &Agent) -> Vec<(Arc<AgentMachine>, Value)> {
    let text = json!(Keepsake::new(agent)).to_string();
    let patch = json!({ "metadata": { "annotations": { annotation::KEEPSAKE: text } } });
    let stays = |machine: &&Arc<AgentMachine>| {
        machine.metadata.deletion_timestamp.is_none()
            && has(machine, &snapshot.key)
            && machine.annotations().get(annotation::KEEPSAKE) != Some(&text)
    };
    let machines = snapshot.machines.iter().filter(stays);
    machines.map(|machine| (machine.clone(), patch.clone())).collect()
}

fn has(machine: &AgentMachine, agent: &Key) -> bool {
    machine.named_agent() == Some(Named::Whole(agent.clone()))
}

/// All others come from the host, its InfraEnv, its classifications, its power controller or its machine, and come again.
fn is_of_people(key: &str) -> bool {
    let ours = [
        label::INFRA_ENV,
        label::BARE_METAL_HOST,
        label::CLUSTER_DEPLOYMENT_NAMESPACE,
        label::AGENT_MACHINE,
    ];
    let prefixes = [label::INVENTORY_PREFIX, label::CLASSIFICATION_PREFIX];
    !ours.contains(&key) && !prefixes.iter().any(|prefix| key.starts_with(prefix))
}
