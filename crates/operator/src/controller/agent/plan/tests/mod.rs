//! Plans over snapshots that are written down.

mod certificates;
mod clean;
mod doubts;
mod follows;
mod holds;
mod keeps;
mod lend;
mod matrix;
mod reclaims;
mod shown;
mod specs;

use super::*;
use crate::controller::agent::snapshot::Target;
use crate::crd::InfraEnv;
use crate::crd::keys::{annotation, finalizer, label};
use crate::crd::reference::ClusterRef;
use crate::runtime::merge;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use muster_contract::v2::host::{HostProgressView, HostView};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const HOST: &str = "7f3a1f60-4a55-4d5f-8f4f-0f6a1c7c1b11";
const POOL: Uuid = Uuid::from_u128(7);
const BLUE: Uuid = Uuid::from_u128(11);
const GREEN: Uuid = Uuid::from_u128(12);

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn infra_env(name: &str) -> InfraEnv {
    let mut infra_env = InfraEnv::default();
    infra_env.metadata.name = Some(name.into());
    infra_env.metadata.namespace = Some("pool".into());
    infra_env.metadata.uid = Some(format!("uid-of-{name}"));
    infra_env.spec.cpu_architecture = "x86_64".into();
    infra_env
}

const INVENTORY: &str = r#"{
    "hostname": "worker-1", "bmc_address": "10.0.0.9",
    "cpu": {"count": 8, "architecture": "x86_64", "flags": ["vmx"], "frequency": 2400.5, "model_name": "Fast"},
    "memory": {"physical_bytes": 17179869184, "usable_bytes": 17000000000},
    "disks": [
        {"id": "/dev/disk/by-id/wwn-1", "name": "sda", "path": "/dev/sda", "by_path": "/dev/disk/by-path/a",
         "drive_type": "SSD", "size_bytes": 120000000000, "installation_eligibility": {"eligible": true}},
        {"id": "/dev/disk/by-id/wwn-2", "name": "sdb", "path": "/dev/sdb", "drive_type": "HDD",
         "installation_eligibility": {"eligible": false, "not_eligible_reasons": ["too small"]}}
    ],
    "interfaces": [{"name": "eth0", "mac_address": "52:54:00:00:00:01", "ipv4_addresses": ["10.0.0.5/24"]}],
    "system_vendor": {"manufacturer": "Red Hat, Inc.", "product_name": "KVM", "virtual": true}
}"#;
const CHECKS: &str = r#"{"hardware": [
    {"id": "has-inventory", "status": "success", "message": "there"},
    {"id": "has-min-memory", "status": "failure", "message": "too little memory"},
    {"id": "has-ntp", "status": "disabled", "message": "not asked"}]}"#;

fn row(status: &'static str) -> HostDetail {
    let long_ago = now() - SignedDuration::from_hours(1);
    HostDetail {
        host: HostView {
            kind: "Host".into(),
            id: HOST.parse().unwrap(),
            infra_env_id: POOL,
            status: status.into(),
            status_info: "as it is".into(),
            inventory: INVENTORY.into(),
            validations_info: CHECKS.into(),
            progress: Some(HostProgressView::default()),
            role: "auto-assign".into(),
            requested_hostname: "worker-1".into(),
            created_at: long_ago.into(),
            registered_at: long_ago.into(),
            ..HostView::default()
        },
        followed: true,
        events_url: "http://hub.example.com:8090/api/assisted-install/v2/events?host_id=x".into(),
        ..HostDetail::default()
    }
}

fn lent(status: &'static str, to: Uuid) -> HostDetail {
    let mut row = row(status);
    row.host.cluster_id = Some(to);
    row
}

fn at_stage(mut row: HostDetail, stage: &'static str) -> HostDetail {
    let progress = HostProgressView {
        current_stage: stage.into(),
        ..HostProgressView::default()
    };
    row.host.progress = Some(progress);
    row
}

fn day_two(mut row: HostDetail) -> HostDetail {
    row.host.kind = "AddToExistingClusterHost".into();
    row
}

