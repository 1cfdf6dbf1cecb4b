//! The way of an Agent that is to be deleted.

use super::{Call, Plan, Step, Then, cleanup, keepsake, stage, status};
use crate::controller::agent::world::{Failure, World};
use crate::crd::Agent;
use crate::crd::keys::{self, finalizer};
use crate::key::Key;
use crate::runtime::patch::finalizers;
use crate::runtime::spoke::NoSpoke;
use muster_vocabulary::Stage;
use serde_json::json;

/// Out of sight of those who choose hosts, out of its cluster, out of the hub; then the object may go.
pub fn plan(world: &World, agent: &Agent) -> Plan {
    if !keys::has_finalizer(agent, finalizer::AGENT) {
        return Plan::default();
    }
    if let Some(why) = failed(world) {
        return Plan::of(
            status::withdrawn(world, agent, Some(&why)),
            Then::After(world.retry),
        );
    }
    let hidden = status::withdrawn(world, agent, None);
    if !hidden.is_empty() {
        return Plan::of(hidden, Then::Look);
    }
    let kept = keepsake::kept_by(world, agent).into_iter();
    let mut steps: Vec<_> = kept.map(|(machine, patch)| Step::Keep(machine, patch)).collect();
    if let Some(Ok(spoke)) = &world.spoke {
        steps.extend(cleanup::removal(spoke));
    }
    let rows = world.row.iter().chain(&world.stale);
    steps.extend(rows.map(|row| Step::Hub(Call::Delete(row.host.infra_env_id))));
    steps.push(Step::Patch(json!({ "metadata": {
        "finalizers": finalizers(agent, None, Some(finalizer::AGENT)),
    }})));
    Plan::of(steps, Then::Rest)
}

/// Of an Agent that is to go, or was claimed, while nobody can be asked about its host.
pub fn hide(world: &World) -> Vec<Step> {
    let Some(agent) = &world.agent else {
        return Vec::new();
    };
    if agent.metadata.deletion_timestamp.is_none() {
        return status::held(world, agent);
    }
    if !keys::has_finalizer(&**agent, finalizer::AGENT) {
        return Vec::new();
    }
    status::withdrawn(world, agent, None)
}

fn failed(world: &World) -> Option<String> {
    match (&world.trouble, &world.spoke) {
        (Some(Failure::Hub(trouble)), _) => Some(format!("The hub still has the host: {}", trouble.text())),
        (Some(Failure::Spoke(why)), _) | (None, Some(Err(NoSpoke::Failed(why)))) => {
            Some(format!("The node cannot be removed from its cluster: {why}"))
        }
        (None, Some(Ok(_) | Err(NoSpoke::NoKubeconfig)) | None) => None,
    }
}

/// Only what lives is cleaned: with its cluster or its InfraEnv, what a host left there goes or stays as a whole.
pub fn cluster_to_clean(world: &World, agent: &Agent) -> Option<Key> {
    let joined = world.row.as_ref().is_some_and(|row| stage(row) == Stage::Done)
        || agent.status.as_ref().is_some_and(has_joined)
        || world.metal_joined
        || world
            .row
            .as_ref()
            .is_some_and(|row| super::begins_with_metal(agent, row));
    let reference = agent.spec.cluster_deployment_name.as_ref()?;
    let lives = |deletion: &Option<_>| deletion.is_none();
    let deployment = world.deployment.as_ref()?;
    let install = world.install.as_ref()?;
    let infra_env = world.infra_env.as_ref()?;
    let all_live = lives(&deployment.metadata.deletion_timestamp)
        && lives(&install.metadata.deletion_timestamp)
        && lives(&infra_env.metadata.deletion_timestamp);
    (joined && all_live && !cleanup::skips(agent)).then(|| reference.into())
}

fn has_joined(status: &crate::crd::agent::AgentStatus) -> bool {
    let done = status
        .progress
        .as_ref()
        .is_some_and(|progress| progress.current_stage == Stage::Done.word());
    done || status
        .csr_status
        .as_ref()
        .is_some_and(|csr| !csr.approved_csrs.is_empty())
}
