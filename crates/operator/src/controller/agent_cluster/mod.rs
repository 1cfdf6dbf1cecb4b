//! AgentCluster: a cluster of Cluster API becomes a ClusterDeployment and an AgentClusterInstall to which Agents can be
//! bound.

pub mod index;
pub mod plan;
pub mod snapshot;
mod wake;

pub use snapshot::Snapshot;
use wake::register;

use crate::error::Error;
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group};
use crate::runtime::{Context, reconciler};
use k8s_openapi::api::core::v1::Secret;
use plan::{Plan, Step};
use std::convert::Infallible;

pub const CONTROLLER: Controller = Controller {
    name: "agent-cluster",
    group: Group::CapiProvider,
    workers: 2,
    register,
    reconcile: |ctx, key| Box::pin(reconciler::run::<Snapshot>(ctx, key)),
};

const WRITER: Writer = Writer("muster-agent-cluster");

impl reconciler::Reconcile for Snapshot {
    type Place = Key;
    type Step = Step;
    type Failure = Infallible;

    const OBJECT: &'static str = "an AgentCluster";
    /// A fresh one needs four.
    const MOST_ROUNDS: usize = 8;

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

async fn apply(ctx: &Context, snapshot: &Snapshot, step: &Step) -> Result<(), Error> {
    match step {
        Step::Patch(patch) => ctx.patch(WRITER, &*snapshot.cluster, patch).await,
        Step::Status(status) => ctx.patch_status(WRITER, &*snapshot.cluster, status).await,
        Step::Tell(news) => {
            ctx.recorder.tell(&*snapshot.cluster, news).await;
            Ok(())
        }
        Step::CreateDeployment(deployment) => {
            ctx.make_sure_not_elsewhere(&snapshot.key.namespace).await?;
            ctx.create(WRITER, &**deployment).await?;
            tracing::info!(key = %snapshot.key, "created the ClusterDeployment of a Cluster API cluster");
            Ok(())
        }
        Step::PatchDeployment(patch) => match &snapshot.deployment {
            Some(deployment) => ctx.patch(WRITER, &**deployment, patch).await,
            None => Ok(()),
        },
        Step::CreateInstall(install) => ctx.create(WRITER, &**install).await.map(drop),
        Step::LabelSecret(key, labels) => ctx.label::<Secret>(WRITER, key, labels).await,
    }
}
