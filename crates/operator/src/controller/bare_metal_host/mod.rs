//! BareMetalHost: machines with a power controller boot discovery by themselves, their Agents get what is written on
//! them, and when an Agent is to come back the machine is fetched.
//!
//! The bare metal operator of metal3 does the work on the machine. This controller only orders it, by spec and
//! annotations of the BareMetalHost.

pub mod index;
pub mod plan;
mod snapshot;
mod spoke;
mod wake;

pub use snapshot::Snapshot;
pub(crate) use snapshot::{agent_of, states_of};
pub(crate) use wake::machines_of;
use wake::register;

use crate::crd::Agent;
use crate::error::Error;
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group};
use crate::runtime::{Context, reconciler};
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
    reconcile: |ctx, key| Box::pin(reconciler::run::<Snapshot>(ctx, key)),
};

const WRITER: Writer = Writer("muster-bare-metal-host");

impl reconciler::Reconcile for Snapshot {
    type Place = Key;
    type Step = Step;
    /// Why something could not be done in the cluster.
    type Failure = String;

    const OBJECT: &'static str = "a BareMetalHost";
    /// A machine that comes back needs three.
    const MOST_ROUNDS: usize = 8;

    async fn read(ctx: &Context, key: &Key, failure: Option<String>) -> Result<Option<Self>, Error> {
        Self::read(ctx, key, failure).await
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

async fn apply(ctx: &Context, snapshot: &Snapshot, step: &Step) -> Result<(), Error> {
    match step {
        Step::PatchHost(patch) => ctx.patch(WRITER, &*snapshot.host, patch).await,
        Step::PatchAgent(patch) => {
            match &snapshot.agent {
                Some(agent) => ctx.patch(WRITER, &**agent, patch).await,
                // Plans without an Agent do not touch one.
                None => Ok(()),
            }
        }
        Step::DeleteAgent => delete_agent(ctx, snapshot).await,
        Step::LabelSecret(key, labels) => ctx.label::<Secret>(WRITER, key, labels).await,
        Step::PutSecret(secret) => put_secret(ctx, secret).await,
        // See above: their failure is another one.
        Step::Drain(_) | Step::Join(_) => Ok(()),
        Step::Complain(mistakes) => {
            tell(ctx, snapshot, INVALID, mistakes).await;
            Ok(())
        }
        Step::Report(failures) => {
            tell(ctx, snapshot, FAILURES, failures).await;
            Ok(())
        }
    }
}

/// The very object that was read, and no other of its name.
async fn delete_agent(ctx: &Context, snapshot: &Snapshot) -> Result<(), Error> {
    let Some(agent) = &snapshot.agent else {
        return Ok(());
    };
    let preconditions = Preconditions {
        uid: agent.uid(),
        resource_version: None,
    };
    let params = DeleteParams::default().preconditions(preconditions);
    let api = ctx.cache::<Agent>().api(&snapshot.key.namespace);
    match api.delete(&agent.name_any(), &params).await.map_err(Error::from) {
        Ok(_) | Err(Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn put_secret(ctx: &Context, desired: &plan::FencingSecret) -> Result<(), Error> {
    let data: BTreeMap<_, _> = desired
        .values
        .iter()
        .map(|(name, value)| (*name, ByteString(value.0.clone().into_bytes())))
        .collect();
    let mut wire = json!({
        "metadata": { "labels": desired.labels },
        "data": data,
    });
    if desired.exists {
        // Its owners are those of whoever made it.
        return ctx.change::<Secret>(WRITER, &desired.key, &wire).await;
    }
    wire["metadata"]["name"] = json!(desired.key.name);
    wire["metadata"]["namespace"] = json!(desired.key.namespace);
    wire["metadata"]["ownerReferences"] = json!([desired.owner]);
    let secret: Secret = serde_json::from_value(wire).map_err(kube::Error::SerdeError)?;
    ctx.create(WRITER, &secret).await.map(drop)
}

/// What an Event is about: its name in `SentValues` and the reason of the Event.
type Matter = (&'static str, &'static str);

/// A BareMetalHost asks for something that cannot be done.
const INVALID: Matter = ("metal-invalid", "InputError");
/// Something could not be done in the cluster of the machine.
const FAILURES: Matter = ("metal-failures", "BackendError");

/// Once for every set of texts: a BareMetalHost has no condition of ours in which they could stand.
async fn tell(ctx: &Context, snapshot: &Snapshot, (what, reason): Matter, texts: &[String]) {
    let text = texts.join(" ");
    let Some(id) = snapshot.host.uid().and_then(|uid| uid.parse().ok()) else {
        return;
    };
    if ctx.sent.knows(id, what, &text) {
        return;
    }
    tracing::warn!(key = %snapshot.key, reason, %text, "the operator cannot do what a BareMetalHost asks for");
    ctx.sent.remember(id, what, &text);
    let news = News {
        warning: true,
        reason: reason.into(),
        note: text,
    };
    ctx.recorder.tell(&*snapshot.host, &news).await;
}
