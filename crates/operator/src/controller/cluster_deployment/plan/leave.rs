//! A cluster goes: its installation is cancelled, its hosts return or go with it, then the hub forgets it.

use super::{LATER, Plan, SOON, Snapshot, Step, Then, status, worker_pool};
use crate::controller::agent;
use crate::controller::cluster_deployment::snapshot::Member;
use crate::crd::agent::condition;
use crate::crd::keys::{finalizer, has_finalizer};
use crate::crd::{Agent, AgentClusterInstall, ClusterDeployment, InfraEnv};
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::patch::finalizers;
use jiff::SignedDuration;
use kube::ResourceExt;
use muster_vocabulary::HostKind;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The reason of events that say why a cluster is still there.
const DELAYED: &str = "DeletionDelayed";

/// A cluster whose objects are created together with this deletion exists by then.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);

/// What becomes of an Agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It belongs to nobody and may be lent again.
    Unbind,
    Delete,
}

pub fn with_install(snapshot: &Snapshot, install: &AgentClusterInstall) -> Plan {
    if !has_finalizer(install, finalizer::AGENT_CLUSTER_INSTALL) {
        return Plan::default();
    }
    go(snapshot).unwrap_or_else(|| {
        let left = finalizers(install, None, Some(finalizer::AGENT_CLUSTER_INSTALL));
        Plan::of(
            vec![Step::PatchInstall(json!({ "metadata": { "finalizers": left } }))],
            Then::Rest,
        )
    })
}

