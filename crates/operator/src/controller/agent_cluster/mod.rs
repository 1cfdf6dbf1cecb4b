//! AgentCluster: a cluster of Cluster API becomes a ClusterDeployment and an AgentClusterInstall to which Agents can be
//! bound.

pub mod index;
pub mod plan;
mod wake;
pub mod world;

use wake::register;
pub use world::World;

use crate::error::Error;
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group};
use crate::runtime::{Context, looks};
use k8s_openapi::api::core::v1::Secret;
use plan::{Plan, Step};
use std::convert::Infallible;

pub const CONTROLLER: Controller = Controller {
    name: "agent-cluster",
    group: Group::CapiProvider,
    workers: 2,
    register,
    reconcile: |ctx, key| Box::pin(looks::settle::<World>(ctx, key)),
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
    match step {
        Step::Patch(patch) => ctx.patch(WRITER, &*world.cluster, patch).await,
        Step::Status(status) => ctx.patch_status(WRITER, &*world.cluster, status).await,
        Step::Tell(news) => {
            ctx.recorder.tell(&*world.cluster, news).await;
            Ok(())
        }
        Step::CreateDeployment(deployment) => {
            ctx.make_sure_not_elsewhere(&world.key.namespace).await?;
            ctx.create(WRITER, &**deployment).await?;
            tracing::info!(key = %world.key, "a cluster of Cluster API got its ClusterDeployment");
            Ok(())
        }
        Step::PatchDeployment(patch) => match &world.deployment {
            Some(deployment) => ctx.patch(WRITER, &**deployment, patch).await,
            None => Ok(()),
        },
        Step::CreateInstall(install) => ctx.create(WRITER, &**install).await.map(drop),
        Step::LabelSecret(key, labels) => ctx.label::<Secret>(WRITER, key, labels).await,
    }
}
