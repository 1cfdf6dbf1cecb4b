//! The cluster that a host becomes or was a node of: read once per snapshot, written by single deeds.

use super::plan::Deed;
use super::plan::ask::Question;
use super::plan::day_two;
use super::snapshot::Snapshot;
use crate::controller::bare_metal_host::plan::machine as joined;
use crate::crd::keys::{annotation, label};
use crate::error::{Error, chain};
use crate::key::Key;
use crate::runtime::Context;
use crate::runtime::foreign::there;
use crate::runtime::spoke::NoSpoke;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

/// What a decision may use.
#[derive(Debug, Clone, Default)]
pub struct Spoke {
    pub node: Option<Node>,
    pub machine: Option<Machine>,
    pub csrs: Vec<CertificateSigningRequest>,
}

/// The machine behind a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub key: Key,
    /// Its BareMetalHost.
    pub metal: Option<Key>,
    /// The set that would replace it; absent when there is none (any more).
    pub machine_set: Option<Key>,
}

const MACHINE_OF_NODE: &str = "machine.openshift.io/machine";
const SET_OF_MACHINE: &str = "machine.openshift.io/cluster-api-machineset";
/// On a Machine: its BareMetalHost, as namespace/name.
pub const METAL_OF_MACHINE: &str = "metal3.io/BareMetalHost";
const DELETE_MACHINE: &str = "machine.openshift.io/delete-machine";
const NO_DRAINING: &str = "machine.openshift.io/exclude-node-draining";
const SHRINK: &str = "metal3.io/autoscale-to-hosts";
const FIELD_MANAGER: &str = "muster-agent-controller";
pub const MACHINES: (&str, &str, &str) = ("machine.openshift.io", "v1beta1", "Machine");
const MACHINE_SETS: (&str, &str, &str) = ("machine.openshift.io", "v1beta1", "MachineSet");
pub const METAL: (&str, &str, &str) = ("metal3.io", "v1alpha1", "BareMetalHost");

pub async fn read(ctx: &Context, question: &Question) -> Result<Spoke, NoSpoke> {
    let client = ctx.spoke(&question.cluster).await?;
    let failed = |error| NoSpoke::Failed(chain(&error));
    let mut spoke = read_cluster(&client, question).await.map_err(failed)?;
    if let (Some(own), Some(machine)) = (&question.metal, &spoke.machine)
        && let Some(metal) = &machine.metal
        && is_same(&ctx.kube, own, &client, metal).await.map_err(failed)?
    {
        // Only the node goes: without its power controller nobody could fetch the machine any more, and what stands
        // behind it would go with it.
        spoke.machine = None;
    }
    Ok(spoke)
}

/// Whether the cluster's BareMetalHost is the very one of the Agent: the cluster runs the operator that manages it.
async fn is_same(here: &Client, own: &Key, there: &Client, metal: &Key) -> kube::Result<bool> {
    let uid = async |client, key: &Key| {
        let found = find(client, METAL, key).await?;
        Ok::<_, kube::Error>(found.and_then(|found| found.uid()))
    };
    let own = uid(here, own).await?;
    Ok(own.is_some() && own == uid(there, metal).await?)
}

async fn read_cluster(client: &Client, question: &Question) -> kube::Result<Spoke> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut spoke = Spoke {
        node: node(&nodes, &question.node).await?,
        ..Spoke::default()
    };
    if question.machine {
        spoke.machine = match &spoke.node {
            Some(node) => machine(client, node).await?,
            None => orphan(client, question).await?,
        };
    }
    if question.csrs {
        let csrs: Api<CertificateSigningRequest> = Api::all(client.clone());
        spoke.csrs = csrs.list(&ListParams::default()).await?.items;
    }
    Ok(spoke)
}

/// Nodes may go by the first part of a long name.
pub async fn node(nodes: &Api<Node>, name: &str) -> kube::Result<Option<Node>> {
    let short = name.split('.').next().filter(|short| *short != name);
    for name in [Some(name), short]
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
    {
        if let Some(node) = nodes.get_opt(name).await? {
            return Ok(Some(node));
        }
    }
    Ok(None)
}

async fn machine(client: &Client, node: &Node) -> kube::Result<Option<Machine>> {
    match node
        .annotations()
        .get(MACHINE_OF_NODE)
        .and_then(|text| pair(text))
    {
        Some(key) => machine_at(client, key).await,
        None => Ok(None),
    }
}

/// The machine that was made for a host before it was a node, known by its name and by the BareMetalHost it names.
async fn orphan(client: &Client, question: &Question) -> kube::Result<Option<Machine>> {
    let Some(Key { name, .. }) = &question.metal else {
        return Ok(None);
    };
    let metal = Key::new(joined::NAMESPACE, name);
    let key = Key::new(joined::NAMESPACE, joined::name(&question.cluster, name));
    let found = machine_at(client, key).await?;
    Ok(found.filter(|machine| machine.metal.as_ref() == Some(&metal)))
}

