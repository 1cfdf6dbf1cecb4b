//! InfraEnv: the hub gets an InfraEnv as the object describes it, the object gets the links to the image.

pub mod index;
pub mod plan;
mod snapshot;
mod wake;

pub use snapshot::{Row, Snapshot, secret_proxy};
use wake::register;

use crate::error::{Error, Refusal, gone};
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group};
use crate::runtime::{Context, reconciler};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use muster_contract::v1::infra_env::ChangeInfraEnv;
use plan::{Plan, Step};

pub const CONTROLLER: Controller = Controller {
    name: "infra-env",
    group: Group::Service,
    workers: 4,
    register,
    reconcile: |ctx, key| Box::pin(reconciler::run::<Snapshot>(ctx, key)),
};

const WRITER: Writer = Writer("muster-infra-env");

impl reconciler::Reconcile for Snapshot {
    type Place = Key;
    type Step = Step;
    type Failure = Refusal;

    const OBJECT: &'static str = "an InfraEnv";
    /// A plan for a fresh object needs four.
    const MOST_ROUNDS: usize = 8;

    async fn read(ctx: &Context, key: &Key, failure: Option<Refusal>) -> Result<Option<Self>, Error> {
        Self::read(ctx, key, failure).await
    }

    fn plan(&self) -> Plan {
        plan::plan(self)
    }

    async fn apply(&self, ctx: &Context, step: &Step) -> Result<Result<(), Refusal>, Error> {
        apply(ctx, self, step).await
    }
}

/// Carries out one step. The outer error ends the reconciliation, the inner one is the hub's refusal.
async fn apply(ctx: &Context, snapshot: &Snapshot, step: &Step) -> Result<Result<(), Refusal>, Error> {
    let key = snapshot.key();
    match step {
        Step::Patch(patch) => ctx.patch(WRITER, &*snapshot.infra_env, patch).await?,
        Step::Status(status) => ctx.patch_status(WRITER, &*snapshot.infra_env, status).await?,
        Step::LabelSecret(key, labels) => {
            ctx.label::<Secret>(WRITER, key, labels).await?;
        }
        Step::LabelConfigMap(key, labels) => {
            ctx.label::<ConfigMap>(WRITER, key, labels).await?;
        }
        Step::Tell(news) => ctx.recorder.tell(&*snapshot.infra_env, news).await,
        Step::Create(desired) => {
            // A new InfraEnv in the hub knows nothing that the old one got.
            ctx.sent.forget(snapshot.id);
            let done = reconciler::logged(
                &key,
                "create InfraEnv",
                ctx.hub.put_infra_env(snapshot.id, desired).await,
            );
            let remember = |_| {
                let (secret, version) = (Some(&desired.pull_secret), desired.openshift_version.as_ref());
                snapshot.remember(ctx, secret, version, desired.proxy.as_ref());
            };
            return Ok(done.map(remember).map_err(Refusal::from));
        }
        Step::Update(desired) => {
            let done = ctx.hub.update_infra_env(snapshot.id, desired).await;
            let done = reconciler::logged(&key, "update InfraEnv", done);
            let remember = |_| {
                let (secret, version) = (desired.pull_secret.as_ref(), desired.openshift_version.as_ref());
                snapshot.remember(ctx, secret, version, desired.proxy.as_ref());
            };
            return Ok(done.map(remember).map_err(Refusal::from));
        }
        Step::Clear(setting) => {
            let change = ChangeInfraEnv {
                clear: vec![*setting],
                ..ChangeInfraEnv::default()
            };
            let done = ctx.hub.change_infra_env(snapshot.id, &change).await.map(drop);
            return Ok(reconciler::logged(&key, "clear a setting of InfraEnv", done).map_err(Refusal::from));
        }
        Step::Join(cluster) => {
            let change = ChangeInfraEnv {
                cluster_id: Some(*cluster),
                ..ChangeInfraEnv::default()
            };
            let done = ctx.hub.change_infra_env(snapshot.id, &change).await.map(drop);
            ctx.hosts.forget_infra_env(snapshot.id);
            return Ok(reconciler::logged(&key, "give InfraEnv another cluster", done).map_err(Refusal::from));
        }
        Step::DeleteHost(host) => {
            let done = gone(ctx.hub.delete_host(snapshot.id, *host).await);
            ctx.hosts.forget(*host);
            return Ok(reconciler::logged(&key, "delete host", done).map_err(Refusal::from));
        }
        Step::DeleteInfraEnv => {
            ctx.sent.forget(snapshot.id);
            let done = gone(ctx.hub.delete_infra_env(snapshot.id).await);
            ctx.hosts.forget_infra_env(snapshot.id);
            return Ok(reconciler::logged(&key, "delete InfraEnv", done).map_err(Refusal::from));
        }
    }
    Ok(Ok(()))
}
