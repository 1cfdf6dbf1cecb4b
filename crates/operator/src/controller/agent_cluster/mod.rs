//! AgentCluster: a cluster of Cluster API becomes a ClusterDeployment and an AgentClusterInstall to which Agents can be
//! bound.

pub mod plan;
mod wake;
pub mod world;

pub use wake::wire;
pub use world::World;

use crate::error::Error;
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::work::Job;
use crate::runtime::{Context, looks};
use plan::{Plan, Step};
use std::convert::Infallible;

pub const JOB: Job = Job {
    name: "agent-cluster",
    queue: |ctx| &ctx.queues.agent_cluster,
    reconcile: |ctx, key| Box::pin(looks::settle::<World>(ctx, key)),
    width: 2,
};

const WRITER: Writer = Writer("muster-agent-cluster");

impl looks::World for World {
    type Place = Key;
    type Step = Step;
    type Trouble = Infallible;

    const WORD: &'static str = "an AgentCluster";
    /// A fresh one needs four.
    const LOOKS: usize = 8;

    async fn read(ctx: &Context, key: &Key, _: Option<Infallible>) -> Result<Option<Self>, Error> {
        Self::read(ctx, key).await
    }

    fn plan(&self) -> Plan {
        plan::plan(self)
    }

    async fn apply(&self, ctx: &Context, step: &Step) -> Result<Result<(), Infallible>, Error> {
        apply(ctx, self, step).await.map(Ok)
    }
}

async fn apply(ctx: &Context, world: &World, step: &Step) -> Result<(), Error> {
    let own = (&ctx.mirrors.agent_clusters, ctx.hooks.agent_cluster.as_slice());
    let deployments = (
        &ctx.mirrors.cluster_deployments,
        ctx.hooks.cluster_deployment.as_slice(),
    );
    let installs = (
        &ctx.mirrors.agent_cluster_installs,
        ctx.hooks.agent_cluster_install.as_slice(),
    );
    match step {
        Step::Patch(patch) => ctx.patch(WRITER, own, &*world.cluster, patch).await,
        Step::Status(status) => ctx.patch_status(WRITER, own, &*world.cluster, status).await,
        Step::Tell(news) => {
            ctx.recorder.tell(&*world.cluster, news).await;
            Ok(())
        }
        Step::CreateDeployment(deployment) => {
            ctx.make_sure_not_elsewhere(&world.key.namespace).await?;
            ctx.create(WRITER, deployments, &**deployment).await?;
            tracing::info!(key = %world.key, "a cluster of Cluster API got its ClusterDeployment");
            Ok(())
        }
        Step::PatchDeployment(patch) => match &world.deployment {
            Some(deployment) => ctx.patch(WRITER, deployments, &**deployment, patch).await,
            None => Ok(()),
        },
        Step::CreateInstall(install) => ctx.create(WRITER, installs, &**install).await.map(drop),
        Step::LabelSecret(key, labels) => {
            let secrets = (&ctx.mirrors.secrets, ctx.hooks.secret.as_slice());
            ctx.label(WRITER, secrets, key, labels).await
        }
    }
}
