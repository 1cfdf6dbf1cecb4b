mod boot;
mod choose;
mod leaves;
mod shown;

use super::*;
use crate::controller::agent_machine::snapshot::{Data, Source};
use crate::crd::AgentMachine;
use crate::crd::agent::condition;
use crate::runtime::lineage::Lineage;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::time::Duration;

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A free, approved host with this much memory.
fn agent(name: &str, gib: i64) -> Agent {
    let said =
        |type_: &str, status: &str| json!({ "type": type_, "status": status, "reason": "R", "message": "m" });
    parse(json!({
        "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "Agent",
        "metadata": { "name": name, "namespace": "pool" },
        "spec": { "approved": true, "role": "" },
        "status": {
            "inventory": {
                "hostname": format!("host-{name}"),
                "memory": { "physicalBytes": gib << 30 },
                "cpu": { "count": 8 },
                "interfaces": [
                    { "name": "eth0", "hasCarrier": true, "ipV4Addresses": ["192.0.2.7/24"], "ipV6Addresses": [], "flags": [] },
                    { "name": "eth1", "hasCarrier": false, "ipV4Addresses": ["192.0.2.8/24"], "ipV6Addresses": [], "flags": [] },
                ],
            },
            "debugInfo": { "state": "known-unbound" },
            "conditions": [
                said(condition::SPEC_SYNCED, "True"), said(condition::CONNECTED, "True"),
                said(condition::VALIDATED, "True"), said(condition::REQUIREMENTS_MET, "True"),
                { "type": "Installed", "status": "False", "reason": "InstallationNotStarted", "message": "not yet" },
                said(condition::BOUND, "False"),
            ],
        },
    }))
}

fn say(agent: &mut Agent, type_: &str, status: &str, reason: &str) {
    let status_of = agent.status.as_mut().unwrap();
    let found = status_of
        .conditions
        .iter_mut()
        .find(|found| found.type_ == type_)
        .unwrap();
    (found.status, found.reason) = (status.into(), reason.into());
}

fn state(agent: &mut Agent, state: &str) {
    agent.status.as_mut().unwrap().debug_info.state = state.into();
}

/// A machine with all that comes before an Agent, and these Agents to choose from.
fn snapshot(candidates: Vec<Agent>) -> Snapshot {
    Snapshot {
        key: Key::new("hcp", "m1"),
        machine: Arc::new(parse(json!({
            "apiVersion": "capi-provider.agent-install.openshift.io/v1beta1", "kind": "AgentMachine",
            "metadata": {
                "name": "m1", "namespace": "hcp", "finalizers": [finalizer::AGENT_MACHINE],
                "labels": { label::BACKUP: "true" },
            },
            "spec": {},
        }))),
        lineage: Lineage {
            machine: Some(Arc::new(parse(json!({
                "metadata": {
                    "name": "machine-1", "namespace": "hcp",
                    "annotations": { annotation::CAPI_DELETE_HOOK: "" },
                },
                "spec": { "clusterName": "blue" },
            })))),
            cluster: Some(Arc::new(parse(json!({
                "metadata": { "name": "blue", "namespace": "hcp" }, "spec": {},
            })))),
            agent_cluster: Some(Arc::new(parse(json!({
                "apiVersion": "capi-provider.agent-install.openshift.io/v1beta1", "kind": "AgentCluster",
                "metadata": { "name": "blue", "namespace": "hcp" },
                "spec": {},
                "status": { "clusterDeploymentReference": { "name": "blue", "namespace": "hcp" } },
            })))),
        },
        data: Data::NotNamed,
        agent: None,
        strays: Vec::new(),
        candidates: candidates.into_iter().map(Arc::new).collect(),
        source: Source::Anywhere,
        agent_namespaces: Vec::new(),
        elsewhere: false,
        retry: Duration::from_secs(10),
        now: Timestamp::from_second(1000).unwrap(),
    }
}

impl Snapshot {
    fn change(mut self, change: impl FnOnce(&mut AgentMachine)) -> Self {
        change(Arc::make_mut(&mut self.machine));
        self
    }

    /// The Machine is to be deleted, and this is what its status says.
    fn machine_leaves(mut self, status: Value) -> Self {
        let machine = Arc::make_mut(self.lineage.machine.as_mut().unwrap());
        machine.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(900).unwrap()));
        machine.status = Some(parse(status));
        self
    }

    fn leaves(self) -> Self {
        self.change(|machine| {
            machine.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(900).unwrap()));
        })
    }

    fn paused(self) -> Self {
        self.change(|machine| {
            machine
                .annotations_mut()
                .insert("cluster.x-k8s.io/paused".into(), "true".into());
        })
    }
}

