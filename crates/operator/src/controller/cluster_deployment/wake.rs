//! Whose clusters a change concerns. All keys are those of ClusterDeployments, also of such that are not there.

use super::index::{DEPLOYMENTS_BY_AGENT_CLUSTER, DEPLOYMENTS_BY_ID, INSTALLS_BY_CLUSTER, INSTALLS_LEAVING};
use super::plan::manifest;
use crate::crd::agent::condition;
use crate::crd::condition::find_service;
use crate::crd::{Agent, AgentClusterInstall, ClusterDeployment, ClusterImageSet, InfraEnv, capi};
use crate::key::Key;
use crate::runtime::registry::Registry;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use muster_contract::v1::change::{Change as HubChange, ChangeKind, ChangeOp};
use std::sync::Arc;
use uuid::Uuid;

pub fn register(registry: &mut Registry) {
    registry
        .index(DEPLOYMENTS_BY_ID)
        .index(DEPLOYMENTS_BY_AGENT_CLUSTER)
        .index(INSTALLS_BY_CLUSTER)
        .index(INSTALLS_LEAVING)
        .reads::<InfraEnv>()
        .reads::<capi::ControlPlane>()
        .on(itself)
        .on(by_install)
        .on(by_image_set)
        .on(by_agent)
        .on(by_secret)
        .on(by_config_map)
        .on_hub(by_hub)
        .on_start_over(all);
}

fn itself(ctx: &Context, change: &Change<ClusterDeployment>) {
    ctx.queue(&super::CONTROLLER).wake(change.key.clone());
    // Two with the same id: when one goes, the other may have it.
    for deployment in change.before.iter().filter(|_| change.after.is_none()) {
        let id = crate::crd::keys::hub_id(&**deployment, crate::crd::keys::annotation::CLUSTER_ID);
        id.iter().for_each(|id| of_hub(ctx, *id));
    }
}

fn by_install(ctx: &Context, change: &Change<AgentClusterInstall>) {
    change.objects().for_each(|install| wake(ctx, install));
}

fn by_image_set(ctx: &Context, change: &Change<ClusterImageSet>) {
    let uses = |install: &AgentClusterInstall| {
        let reference = install.spec.image_set_ref.as_ref();
        reference.is_some_and(|reference| reference.name == change.key.name)
    };
    those(ctx, uses);
}

/// Agents change often; only what the cluster uses counts.
fn by_agent(ctx: &Context, change: &Change<Agent>) {
    if change.before.as_deref().map(facts) == change.after.as_deref().map(facts) {
        return;
    }
    for agent in change.objects() {
        if let Some(cluster) = &agent.spec.cluster_deployment_name {
            ctx.queue(&super::CONTROLLER).wake(cluster.into());
        }
    }
    if change
        .after
        .as_deref()
        .is_none_or(|agent| agent.spec.cluster_deployment_name.is_none())
    {
        those_leaving(ctx);
    }
}

fn facts(agent: &Agent) -> impl PartialEq {
    let status = agent.status.clone().unwrap_or_default();
    let condition = |type_| find_service(&status.conditions, type_).map(|condition| condition.status.clone());
    (
        agent.spec.cluster_deployment_name.clone(),
        (agent.spec.approved, agent.metadata.deletion_timestamp.is_some()),
        (
            agent.spec.machine_config_pool.clone(),
            agent.spec.node_labels.is_empty(),
        ),
        (
            condition(condition::SPEC_SYNCED),
            condition(condition::REQUIREMENTS_MET),
        ),
        (
            status.debug_info.state,
            status.progress.map(|progress| progress.current_stage),
        ),
        agent.labels().get(crate::crd::keys::label::INFRA_ENV).cloned(),
    )
}

fn by_secret(ctx: &Context, change: &Change<Secret>) {
    let uses = |deployment: &Arc<ClusterDeployment>| {
        let pull_secret = deployment.spec.pull_secret_ref.as_ref();
        let here = deployment.namespace().as_deref() == Some(&change.key.namespace);
        here && pull_secret.is_some_and(|reference| reference.name == change.key.name)
    };
    let deployments = ctx.cache::<ClusterDeployment>().all();
    let those_with_it = deployments.into_iter().filter(uses);
    ctx.queue(&super::CONTROLLER).wake_all(those_with_it);
    those(ctx, |install| {
        let endpoint = install.spec.ignition_endpoint.as_ref();
        let ca = endpoint.and_then(|endpoint| endpoint.ca_certificate_reference.as_ref());
        ca.is_some_and(|ca| Key::from(ca) == change.key)
    });
}

fn by_config_map(ctx: &Context, change: &Change<ConfigMap>) {
    those(ctx, |install| {
        let here = install.namespace().as_deref() == Some(&change.key.namespace);
        let manifests = here && manifest::config_maps(&install.spec).contains(&change.key.name);
        let mirrors = install.spec.mirror_registry_ref.as_ref();
        manifests || mirrors.is_some_and(|mirrors| Key::from(mirrors) == change.key)
    });
}

fn by_hub(ctx: &Context, change: &HubChange) {
    match change.kind.known() {
        Some(ChangeKind::Cluster) => of_hub(ctx, change.id),
        Some(ChangeKind::Host) => by_host(ctx, change),
        Some(ChangeKind::InfraEnv) | None => {}
    }
}

fn by_host(ctx: &Context, change: &HubChange) {
    let host = (change.infra_env_id.unwrap_or_default(), change.id);
    let now = change.cluster_id.filter(|_| change.op == ChangeOp::Put);
    let left = ctx.last_clusters.moved(host, now);
    change
        .cluster_id
        .iter()
        .chain(&left)
        .for_each(|id| of_hub(ctx, *id));
    // A host that the operator never read in its cluster does not say which one it left; clusters that wait for that
    // are few.
    if now.is_none() || left.is_some() {
        those_leaving(ctx);
    }
}

/// Those of the cluster with this id in the hub.
fn of_hub(ctx: &Context, id: Uuid) {
    let deployments = &ctx.cache::<ClusterDeployment>();
    let those = deployments.by(DEPLOYMENTS_BY_ID, &id.to_string());
    ctx.queue(&super::CONTROLLER).wake_all(those);
}

fn all(ctx: &Context) {
    let deployments = ctx.cache::<ClusterDeployment>().all();
    ctx.queue(&super::CONTROLLER).wake_all(deployments);
    those(ctx, |_| true);
}

fn those_leaving(ctx: &Context) {
    for install in ctx.cache::<AgentClusterInstall>().by(INSTALLS_LEAVING, "") {
        wake(ctx, &install);
    }
}

fn those(ctx: &Context, concerned: impl Fn(&AgentClusterInstall) -> bool) {
    let all: Vec<Arc<AgentClusterInstall>> = ctx.cache::<AgentClusterInstall>().all();
    all.iter()
        .filter(|install| concerned(install))
        .for_each(|install| wake(ctx, install));
}

fn wake(ctx: &Context, install: &AgentClusterInstall) {
    let namespace = install.namespace().unwrap_or_default();
    ctx.queue(&super::CONTROLLER)
        .wake(Key::new(namespace, &install.spec.cluster_deployment_ref.name));
}
