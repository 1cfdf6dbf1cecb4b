//! Nodes of machines: each gets the id by which Cluster API knows its machine, inside the cluster it is part of.

pub mod plan;

use crate::controller::agent::spoke;
use crate::controller::agent_machine::index::MACHINES_BY_NAMESPACE;
use crate::crd::capi::Cluster;
use crate::crd::keys::data;
use crate::crd::{AgentCluster, AgentMachine, ClusterDeployment, capi};
use crate::error::{Error, chain};
use crate::key::Key;
use crate::runtime::patch::Writer;
use crate::runtime::registry::{Controller, Group, Registry};
use crate::runtime::spoke::NoSpoke;
use crate::runtime::{Change, Context, reconciler};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{Api, Patch, PatchParams};
use plan::{Plan, Step};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub const CONTROLLER: Controller = Controller {
    name: "node-provider-id",
    group: Group::CapiProvider,
    workers: 4,
    register,
    reconcile: |ctx, key| Box::pin(reconciler::run::<Snapshot>(ctx, key)),
};

const WRITER: Writer = Writer("muster-node-provider-id");

/// What a decision about a node depends on: a snapshot of everything it may use.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub machine: Arc<AgentMachine>,
    /// The ClusterDeployment of its cluster.
    pub cluster: Option<Key>,
    /// Read only when the machine is installed and has no reason to be left alone.
    pub node: Option<Result<Option<Node>, String>>,
    pub elsewhere: bool,
    pub retry: Duration,
}

fn register(registry: &mut Registry) {
    registry
        .reads::<ClusterDeployment>()
        .reads::<capi::Machine>()
        .reads::<capi::ControlPlane>()
        .reads::<Secret>()
        .on(itself)
        .on(by_cluster)
        .on(by_agent_cluster)
        .on_start_over(all);
}

/// Only what says which node it is, and when.
fn itself(ctx: &Context, change: &Change<AgentMachine>) {
    if change.differs_in(|machine| {
        let status = machine.status.as_ref();
        let status = status.map(|status| (status.ready, &status.addresses));
        (status, &machine.spec.provider_id, &machine.metadata.annotations)
    }) {
        ctx.queue(&CONTROLLER).wake(change.key.clone());
    }
}

/// It may be paused no more, or have another AgentCluster.
fn by_cluster(ctx: &Context, change: &Change<Cluster>) {
    if change.differs_in(|cluster| &cluster.spec) {
        neighbours(ctx, &change.key.namespace);
    }
}

/// It says where the nodes are.
fn by_agent_cluster(ctx: &Context, change: &Change<AgentCluster>) {
    if change.differs_in(AgentCluster::deployment) {
        neighbours(ctx, &change.key.namespace);
    }
}

fn neighbours(ctx: &Context, namespace: &str) {
    let machines = ctx.cache::<AgentMachine>().by(MACHINES_BY_NAMESPACE, namespace);
    ctx.queue(&CONTROLLER).wake_all(machines);
}

fn all(ctx: &Context) {
    ctx.queue(&CONTROLLER).wake_all(ctx.cache::<AgentMachine>().all());
}

impl reconciler::Reconcile for Snapshot {
    type Place = Key;
    type Step = Step;
    type Failure = String;

    const OBJECT: &'static str = "the node of an AgentMachine";
    /// One to write, and one to see it.
    const MOST_ROUNDS: usize = 4;

    async fn read(ctx: &Context, key: &Key, failure: Option<String>) -> Result<Option<Self>, Error> {
        let Some(machine) = ctx.cache::<AgentMachine>().get(key) else {
            return Ok(None);
        };
        let lineage = ctx.lineage(&machine).await?;
        let mut snapshot = Self {
            cluster: lineage.deployment().map(Key::from),
            node: None,
            elsewhere: ctx.is_provided_elsewhere(&key.namespace).await?,
            retry: ctx.retry,
            machine,
        };
        let held = lineage.is_paused() || snapshot.elsewhere;
        if let (Some(name), Some(cluster), false) =
            (plan::node_name(&snapshot.machine), &snapshot.cluster, held)
        {
            let read = match failure {
                Some(why) => Err(why),
                None => node(ctx, cluster, name).await,
            };
            snapshot.node = Some(read);
        }
        Ok(Some(snapshot))
    }

    fn plan(&self) -> Plan {
        plan::plan(self)
    }

    async fn apply(&self, ctx: &Context, step: &Step) -> Result<Result<(), String>, Error> {
        match step {
            Step::Tell(news) => {
                ctx.recorder.tell::<AgentMachine>(&self.machine, news).await;
                Ok(Ok(()))
            }
            Step::Name(node, id) => Ok(match &self.cluster {
                Some(cluster) => name(ctx, cluster, node, id).await,
                None => Ok(()),
            }),
        }
    }
}

async fn node(ctx: &Context, cluster: &Key, name: &str) -> Result<Option<Node>, String> {
    let client = ctx.spoke(cluster).await.map_err(why)?;
    let nodes: Api<Node> = Api::all(client);
    spoke::node(&nodes, name).await.map_err(|error| chain(&error))
}

/// The id of a node can be set once; of two who set it, the server refuses one.
async fn name(ctx: &Context, cluster: &Key, node: &str, id: &str) -> Result<(), String> {
    let client = ctx.spoke(cluster).await.map_err(why)?;
    let nodes: Api<Node> = Api::all(client);
    let params = PatchParams {
        field_manager: Some(WRITER.0.into()),
        ..PatchParams::default()
    };
    let patch = json!({ "spec": { "providerID": id } });
    let done = nodes.patch(node, &params, &Patch::Merge(&patch)).await;
    done.map(drop).map_err(|error| chain(&error))
}

fn why(error: NoSpoke) -> String {
    match error {
        NoSpoke::NoKubeconfig => format!("the cluster has no Secret with a {}", data::KUBECONFIG),
        NoSpoke::Failed(why) => why,
    }
}
