//! PreprovisioningImage: what Ironic's agent boots from on machines of the converged flow is the image of their InfraEnv.
//!
//! The bare metal operator makes the object and reads its status. Here it is only answered.

pub mod index;
pub mod ironic;
pub mod plan;
mod snapshot;
mod wake;
pub mod whereabouts;

pub use snapshot::Snapshot;
use wake::register;

use crate::controller::infra_env;
use crate::crd::InfraEnv;
use crate::error::Error;
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group};
use crate::runtime::{Context, reconciler};
use k8s_openapi::api::core::v1::Secret;
use plan::{Plan, Step};
use std::convert::Infallible;

pub const CONTROLLER: Controller = Controller {
    name: "preprovisioning-image",
    group: Group::Service,
    workers: 4,
    register,
    reconcile: |ctx, key| Box::pin(reconciler::run::<Snapshot>(ctx, key)),
};

const WRITER: Writer = Writer("muster-preprovisioning-image");

impl reconciler::Reconcile for Snapshot {
    type Place = Key;
    type Step = Step;
    type Failure = Infallible;

    const OBJECT: &'static str = "a PreprovisioningImage";
    /// A fresh one needs three.
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
        Step::Patch(patch) => ctx.patch(WRITER, &*snapshot.image, patch).await,
        Step::Status(status) => ctx.patch_status(WRITER, &*snapshot.image, status).await,
        Step::PatchHost(patch) => {
            match &snapshot.host {
                Some(host) => ctx.patch(WRITER, &**host, patch).await,
                // Plans without a host do not touch one.
                None => Ok(()),
            }
        }
        Step::AnnotateInfraEnv(patch) => match &snapshot.infra_env {
            Some(infra_env) => {
                ctx.change::<InfraEnv>(WRITER, &Key::of(&**infra_env), patch)
                    .await
            }
            None => Ok(()),
        },
        Step::LabelSecret(key, labels) => ctx.label::<Secret>(WRITER, key, labels).await,
        Step::WakeInfraEnv => {
            let infra_env = snapshot.infra_env.as_deref().map(Key::of);
            infra_env
                .into_iter()
                .for_each(|key| ctx.queue(&infra_env::CONTROLLER).wake(key));
            Ok(())
        }
    }
}
