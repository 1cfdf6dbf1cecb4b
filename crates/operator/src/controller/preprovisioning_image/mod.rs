//! PreprovisioningImage: what Ironic's agent boots from on machines of the converged flow is the image of their InfraEnv.
//!
//! The bare metal operator makes the object and reads its status. Here it is only answered.

pub mod ironic;
pub mod plan;
mod wake;
pub mod whereabouts;
mod world;

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
    name: "preprovisioning-image",
    queue: |ctx| &ctx.queues.preprovisioning_image,
    reconcile: |ctx, key| Box::pin(looks::settle::<World>(ctx, key)),
    width: 4,
};

const WRITER: Writer = Writer("muster-preprovisioning-image");

impl looks::World for World {
    type Place = Key;
    type Step = Step;
    type Trouble = Infallible;

    const WORD: &'static str = "a PreprovisioningImage";
    /// A fresh one needs three.
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
    let images = (
        &ctx.mirrors.preprovisioning_images,
        ctx.hooks.preprovisioning_image.as_slice(),
    );
    match step {
        Step::Patch(patch) => ctx.patch(WRITER, images, &*world.image, patch).await,
        Step::Status(status) => ctx.patch_status(WRITER, images, &*world.image, status).await,
        Step::PatchHost(patch) => {
            let hosts = (
                &ctx.mirrors.bare_metal_hosts,
                ctx.hooks.bare_metal_host.as_slice(),
            );
            match &world.host {
                Some(host) => ctx.patch(WRITER, hosts, &**host, patch).await,
                // Plans without a host do not touch one.
                None => Ok(()),
            }
        }
        Step::AnnotateInfraEnv(patch) => {
            let infra_envs = (&ctx.mirrors.infra_envs, ctx.hooks.infra_env.as_slice());
            match &world.infra_env {
                Some(infra_env) => {
                    ctx.change(WRITER, infra_envs, &Key::of(&**infra_env), patch)
                        .await
                }
                None => Ok(()),
            }
        }
        Step::LabelSecret(key, labels) => {
            let secrets = (&ctx.mirrors.secrets, ctx.hooks.secret.as_slice());
            ctx.label(WRITER, secrets, key, labels).await
        }
        Step::WakeInfraEnv => {
            let infra_env = world.infra_env.as_deref().map(Key::of);
            infra_env
                .into_iter()
                .for_each(|key| ctx.queues.infra_env.wake(key));
            Ok(())
        }
    }
}
