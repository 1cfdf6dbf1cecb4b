//! BareMetalHost: machines with a power controller boot discovery by themselves, their Agents get what is written on
//! them, and when an Agent is to come back the machine is fetched.
//!
//! The bare metal operator of metal3 does the work on the machine. Here it is only told what to do, by spec and
//! annotations of the BareMetalHost.

pub mod index;
pub mod plan;
mod spoke;
mod wake;
mod world;

pub(crate) use wake::machines_of;
use wake::register;
pub use world::World;
pub(crate) use world::{agent_of, states_of};

use crate::crd::Agent;
use crate::error::Error;
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group};
use crate::runtime::{Context, looks};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{DeleteParams, Preconditions};
use plan::{Plan, Step};
use serde_json::json;
use std::collections::BTreeMap;

pub const CONTROLLER: Controller = Controller {
    name: "bare-metal-host",
    group: Group::Service,
    workers: 4,
    register,
    reconcile: |ctx, key| Box::pin(looks::settle::<World>(ctx, key)),
};

const WRITER: Writer = Writer("muster-bare-metal-host");

impl looks::World for World {
    type Place = Key;
    type Step = Step;
    /// Why something could not be done in the cluster.
    type Trouble = String;

    const WORD: &'static str = "a BareMetalHost";
    /// A machine that comes back needs three.
    const LOOKS: usize = 8;

    async fn read(ctx: &Context, key: &Key, trouble: Option<String>) -> Result<Option<Self>, Error> {
        Self::read(ctx, key, trouble).await
    }

    fn plan(&self) -> Plan {
        plan::plan(self)
    }

    async fn apply(&self, ctx: &Context, step: &Step) -> Result<Result<(), String>, Error> {
        match step {
            Step::Drain(deed) => Ok(spoke::carry_out(ctx, self, deed).await),
            Step::Join(deed) => Ok(spoke::join(ctx, self, deed).await),
            step => apply(ctx, self, step).await.map(Ok),
        }
    }
}

async fn apply(ctx: &Context, world: &World, step: &Step) -> Result<(), Error> {
    match step {
        Step::PatchHost(patch) => ctx.patch(WRITER, &*world.host, patch).await,
        Step::PatchAgent(patch) => {
            match &world.agent {
                Some(agent) => ctx.patch(WRITER, &**agent, patch).await,
                // Plans without an Agent do not touch one.
                None => Ok(()),
            }
        }
        Step::DeleteAgent => delete_agent(ctx, world).await,
        Step::LabelSecret(key, labels) => ctx.label::<Secret>(WRITER, key, labels).await,
        Step::PutSecret(secret) => put_secret(ctx, secret).await,
        // See above: their failure is another one.
        Step::Drain(_) | Step::Join(_) => Ok(()),
        Step::Complain(flaws) => {
            tell(ctx, world, FLAWS, flaws).await;
            Ok(())
        }
        Step::Report(troubles) => {
            tell(ctx, world, TROUBLES, troubles).await;
            Ok(())
        }
    }
}

/// The very object that was seen, and no other of its name.
async fn delete_agent(ctx: &Context, world: &World) -> Result<(), Error> {
    let Some(agent) = &world.agent else { return Ok(()) };
    let seen = Preconditions {
        uid: agent.uid(),
        resource_version: None,
    };
    let params = DeleteParams::default().preconditions(seen);
    let api = ctx.cache::<Agent>().api(&world.key.namespace);
    match api.delete(&agent.name_any(), &params).await.map_err(Error::from) {
        Ok(_) | Err(Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn put_secret(ctx: &Context, wish: &plan::FencingSecret) -> Result<(), Error> {
    let data: BTreeMap<_, _> = wish
        .values
        .iter()
        .map(|(name, value)| (*name, ByteString(value.0.clone().into_bytes())))
        .collect();
    let mut wire = json!({
        "metadata": { "labels": wish.labels },
        "data": data,
    });
    if wish.exists {
        // Its owners are those of whoever made it.
        return ctx.change::<Secret>(WRITER, &wish.key, &wire).await;
    }
    wire["metadata"]["name"] = json!(wish.key.name);
    wire["metadata"]["namespace"] = json!(wish.key.namespace);
    wire["metadata"]["ownerReferences"] = json!([wish.owner]);
    let secret: Secret = serde_json::from_value(wire).map_err(kube::Error::SerdeError)?;
    ctx.create(WRITER, &secret).await.map(drop)
}

/// What people are told of, by its name in `Told` and the reason of the Event.
type Matter = (&'static str, &'static str);

/// A BareMetalHost asks for something that cannot be done.
const FLAWS: Matter = ("metal-flaws", "InputError");
/// Something could not be done in the cluster of the machine.
const TROUBLES: Matter = ("metal-troubles", "BackendError");

/// Once for every set of texts: a BareMetalHost has no condition of ours in which they could stand.
async fn tell(ctx: &Context, world: &World, (what, reason): Matter, texts: &[String]) {
    let text = texts.join(" ");
    let Some(id) = world.host.uid().and_then(|uid| uid.parse().ok()) else {
        return;
    };
    if ctx.told.knows(id, what, &text) {
        return;
    }
    tracing::warn!(key = %world.key, reason, %text, "a BareMetalHost cannot be served as it should");
    ctx.told.remember(id, what, &text);
    let news = News {
        warning: true,
        reason: reason.into(),
        note: text,
    };
    ctx.recorder.tell(&*world.host, &news).await;
}
