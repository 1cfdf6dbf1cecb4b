//! Which AgentMachines a change concerns.

use super::index::{
    MACHINES_BY_AGENT, MACHINES_BY_NAMESPACE, MACHINES_BY_OWNER, MACHINES_WAITING, OWNERS_BY_DATA,
};
use super::plan::{bootstrap, claim};
use crate::crd::agent::{AgentStatus, condition};
use crate::crd::capi::{Cluster, ControlPlane, Machine};
use crate::crd::condition::find_service;
use crate::crd::{Agent, AgentCluster, AgentMachine, capi};
use crate::key::Key;
use crate::runtime::registry::Registry;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

pub fn register(registry: &mut Registry) {
    registry
        .index(MACHINES_BY_AGENT)
        .index(MACHINES_BY_OWNER)
        .index(MACHINES_BY_NAMESPACE)
        .index(MACHINES_WAITING)
        .index(OWNERS_BY_DATA)
        .on(itself)
        .on(by_agent)
        .on(by_machine)
        .on(by_cluster)
        .on(by_agent_cluster)
        .on(by_control_plane)
        .on(by_secret)
        .on_start_over(all);
}

fn itself(ctx: &Context, change: &Change<AgentMachine>) {
    ctx.queue(&super::CONTROLLER).wake(change.key.clone());
}

/// Those that have it or wait for it, and, when it is another choice than before, all that still have to choose.
fn by_agent(ctx: &Context, change: &Change<Agent>) {
    let (machines, queue) = (&ctx.cache::<AgentMachine>(), &ctx.queue(&super::CONTROLLER));
    for named in [&change.key.to_string(), &change.key.name] {
        queue.wake_all(machines.by(MACHINES_BY_AGENT, named));
    }
    for agent in change.objects() {
        if let Some(holder) = claim::holder(agent) {
            queue.wake(holder);
        }
    }
    let same = match (&change.before, &change.after) {
        (Some(before), Some(after)) => is_same_choice(before, after),
        (None, _) | (_, None) => false,
    };
    if !same {
        queue.wake_all(machines.by(MACHINES_WAITING, ""));
    }
}

fn is_same_choice(before: &Agent, after: &Agent) -> bool {
    let (old, new) = (before.status.as_ref(), after.status.as_ref());
    let said = |type_| {
        let word = |status: Option<&AgentStatus>| {
            let found = find_service(&status?.conditions, type_)?;
            Some((found.status.clone(), found.reason.clone()))
        };
        word(old) == word(new)
    };
    before.spec == after.spec
        && before.labels() == after.labels()
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
        && said(condition::BOUND)
        && said(condition::CONNECTED)
        && said(condition::VALIDATED)
        && said(condition::REQUIREMENTS_MET)
        && old.map(|status| &status.inventory) == new.map(|status| &status.inventory)
}

fn by_machine(ctx: &Context, change: &Change<Machine>) {
    let owned = ctx
        .cache::<AgentMachine>()
        .by(MACHINES_BY_OWNER, &change.key.to_string());
    ctx.queue(&super::CONTROLLER).wake_all(owned);
}

fn by_cluster(ctx: &Context, change: &Change<Cluster>) {
    if change.differs_in(|cluster| &cluster.spec) {
        neighbours(ctx, &change.key.namespace);
    }
}

fn by_agent_cluster(ctx: &Context, change: &Change<AgentCluster>) {
    if change.differs_in(AgentCluster::deployment) {
        neighbours(ctx, &change.key.namespace);
    }
}

/// Where Agents come from may have changed.
fn by_control_plane(ctx: &Context, change: &Change<ControlPlane>) {
    if change.differs_in(|plane| &plane.spec.platform) {
        neighbours(ctx, &change.key.namespace);
    }
}

fn neighbours(ctx: &Context, namespace: &str) {
    let machines = ctx.cache::<AgentMachine>().by(MACHINES_BY_NAMESPACE, namespace);
    ctx.queue(&super::CONTROLLER).wake_all(machines);
}

/// User data that was renewed, or is there at last; or a token that was made of it.
fn by_secret(ctx: &Context, change: &Change<Secret>) {
    let source = bootstrap::source_of(&change.key);
    for data in [Some(&change.key), source.as_ref()].into_iter().flatten() {
        for machine in ctx.cache::<capi::Machine>().by(OWNERS_BY_DATA, &data.to_string()) {
            let owner = Key::of(&*machine).to_string();
            let owned = ctx.cache::<AgentMachine>().by(MACHINES_BY_OWNER, &owner);
            ctx.queue(&super::CONTROLLER).wake_all(owned);
        }
    }
}

fn all(ctx: &Context) {
    ctx.queue(&super::CONTROLLER)
        .wake_all(ctx.cache::<AgentMachine>().all());
}
