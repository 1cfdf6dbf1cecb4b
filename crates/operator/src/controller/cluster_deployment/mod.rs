//! ClusterDeployment and AgentClusterInstall: the hub gets the cluster the two describe, installs it when its hosts are
//! there, and the objects show how far it is.

pub mod index;
pub mod plan;
pub mod snapshot;
mod wake;

use index::INSTALLS_BY_CLUSTER;
pub use snapshot::Snapshot;
use wake::register;

use crate::crd::{Agent, AgentClusterInstall, ClusterDeployment};
use crate::error::{Error, Refusal, gone};
use crate::key::Key;
use crate::runtime::foreign::there;
use crate::runtime::object::RawObject;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group};
use crate::runtime::{Context, Next, reconciler};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, Preconditions};
use kube::{Api, Resource};
use muster_contract::ClientError;
use muster_contract::v2::install::InstallConfigOverrides;
use muster_contract::v2::manifest::{CreateManifest, ManifestFolder, ManifestQuery};
use muster_vocabulary::Role;
use plan::worker_pool::WorkerPool;
use plan::{Plan, Step};
use serde_json::json;
use snapshot::{Failure, Place};

pub const CONTROLLER: Controller = Controller {
    name: "cluster-deployment",
    group: Group::Service,
    workers: 4,
    register,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
};

const WRITER: Writer = Writer("muster-cluster-deployment");

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let deployment = ctx.cache::<ClusterDeployment>().get(key);
    let mut next = match &deployment {
        Some(_) => reconciler::run::<Snapshot>(ctx, &Place::of(key)).await?,
        None => Next::Rest,
    };
    let named = deployment.and_then(|deployment| snapshot::install_of(ctx, &deployment));
    let named = named.map(|install| Key::of(&*install));
    let installs = &ctx.cache::<AgentClusterInstall>();
    let claimants = installs.by(INSTALLS_BY_CLUSTER, &key.to_string());
    let claimants = claimants.iter().map(|install| Key::of(&**install));
    for orphan in claimants.filter(|install| Some(install) != named.as_ref()) {
        let place = Place {
            orphan: Some(orphan),
            ..Place::of(key)
        };
        next = next.or(reconciler::run::<Snapshot>(ctx, &place).await?);
    }
    Ok(next)
}

impl reconciler::Reconcile for Snapshot {
    type Place = Place;
    type Step = Step;
    type Failure = Failure;

    const OBJECT: &'static str = "a cluster";
    /// A fresh cluster needs six.
    const MOST_ROUNDS: usize = 12;

    async fn read(ctx: &Context, place: &Place, failure: Option<Failure>) -> Result<Option<Self>, Error> {
        Self::read(ctx, place, failure).await
    }

    fn plan(&self) -> Plan {
        plan::plan(self)
    }

    async fn apply(&self, ctx: &Context, step: &Step) -> Result<Result<(), Failure>, Error> {
        apply(ctx, self, step).await
    }
}

/// Carries out one step. The outer error ends the reconciliation, the inner one is the hub's refusal.
async fn apply(ctx: &Context, snapshot: &Snapshot, step: &Step) -> Result<Result<(), Failure>, Error> {
    match step {
        Step::PatchDeployment(patch) => {
            if let Some(deployment) = &snapshot.deployment {
                ctx.patch(WRITER, &**deployment, patch).await?;
            }
        }
        Step::PatchInstall(patch) => {
            if let Some(install) = &snapshot.install {
                ctx.patch(WRITER, &**install, patch).await?;
            }
        }
        Step::Status(status) => {
            if let Some(install) = &snapshot.install {
                ctx.patch_status(WRITER, &**install, status).await?;
            }
        }
        Step::Tell(news) => match (&snapshot.install, &snapshot.deployment) {
            (Some(install), _) => ctx.recorder.tell(&**install, news).await,
            (None, Some(deployment)) => ctx.recorder.tell(&**deployment, news).await,
            (None, None) => {}
        },
        Step::DeleteInstall => {
            if let Some(install) = &snapshot.install {
                delete(
                    &ctx.cache::<AgentClusterInstall>().api(&snapshot.key.namespace),
                    &**install,
                    None,
                )
                .await?;
            }
        }
        Step::LabelSecret(key, labels) => {
            ctx.label::<Secret>(WRITER, key, labels).await?;
        }
        Step::LabelConfigMap(key, labels) => {
            ctx.label::<ConfigMap>(WRITER, key, labels).await?;
        }
        Step::PutSecret(secret) => put_secret(ctx, secret).await?,
        Step::UnbindAgent(key) => {
            // As it was when this was decided: who names another cluster meanwhile goes there.
            if let Some(agent) = snapshot.agent(key) {
                let free = json!({ "spec": { "clusterDeploymentName": null } });
                ctx.patch(WRITER, agent, &free).await?;
            }
        }
        Step::DeleteAgent(key) => {
            if let Some(agent) = snapshot.agent(key) {
                let version = agent.metadata.resource_version.clone();
                delete(&ctx.cache::<Agent>().api(&key.namespace), agent, version).await?;
            }
        }
        Step::ManifestsAreDone => snapshot.remember_manifests(ctx),
        Step::PausePool(pause) => {
            if let Err(why) = pause_pool(ctx, &snapshot.key, *pause).await {
                tracing::warn!(key = %snapshot.key, pause, %why, "cannot pause or resume the cluster's pool of \
                    workers");
                return Ok(Err(Failure::WorkerPool { pause: *pause, why }));
            }
        }
        Step::Create(_)
        | Step::Import(_)
        | Step::Update(_)
        | Step::Override(_)
        | Step::Ignore(_)
        | Step::PutManifest(..)
        | Step::DeleteManifest(..)
        | Step::Install
        | Step::InstallHost { .. }
        | Step::AddHosts
        | Step::Cancel
        | Step::DeleteCluster => {
            let done = ask(ctx, snapshot, step).await;
            snapshot.id.iter().for_each(|id| {
                ctx.hosts.forget_cluster(*id);
                ctx.clusters.forget(*id);
            });
            return Ok(done);
        }
    }
    Ok(Ok(()))
}

