//! The way of an Agent that is to be deleted.

use super::{Call, Plan, Step, Then, cleanup, keepsake, stage, status};
use crate::controller::agent::snapshot::{Failure, Snapshot};
use crate::crd::Agent;
use crate::crd::keys::{self, finalizer};
use crate::key::Key;
use crate::runtime::patch::finalizers;
use crate::runtime::spoke::NoSpoke;
use muster_vocabulary::Stage;
use serde_json::json;

/// Out of sight of those who choose hosts, out of its cluster, out of the hub; then the object may go.
pub fn plan(snapshot: &Snapshot, agent: &Agent) -> Plan {
    if !keys::has_finalizer(agent, finalizer::AGENT) {
        return Plan::default();
    }
    if let Some(why) = failed(snapshot) {
        return Plan::of(
            status::withdrawn(snapshot, agent, Some(&why)),
            Then::After(snapshot.retry),
        );
    }
    let hidden = status::withdrawn(snapshot, agent, None);
    if !hidden.is_empty() {
        return Plan::of(hidden, Then::Again);
    }
    let kept = keepsake::kept_by(snapshot, agent).into_iter();
    let mut steps: Vec<_> = kept.map(|(machine, patch)| Step::Keep(machine, patch)).collect();
    if let Some(Ok(spoke)) = &snapshot.spoke {
        steps.extend(cleanup::removal(spoke));
    }
    let rows = snapshot.row.iter().chain(&snapshot.stale);
    steps.extend(rows.map(|row| Step::Hub(Call::Delete(row.host.infra_env_id))));
    steps.push(Step::Patch(json!({ "metadata": {
        "finalizers": finalizers(agent, None, Some(finalizer::AGENT)),
    }})));
    Plan::of(steps, Then::Rest)
}

/// Of an Agent that is to go, or was claimed, while nobody can be asked about its host.
pub fn hide(snapshot: &Snapshot) -> Vec<Step> {
    let Some(agent) = &snapshot.agent else {
        return Vec::new();
    };
    if agent.metadata.deletion_timestamp.is_none() {
        return status::held(snapshot, agent);
    }
    if !keys::has_finalizer(&**agent, finalizer::AGENT) {
        return Vec::new();
    }
    status::withdrawn(snapshot, agent, None)
}

fn failed(snapshot: &Snapshot) -> Option<String> {
    match (&snapshot.failure, &snapshot.spoke) {
        (Some(Failure::Hub(failure)), _) => Some(format!("The hub still has the host: {}", failure.text())),
        (Some(Failure::Spoke(why)), _) | (None, Some(Err(NoSpoke::Failed(why)))) => Some(format!(
            "The operator cannot remove the node from its cluster: {why}"
        )),
        (None, Some(Ok(_) | Err(NoSpoke::NoKubeconfig)) | None) => None,
    }
}

/// Only what lives is cleaned: with its cluster or its InfraEnv, what a host left there goes or stays as a whole.
pub fn cluster_to_clean(snapshot: &Snapshot, agent: &Agent) -> Option<Key> {
    let joined = snapshot.row.as_ref().is_some_and(|row| stage(row) == Stage::Done)
        || agent.status.as_ref().is_some_and(has_joined)
        || snapshot.metal_joined
        || snapshot
            .row
            .as_ref()
            .is_some_and(|row| super::begins_with_metal(agent, row));
    let reference = agent.spec.cluster_deployment_name.as_ref()?;
    let lives = |deletion: &Option<_>| deletion.is_none();
    let deployment = snapshot.deployment.as_ref()?;
    let install = snapshot.install.as_ref()?;
    let infra_env = snapshot.infra_env.as_ref()?;
    let all_live = lives(&deployment.metadata.deletion_timestamp)
        && lives(&install.metadata.deletion_timestamp)
        && lives(&infra_env.metadata.deletion_timestamp);
    (joined && all_live && !cleanup::skips(agent)).then(|| reference.into())
}

fn has_joined(status: &crate::crd::agent::AgentStatus) -> bool {
    let done = status
        .progress
        .as_ref()
        .is_some_and(|progress| progress.current_stage == Stage::Done);
    done || status
        .csr_status
        .as_ref()
        .is_some_and(|csr| !csr.approved_csrs.is_empty())
}
