//! A cluster goes: its installation is cancelled, its hosts return or go with it, then the hub forgets it.

use super::{LATER, Plan, SOON, Step, Then, World};
use crate::crd::keys::{finalizer, has_finalizer};
use crate::crd::{Agent, AgentClusterInstall, ClusterDeployment, InfraEnv};
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::patch::finalizers;
use serde_json::json;

/// What becomes of an Agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It belongs to nobody and may be lent again.
    Unbind,
    Delete,
}

pub fn with_install(world: &World, install: &AgentClusterInstall) -> Plan {
    if !has_finalizer(install, finalizer::AGENT_CLUSTER_INSTALL) {
        return Plan::default();
    }
    go(world).unwrap_or_else(|| {
        let left = finalizers(install, None, Some(finalizer::AGENT_CLUSTER_INSTALL));
        Plan::of(
            vec![Step::PatchInstall(json!({ "metadata": { "finalizers": left } }))],
            Then::Rest,
        )
    })
}

pub fn with_deployment(world: &World, deployment: &ClusterDeployment) -> Plan {
    go(world).unwrap_or_else(|| {
        let left = finalizers(deployment, None, Some(finalizer::CLUSTER_DEPLOYMENT));
        Plan::of(
            vec![Step::PatchDeployment(
                json!({ "metadata": { "finalizers": left } }),
            )],
            Then::Rest,
        )
    })
}

/// `None` when nothing is left of the cluster.
fn go(world: &World) -> Option<Plan> {
    // What the hub has belongs to the other.
    if world.rival.is_some() {
        return None;
    }
    if let Some(why) = &world.blind {
        return Some(delayed(why));
    }
    if let Some(setback) = &world.setback {
        return Some(delayed(setback.text()));
    }
    let row = world.row.as_ref();
    if row.is_some_and(|row| row.stage().can_be_cancelled()) {
        return Some(Plan::of(vec![Step::Cancel], Then::Look));
    }
    let steps: Vec<Step> = world
        .agents
        .iter()
        .filter_map(|(agent, pool)| parting(world, agent, pool.as_deref()))
        .collect();
    if !steps.is_empty() {
        return Some(Plan::of(steps, Then::Rest));
    }
    // Whoever still belongs here is on its way out, which is watched; the hub is asked by its Agent, because that knows
    // how the host gets back.
    let hosts = row.map(|row| row.hosts.as_slice()).unwrap_or_default();
    if !world.agents.is_empty() || hosts.iter().any(|member| member.agent.is_some()) {
        return Some(Plan::of(Vec::new(), Then::After(LATER)));
    }
    row.map(|_| Plan::of(vec![Step::DeleteCluster], Then::Look))
}

fn delayed(why: &str) -> Plan {
    let news = News {
        warning: true,
        reason: "DeletionDelayed".into(),
        note: format!("The cluster cannot be deleted yet: {why}"),
    };
    Plan::of(vec![Step::Tell(news)], Then::After(SOON))
}

fn parting(world: &World, agent: &Agent, pool: Option<&InfraEnv>) -> Option<Step> {
    if agent.metadata.deletion_timestamp.is_some() {
        return None;
    }
    match fate(world, pool) {
        Fate::Delete => Some(Step::DeleteAgent(Key::of(agent))),
        // The API refuses it until the Agent shows that the installation was cancelled.
        Fate::Unbind if is_installing(agent) => None,
        Fate::Unbind => Some(Step::UnbindAgent(Key::of(agent))),
    }
}

/// Hosts that came with the cluster go with it. Those of a cluster that is to live on must not return to the pool either:
/// there they would be lent again, and overwritten.
pub fn fate(world: &World, pool: Option<&InfraEnv>) -> Fate {
    let preserve = world
        .deployment
        .as_ref()
        .is_some_and(|deployment| deployment.spec.preserve_on_delete);
    match pool.map(|pool| pool.spec.cluster_ref.as_ref()) {
        None => Fate::Unbind,
        Some(Some(cluster)) if Key::from(cluster) == world.key => Fate::Delete,
        Some(Some(_)) => Fate::Unbind,
        Some(None) if preserve => Fate::Delete,
        Some(None) => Fate::Unbind,
    }
}

/// The rule is the API's own, so it is judged by what the API knows.
fn is_installing(agent: &Agent) -> bool {
    let Some(status) = &agent.status else { return false };
    let installing = matches!(
        status.debug_info.state.as_str(),
        "preparing-for-installation"
            | "preparing-failed"
            | "preparing-successful"
            | "installing"
            | "installing-in-progress"
            | "installing-pending-user-action"
    );
    installing && status.kind != "AddToExistingClusterHost"
}