/// The part of a step that the hub does.
async fn ask(ctx: &Context, snapshot: &Snapshot, step: &Step) -> Result<(), Failure> {
    let (Some(id), key, hub) = (snapshot.id, &snapshot.key, &ctx.hub) else {
        return Ok(());
    };
    type Answer = Result<(), ClientError>;
    let did = |deed, answer: Answer| reconciler::logged(key, deed, answer);
    let settings = |deed, answer: Answer| did(deed, answer).map_err(|error| Failure::Hub(error.into()));
    let manifests = |deed, file: &str, answer: Answer| {
        let origin = || plan::manifest::origin(&snapshot.config_maps, file);
        did(deed, answer).map_err(|error| Failure::Manifests(Refusal::from(error).about(&origin())))
    };
    let verb = |deed, answer: Answer| did(deed, answer).map_err(not_now);
    match step {
        Step::Create(desired) => {
            // A new cluster in the hub knows nothing that the old one got: neither manifests nor secrets.
            ctx.sent.forget(id);
            settings("create cluster", hub.put_cluster(id, desired).await.map(drop))?;
            snapshot.remember_pull_secret(ctx, &desired.pull_secret);
            snapshot.remember_proxy(ctx);
        }
        Step::Import(desired) => {
            ctx.sent.forget(id);
            let done = hub.put_imported_cluster(id, desired).await;
            settings("import cluster", done.map(drop))?;
        }
        Step::Update(desired) => {
            settings("update cluster", hub.update_cluster(id, desired).await.map(drop))?;
            desired
                .pull_secret
                .iter()
                .for_each(|secret| snapshot.remember_pull_secret(ctx, secret));
            if desired.http_proxy.is_some() || desired.https_proxy.is_some() {
                snapshot.remember_proxy(ctx);
            }
        }
        Step::Override(text) => {
            let body = InstallConfigOverrides(text.clone());
            let done = hub.override_install_config(id, &body).await;
            settings("override install-config", done.map(drop))?;
        }
        Step::Ignore(desired) => settings("ignore validations", hub.ignore_validations(id, desired).await)?,
        Step::PutManifest(file, content) => {
            let body = CreateManifest {
                folder: Some(ManifestFolder::Openshift),
                file_name: file.clone(),
                content: BASE64_STANDARD.encode(content),
            };
            let done = hub.create_manifest(id, &body).await;
            manifests("put manifest", file, done.map(drop))?;
        }
        Step::DeleteManifest(folder, file) => {
            let query = ManifestQuery {
                folder: Some(*folder),
                file_name: file.clone(),
            };
            manifests(
                "delete manifest",
                file,
                gone(hub.delete_manifest(id, &query).await),
            )?;
        }
        Step::Install => verb("install cluster", hub.install_cluster(id).await.map(drop))?,
        Step::InstallHost { infra_env, host } => {
            verb(
                "install host",
                hub.install_host(*infra_env, *host).await.map(drop),
            )?;
        }
        Step::AddHosts => verb("allow adding hosts", hub.allow_add_hosts(id).await.map(drop))?,
        Step::Cancel => verb("cancel installation", hub.cancel_cluster(id).await.map(drop))?,
        Step::DeleteCluster => {
            ctx.sent.forget(id);
            verb("delete cluster", gone(hub.delete_cluster(id).await))?;
        }
        Step::PatchDeployment(_)
        | Step::PatchInstall(_)
        | Step::Status(_)
        | Step::DeleteInstall
        | Step::LabelSecret(..)
        | Step::LabelConfigMap(..)
        | Step::PutSecret(_)
        | Step::Tell(_)
        | Step::UnbindAgent(_)
        | Step::DeleteAgent(_)
        | Step::ManifestsAreDone
        | Step::PausePool(_) => {}
    }
    Ok(())
}

