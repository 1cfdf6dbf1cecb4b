//! ClusterDeployment and AgentClusterInstall: the hub gets the cluster the two describe, installs it when its hosts are
//! there, and the objects show how far it is.

pub mod plan;
mod wake;
pub mod world;

pub use wake::wire;
pub use world::World;

use crate::error::{Error, Trouble, gone};
use crate::key::Key;
use crate::runtime::context::index;
use crate::runtime::foreign::there;
use crate::runtime::patch::Writer;
use crate::runtime::work::Job;
use crate::runtime::{Context, Next, looks};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, Preconditions};
use kube::{Api, Resource};
use muster_contract::ClientError;
use muster_contract::v2::install::InstallConfigOverrides;
use muster_contract::v2::manifest::{CreateManifest, ManifestFolder, ManifestQuery};
use muster_vocabulary::Role;
use plan::pool::Pool;
use plan::{Plan, Step};
use serde_json::json;
use world::{Place, Setback};

pub const JOB: Job = Job {
    name: "cluster-deployment",
    queue: |ctx| &ctx.queues.cluster_deployment,
    reconcile: |ctx, key| Box::pin(reconcile(ctx, key)),
    width: 4,
};

const WRITER: Writer = Writer("muster-cluster-deployment");

async fn reconcile(ctx: &Context, key: &Key) -> Result<Next, Error> {
    let deployment = ctx.mirrors.cluster_deployments.get(key);
    let mut next = match &deployment {
        Some(_) => looks::settle::<World>(ctx, &Place::of(key)).await?,
        None => Next::Rest,
    };
    let named = deployment.and_then(|deployment| world::install_of(ctx, &deployment));
    let named = named.map(|install| Key::of(&*install));
    let installs = &ctx.mirrors.agent_cluster_installs;
    let claimants = installs.by(index::INSTALL_CLUSTER, &key.to_string());
    let claimants = claimants.iter().map(|install| Key::of(&**install));
    for orphan in claimants.filter(|install| Some(install) != named.as_ref()) {
        let place = Place {
            orphan: Some(orphan),
            ..Place::of(key)
        };
        next = next.or(looks::settle::<World>(ctx, &place).await?);
    }
    Ok(next)
}

impl looks::World for World {
    type Place = Place;
    type Step = Step;
    type Trouble = Setback;

    const WORD: &'static str = "a cluster";
    /// A fresh cluster needs six.
    const LOOKS: usize = 12;

    async fn read(ctx: &Context, place: &Place, setback: Option<Setback>) -> Result<Option<Self>, Error> {
        Self::read(ctx, place, setback).await
    }

    fn plan(&self) -> Plan {
        plan::plan(self)
    }

    async fn apply(&self, ctx: &Context, step: &Step) -> Result<Result<(), Setback>, Error> {
        apply(ctx, self, step).await
    }
}