/// The object after a merge patch.
fn patched<T: serde::Serialize + serde::de::DeserializeOwned>(object: &T, patch: &Value) -> T {
    fn merge(into: &mut Value, patch: &Value) {
        let Value::Object(fields) = patch else {
            *into = patch.clone();
            return;
        };
        if !into.is_object() {
            *into = json!({});
        }
        for (key, value) in fields {
            if value.is_null() {
                into.as_object_mut().unwrap().remove(key);
            } else {
                merge(&mut into[key], value);
            }
        }
    }
    let mut value = serde_json::to_value(object).unwrap();
    merge(&mut value, patch);
    parse(value)
}

/// The snapshot as it would be read, if these were all the Agents.
fn read(mut snapshot: Snapshot, agents: Vec<Arc<Agent>>) -> Snapshot {
    snapshot.agent = claim::kept(&snapshot, &agents);
    snapshot.strays = claim::strays(&snapshot, &agents);
    let known: Vec<_> = snapshot.agent.iter().chain(&snapshot.strays).cloned().collect();
    snapshot.candidates = agents
        .into_iter()
        .filter(|agent| !known.contains(agent))
        .collect();
    snapshot
}

fn agents(snapshot: &Snapshot) -> Vec<Arc<Agent>> {
    let known = snapshot.agent.iter().chain(&snapshot.strays);
    known.chain(&snapshot.candidates).cloned().collect()
}

/// The snapshot after the plan was carried out, as it would be read.
fn carried_out(mut snapshot: Snapshot, plan: &Plan) -> Snapshot {
    let mut agents = agents(&snapshot);
    for step in &plan.steps {
        match step {
            Step::Patch(patch) => snapshot.machine = Arc::new(patched(&*snapshot.machine, patch)),
            Step::Status(status) => {
                snapshot.machine = Arc::new(patched(&*snapshot.machine, &json!({ "status": status })));
            }
            Step::PatchMachine(patch) => {
                let machine = snapshot.lineage.machine.take().unwrap();
                snapshot.lineage.machine = Some(Arc::new(patched(&*machine, patch)));
            }
            Step::Claim(agent, patch) | Step::PatchAgent(agent, patch) => {
                let changed = Arc::new(patched(&**agent, patch));
                if snapshot.strays.contains(agent) {
                    assert!(!claim::is_mine(&snapshot, &changed), "it is still claimed");
                    assert_eq!(changed.spec.cluster_deployment_name, None);
                }
                let known = agents.iter_mut().find(|known| *known == agent);
                *known.expect("only Agents that were read are written") = changed;
            }
            Step::Tell(_) | Step::LabelSecret(..) | Step::CreateToken(_) | Step::ChangeToken(..) => {}
        }
    }
    read(snapshot, agents)
}

fn converged(mut snapshot: Snapshot) -> Snapshot {
    for _ in 0..10 {
        let plan = plan(&snapshot);
        if plan.steps.is_empty() {
            return snapshot;
        }
        snapshot = carried_out(snapshot, &plan);
    }
    panic!("it does not converge: {snapshot:?}");
}

/// An Agent that carries the machine's name.
fn labelled(snapshot: &Snapshot, name: &str) -> Arc<Agent> {
    let mut agent = agent(name, 16);
    let cluster = snapshot.lineage.deployment().unwrap();
    let claim = claim::patch(snapshot, &agent, cluster, None).unwrap();
    agent = patched(&agent, &claim);
    Arc::new(agent)
}

/// With its Agent.
fn claimed() -> Snapshot {
    converged(snapshot(vec![agent("a", 16)]))
}

fn found(snapshot: &Snapshot, type_: &str) -> (String, String, String) {
    let status = snapshot.machine.status.clone().unwrap_or_default();
    let found = status
        .conditions
        .iter()
        .find(|found| found.type_ == type_)
        .cloned();
    let found = found.unwrap_or_else(|| panic!("no {type_}: {status:?}"));
    (found.status, found.reason, found.message)
}

fn says(snapshot: &Snapshot, type_: &str) -> (String, String) {
    let (status, reason, _) = found(snapshot, type_);
    (status, reason)
}

fn word(status: &str, reason: &str) -> (String, String) {
    (status.into(), reason.into())
}
