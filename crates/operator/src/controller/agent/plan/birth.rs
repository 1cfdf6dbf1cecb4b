//! How a host gets its Agent, and what becomes of the Agent of a host that booted the image of another InfraEnv.

use super::{Call, Plan, Step, Then, metadata, status};
use crate::controller::agent::snapshot::{Claim, Snapshot};
use crate::crd::agent::AgentSpec;
use crate::crd::keys::{annotation, label};
use crate::crd::reference::ClusterRef;
use crate::crd::{Agent, InfraEnv};
use crate::runtime::event::News;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use muster_contract::v1::host::HostDetail;
use muster_vocabulary::HostStatus;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Somebody without an object lent the host to a cluster of their own; it may come back.
const LATER: Duration = Duration::from_secs(60);

/// Made with everything it has, so that nothing can happen in between, and every reader gets it whole. Only the
/// status is another write.
pub fn make(snapshot: &Snapshot) -> Plan {
    let (Some(row), Some(infra_env)) = (&snapshot.row, &snapshot.infra_env) else {
        return Plan::default();
    };
    if infra_env.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let cluster = cluster_ref(snapshot, row, infra_env);
    if cluster.is_none() && row.host.cluster_id.is_some() {
        return Plan::of(Vec::new(), Then::After(LATER));
    }
    let claim = claim(snapshot, cluster.as_ref());
    let cluster = cluster.or_else(|| claim.map(|claim| claim.cluster.clone()));
    let kept = claim.and_then(|claim| claim.keepsake.clone()).unwrap_or_default();
    let mut labels = labels(infra_env, cluster.as_ref(), claim);
    labels.extend(kept.labels);
    let note = claim.map(|claim| {
        let namespace = claim.machine.namespace.clone();
        BTreeMap::from([(annotation::AGENT_MACHINE_NAMESPACE.to_owned(), namespace)])
    });
    let agent = Agent {
        metadata: ObjectMeta {
            name: Some(snapshot.key.name.clone()),
            namespace: Some(snapshot.key.namespace.clone()),
            labels: Some(labels),
            annotations: note,
            ..ObjectMeta::default()
        },
        spec: AgentSpec {
            // What the hub knows was approved by somebody, too.
            approved: kept.approved || row.approved,
            cluster_deployment_name: cluster,
            ..AgentSpec::default()
        },
        status: None,
    };
    let agent = metadata::whole(snapshot, agent, row);
    Plan::of(vec![Step::Create(Box::new(agent))], Then::Again)
}

/// The ClusterDeployment of the cluster that the host is in already.
fn cluster_ref(snapshot: &Snapshot, row: &HostDetail, infra_env: &InfraEnv) -> Option<ClusterRef> {
    row.host.cluster_id?;
    let known = snapshot.tenant.as_ref().map(|key| ClusterRef {
        name: key.name.clone(),
        namespace: key.namespace.clone(),
    });
    known.or_else(|| infra_env.spec.cluster_ref.clone())
}

/// Whose the host still is. One that belongs to a cluster by now is not its machine's any more, unless it is the same.
fn claim<'a>(snapshot: &'a Snapshot, cluster: Option<&ClusterRef>) -> Option<&'a Claim> {
    let claim = snapshot.claim.as_ref();
    claim.filter(|claim| cluster.is_none_or(|cluster| *cluster == claim.cluster))
}

fn labels(
    infra_env: &InfraEnv,
    cluster: Option<&ClusterRef>,
    claim: Option<&Claim>,
) -> BTreeMap<String, String> {
    let mut labels = infra_env.spec.agent_labels.clone();
    labels.insert(label::INFRA_ENV.into(), infra_env.name_any());
    let namespace = cluster
        .map(|cluster| cluster.namespace.clone())
        .unwrap_or_default();
    labels.insert(label::CLUSTER_DEPLOYMENT_NAMESPACE.into(), namespace);
    labels.extend(claim.map(|claim| (label::AGENT_MACHINE.to_owned(), claim.machine.name.clone())));
    labels
}

/// The InfraEnv that the host has moved to, and the name of the one it came from.
pub fn new_home<'a>(snapshot: &'a Snapshot, agent: &'a Agent) -> Option<(&'a InfraEnv, &'a str)> {
    let infra_env = snapshot.infra_env.as_deref()?;
    let named = agent.labels().get(label::INFRA_ENV)?;
    let moved = *named != infra_env.name_any() && has_moved(snapshot, agent, infra_env);
    moved.then_some((infra_env, named))
}