pub fn with_deployment(snapshot: &Snapshot, deployment: &ClusterDeployment) -> Plan {
    go(snapshot).unwrap_or_else(|| {
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
fn go(snapshot: &Snapshot) -> Option<Plan> {
    // What the hub has belongs to the other.
    if snapshot.rival.is_some() {
        return None;
    }
    if let Some(why) = &snapshot.hub_error {
        return Some(delayed(snapshot, why));
    }
    if let Some(plan) = worker_pool::release(snapshot) {
        return Some(plan);
    }
    if let Some(failure) = &snapshot.failure {
        return Some(delayed(snapshot, failure.text()));
    }
    let row = snapshot.row.as_ref();
    if row.is_some_and(|row| row.stage().can_be_cancelled()) {
        return Some(Plan::of(vec![Step::Cancel], Then::Again));
    }
    let own = snapshot
        .agents
        .iter()
        .filter_map(|(agent, pool)| parting(snapshot, agent, pool.as_deref()));
    let strays = strays(snapshot).filter_map(|(agent, member)| straying(snapshot, agent, member));
    let steps: Vec<Step> = own.chain(strays).collect();
    if !steps.is_empty() {
        return Some(Plan::of(steps, Then::Rest));
    }
    // Whoever still belongs here is on its way out, which is watched; the hub is asked by its Agent, because that knows
    // how the host gets back.
    if let Some(news) = awaited(snapshot) {
        return Some(waits(snapshot, news, LATER));
    }
    row.map(|_| Plan::of(vec![Step::DeleteCluster], Then::Again))
}

/// Agents of hosts that the hub has here, but that want to be elsewhere, or nowhere.
fn strays(snapshot: &Snapshot) -> impl Iterator<Item = (&Agent, &Member)> {
    let own: BTreeSet<Key> = snapshot.agents.iter().map(|(own, _)| Key::of(&**own)).collect();
    let members = snapshot.row.iter().flat_map(|row| &row.hosts);
    let agents = members.filter_map(|member| Some((member.agent.as_deref()?, member)));
    agents.filter(move |(agent, _)| !own.contains(&Key::of(*agent)))
}

/// They leave by themselves, unless they came with the cluster, or cannot get to where they want to be.
fn straying(snapshot: &Snapshot, agent: &Agent, member: &Member) -> Option<Step> {
    let pool = member.infra_env.as_deref();
    let cluster = pool.and_then(|pool| pool.spec.cluster_ref.as_ref());
    let came_with_it = cluster.is_some_and(|cluster| Key::from(cluster) == snapshot.key);
    let is_stuck = is_refused(agent) && has_waited(snapshot);
    let is_tied = member.is_tied || cluster.is_some();
    match (came_with_it, is_stuck) {
        (true, _) => parting(snapshot, agent, pool),
        // The image that it booted binds it, whatever its Agent says: without the Agent the host gets out.
        (false, true) if is_tied => deletion(agent),
        (false, true) if agent.spec.cluster_deployment_name.is_some() => parting(snapshot, agent, pool),
        (false, true | false) => None,
    }
}

fn is_refused(agent: &Agent) -> bool {
    let conditions = agent.status.iter().flat_map(|status| &status.conditions);
    let mut synced = conditions.filter(|condition| condition.type_ == condition::SPEC_SYNCED);
    synced.any(|condition| condition.status == "False")
}

fn has_waited(snapshot: &Snapshot) -> bool {
    let install = snapshot.install.as_ref().map(|install| &install.metadata);
    let deployment = snapshot
        .deployment
        .as_ref()
        .map(|deployment| &deployment.metadata);
    let metas = install.into_iter().chain(deployment);
    let since = metas.filter_map(|meta| meta.deletion_timestamp.as_ref()).min();
    since.is_some_and(|since| snapshot.now.duration_since(since.0) >= PATIENCE)
}

/// Which hosts are waited for, and where those want to be that do not just leave.
fn awaited(snapshot: &Snapshot) -> Option<News> {
    let own = snapshot.agents.iter().map(|(agent, _)| named(agent));
    let strays = strays(snapshot).map(|(agent, _)| match &agent.spec.cluster_deployment_name {
        Some(elsewhere) => format!(
            "{}, whose Agent names ClusterDeployment {}",
            named(agent),
            Key::from(elsewhere)
        ),
        None => named(agent),
    });
    let mut names: Vec<String> = own.chain(strays).collect();
    names.sort();
    (!names.is_empty()).then(|| News {
        // Most are gone a moment later.
        warning: false,
        reason: DELAYED.into(),
        note: format!(
            "The operator deletes the cluster in the hub when its hosts have left it: {}.",
            names.join("; ")
        ),
    })
}

/// What people call the host, what the Agent is called, and what is stopped first.
fn named(agent: &Agent) -> String {
    let name = called(agent);
    match agent::plan::is_installing(&agent.state()) {
        true => format!("{name}, whose installation the operator cancels first"),
        false => name,
    }
}

fn called(agent: &Agent) -> String {
    let reported = agent
        .status
        .as_ref()
        .map(|status| status.inventory.hostname.as_str());
    let names = [Some(agent.spec.hostname.as_str()), reported];
    match names.into_iter().flatten().find(|name| !name.is_empty()) {
        Some(name) => format!("{name} ({})", agent.name_any()),
        None => agent.name_any(),
    }
}

/// Said as an event, and as a condition that follows how far it is.
fn waits(snapshot: &Snapshot, news: News, then: Duration) -> Plan {
    let leaves = |install: &&Arc<AgentClusterInstall>| install.metadata.deletion_timestamp.is_some();
    let install = snapshot.install.as_ref().filter(leaves);
    let mut steps = install.map_or_else(Vec::new, |install| {
        status::delayed(snapshot, install, DELAYED, &news.note)
    });
    steps.push(Step::Tell(news));
    Plan::of(steps, Then::After(then))
}

fn delayed(snapshot: &Snapshot, why: &str) -> Plan {
    let news = News {
        warning: true,
        reason: DELAYED.into(),
        note: format!("The operator cannot delete the cluster in the hub yet: {why}"),
    };
    waits(snapshot, news, SOON)
}

fn parting(snapshot: &Snapshot, agent: &Agent, pool: Option<&InfraEnv>) -> Option<Step> {
    if agent.metadata.deletion_timestamp.is_some() {
        return None;
    }
    match fate(snapshot, pool) {
        Fate::Delete => deletion(agent),
        // The API refuses it until the Agent shows that the installation was cancelled.
        Fate::Unbind if is_installing(agent) => None,
        Fate::Unbind => Some(Step::UnbindAgent(Key::of(agent))),
    }
}

/// Once.
fn deletion(agent: &Agent) -> Option<Step> {
    let is_going = agent.metadata.deletion_timestamp.is_some();
    (!is_going).then(|| Step::DeleteAgent(Key::of(agent)))
}

/// Hosts that came with the cluster go with it. Those of a cluster that is to live on must not return to the pool either:
/// there they would be lent again, and overwritten.
pub fn fate(snapshot: &Snapshot, pool: Option<&InfraEnv>) -> Fate {
    let preserve = snapshot
        .deployment
        .as_ref()
        .is_some_and(|deployment| deployment.spec.preserve_on_delete);
    match pool.map(|pool| pool.spec.cluster_ref.as_ref()) {
        None => Fate::Unbind,
        Some(Some(cluster)) if Key::from(cluster) == snapshot.key => Fate::Delete,
        Some(Some(_)) => Fate::Unbind,
        Some(None) if preserve => Fate::Delete,
        Some(None) => Fate::Unbind,
    }
}

/// The rule is the API's own, so it is judged by what the API knows.
fn is_installing(agent: &Agent) -> bool {
    let status = agent.status.as_ref();
    let joins = status.is_some_and(|status| status.kind == HostKind::AddToExistingClusterHost);
    agent::plan::is_installing(&agent.state()) && !joins
}
