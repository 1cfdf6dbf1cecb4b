//! Decisions about clusters, on snapshots made by hand.

mod desired;
mod flow;
mod leaving;
mod matrix;
mod named;
mod workers;

use super::*;
use crate::controller::cluster_deployment::snapshot::{Kept, Member};
use crate::crd::agent::AgentStatus;
use crate::crd::condition::{Truth, set_service};
use crate::crd::reference::ClusterRef;
use crate::crd::{Agent, ClusterImageSet, InfraEnv};
use crate::runtime::merge;
use jiff::Timestamp;
use muster_contract::v1::link::ClusterLinks;
use muster_contract::v1::release::ReleaseView;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::host::HostView;
use serde_json::json;
use std::sync::Arc;

const ID: Uuid = Uuid::from_u128(7);
const POOL: Uuid = Uuid::from_u128(8);
const IMAGE: &str = "quay.io/openshift-release-dev/ocp-release:4.21.28-x86_64";

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn key() -> Key {
    Key::new("clusters", "blue")
}

fn found(values: &[(&str, &str)]) -> Found {
    Found {
        values: values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        missing_labels: BTreeMap::new(),
    }
}

fn deployment() -> ClusterDeployment {
    let mut deployment: ClusterDeployment = serde_json::from_value(json!({
        "metadata": { "name": "blue", "namespace": "clusters", "uid": ID, "resourceVersion": "5",
            "annotations": { annotation::CLUSTER_ID: ID }, "finalizers": [finalizer::CLUSTER_DEPLOYMENT] },
        "spec": { "clusterName": "blue", "baseDomain": "example.com", "pullSecretRef": { "name": "pull" },
            "platform": { "agentBareMetal": { "agentSelector": {} } },
            "clusterInstallRef": { "group": "extensions.hive.openshift.io", "kind": "AgentClusterInstall",
                "version": "v1beta1", "name": "blue" } },
    }))
    .unwrap();
    deployment.metadata.creation_timestamp = None;
    deployment
}

fn install(spec: Value) -> AgentClusterInstall {
    let mut whole = json!({
        "clusterDeploymentRef": { "name": "blue" },
        "imageSetRef": { "name": "v4.21" },
        "networking": { "networkType": "OVNKubernetes" },
        "provisionRequirements": { "controlPlaneAgents": 3, "workerAgents": 2 },
    });
    whole
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "metadata": { "name": "blue", "namespace": "clusters", "uid": Uuid::from_u128(9), "resourceVersion": "6",
            "annotations": { annotation::CLUSTER_ID: ID }, "finalizers": [finalizer::AGENT_CLUSTER_INSTALL],
            "ownerReferences": [{ "apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment", "name": "blue",
                "uid": ID }] },
        "spec": whole,
    }))
    .unwrap()
}

/// Everything is there but the hub's cluster.
fn snapshot(spec: Value) -> Snapshot {
    let set: ClusterImageSet =
        serde_json::from_value(json!({ "metadata": { "name": "v4.21" }, "spec": { "releaseImage": IMAGE } }))
            .unwrap();
    Snapshot {
        key: key(),
        deployment: Some(Arc::new(deployment())),
        install: Some(Arc::new(install(spec))),
        is_stray: false,
        id: Some(ID),
        rival: None,
        pull_secret: Some(found(&[(".dockerconfigjson", "{}")])),
        pull_secret_is_known: false,
        proxy_is_known: false,
        image_set: Some(Arc::new(set)),
        release: Some(Ok(ReleaseView {
            version: "4.21.28".into(),
            cpu_architecture: "x86_64".into(),
            image: IMAGE.into(),
        })),
        mirrors: None,
        ignition_ca: None,
        config_maps: BTreeMap::new(),
        kept: Kept::default(),
        agents: Vec::new(),
        worker_pool: worker_pool::WorkerPool::NotAsked,
        row: None,
        hub_error: None,
        failure: None,
        now: now(),
    }
}

/// As the hub shows the cluster of `snapshot(spec)` after it was made.
fn row(status: &str) -> Row {
    let view = json!({
        "kind": if status == "adding-hosts" { "AddHostsCluster" } else { "Cluster" }, "id": ID, "href": "", "name": "blue", "base_dns_domain": "example.com",
        "status": status, "status_info": "as it is", "openshift_version": "4.21.28", "control_plane_count": 3,
        "platform": { "type": "baremetal" }, "user_managed_networking": false, "network_type": "OVNKubernetes",
        "hyperthreading": "all", "schedulable_masters": false, "disk_encryption": { "enable_on": "none", "mode": "tpmv2" },
        "ignition_endpoint": {}, "load_balancer": { "type": "cluster-managed" }, "pull_secret_set": true,
        "cluster_networks": [{ "cidr": "10.128.0.0/14", "host_prefix": 23 }],
        "service_networks": [{ "cidr": "172.30.0.0/16" }], "machine_networks": [], "api_vips": [], "ingress_vips": [],
        "openshift_cluster_id": Uuid::from_u128(77), "progress": { "finalizing_stage_started_at": null },
        "image_info": { "created_at": null, "expires_at": null }, "last-installation-preparation": {},
        "validations_info": r#"{"network":[{"id":"api-vips-defined","status":"success","message":"fine"},
            {"id":"dns","status":"failure","message":"no name"},{"id":"ntp","status":"pending","message":"no time"}]}"#,
        "status_updated_at": null, "controller_logs_started_at": null, "controller_logs_collected_at": null,
        "install_started_at": null, "install_completed_at": null, "created_at": null, "updated_at": null,
    });
    let view: ClusterView = serde_json::from_value(view).unwrap();
    Row {
        view,
        links: ClusterLinks {
            events: "http://hub/events".into(),
            logs: "http://hub/logs".into(),
        },
        ..Row::default()
    }
}

