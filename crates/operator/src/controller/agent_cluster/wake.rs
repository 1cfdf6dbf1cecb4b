//! Which AgentClusters a change concerns.

use crate::crd::capi::{Cluster, ControlPlane};
use crate::crd::keys::label;
use crate::crd::{AgentCluster, AgentClusterInstall, ClusterDeployment};
use crate::key::Key;
use crate::runtime::context::index;
use crate::runtime::hook::Hooks;
use crate::runtime::{Change, Context};
use kube::ResourceExt;

pub fn wire(hooks: &mut Hooks) {
    hooks.agent_cluster.push(itself);
    hooks.cluster.push(by_cluster);
    hooks.control_plane.push(by_control_plane);
    hooks.cluster_deployment.push(by_deployment);
    hooks.agent_cluster_install.push(by_install);
    hooks.everything.push(all);
}

fn itself(ctx: &Context, change: &Change<AgentCluster>) {
    ctx.queues.agent_cluster.wake(change.key.clone());
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
    let queue = &ctx.queues.agent_cluster;
    queue.wake_all(ctx.mirrors.agent_clusters.by(index::CLUSTER_NAMESPACE, namespace));
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
            let found = ctx.mirrors.cluster_deployments.get(&deployment);
            if found.is_some_and(|found| found.labels().contains_key(label::AGENT_CLUSTER)) {
                neighbours(ctx, &change.key.namespace);
            }
        }
    }
}

fn all(ctx: &Context) {
    ctx.queues
        .agent_cluster
        .wake_all(ctx.mirrors.agent_clusters.all());
}
