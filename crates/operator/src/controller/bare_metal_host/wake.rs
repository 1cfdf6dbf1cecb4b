//! Whose BareMetalHosts a change concerns.

use super::index::{
    METAL_HOSTS_BY_CLUSTER, METAL_HOSTS_BY_CREDENTIALS, METAL_HOSTS_BY_INFRA_ENV, METAL_HOSTS_BY_MAC,
};
use super::plan::fencing::agent_of_copy;
use crate::controller::agent::index::{AGENTS_BY_CLUSTER, mac_of};
use crate::crd::keys::label;
use crate::crd::{
    Agent, AgentClusterInstall, BareMetalHost, ClusterDeployment, InfraEnv, PreprovisioningImage, capi,
};
use crate::key::Key;
use crate::runtime::registry::Registry;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use std::collections::BTreeSet;

pub fn register(registry: &mut Registry) {
    registry
        .index(METAL_HOSTS_BY_MAC)
        .index(METAL_HOSTS_BY_INFRA_ENV)
        .index(METAL_HOSTS_BY_CLUSTER)
        .index(METAL_HOSTS_BY_CREDENTIALS)
        .reads::<capi::ControlPlane>()
        .on(itself)
        .on(by_agent)
        .on(by_infra_env)
        .on(by_image)
        .on(by_cluster)
        .on(by_install)
        .on(by_secret)
        .on_start_over(all);
}

fn itself(ctx: &Context, change: &Change<BareMetalHost>) {
    ctx.queue(&super::CONTROLLER).wake(change.key.clone());
}

/// By its label, and by the interfaces it had and has.
fn by_agent(ctx: &Context, change: &Change<Agent>) {
    for agent in change.objects() {
        of_agent(ctx, agent);
    }
}

fn of_agent(ctx: &Context, agent: &Agent) {
    for key in machines_of(ctx, agent) {
        ctx.queue(&super::CONTROLLER).wake(key);
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
        let hosts = ctx.cache::<BareMetalHost>().by(METAL_HOSTS_BY_MAC, &mac);
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
        ctx.queue(&super::CONTROLLER).wake_all(
            ctx.cache::<BareMetalHost>()
                .by(METAL_HOSTS_BY_INFRA_ENV, &change.key.to_string()),
        );
    }
}

/// Named like its BareMetalHost.
fn by_image(ctx: &Context, change: &Change<PreprovisioningImage>) {
    ctx.queue(&super::CONTROLLER).wake(change.key.clone());
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
    for agent in ctx.cache::<Agent>().by(AGENTS_BY_CLUSTER, &cluster.to_string()) {
        of_agent(ctx, &agent);
    }
    ctx.queue(&super::CONTROLLER).wake_all(
        ctx.cache::<BareMetalHost>()
            .by(METAL_HOSTS_BY_CLUSTER, &cluster.to_string()),
    );
}

/// Those whose credentials it holds, and the one whose copy for fencing it is.
fn by_secret(ctx: &Context, change: &Change<Secret>) {
    ctx.queue(&super::CONTROLLER).wake_all(
        ctx.cache::<BareMetalHost>()
            .by(METAL_HOSTS_BY_CREDENTIALS, &change.key.to_string()),
    );
    let agent = agent_of_copy(&change.key).and_then(|agent| ctx.cache::<Agent>().get(&agent));
    if let Some(agent) = agent {
        of_agent(ctx, &agent);
    }
}

fn all(ctx: &Context) {
    ctx.queue(&super::CONTROLLER)
        .wake_all(ctx.cache::<BareMetalHost>().all());
}
