//! InfraEnv: the hub gets an InfraEnv as the object describes it, the object gets the links to the image.
//!
//! This is the form of every controller: look at the world, plan without touching it, apply the plan, look again. A look
//! that plans nothing is the end, so a second look at an unchanged world cannot write.

pub mod plan;
mod wake;
mod world;

pub use wake::wire;
pub use world::World;

use crate::error::{Error, Trouble};
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::work::Job;
use crate::runtime::{Context, Next};
use plan::{Step, Then};

pub const JOB: Job = Job {
    name: "infra-env",
    queue: |ctx| &ctx.queues.infra_env,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
    width: 4,
};

const WRITER: Writer = Writer("muster-infra-env");

/// A plan for a fresh object needs four looks; whoever needs more than this goes round in circles.
const LOOKS: usize = 8;

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let mut trouble = None;
    for _ in 0..LOOKS {
        let Some(world) = World::read(ctx, key, trouble.take()).await? else {
            return Ok(Next::Rest);
        };
        let plan = plan::plan(&world);
        for step in &plan.steps {
            if let Err(cause) = apply(ctx, &world, step).await? {
                // What the hub does not do is part of the world at the next look; the rest of this plan is void.
                trouble = Some(cause);
                break;
            }
        }
        match (plan.then, &trouble) {
            (Then::Look, _) | (_, Some(_)) => {}
            (Then::Rest, None) => return Ok(Next::Rest),
            (Then::After(delay), None) => return Ok(Next::After(delay)),
        }
    }
    tracing::warn!(%key, "an InfraEnv does not come to rest");
    Ok(Next::After(ctx.retry))
}

/// Carries out one step. The outer error ends the look, the inner one is the hub's refusal.
async fn apply(ctx: &Context, world: &World, step: &Step) -> Result<Result<(), Trouble>, Error> {
    let mirror = (&ctx.mirrors.infra_envs, ctx.hooks.infra_env.as_slice());
    match step {
        Step::Patch(patch) => ctx.patch(WRITER, mirror, &*world.infra_env, patch).await?,
        Step::Status(status) => ctx.patch_status(WRITER, mirror, &world.key(), status).await?,
        Step::LabelSecret(key, labels) => {
            let secrets = (&ctx.mirrors.secrets, ctx.hooks.secret.as_slice());
            ctx.label(WRITER, secrets, key, labels).await?;
        }
        Step::LabelConfigMap(key, labels) => {
            let maps = (&ctx.mirrors.config_maps, ctx.hooks.config_map.as_slice());
            ctx.label(WRITER, maps, key, labels).await?;
        }
        Step::Tell(news) => ctx.recorder.tell(&*world.infra_env, news).await,
        Step::Create(wish) => {
            let done = ctx.hub.put_infra_env(world.id, wish).await;
            let remember = |_| world.remember(ctx, Some(&wish.pull_secret), wish.openshift_version.as_ref());
            return Ok(done.map(remember).map_err(Trouble::from));
        }
        Step::Update(wish) => {
            let done = ctx.hub.update_infra_env(world.id, wish).await;
            let remember =
                |_| world.remember(ctx, wish.pull_secret.as_ref(), wish.openshift_version.as_ref());
            return Ok(done.map(remember).map_err(Trouble::from));
        }
        Step::DeleteHost(host) => return Ok(gone(ctx.hub.delete_host(world.id, *host).await)),
        Step::DeleteInfraEnv => {
            ctx.told.forget(world.id);
            return Ok(gone(ctx.hub.delete_infra_env(world.id).await));
        }
    }
    Ok(Ok(()))
}

/// What is not there any more is deleted.
fn gone(answer: Result<(), muster_contract::ClientError>) -> Result<(), Trouble> {
    match answer {
        Ok(()) | Err(muster_contract::ClientError::NotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