fn agent() -> Agent {
    let mut agent = Agent::default();
    agent.metadata.name = Some(HOST.into());
    agent.metadata.namespace = Some("pool".into());
    agent.metadata.finalizers = Some(vec![finalizer::AGENT.into()]);
    agent
        .labels_mut()
        .insert(label::INFRA_ENV.into(), "shared".into());
    agent
}

fn wanting(cluster: &str) -> Agent {
    let mut agent = agent();
    agent.spec.cluster_deployment_name = Some(ClusterRef {
        name: cluster.into(),
        namespace: "clusters".into(),
    });
    agent
}

fn target(id: Uuid) -> Target {
    Target::Found {
        id,
        status: "insufficient".into(),
        architecture: "x86_64".into(),
    }
}

fn snapshot(agent: Option<Agent>, row: Option<HostDetail>) -> Snapshot {
    let tenant = row.as_ref().and_then(|row| row.host.cluster_id);
    let names = [(BLUE, "blue"), (GREEN, "green")];
    let tenant = names
        .iter()
        .find(|(id, _)| tenant == Some(*id))
        .map(|(_, name)| Key::new("clusters", *name));
    let wanted = agent
        .as_ref()
        .and_then(|agent| agent.spec.cluster_deployment_name.clone());
    let wanted = wanted.and_then(|wanted| {
        names
            .iter()
            .find(|(_, name)| *name == wanted.name)
            .map(|(id, _)| *id)
    });
    Snapshot {
        key: Key::new("pool", HOST),
        agent: agent.map(Arc::new),
        infra_env: Some(Arc::new(infra_env("shared"))),
        row,
        stale: Vec::new(),
        tenant,
        claim: None,
        machines: Vec::new(),
        target: wanted.map_or(Target::NotWanted, target),
        deployment: None,
        install: None,
        token: None,
        token_is_known: false,
        headers_are_known: false,
        fencing_is_known: false,
        fencing: None,
        has_metal: false,
        metal_joined: false,
        spoke: None,
        node_watch: Default::default(),
        reclaim_image: None,
        trust: Default::default(),
        hub_error: None,
        failure: None,
        retry: Duration::from_secs(10),
        now: now(),
    }
}

/// The calls to the hub, in order.
fn calls(plan: &Plan) -> Vec<&Call> {
    plan.steps
        .iter()
        .filter_map(|step| match step {
            Step::Hub(call) => Some(call),
            _ => None,
        })
        .collect()
}

fn deeds(plan: &Plan) -> Vec<&Deed> {
    plan.steps
        .iter()
        .filter_map(|step| match step {
            Step::Spoke(deed) => Some(deed),
            _ => None,
        })
        .collect()
}

fn status_of(plan: &Plan) -> Value {
    let mut found = plan.steps.iter().filter_map(|step| match step {
        Step::Status(status) => Some(status.clone()),
        _ => None,
    });
    found.next_back().unwrap_or_default()
}

/// Status and reason of a condition that the plan writes.
fn condition(plan: &Plan, type_: &str) -> (String, String) {
    let status = status_of(plan);
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = all
        .iter()
        .find(|one| one["type"] == type_)
        .cloned()
        .unwrap_or_default();
    let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn synced(plan: &Plan) -> (String, String) {
    condition(plan, "SpecSynced")
}

fn says(truth: &str, reason: &str) -> (String, String) {
    (truth.into(), reason.into())
}

/// Carries out what a plan does to the object, as the API server would.
fn after(agent: &Agent, plan: &Plan) -> Agent {
    let mut value = serde_json::to_value(agent).unwrap();
    for step in &plan.steps {
        match step {
            Step::Patch(patch) => merge::apply(&mut value, patch),
            Step::Status(status) => merge::apply(&mut value, &json!({ "status": status })),
            _ => {}
        }
    }
    serde_json::from_value(value).unwrap()
}

/// Reconciles until a plan changes nothing about the object; the hub stays as it is.
fn converged(agent: Agent, row: HostDetail) -> Agent {
    let mut agent = agent;
    for _ in 0..5 {
        let snapshot = snapshot(Some(agent.clone()), Some(row.clone()));
        let next = after(&agent, &plan(&snapshot));
        if next == agent {
            return agent;
        }
        agent = next;
    }
    panic!("it does not converge");
}