async fn machine_at(client: &Client, key: Key) -> kube::Result<Option<Machine>> {
    let Some(machine) = find(client, MACHINES, &key).await? else {
        return Ok(None);
    };
    let metal = machine
        .annotations()
        .get(METAL_OF_MACHINE)
        .and_then(|text| pair(text));
    let set = machine
        .labels()
        .get(SET_OF_MACHINE)
        .map(|name| Key::new(&key.namespace, name));
    let machine_set = match set {
        Some(set) => find(client, MACHINE_SETS, &set).await?.map(|_| set),
        None => None,
    };
    Ok(Some(Machine {
        key,
        metal,
        machine_set,
    }))
}

fn pair(text: &str) -> Option<Key> {
    let (namespace, name) = text.split_once('/')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains('/')).then(|| Key::new(namespace, name))
}

/// Objects of a kind of others; without a namespace, those of all.
pub fn api(
    client: &Client,
    (group, version, kind): (&str, &str, &str),
    namespace: &str,
) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// Clusters need not have such kinds.
async fn find(client: &Client, kind: (&str, &str, &str), key: &Key) -> kube::Result<Option<DynamicObject>> {
    there(api(client, kind, &key.namespace).get(&key.name).await)
}

/// Whether somebody has made machines in the cluster for this Agent's BareMetalHost.
pub async fn metal_joined(ctx: &Context, snapshot: &Snapshot) -> Result<bool, Error> {
    let Some(agent) = &snapshot.agent else {
        return Ok(false);
    };
    let joins = snapshot
        .row
        .as_ref()
        .is_some_and(|row| day_two::follows(agent, row).is_some());
    let matters = joins || agent.metadata.deletion_timestamp.is_some();
    let Some(name) = agent.labels().get(label::BARE_METAL_HOST).filter(|_| matters) else {
        return Ok(false);
    };
    let metal = find(&ctx.kube, METAL, &Key::new(&snapshot.key.namespace, name)).await?;
    Ok(metal.is_some_and(|metal| metal.annotations().contains_key(annotation::BMAC_SPOKE_CREATED)))
}

/// Carries out one deed; what is gone already needs nothing done to it.
pub async fn carry_out(ctx: &Context, cluster: &Key, deed: &Deed) -> Result<(), String> {
    let client = ctx.spoke(cluster).await.map_err(|error| error.to_string())?;
    let done = act(&client, deed).await;
    let is_made = matches!(deed, Deed::Apply(_));
    let done = if is_made { done } else { there(done).map(drop) };
    done.map_err(|error| chain(&error))
}

async fn act(client: &Client, deed: &Deed) -> kube::Result<()> {
    let delete = DeleteParams::default();
    match deed {
        Deed::DoomMachine(key) => {
            annotate(
                client,
                MACHINES,
                key,
                &json!({ DELETE_MACHINE: "true", NO_DRAINING: "true" }),
            )
            .await
        }
        Deed::ShrinkMachineSet(key) => annotate(client, MACHINE_SETS, key, &json!({ SHRINK: "true" })).await,
        Deed::DeleteMetal(key) => api(client, METAL, &key.namespace)
            .delete(&key.name, &delete)
            .await
            .map(drop),
        Deed::DeleteMachine(key) => api(client, MACHINES, &key.namespace)
            .delete(&key.name, &delete)
            .await
            .map(drop),
        Deed::DeleteNode(name) => Api::<Node>::all(client.clone())
            .delete(name, &delete)
            .await
            .map(drop),
        Deed::LabelNode(name, labels) => {
            let patch = json!({ "metadata": { "labels": labels } });
            let nodes: Api<Node> = Api::all(client.clone());
            nodes
                .patch(name, &params(), &Patch::Merge(&patch))
                .await
                .map(drop)
        }
        Deed::ApproveCsr(name) => approve(client, name).await,
        Deed::Apply(object) => apply(client, object).await,
    }
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    }
}

async fn annotate(
    client: &Client,
    kind: (&str, &str, &str),
    key: &Key,
    annotations: &Value,
) -> kube::Result<()> {
    let patch = json!({ "metadata": { "annotations": annotations } });
    api(client, kind, &key.namespace)
        .patch(&key.name, &params(), &Patch::Merge(&patch))
        .await
        .map(drop)
}

async fn approve(client: &Client, name: &str) -> kube::Result<()> {
    let csrs: Api<CertificateSigningRequest> = Api::all(client.clone());
    let condition = json!({
        "type": "Approved", "status": "True", "reason": "NodeCSRApprove",
        "message": "Muster installed the host of this node into this cluster.",
    });
    let patch = json!({ "status": { "conditions": [condition] } });
    csrs.patch_subresource("approval", name, &params(), &Patch::Merge(&patch))
        .await
        .map(drop)
}

async fn apply(client: &Client, object: &Value) -> kube::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let meta = &object["metadata"];
    let objects = api(client, (group, version, kind.as_str()), &text(&meta["namespace"]));
    let params = PatchParams::apply(FIELD_MANAGER).force();
    objects
        .patch(&text(&meta["name"]), &params, &Patch::Apply(object))
        .await
        .map(drop)
}