/// Carries out one step. The outer error ends the look, the inner one is the hub's refusal.
async fn apply(ctx: &Context, world: &World, step: &Step) -> Result<Result<(), Setback>, Error> {
    match step {
        Step::PatchDeployment(patch) => {
            let mirror = (
                &ctx.mirrors.cluster_deployments,
                ctx.hooks.cluster_deployment.as_slice(),
            );
            if let Some(deployment) = &world.deployment {
                ctx.patch(WRITER, mirror, &**deployment, patch).await?;
            }
        }
        Step::PatchInstall(patch) => {
            let mirror = (
                &ctx.mirrors.agent_cluster_installs,
                ctx.hooks.agent_cluster_install.as_slice(),
            );
            if let Some(install) = &world.install {
                ctx.patch(WRITER, mirror, &**install, patch).await?;
            }
        }
        Step::Status(status) => {
            let mirror = (
                &ctx.mirrors.agent_cluster_installs,
                ctx.hooks.agent_cluster_install.as_slice(),
            );
            if let Some(install) = &world.install {
                ctx.patch_status(WRITER, mirror, &**install, status).await?;
            }
        }
        Step::Tell(news) => match (&world.install, &world.deployment) {
            (Some(install), _) => ctx.recorder.tell(&**install, news).await,
            (None, Some(deployment)) => ctx.recorder.tell(&**deployment, news).await,
            (None, None) => {}
        },
        Step::DeleteInstall => {
            if let Some(install) = &world.install {
                delete(
                    &ctx.mirrors.agent_cluster_installs.api(&world.key.namespace),
                    &**install,
                    None,
                )
                .await?;
            }
        }
        Step::LabelSecret(key, labels) => {
            let secrets = (&ctx.mirrors.secrets, ctx.hooks.secret.as_slice());
            ctx.label(WRITER, secrets, key, labels).await?;
        }
        Step::LabelConfigMap(key, labels) => {
            let maps = (&ctx.mirrors.config_maps, ctx.hooks.config_map.as_slice());
            ctx.label(WRITER, maps, key, labels).await?;
        }
        Step::PutSecret(secret) => put_secret(ctx, secret).await?,
        Step::UnbindAgent(key) => {
            let mirror = (&ctx.mirrors.agents, ctx.hooks.agent.as_slice());
            // As it was when this was decided: who names another cluster meanwhile goes there.
            if let Some(agent) = world.agent(key) {
                let free = json!({ "spec": { "clusterDeploymentName": null } });
                ctx.patch(WRITER, mirror, agent, &free).await?;
            }
        }
        Step::DeleteAgent(key) => {
            if let Some(agent) = world.agent(key) {
                let seen = agent.metadata.resource_version.clone();
                delete(&ctx.mirrors.agents.api(&key.namespace), agent, seen).await?;
            }
        }
        Step::ManifestsAreDone => world.told_manifests(ctx),
        Step::PausePool(pause) => {
            if let Err(why) = pause_pool(ctx, &world.key, *pause).await {
                tracing::warn!(key = %world.key, pause, %why, "the cluster's pool of workers stays as it is");
                return Ok(Err(Setback::Pool { pause: *pause, why }));
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
        | Step::DeleteCluster => return Ok(ask(ctx, world, step).await),
    }
    Ok(Ok(()))
}

/// The part of a step that the hub does.
async fn ask(ctx: &Context, world: &World, step: &Step) -> Result<(), Setback> {
    let (Some(id), key, hub) = (world.id, &world.key, &ctx.hub) else {
        return Ok(());
    };
    type Answer = Result<(), ClientError>;
    let did = |deed, answer: Answer| looks::logged(key, deed, answer);
    let settings = |deed, answer: Answer| did(deed, answer).map_err(|error| Setback::Hub(error.into()));
    let manifests = |deed, file: &str, answer: Answer| {
        let origin = || plan::manifest::origin(&world.config_maps, file);
        did(deed, answer).map_err(|error| Setback::Manifests(Trouble::from(error).about(&origin())))
    };
    let verb = |deed, answer: Answer| did(deed, answer).map_err(not_now);
    match step {
        Step::Create(wish) => {
            // What was told to one that is gone is not known to this one: neither its manifests nor its secrets.
            ctx.told.forget(id);
            settings("create cluster", hub.put_cluster(id, wish).await.map(drop))?;
            world.told_pull_secret(ctx, &wish.pull_secret);
            world.told_proxy(ctx);
        }
        Step::Import(wish) => {
            ctx.told.forget(id);
            let done = hub.put_imported_cluster(id, wish).await;
            settings("import cluster", done.map(drop))?;
        }
        Step::Update(wish) => {
            settings("update cluster", hub.update_cluster(id, wish).await.map(drop))?;
            wish.pull_secret
                .iter()
                .for_each(|secret| world.told_pull_secret(ctx, secret));
            if wish.http_proxy.is_some() || wish.https_proxy.is_some() {
                world.told_proxy(ctx);
            }
        }
        Step::Override(text) => {
            let body = InstallConfigOverrides(text.clone());
            let done = hub.override_install_config(id, &body).await;
            settings("override install-config", done.map(drop))?;
        }
        Step::Ignore(wish) => settings("ignore validations", hub.ignore_validations(id, wish).await)?,
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
            ctx.told.forget(id);
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
fn not_now(error: ClientError) -> Setback {
    let is_gone = matches!(error, ClientError::NotFound(_));
    match Trouble::from(error) {
        Trouble::Conflict(text) => Setback::NotNow(text),
        Trouble::Input(text) if is_gone => Setback::NotNow(text),
        trouble @ (Trouble::Internal(_) | Trouble::Input(_)) => Setback::Hub(trouble),
    }
}

/// The very object that was seen, and no other of its name; with a version, only as long as it is as it was seen.
async fn delete(
    api: &Api<DynamicObject>,
    object: &impl Resource,
    resource_version: Option<String>,
) -> Result<(), Error> {
    let seen = Preconditions {
        uid: object.meta().uid.clone(),
        resource_version,
    };
    let params = DeleteParams::default().preconditions(seen);
    match api
        .delete(object.meta().name.as_deref().unwrap_or_default(), &params)
        .await
        .map_err(Error::from)
    {
        Ok(_) | Err(Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn put_secret(ctx: &Context, wish: &plan::NewSecret) -> Result<(), Error> {
    let secrets = (&ctx.mirrors.secrets, ctx.hooks.secret.as_slice());
    let bytes = wish
        .values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), ByteString(value.0.clone().into_bytes())));
    let mut wire = json!({
        "metadata": { "labels": wish.labels },
        "data": bytes.collect::<std::collections::BTreeMap<_, _>>(),
    });
    if wish.exists {
        // Its owners are those of whoever made it.
        let kept = ctx
            .mirrors
            .secrets
            .find(&wish.key)
            .await?
            .ok_or(Error::Conflict)?;
        return ctx.patch(WRITER, secrets, &*kept, &wire).await;
    }
    wire["metadata"]["name"] = json!(wish.key.name);
    wire["metadata"]["namespace"] = json!(wish.key.namespace);
    wire["metadata"]["ownerReferences"] = json!([wish.owner]);
    let secret: Secret = serde_json::from_value(wire).map_err(kube::Error::SerdeError)?;
    ctx.create(WRITER, secrets, &secret).await.map(drop)
}

/// The pool of workers inside the cluster.
fn worker_pool(client: kube::Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfigPool");
    Api::all_with(client, &ApiResource::from_gvk(&kind))
}

async fn worker_pool_of(ctx: &Context, key: &Key) -> Pool {
    let client = match ctx.spoke(key).await {
        Ok(client) => client,
        Err(error) => return Pool::Unknown(error.to_string()),
    };
    match there(worker_pool(client).get(Role::Worker.word()).await) {
        Ok(Some(pool)) => Pool::Found {
            paused: pool.data["spec"]["paused"].as_bool().unwrap_or(false),
        },
        Ok(None) => Pool::Absent,
        Err(error) => Pool::Unknown(crate::error::chain(&error)),
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
            assert!(matches!(not_now(passing), Setback::NotNow(_)));
        }
        for mistake in [ClientError::BadInput(text()), refused(422)] {
            assert!(matches!(not_now(mistake), Setback::Hub(Trouble::Input(_))));
        }
        let broken = not_now(ClientError::Server(text()));
        assert!(matches!(broken, Setback::Hub(Trouble::Internal(_))));
    }
}
