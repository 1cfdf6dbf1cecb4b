//! Whose BareMetalHosts a change concerns.

use super::plan::fencing::agent_of_copy;
use crate::crd::keys::label;
use crate::crd::{
    Agent, AgentClusterInstall, BareMetalHost, ClusterDeployment, InfraEnv, PreprovisioningImage,
};
use crate::key::Key;
use crate::runtime::context::{index, mac_of};
use crate::runtime::hook::Hooks;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use std::collections::BTreeSet;

pub fn wire(hooks: &mut Hooks) {
    hooks.bare_metal_host.push(itself);
    hooks.agent.push(by_agent);
    hooks.infra_env.push(by_infra_env);
    hooks.preprovisioning_image.push(by_image);
    hooks.cluster_deployment.push(by_cluster);
    hooks.agent_cluster_install.push(by_install);
    hooks.secret.push(by_secret);
    hooks.everything.push(all);
}

fn itself(ctx: &Context, change: &Change<BareMetalHost>) {
    ctx.queues.bare_metal_host.wake(change.key.clone());
}

/// By its label, and by the interfaces it had and has.
fn by_agent(ctx: &Context, change: &Change<Agent>) {
    for agent in change.objects() {
        of_agent(ctx, agent);
    }
}

fn of_agent(ctx: &Context, agent: &Agent) {
    for key in machines_of(ctx, agent) {
        ctx.queues.bare_metal_host.wake(key);
    }
}

pub(crate) fn machines_of(ctx: &Context, agent: &Agent) -> BTreeSet<Key> {
    let namespace = &agent.namespace().unwrap_or_default();
    let named = agent.labels().get(label::BARE_METAL_HOST);
    let mut keys: BTreeSet<Key> = named.map(|name| Key::new(namespace, name)).into_iter().collect();
    let interfaces = agent
        .status
        .iter()
        .flat_map(|status| &status.inventory.interfaces);
    for mac in interfaces.filter_map(|interface| mac_of(namespace, &interface.mac_address)) {
        let hosts = ctx.mirrors.bare_metal_hosts.by(index::METAL_MAC, &mac);
        keys.extend(hosts.iter().map(|host| Key::of(&**host)));
    }
    keys
}

/// Its image, and whether its hosts belong to a cluster.
fn by_infra_env(ctx: &Context, change: &Change<InfraEnv>) {
    if change.differs_in(|infra_env| {
        let image = infra_env.status.as_ref();
        let image = image.map(|status| (&status.iso_download_url, &status.created_time));
        (image, &infra_env.spec.cluster_ref)
    }) {
        ctx.queues.bare_metal_host.wake_all(
            ctx.mirrors
                .bare_metal_hosts
                .by(index::METAL_INFRA_ENV, &change.key.to_string()),
        );
    }
}

/// Named like its BareMetalHost.
fn by_image(ctx: &Context, change: &Change<PreprovisioningImage>) {
    ctx.queues.bare_metal_host.wake(change.key.clone());
}

fn by_cluster(ctx: &Context, change: &Change<ClusterDeployment>) {
    of_cluster(ctx, &change.key);
}

/// That it is there, and whether it goes; how far it is does not matter.
fn by_install(ctx: &Context, change: &Change<AgentClusterInstall>) {
    if change.differs_in(|install| install.metadata.deletion_timestamp.is_some()) {
        for install in change.objects() {
            let name = &install.spec.cluster_deployment_ref.name;
            of_cluster(ctx, &Key::new(&change.key.namespace, name));
        }
    }
}

/// Those that name it, and those whose Agents do.
fn of_cluster(ctx: &Context, cluster: &Key) {
    for agent in ctx.mirrors.agents.by(index::AGENT_CLUSTER, &cluster.to_string()) {
        of_agent(ctx, &agent);
    }
    ctx.queues.bare_metal_host.wake_all(
        ctx.mirrors
            .bare_metal_hosts
            .by(index::METAL_CLUSTER, &cluster.to_string()),
    );
}

/// Those whose credentials it holds, and the one whose copy for fencing it is.
fn by_secret(ctx: &Context, change: &Change<Secret>) {
    ctx.queues.bare_metal_host.wake_all(
        ctx.mirrors
            .bare_metal_hosts
            .by(index::METAL_CREDENTIALS, &change.key.to_string()),
    );
    let agent = agent_of_copy(&change.key).and_then(|agent| ctx.mirrors.agents.get(&agent));
    if let Some(agent) = agent {
        of_agent(ctx, &agent);
    }
}

fn all(ctx: &Context) {
    ctx.queues
        .bare_metal_host
        .wake_all(ctx.mirrors.bare_metal_hosts.all());
}
