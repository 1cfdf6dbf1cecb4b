//! AgentMachine: a machine of Cluster API takes an Agent that fits, follows it until it is installed, and gives it back
//! before the machine is deleted.

pub mod index;
pub mod plan;
pub mod snapshot;
mod wake;

pub use snapshot::Snapshot;
use wake::register;

use crate::crd::AgentMachine;
use crate::crd::keys::data;
use crate::error::Error;
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group};
use crate::runtime::{Context, reconciler};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use plan::{Plan, Step, TokenSecret};
use serde_json::json;
use std::convert::Infallible;

pub const CONTROLLER: Controller = Controller {
    name: "agent-machine",
    group: Group::CapiProvider,
    workers: 4,
    register,
    reconcile: |ctx, key| Box::pin(reconciler::run::<Snapshot>(ctx, key)),
};

const WRITER: Writer = Writer("muster-agent-machine");

impl reconciler::Reconcile for Snapshot {
    type Place = Key;
    type Step = Step;
    type Failure = Infallible;

    const OBJECT: &'static str = "an AgentMachine";
    /// A fresh one that finds an Agent and an old token needs eight.
    const MOST_ROUNDS: usize = 12;

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
        Step::Patch(patch) => ctx.patch(WRITER, &*snapshot.machine, patch).await,
        Step::Status(status) => ctx.patch_status(WRITER, &*snapshot.machine, status).await,
        Step::Tell(news) => {
            ctx.recorder.tell::<AgentMachine>(&snapshot.machine, news).await;
            Ok(())
        }
        Step::PatchMachine(patch) => match &snapshot.lineage.machine {
            Some(machine) => ctx.patch(WRITER, &**machine, patch).await,
            None => Ok(()),
        },
        Step::Claim(agent, patch) => {
            ctx.make_sure_not_elsewhere(&snapshot.key.namespace).await?;
            // Guarded by the version in the snapshot: of several who want it, one gets it.
            ctx.patch(WRITER, &**agent, patch).await
        }
        Step::PatchAgent(agent, patch) => ctx.patch(WRITER, &**agent, patch).await,
        Step::LabelSecret(key, labels) => ctx.label::<Secret>(WRITER, key, labels).await,
        Step::CreateToken(token) => match ctx.create(WRITER, &secret(token)).await {
            // Machines share their user data, and one of them was faster.
            Err(error) if error.is_there_already() => Err(Error::Conflict),
            made => made.map(drop),
        },
        Step::ChangeToken(kept, token) => {
            let bytes = ByteString(token.0.clone().into_bytes());
            let patch = json!({ "data": { data::IGNITION_TOKEN: bytes } });
            ctx.patch(WRITER, &**kept, &patch).await
        }
    }
}

fn secret(desired: &TokenSecret) -> Secret {
    let bytes = ByteString(desired.token.0.clone().into_bytes());
    Secret {
        metadata: kube::api::ObjectMeta {
            name: Some(desired.key.name.clone()),
            namespace: Some(desired.key.namespace.clone()),
            labels: Some(crate::crd::keys::used_labels(&Default::default())),
            owner_references: Some(vec![desired.owner.clone()]),
            ..Default::default()
        },
        data: Some([(data::IGNITION_TOKEN.to_owned(), bytes)].into()),
        ..Secret::default()
    }
}