/// The host booted another InfraEnv's image: it is discovered anew, and nothing people wrote about it holds any more; only
/// its machine, which does not ask for it again. In the same InfraEnv everything stays, and so it does where the other one
/// leads to the cluster the host is in.
pub fn rehome(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Option<Plan> {
    let (infra_env, named) = new_home(snapshot, agent)?;
    let cluster = cluster_ref(snapshot, row, infra_env);
    if cluster.is_some() && cluster == agent.spec.cluster_deployment_name {
        return Some(hand_over(snapshot, agent, infra_env));
    }
    let claim = claim(snapshot, cluster.as_ref());
    let cluster = cluster.or_else(|| claim.map(|claim| claim.cluster.clone()));
    let machine = claim.map(|claim| &claim.machine.namespace);
    let mut patch = json!({
        "metadata": {
            "labels": replaced(agent.labels(), &labels(infra_env, cluster.as_ref(), claim)),
            "annotations": { annotation::AGENT_MACHINE_NAMESPACE: machine },
            "ownerReferences": [metadata::owner(infra_env)],
        },
        "spec": blank(&agent.spec),
    });
    patch["spec"]["approved"] = json!(metadata::auto_approves(infra_env));
    if let Some(cluster) = &cluster {
        patch["spec"]["clusterDeploymentName"] = json!(cluster);
    }
    // The state first: while an installation shows, the API server lets nobody change the cluster.
    let state = status::state_only(snapshot, agent, row);
    if !state.is_empty() {
        return Some(Plan::of(state, Then::Again));
    }
    Some(arrived(snapshot, patch, named, infra_env))
}

/// The label alone proves nothing, as anybody can write it. An Agent belongs to the InfraEnv it was discovered in; of
/// one that belongs to none, the hub says whether another one knows the host as well.
fn has_moved(snapshot: &Snapshot, agent: &Agent, infra_env: &InfraEnv) -> bool {
    let uid = infra_env.uid().unwrap_or_default();
    let owners = agent.owner_references().iter();
    let homes: Vec<_> = owners.filter(|owner| metadata::is_infra_env(owner)).collect();
    match homes.as_slice() {
        [] => !snapshot.stale.is_empty(),
        homes => homes.iter().all(|owner| owner.uid != uid),
    }
}

/// From one InfraEnv of a cluster to another: it is the same host for the same purpose.
fn hand_over(snapshot: &Snapshot, agent: &Agent, infra_env: &InfraEnv) -> Plan {
    let owners = agent.owner_references().iter();
    let others = owners.filter(|owner| !metadata::is_infra_env(owner)).cloned();
    let owners: Vec<_> = others.chain([metadata::owner(infra_env)]).collect();
    let patch = json!({ "metadata": {
        "labels": { label::INFRA_ENV: infra_env.name_any() },
        "ownerReferences": owners,
    }});
    let named = agent.labels().get(label::INFRA_ENV);
    arrived(snapshot, patch, named.map_or("", String::as_str), infra_env)
}

fn arrived(snapshot: &Snapshot, patch: Value, from: &str, infra_env: &InfraEnv) -> Plan {
    let mut steps = vec![Step::Patch(patch)];
    steps.extend(forget_stale(snapshot));
    steps.push(Step::Tell(News {
        warning: false,
        reason: "Rediscovered".into(),
        note: format!(
            "The host booted the image of InfraEnv {} instead of {from}.",
            infra_env.name_any()
        ),
    }));
    Plan::of(steps, Then::Again)
}

/// Empties a spec: a merge patch removes what is null.
fn blank(spec: &AgentSpec) -> Value {
    let now = serde_json::to_value(spec).unwrap_or_default();
    let mut blank: Map<String, Value> = match now {
        Value::Object(fields) => fields.into_iter().map(|(name, _)| (name, Value::Null)).collect(),
        _ => Map::new(),
    };
    blank.insert("role".into(), json!(""));
    blank.insert("approved".into(), json!(false));
    Value::Object(blank)
}

fn replaced(now: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> Value {
    let gone = now
        .keys()
        .filter(|key| !wanted.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let kept = wanted.iter().map(|(key, value)| (key.clone(), json!(value)));
    Value::Object(gone.chain(kept).collect())
}

/// Rows of InfraEnvs that the host has left. One whose disk is being written stays until that is over.
pub fn forget_stale(snapshot: &Snapshot) -> Vec<Step> {
    let writing = |row: &&HostDetail| row.host.status.is(HostStatus::is_writing);
    let gone = snapshot.stale.iter().filter(|row| !writing(row));
    gone.map(|row| Step::Hub(Call::Delete(row.host.infra_env_id)))
        .collect()
}
