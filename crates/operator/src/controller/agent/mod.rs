//! Agent: every host of an InfraEnv gets one; the operator applies what people write into it to the host, and it
//! shows the state of the host.

pub mod index;
pub mod plan;
pub mod snapshot;
pub mod spoke;
mod wake;

pub use snapshot::Snapshot;
use wake::register;

use crate::crd::{Agent, AgentMachine};
use crate::error::{Error, chain, gone};
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group};
use crate::runtime::{Context, reconciler};
use k8s_openapi::api::core::v1::Secret;
use muster_contract::ClientError;
use muster_contract::v2::host::{SetHostIgnition, SetInstallerArgs};
use muster_contract::v2::install::ReportHostProgress;
use plan::{Call, Deed, Plan, Step};
use serde_json::Value;
use snapshot::Failure;
use uuid::Uuid;

pub const CONTROLLER: Controller = Controller {
    name: "agent",
    group: Group::Service,
    workers: 8,
    register,
    reconcile: |ctx, key| Box::pin(reconciler::run::<Snapshot>(ctx, key)),
};

const WRITER: Writer = Writer("muster-agent-controller");

impl reconciler::Reconcile for Snapshot {
    type Place = Key;
    type Step = Step;
    type Failure = Failure;

    const OBJECT: &'static str = "an Agent";
    /// A fresh Agent of a host that is lent at once needs six.
    const MOST_ROUNDS: usize = 12;

    async fn read(ctx: &Context, key: &Key, failure: Option<Failure>) -> Result<Option<Self>, Error> {
        Self::read(ctx, key, failure).await
    }

    fn plan(&self) -> Plan {
        plan::plan(self)
    }

    async fn apply(&self, ctx: &Context, step: &Step) -> Result<Result<(), Failure>, Error> {
        apply(ctx, self, step).await
    }
}

/// Carries out one step. The outer error ends the reconciliation, the inner one is part of the next snapshot.
async fn apply(ctx: &Context, snapshot: &Snapshot, step: &Step) -> Result<Result<(), Failure>, Error> {
    match (step, &snapshot.agent) {
        (Step::Create(agent), _) => create(ctx, agent).await?,
        (Step::Patch(patch), Some(agent)) => ctx.patch(WRITER, &**agent, patch).await?,
        (Step::Status(status), Some(agent)) => ctx.patch_status(WRITER, &**agent, status).await?,
        (Step::Keep(machine, patch), _) => keep(ctx, machine, patch).await?,
        (Step::LabelSecret(key, labels), _) => {
            ctx.label::<Secret>(WRITER, key, labels).await?;
        }
        (Step::Tell(news), Some(agent)) => ctx.recorder.tell(&**agent, news).await,
        (Step::Hub(call), _) => {
            let done = reconciler::logged(&snapshot.key, call.word(), ask(ctx, snapshot, call).await);
            snapshot.host_id().iter().for_each(|host| ctx.hosts.forget(*host));
            return Ok(done.map_err(|error| Failure::Hub(error.into())));
        }
        (Step::Spoke(deed), _) => return Ok(act(ctx, snapshot, deed).await.map_err(Failure::Spoke)),
        // Plans without an Agent only make one.
        (Step::Patch(_) | Step::Status(_) | Step::Tell(_), None) => {}
    }
    Ok(Ok(()))
}

async fn create(ctx: &Context, agent: &Agent) -> Result<(), Error> {
    let key = Key::of(agent);
    let made = ctx.create(WRITER, agent).await?;
    let news = News {
        warning: false,
        reason: "Registered".into(),
        note: "A host booted the discovery image; the hub is checking it.".into(),
    };
    tracing::info!(%key, "created the Agent of a new host");
    ctx.recorder.tell_unless_many(&made, &news).await;
    Ok(())
}

/// If the right or the machine is missing, the Agent goes all the same.
async fn keep(ctx: &Context, machine: &AgentMachine, patch: &Value) -> Result<(), Error> {
    let key = Key::of(machine);
    match ctx.change::<AgentMachine>(WRITER, &key, patch).await {
        Err(error) if error.is_forbidden() => {
            tracing::warn!(%key, error = %chain(&error), "the operator may not patch an AgentMachine: its Agent \
                will come back without labels and approval");
            Ok(())
        }
        Err(Error::Gone) => Ok(()),
        done => done,
    }
}

async fn ask(ctx: &Context, snapshot: &Snapshot, call: &Call) -> Result<(), ClientError> {
    let (Some(host), Some(row)) = (snapshot.host_id(), &snapshot.row) else {
        return Ok(());
    };
    let (hub, infra_env) = (&ctx.hub, row.host.infra_env_id);
    match call {
        Call::Bind(cluster) => hub.bind_host(infra_env, host, *cluster).await.map(drop),
        Call::Move(cluster) => hub.move_host(infra_env, host, *cluster).await.map(drop),
        Call::Unbind => hub.unbind_host(infra_env, host).await.map(drop),
        Call::Reclaim => hub.reclaim_host(infra_env, host).await.map(drop),
        Call::Reset => hub.reset_host(infra_env, host).await.map(drop),
        Call::Update(change) => {
            hub.update_host(infra_env, host, change).await?;
            remember(ctx, snapshot, host, change);
            Ok(())
        }
        Call::InstallerArgs(args) => {
            let body = SetInstallerArgs {
                args: Some(args.clone()),
            };
            hub.set_installer_args(infra_env, host, &body).await.map(drop)
        }
        Call::Ignition(config) => {
            let body = SetHostIgnition {
                config: Some(config.clone()),
            };
            hub.set_host_ignition(infra_env, host, &body).await
        }
        Call::Change(change) => hub.change_host(infra_env, host, change).await.map(drop),
        Call::Progress(stage, info) => {
            let body = ReportHostProgress {
                current_stage: Some(*stage),
                progress_info: Some(info.clone()),
            };
            hub.report_host_progress(infra_env, host, &body).await
        }
        Call::Delete(infra_env) => {
            ctx.sent.forget(host);
            gone(hub.delete_host(*infra_env, host).await)
        }
    }
}

/// The hub never shows these.
fn remember(ctx: &Context, snapshot: &Snapshot, host: Uuid, change: &muster_contract::v2::host::UpdateHost) {
    if let Some(token) = &change.ignition_endpoint_token {
        ctx.sent.remember(host, snapshot::TOKEN, &token.0);
    }
    if let (Some(_), Some(agent)) = (&change.ignition_endpoint_http_headers, &snapshot.agent) {
        ctx.sent.remember(
            host,
            snapshot::HEADERS,
            &plan::settings::headers_text(&agent.spec),
        );
    }
    if let (Some(_), Some(found)) = (&change.fencing_credentials, &snapshot.fencing) {
        ctx.sent
            .remember(host, snapshot::FENCING, &plan::settings::fencing_text(found));
    }
}

async fn act(ctx: &Context, snapshot: &Snapshot, deed: &Deed) -> Result<(), String> {
    match plan::ask::question(snapshot) {
        Some(question) => spoke::carry_out(ctx, &question.cluster, deed).await,
        None => Ok(()),
    }
}
