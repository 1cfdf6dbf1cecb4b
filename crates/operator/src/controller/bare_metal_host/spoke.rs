//! The node of a machine in its cluster, as far as it is drained.

use super::plan::drain::{Deed, Drained, Question};
use super::world::World;
use crate::controller::agent;
use crate::error::chain;
use crate::key::Key;
use crate::runtime::Context;
use crate::runtime::spoke::NoSpoke;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, EvictParams, ListParams};
use kube::{Client, ResourceExt};

pub async fn read(ctx: &Context, question: &Question) -> Result<Drained, NoSpoke> {
    let client = ctx.spoke(&question.cluster).await?;
    look(&client, &question.node)
        .await
        .map_err(|error| NoSpoke::Failed(chain(&error)))
}

async fn look(client: &Client, name: &str) -> kube::Result<Drained> {
    let nodes: Api<Node> = Api::all(client.clone());
    let Some(node) = agent::spoke::node(&nodes, name).await? else {
        return Ok(Drained::default());
    };
    let pods: Api<Pod> = Api::all(client.clone());
    let here = ListParams::default().fields(&format!("spec.nodeName={}", node.name_any()));
    Ok(Drained {
        pods: pods.list(&here).await?.items,
        node: Some(node),
    })
}

/// What is gone already needs nothing done to it; a pod that must not be disturbed yet is tried again later.
pub async fn carry_out(ctx: &Context, world: &World, deed: &Deed) -> Result<(), String> {
    let agent = world.agent.as_ref();
    let Some(cluster) = agent.and_then(|agent| agent.spec.cluster_deployment_name.as_ref()) else {
        return Ok(());
    };
    let client = ctx.spoke(&Key::from(cluster)).await;
    let client = client.map_err(|error| error.to_string())?;
    match act(&client, deed).await {
        Ok(()) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 429) => Ok(()),
        Err(error) => Err(chain(&error)),
    }
}

async fn act(client: &Client, deed: &Deed) -> kube::Result<()> {
    match deed {
        Deed::Cordon(node) => Api::<Node>::all(client.clone()).cordon(node).await.map(drop),
        Deed::Evict(pod) => {
            let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace);
            pods.evict(&pod.name, &EvictParams::default()).await.map(drop)
        }
    }
}
