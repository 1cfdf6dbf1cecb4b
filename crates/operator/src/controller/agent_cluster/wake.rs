//! Which AgentClusters a change concerns.

use super::index::AGENT_CLUSTERS_BY_NAMESPACE;
use crate::crd::capi::{Cluster, ControlPlane};
use crate::crd::keys::label;
use crate::crd::{AgentCluster, AgentClusterInstall, ClusterDeployment};
use crate::key::Key;
use crate::runtime::registry::Registry;
use crate::runtime::{Change, Context};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

pub fn register(registry: &mut Registry) {
    registry
        .index(AGENT_CLUSTERS_BY_NAMESPACE)
        .reads::<Secret>()
        .on(itself)
        .on(by_cluster)
        .on(by_control_plane)
        .on(by_deployment)
        .on(by_install)
        .on_start_over(all);
}

fn itself(ctx: &Context, change: &Change<AgentCluster>) {
    ctx.queue(&super::CONTROLLER).wake(change.key.clone());
}

fn by_cluster(ctx: &Context, change: &Change<Cluster>) {
    if change.differs_in(|cluster| &cluster.spec) {
        neighbours(ctx, &change.key.namespace);
    }
}

fn by_control_plane(ctx: &Context, change: &Change<ControlPlane>) {
    if change.differs_in(|plane| (&plane.spec, &plane.status)) {
        neighbours(ctx, &change.key.namespace);
    }
}

/// A namespace has one cluster, or a few.
fn neighbours(ctx: &Context, namespace: &str) {
    let queue = &ctx.queue(&super::CONTROLLER);
    queue.wake_all(
        ctx.cache::<AgentCluster>()
            .by(AGENT_CLUSTERS_BY_NAMESPACE, namespace),
    );
}

/// Whose it is, and that it is there.
fn by_deployment(ctx: &Context, change: &Change<ClusterDeployment>) {
    if change.differs_in(|deployment| {
        let leaves = deployment.metadata.deletion_timestamp.is_some();
        let label = deployment.labels().get(label::AGENT_CLUSTER);
        (label, deployment.owner_references(), leaves)
    }) {
        neighbours(ctx, &change.key.namespace);
    }
}

fn by_install(ctx: &Context, change: &Change<AgentClusterInstall>) {
    if change.before.is_none() || change.after.is_none() {
        for install in change.objects() {
            let name = &install.spec.cluster_deployment_ref.name;
            let deployment = Key::new(&change.key.namespace, name);
            let found = ctx.cache::<ClusterDeployment>().get(&deployment);
            if found.is_some_and(|found| found.labels().contains_key(label::AGENT_CLUSTER)) {
                neighbours(ctx, &change.key.namespace);
            }
        }
    }
}

fn all(ctx: &Context) {
    ctx.queue(&super::CONTROLLER)
        .wake_all(ctx.cache::<AgentCluster>().all());
}
