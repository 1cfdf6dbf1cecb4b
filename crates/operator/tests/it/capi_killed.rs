//! A provider that is killed at one of its writes, while a machine takes an Agent and while it gives it back: never are two
//! Agents claimed for a machine, and none is left behind.

use crate::gate::Fate;
use crate::killed::{Lived, outlive, stories};
use crate::machines::{Capi, TOKEN, agent_of, free, holder, installed};
use crate::world::{House, Server, World};
use futures_util::StreamExt;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use muster_operator::Options;
use muster_operator::crd::{Agent, AgentMachine};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn providers_killed_at_every_write_take_one_agent_and_give_it_back() {
    let house = House::open().await;
    stories(async |fate| take_and_give_back(house.clone(), fate).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_killed_at_every_write_leave_no_agent_behind_when_a_machine_goes_while_it_takes_one() {
    let house = House::open().await;
    stories(async |fate| go_while_taking(house.clone(), fate).await).await;
}

/// How many Agents were claimed for a machine at the same time, at most.
struct Claims {
    most: Arc<Mutex<usize>>,
    task: tokio::task::JoinHandle<()>,
}

impl Claims {
    fn count(world: &World) -> Self {
        let most = Arc::new(Mutex::new(0));
        let (written, api) = (most.clone(), world.api::<Agent>(&world.pool));
        let task = tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
            let mut claimed = BTreeMap::new();
            while let Some(event) = events.next().await {
                if let Ok(Event::Apply(agent) | Event::InitApply(agent)) = event {
                    claimed.insert(agent.name_any(), holder(&agent).is_some());
                    let now = claimed.values().filter(|claimed| **claimed).count();
                    let mut most = written.lock().unwrap();
                    *most = now.max(*most);
                }
            }
        });
        Self { most, task }
    }

    fn most(&self) -> usize {
        *self.most.lock().unwrap()
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Two free hosts, and a machine that wants one of them.
async fn begin(house: Arc<House>) -> World {
    let namespace = format!("capi-killed-{}", Uuid::new_v4().simple());
    let world = World::at(Server::shared(), house, (namespace.clone(), namespace)).await;
    for name in ["agent-1", "agent-2"] {
        world.hand_made(name, free(), |_| ()).await;
    }
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.user_data("user-data", TOKEN).await;
    let data = json!({ "dataSecretName": "user-data" });
    world
        .capi_machine_with(Capi::V1Beta2, "blue", "m1", json!({}), data)
        .await;
    world
}

fn options(world: &World) -> Options {
    Options {
        // The one that names nodes would poll for this one.
        controllers: "agent-cluster,agent-machine".parse().unwrap(),
        ..world.options()
    }
}

async fn take_and_give_back(house: Arc<House>, fate: Option<Arc<Fate>>) -> Lived<()> {
    let world = begin(house).await;
    let claims = Claims::count(&world);
    let deeds = taken_and_given_back(&world);
    let lived = outlive(options(&world), world.server.clone(), fate, deeds).await;
    all_are_free(&world).await;
    assert_eq!(claims.most(), 1);
    lived
}

async fn taken_and_given_back(world: &World) {
    let taken = world.lent_machine("m1").await;
    let name = agent_of(&taken).unwrap();
    assert_eq!(taken.spec.provider_id, Some(format!("agent://{name}")));
    world.show(&name, installed()).await;
    world
        .machine_when("m1", "is ready", |machine| {
            machine.status.as_ref().is_some_and(|status| status.ready)
        })
        .await;
    world.terminate(Capi::V1Beta2, "m1").await;
    world
        .agent_when(&name, "is let go", |agent| holder(agent).is_none())
        .await;
    assert!(world.is_hooked("m1").await, "its host has not left");
    world.show(&name, free()).await;
    goes(world).await;
}

async fn go_while_taking(house: Arc<House>, fate: Option<Arc<Fate>>) -> Lived<()> {
    let world = begin(house).await;
    let claims = Claims::count(&world);
    let deeds = gone_while_taking(&world);
    let lived = outlive(options(&world), world.server.clone(), fate, deeds).await;
    all_are_free(&world).await;
    assert_eq!(claims.most(), 1);
    lived
}

async fn gone_while_taking(world: &World) {
    let claimed = async || agents(world).await.iter().any(|agent| holder(agent).is_some());
    world.until("one is claimed", claimed).await;
    world.terminate(Capi::V1Beta2, "m1").await;
    goes(world).await;
}

/// As Cluster API does it: its own object goes after the hook is off.
async fn goes(world: &World) {
    world.unhooked("m1").await;
    let machines = world.api::<AgentMachine>(&world.clusters);
    machines.delete("m1", &DeleteParams::default()).await.unwrap();
    world.gone::<AgentMachine>(&world.clusters, "m1").await;
}

async fn agents(world: &World) -> Vec<Agent> {
    let api = world.api::<Agent>(&world.pool);
    api.list(&ListParams::default()).await.unwrap().items
}

async fn all_are_free(world: &World) {
    for agent in agents(world).await {
        let left = (holder(&agent), agent.spec.cluster_deployment_name.clone());
        assert_eq!(left, (None, None), "{}", agent.name_any());
        assert_eq!(agent.spec.machine_config_pool, "");
        assert!(agent.spec.ignition_endpoint_token_reference.is_none());
        assert!(agent.annotations().is_empty(), "{:?}", agent.annotations());
    }
}