fn with_row(spec: Value, status: &str) -> Snapshot {
    Snapshot {
        row: Some(row(status)),
        pull_secret_is_known: true,
        proxy_is_known: true,
        ..snapshot(spec)
    }
}

fn agent(number: u128) -> Agent {
    let mut agent: Agent = serde_json::from_value(json!({
        "metadata": { "name": Uuid::from_u128(number), "namespace": "pool", "uid": Uuid::from_u128(number),
            "labels": { "infraenvs.agent-install.openshift.io": "pool" } },
        "spec": { "role": "", "approved": true, "clusterDeploymentName": { "name": "blue", "namespace": "clusters" } },
    }))
    .unwrap();
    agent.status = Some(AgentStatus::default());
    say(&mut agent, "SpecSynced", true);
    say(&mut agent, "RequirementsMet", true);
    agent
}

fn say(agent: &mut Agent, type_: &'static str, holds: bool) {
    let status = agent.status.get_or_insert_default();
    set_service(
        &mut status.conditions,
        Finding::new(type_, holds, "Reason", ""),
        now(),
    );
}

fn member(agent: &Agent, role: &'static str, status: &'static str) -> Member {
    Member {
        host: HostView {
            id: agent.name_any().parse().unwrap(),
            infra_env_id: POOL,
            suggested_role: role.into(),
            role: "auto-assign".into(),
            status: status.into(),
            ..HostView::default()
        },
        agent: Some(Arc::new(agent.clone())),
        infra_env: None,
        is_tied: false,
    }
}

/// Three masters and two workers, known and approved.
fn manned(mut snapshot: Snapshot) -> Snapshot {
    let roles = ["master", "master", "master", "worker", "worker"];
    for (number, role) in (100..).zip(roles) {
        enlist(&mut snapshot, &agent(number), role, "known");
    }
    snapshot
}

fn enlist(snapshot: &mut Snapshot, agent: &Agent, role: &'static str, status: &'static str) {
    snapshot
        .row
        .as_mut()
        .unwrap()
        .hosts
        .push(member(agent, role, status));
    snapshot
        .agents
        .push((Arc::new(agent.clone()), Some(Arc::new(pool(None)))));
}

fn pool(cluster: Option<&str>) -> InfraEnv {
    let mut pool = InfraEnv::default();
    pool.metadata.name = Some("pool".into());
    pool.metadata.namespace = Some("pool".into());
    pool.spec.cluster_ref = cluster.map(|name| ClusterRef {
        name: name.into(),
        namespace: "clusters".into(),
    });
    pool
}

/// The AgentClusterInstall as it is after the status steps of a plan.
fn shown(snapshot: &Snapshot, plan: &Plan) -> AgentClusterInstall {
    let mut install = AgentClusterInstall::clone(snapshot.install.as_ref().unwrap());
    for step in &plan.steps {
        if let Step::Status(patch) = step {
            let mut status = serde_json::to_value(install.status.clone().unwrap_or_default()).unwrap();
            apply(&mut status, patch);
            install.status = Some(serde_json::from_value(status).unwrap());
        }
    }
    install
}

fn apply(to: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *to = patch.clone();
        return;
    };
    if !to.is_object() {
        *to = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => drop(to.as_object_mut().unwrap().remove(key)),
            value => apply(&mut to[key.as_str()], value),
        }
    }
}

/// Status and reason of a condition.
fn said(install: &AgentClusterInstall, type_: &str) -> (String, String) {
    let conditions = &install.status.as_ref().unwrap().conditions;
    let condition = find_install(conditions, type_).unwrap_or_else(|| panic!("no {type_} in {conditions:?}"));
    (condition.status.clone(), condition.reason.clone())
}

fn says(install: &AgentClusterInstall, type_: &str, status: Truth, reason: &str) {
    assert_eq!(
        said(install, type_),
        (status.word().to_owned(), reason.to_owned()),
        "{type_}"
    );
}

/// After its own status was written, a second reconcile writes nothing.
fn rests(mut snapshot: Snapshot, plan: &Plan) {
    snapshot.install = Some(Arc::new(shown(&snapshot, plan)));
    assert_eq!(
        super::plan(&snapshot).steps,
        [],
        "a second reconcile writes nothing"
    );
}

#[test]
fn patches_in_these_tests_are_merged_as_the_api_does() {
    let (before, after) = (json!({"a": 1, "b": {"c": 2}}), json!({"b": {"d": 3}}));
    let mut value = before.clone();
    apply(&mut value, &merge::diff(&before, &after).unwrap());
    assert_eq!(value, after);
}
