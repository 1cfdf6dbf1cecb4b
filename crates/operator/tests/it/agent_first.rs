//! The first version of an Agent that anybody can read: whole but for its status, which is a write of its own.

use crate::lent::{machine, state};
use crate::world::World;
use futures_util::{Stream, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use muster_operator::crd::Agent;
use muster_operator::crd::keys::{annotation, label};
use std::pin::Pin;
use std::time::Duration;
use uuid::Uuid;

/// Much longer than it takes; only a failure waits for it.
const DEADLINE: Duration = Duration::from_secs(90);

type Events = Pin<Box<dyn Stream<Item = watcher::Result<Event<Agent>>> + Send>>;

/// Every version of the Agents of the pool, from now on.
async fn watch(world: &World) -> Events {
    let events = watcher(world.api::<Agent>(&world.pool), watcher::Config::default());
    let mut events = events.default_backoff().boxed();
    let listed = async { while !matches!(events.next().await, Some(Ok(Event::InitDone))) {} };
    tokio::time::timeout(DEADLINE, listed).await.unwrap();
    events
}

async fn first(events: &mut Events) -> Agent {
    let first = async {
        loop {
            if let Some(Ok(Event::Apply(agent))) = events.next().await {
                return agent;
            }
        }
    };
    tokio::time::timeout(DEADLINE, first).await.expect("an Agent")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_comes_with_its_annotations_in_one_write() {
    let world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let mut events = watch(&world).await;
    let host = Uuid::new_v4();
    world.register(pool, host).await;
    let agent = first(&mut events).await;
    assert_eq!(agent.metadata.name, Some(host.to_string()));
    assert_eq!(agent.status, None, "it is the very first version");
    let noted = agent.metadata.annotations.clone().unwrap_or_default();
    assert_eq!(noted[annotation::AGENT_STATE], "discovering-unbound");
    assert_eq!(noted[annotation::AGENT_ROLE], "auto-assign");
    assert!(noted.contains_key(annotation::AGENT_STAGE));
    let generation = agent.metadata.generation;
    let shown = world.agent_in(&host.to_string(), "discovering-unbound").await;
    assert_eq!(
        shown.metadata.generation, generation,
        "nothing but its status was written"
    );
    assert_eq!(shown.metadata.annotations, agent.metadata.annotations);
    assert_eq!(shown.metadata.labels, agent.metadata.labels);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_of_a_host_that_the_hub_has_known_for_long_comes_with_its_inventory() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    world.stop_operator().await;
    let _fleet = world.fleet(pool, 1, |config| config.first_index = 0);
    let host = machine(pool, 0).id();
    let known = async || {
        let rows = world.hub.host_rows(host).await.unwrap().hosts;
        rows.iter().any(|row| row.host.status == "known-unbound")
    };
    world.until("the hub knows its hardware", known).await;
    let mut events = watch(&world).await;
    world.start_operator().await;
    let agent = first(&mut events).await;
    assert_eq!(state(&agent), "", "it is the very first version");
    let noted = agent.metadata.annotations.unwrap_or_default();
    assert_eq!(noted[annotation::AGENT_STATE], "known-unbound");
    assert!(noted[annotation::AGENT_INVENTORY].contains("hostname"));
    assert!(noted.contains_key(annotation::AGENT_VALIDATIONS));
    assert_eq!(
        agent.metadata.labels.unwrap_or_default()[label::CPU_ARCHITECTURE],
        "x86_64"
    );
}