/// A verb that does not go together with the state of things is tried again, also when what it is about has just gone;
/// what else went wrong is shown.
fn not_now(error: ClientError) -> Failure {
    let is_gone = matches!(error, ClientError::NotFound(_));
    match Refusal::from(error) {
        Refusal::Conflict(text) => Failure::NotNow(text),
        Refusal::Input(text) if is_gone => Failure::NotNow(text),
        failure @ (Refusal::Internal(_) | Refusal::Input(_)) => Failure::Hub(failure),
    }
}

/// The very object that was read, and no other of its name; with a version, only if nobody has changed it since.
async fn delete(
    api: &Api<RawObject>,
    object: &impl Resource,
    resource_version: Option<String>,
) -> Result<(), Error> {
    let preconditions = Preconditions {
        uid: object.meta().uid.clone(),
        resource_version,
    };
    let params = DeleteParams::default().preconditions(preconditions);
    match api
        .delete(object.meta().name.as_deref().unwrap_or_default(), &params)
        .await
        .map_err(Error::from)
    {
        Ok(_) | Err(Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn put_secret(ctx: &Context, desired: &plan::NewSecret) -> Result<(), Error> {
    let bytes = desired
        .values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), ByteString(value.0.clone().into_bytes())));
    let mut wire = json!({
        "metadata": { "labels": desired.labels },
        "data": bytes.collect::<std::collections::BTreeMap<_, _>>(),
    });
    if desired.exists {
        // Its owners are those of whoever made it.
        let kept = ctx
            .cache::<Secret>()
            .find(&desired.key)
            .await?
            .ok_or(Error::Conflict)?;
        return ctx.patch(WRITER, &*kept, &wire).await;
    }
    wire["metadata"]["name"] = json!(desired.key.name);
    wire["metadata"]["namespace"] = json!(desired.key.namespace);
    wire["metadata"]["ownerReferences"] = json!([desired.owner]);
    let secret: Secret = serde_json::from_value(wire).map_err(kube::Error::SerdeError)?;
    ctx.create(WRITER, &secret).await.map(drop)
}

/// The pool of workers inside the cluster.
fn worker_pool(client: kube::Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfigPool");
    Api::all_with(client, &ApiResource::from_gvk(&kind))
}

async fn worker_pool_of(ctx: &Context, key: &Key) -> WorkerPool {
    let client = match ctx.spoke(key).await {
        Ok(client) => client,
        Err(error) => return WorkerPool::Unknown(error.to_string()),
    };
    match there(worker_pool(client).get(Role::Worker.word()).await) {
        Ok(Some(pool)) => WorkerPool::Found {
            paused: pool.data["spec"]["paused"].as_bool().unwrap_or(false),
        },
        Ok(None) => WorkerPool::Absent,
        Err(error) => WorkerPool::Unknown(crate::error::chain(&error)),
    }
}

async fn pause_pool(ctx: &Context, key: &Key, pause: bool) -> Result<(), String> {
    let client = ctx.spoke(key).await.map_err(|error| error.to_string())?;
    let patch = json!({ "spec": { "paused": pause } });
    let done = worker_pool(client)
        .patch(Role::Worker.word(), &WRITER.params(), &Patch::Merge(&patch))
        .await;
    done.map(drop).map_err(|error| crate::error::chain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_has_just_gone_is_no_mistake_of_the_objects() {
        let text = || "because".to_owned();
        let refused = |status| ClientError::Refused {
            status,
            reason: text(),
            code: None,
            next_action: None,
        };
        for passing in [ClientError::NotFound(text()), refused(409)] {
            assert!(matches!(not_now(passing), Failure::NotNow(_)));
        }
        for mistake in [ClientError::BadInput(text()), refused(422)] {
            assert!(matches!(not_now(mistake), Failure::Hub(Refusal::Input(_))));
        }
        let broken = not_now(ClientError::Server(text()));
        assert!(matches!(broken, Failure::Hub(Refusal::Internal(_))));
    }
}
