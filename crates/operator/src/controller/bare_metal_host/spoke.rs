//! The cluster of a machine: its node as far as it is drained, and the objects that describe a machine that joins it.

use super::plan::drain::{Deed, Drained, Question};
use super::plan::{authority, machine};
use super::snapshot::Snapshot;
use crate::controller::agent;
use crate::error::chain;
use crate::key::Key;
use crate::runtime::Context;
use crate::runtime::foreign::there;
use crate::runtime::spoke::NoSpoke;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Api, DynamicObject, EvictParams, ListParams, Patch};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

pub async fn read(ctx: &Context, question: &Question) -> Result<Drained, NoSpoke> {
    let client = ctx.spoke(&question.cluster).await?;
    read_node(&client, &question.node)
        .await
        .map_err(|error| NoSpoke::Failed(chain(&error)))
}

async fn read_node(client: &Client, name: &str) -> kube::Result<Drained> {
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

/// What could not be done, of everything that was tried.
pub async fn carry_out(ctx: &Context, snapshot: &Snapshot, deed: &Deed) -> Result<(), String> {
    let Some(client) = client(ctx, snapshot).await? else {
        return Ok(());
    };
    match deed {
        Deed::Cordon(node) => {
            let done = Api::<Node>::all(client).cordon(node).await;
            refusal(done).map_or(Ok(()), |error| Err(chain(&error)))
        }
        Deed::Evict(pods) => evict(&client, pods).await,
    }
}

/// What is gone already needs nothing done to it; a pod that must not be disturbed yet is tried again later.
fn refusal<T>(done: kube::Result<T>) -> Option<kube::Error> {
    match done {
        Ok(_) => None,
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 429) => None,
        Err(error) => Some(error),
    }
}

async fn evict(client: &Client, pods: &[Key]) -> Result<(), String> {
    let mut refused = Vec::new();
    for pod in pods {
        let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace);
        let Some(error) = refusal(api.evict(&pod.name, &EvictParams::default()).await) else {
            continue;
        };
        refused.push(format!("pod {pod}: {}", chain(&error)));
        // A cluster that does not answer does not answer for the others either.
        if !matches!(error, kube::Error::Api(_)) {
            break;
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(joined(&refused)),
    }
}

/// As many as people read in an annotation.
const NAMED: usize = 5;

fn joined(refused: &[String]) -> String {
    let (named, others) = refused.split_at(refused.len().min(NAMED));
    match others.len() {
        0 => named.join("; "),
        more => format!("{}; and {more} more", named.join("; ")),
    }
}

/// `None` when the machine is lent to nobody.
async fn client(ctx: &Context, snapshot: &Snapshot) -> Result<Option<Client>, String> {
    let agent = snapshot.agent.as_ref();
    let Some(cluster) = agent.and_then(|agent| agent.spec.cluster_deployment_name.as_ref()) else {
        return Ok(None);
    };
    let client = ctx.spoke(&Key::from(cluster)).await;
    client.map(Some).map_err(|error| error.to_string())
}

/// From the first of the places in which there is anything.
pub async fn authority(ctx: &Context, cluster: &Key) -> Result<Option<authority::Found>, NoSpoke> {
    let client = ctx.spoke(cluster).await?;
    for (namespace, name, key) in authority::PLACES {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let found = maps.get_opt(name).await;
        if let Some(map) = found.map_err(|error| NoSpoke::Failed(chain(&error)))? {
            return Ok(Some(authority::Found {
                place: Key::new(namespace, name),
                bundle: map.data.and_then(|mut data| data.remove(key)),
            }));
        }
    }
    Ok(None)
}

pub async fn machines(ctx: &Context, question: &machine::Question) -> Result<machine::Known, NoSpoke> {
    let client = ctx.spoke(&question.cluster).await?;
    let known = known(&client, question).await;
    known
        .map_err(|error| NoSpoke::Failed(chain(&error)))?
        .ok_or_else(|| NoSpoke::Failed("it has no Machines".into()))
}

/// `None` when the cluster does not even have the kind.
async fn known(client: &Client, question: &machine::Question) -> kube::Result<Option<machine::Known>> {
    let masters = ListParams::default().labels(&format!("{}=master", machine::TYPE));
    let machines = agent::spoke::api(client, agent::spoke::MACHINES, "");
    let Some(masters) = there(machines.list(&masters).await)? else {
        return Ok(None);
    };
    let mut masters = masters.items;
    masters.sort_by_key(ResourceExt::name_any);
    let mut known = machine::Known {
        master: masters.into_iter().next().map(|master| json!(master)),
        ..machine::Known::default()
    };
    if known.master.is_some() {
        known.metal = find(client, machine::Thing::Metal, &question.metal).await?;
        known.machine = find(client, machine::Thing::Machine, &question.machine).await?;
    }
    Ok(Some(known))
}

fn things(client: &Client, thing: machine::Thing) -> Api<DynamicObject> {
    let kind = match thing {
        machine::Thing::Metal => agent::spoke::METAL,
        machine::Thing::Machine => agent::spoke::MACHINES,
    };
    agent::spoke::api(client, kind, machine::NAMESPACE)
}

async fn find(client: &Client, thing: machine::Thing, name: &str) -> kube::Result<Option<Value>> {
    let found = there(things(client, thing).get(name).await)?;
    Ok(found.map(|found| json!(found)))
}

/// Makes an object, or changes the one that is there.
pub async fn join(ctx: &Context, snapshot: &Snapshot, deed: &machine::Deed) -> Result<(), String> {
    let Some(client) = client(ctx, snapshot).await? else {
        return Ok(());
    };
    let api = things(&client, deed.thing);
    let done = match &deed.write {
        machine::Write::Create(object) => match serde_json::from_value(object.clone()) {
            Ok(object) => api.create(&super::WRITER.post(), &object).await,
            Err(error) => Err(kube::Error::SerdeError(error)),
        },
        machine::Write::Change(patch) => {
            api.patch(&deed.name, &super::WRITER.params(), &Patch::Merge(patch))
                .await
        }
    };
    let word = match deed.thing {
        machine::Thing::Metal => "BareMetalHost",
        machine::Thing::Machine => "Machine",
    };
    done.map(drop)
        .map_err(|error| format!("{word} {}/{}: {}", machine::NAMESPACE, deed.name, chain(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_refusals_some_are_named() {
        let refused: Vec<String> = (0..7).map(|number| format!("pod apps/{number}: no")).collect();
        assert_eq!(joined(&refused[..2]), "pod apps/0: no; pod apps/1: no");
        assert!(joined(&refused).ends_with("pod apps/4: no; and 2 more"));
    }
}
