//! An operator that is killed at one of its writes, to Kubernetes or to the hub: the next one finishes what it began,
//! and does nothing twice.

use crate::described::one_host;
use crate::gate::{Fate, Gate, Moment};
use crate::lent::{machine, says, state, word};
use crate::log;
use crate::world::{House, Running, Server, World, run_over};
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ListParams;
use kube::{Resource, ResourceExt};
use muster_contract::v1::host::HostsQuery;
use muster_contract::v2::cluster_request::ClustersQuery;
use muster_contract::v2::event::EventsQuery;
use muster_operator::Options;
use muster_operator::crd::{Agent, AgentClusterInstall, ClusterDeployment, InfraEnv};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use uuid::Uuid;

/// What must happen once, and what must not happen at all.
const DEEDS: [&str; 13] = [
    "cluster_deregistered",
    "cluster_installation_completed",
    "cluster_prepare_installation_started",
    "cluster_registration_succeeded",
    "host_bind_succeeded",
    "host_deregistered",
    "host_installation_cancelled",
    "host_installation_reset",
    "host_installation_started",
    "host_returned",
    "host_unbind_succeeded",
    "infra_env_deregistered",
    "infra_env_registered",
];

/// Whether one operator records the same event twice is a matter of time: not every story has that write.
const EVENT_AGAIN: &str = "PATCH events/*";

/// How many stories are told of each moment.
const STORIES: usize = 8;

/// Of each kind of write, an operator dies at every so-many-th. What becomes of a request that is under way is a matter of
/// chance, so that is tried more often.
fn one_in(moment: Moment) -> usize {
    match moment {
        Moment::Before | Moment::After => STORIES,
        Moment::Amid => 4,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_killed_at_every_write_leave_nothing_undone_and_do_nothing_twice() {
    let house = House::open().await;
    let picture = stories(async |fate| story(house.clone(), fate).await).await;
    assert_eq!(picture["deeds"], once(), "{picture:#}");
}

/// One without deaths, and then some that have to end as it did. Each of them begins to kill one write later than the one
/// before: together they end an operator at every write.
pub async fn stories<T: PartialEq + Debug>(tell: impl AsyncFn(Option<Arc<Fate>>) -> Lived<T>) -> T {
    let calm = tell(None).await;
    let mut ends = BTreeSet::new();
    for moment in Moment::ALL {
        // Not all at once: what is tried here is not how long they wait for each other.
        let all = (1..=STORIES).map(async |first| {
            let story = tell(Some(Fate::new(moment, first, one_in(moment))));
            (first, AssertUnwindSafe(story).catch_unwind().await)
        });
        for (first, run) in futures_util::future::join_all(all).await {
            let run = run.unwrap_or_else(|_| panic!("{moment:?} {first}: it did not come to its end"));
            assert_eq!(
                run.done, calm.done,
                "{moment:?} {first}: operators died at {:#?}",
                run.ends
            );
            ends.extend(run.ends.into_iter().map(|end| (moment, end)));
        }
    }
    for moment in Moment::ALL {
        let spared = |kind: &&String| *kind != EVENT_AGAIN && !ends.contains(&(moment, (*kind).clone()));
        let spared: BTreeSet<_> = calm.writes.iter().filter(spared).collect();
        assert!(spared.is_empty(), "{moment:?}: no operator died at {spared:?}");
    }
    calm.done
}

/// As `deeds` returns it.
pub fn once() -> Value {
    json!({
        "cluster_deregistered": 1,
        "cluster_installation_completed": 1,
        "cluster_prepare_installation_started": 1,
        "cluster_registration_succeeded": 1,
        "host_bind_succeeded": 1,
        "host_returned": 1,
        "host_unbind_succeeded": 1,
        "infra_env_registered": 1,
    })
}

/// A host is discovered, lent, installed and returned, by one operator after the other.
async fn story(house: Arc<House>, fate: Option<Arc<Fate>>) -> Lived<Value> {
    let tag = Uuid::new_v4().simple().to_string();
    let namespace = format!("killed-{tag}");
    let mut world = World::at(Server::shared(), house, (namespace.clone(), namespace)).await;
    let (options, server) = (world.options(), world.server.clone());
    let cluster = format!("c{}", &tag[..12]);
    let deeds = lend_install_and_return(&mut world, &cluster);
    let Lived { done, writes, ends } = outlive(options, server, fate, deeds).await;
    let done = picture(&world, &cluster, &done).await;
    Lived { done, writes, ends }
}

/// What came of deeds under operators that died.
pub struct Lived<T> {
    pub done: T,
    /// Of the last operator, by their kind.
    pub writes: Vec<String>,
    /// With which write each of the others ended.
    pub ends: Vec<String>,
}

/// Does something under one operator after the other, until it is done and the last operator has come to rest.
pub async fn outlive<T>(
    options: Options,
    server: Server,
    fate: Option<Arc<Fate>>,
    deeds: impl Future<Output = T>,
) -> Lived<T> {
    let mut operator = Mortal::start(&options, &server, &fate).await;
    let mut ends = Vec::new();
    let done = {
        let mut deeds = std::pin::pin!(AssertUnwindSafe(deeds).catch_unwind());
        let mut done = None;
        loop {
            tokio::select! {
                biased;
                last = operator.gate.closed() => {
                    operator.running.kill();
                    ends.extend(last);
                    operator = Mortal::start(&options, &server, &fate).await;
                }
                () = operator.running.ended() => {}
                outcome = &mut deeds, if done.is_none() => match outcome {
                    Ok(outcome) => done = Some(outcome),
                    Err(panic) => {
                        let did = operator.gate.writes();
                        println!("after {ends:?} the operator did {did:?}\n{}", operator.running.state().await);
                        println!("{}", log::tail(&options.namespaces));
                        resume_unwind(panic)
                    }
                },
                () = operator.running.idle(), if done.is_some() => break done.unwrap(),
            }
        }
    };
    let writes = operator.gate.writes();
    operator.running.stop().await;
    Lived { done, writes, ends }
}

/// An operator behind a gate.
struct Mortal {
    gate: Arc<Gate>,
    running: Running,
}

impl Mortal {
    async fn start(options: &Options, server: &Server, fate: &Option<Arc<Fate>>) -> Self {
        let gate = Gate::open(&options.hub_url, fate.clone()).await;
        let options = Options {
            hub_url: gate.hub_url.clone(),
            ..options.clone()
        };
        let running = run_over(options, gate.over(server.connection().await));
        Self { gate, running }
    }
}

/// Who took part.
pub struct Ids {
    pub infra_env: Uuid,
    pub host: Uuid,
    pub cluster: Uuid,
}

/// The whole way of a host, by nothing but objects.
pub async fn lend_install_and_return(world: &mut World, cluster: &str) -> Ids {
    let infra_env = world.pool_of("lab", |_| ()).await;
    world.fleet(infra_env, 1, |_| ());
    let host = machine(infra_env, 0).id();
    let name = host.to_string();
    let agent = world.agent_in(&name, "known-unbound").await;
    let spec = json!({ "approved": true, "hostname": "kept-by-people", "role": "master",
        "machineConfigPool": "master" });
    world
        .change_agent(
            &name,
            json!({ "spec": spec, "metadata": { "labels": { "rack": "seven" } } }),
        )
        .await
        .unwrap();
    world.describe(cluster, one_host()).await;
    world.want(&name, Some(cluster)).await.unwrap();
    world.install_in(cluster, "adding-hosts").await;
    let id = world.cluster_id(cluster).await;
    world.delete_deployment(cluster).await;
    world.cluster_is_gone(cluster, id).await;
    let back = world
        .agent_when(&name, "back, and synced", |agent| {
            state(agent) == "known-unbound" && says(agent, "SpecSynced") == word("True", "SyncOK")
        })
        .await;
    assert_eq!(back.uid(), agent.uid(), "it is the same object all along");
    Ids {
        infra_env,
        host,
        cluster: id,
    }
}

/// Everything that must be the same however often the operator died. Names and ids that differ between stories are
/// replaced by words.
async fn picture(world: &World, cluster: &str, ids: &Ids) -> Value {
    let agent = world.agent(&ids.host.to_string()).await;
    let infra_env: InfraEnv = world.get(&world.pool, "lab").await;
    let hosts = HostsQuery {
        infra_env_id: Some(ids.infra_env),
        ..HostsQuery::default()
    };
    let hosts = world.hub.host_page(&hosts).await.unwrap().hosts;
    let clusters = world.hub.clusters(&ClustersQuery::default()).await.unwrap();
    let left: Vec<_> = clusters
        .iter()
        .filter(|left| left.name == cluster)
        .map(|left| left.id)
        .collect();
    let status = agent.status.clone().unwrap();
    let picture = json!({
        "objects": {
            "agents": names::<Agent>(world).await,
            "infraEnvs": names::<InfraEnv>(world).await,
            "clusterDeployments": names::<ClusterDeployment>(world).await,
            "agentClusterInstalls": names::<AgentClusterInstall>(world).await,
            "configMaps": names::<ConfigMap>(world).await,
            // Those that the cluster owned are collected by Kubernetes when it has the time.
            "secrets": names_of(world, |secret: &Secret| secret.owner_references().is_empty()).await,
        },
        "agent": {
            "spec": agent.spec,
            "labels": agent.labels(),
            "annotations": agent.annotations().keys().collect::<Vec<_>>(),
            "finalizers": agent.finalizers(),
            "owners": agent.owner_references().iter().map(|owner| &owner.name).collect::<Vec<_>>(),
            "state": status.debug_info.state,
            "conditions": conditions(&agent),
            "deprovisionInfo": status.deprovision_info,
        },
        "infraEnv": { "finalizers": infra_env.finalizers(), "labels": infra_env.labels() },
        "hosts": hosts.iter().map(|host| (&host.name, &host.status, &host.role)).collect::<Vec<_>>(),
        "clusters": left,
        "deeds": deeds(world, ids).await,
    });
    let text = picture.to_string();
    let plain = [
        (ids.host.to_string(), "HOST"),
        (ids.infra_env.to_string(), "POOL"),
        (ids.cluster.to_string(), "CLUSTER"),
        (cluster.to_owned(), "BLUE"),
        (world.pool.clone(), "HERE"),
    ];
    let text = plain.iter().fold(text, |text, (from, to)| text.replace(from, to));
    serde_json::from_str(&text).unwrap()
}

fn conditions(agent: &Agent) -> BTreeMap<String, (String, String)> {
    let all = agent.status.iter().flat_map(|status| &status.conditions);
    all.map(|one| (one.type_.clone(), (one.status.clone(), one.reason.clone())))
        .collect()
}

async fn names<K>(world: &World) -> Vec<String>
where
    K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    names_of(world, |_: &K| true).await
}

async fn names_of<K>(world: &World, counts: impl Fn(&K) -> bool) -> Vec<String>
where
    K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let all = world
        .api::<K>(&world.pool)
        .list(&ListParams::default())
        .await
        .unwrap();
    all.items
        .iter()
        .filter(|object| counts(object))
        .map(ResourceExt::name_any)
        .collect()
}

/// How often each of `DEEDS` was done, by the events of the hub.
pub async fn deeds(world: &World, ids: &Ids) -> Value {
    let of_pool = EventsQuery {
        infra_env_id: Some(ids.infra_env),
        ..EventsQuery::default()
    };
    let of_host = EventsQuery {
        host_id: Some(ids.host),
        ..EventsQuery::default()
    };
    let of_cluster = EventsQuery {
        cluster_id: Some(ids.cluster),
        ..EventsQuery::default()
    };
    let mut all = Vec::new();
    for query in [of_pool, of_host, of_cluster] {
        for event in world.hub.events(&query).await.unwrap() {
            // One event belongs to several.
            if DEEDS.contains(&&*event.name) && !all.contains(&event) {
                all.push(event);
            }
        }
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for event in all {
        *counts.entry(event.name.into_owned()).or_default() += 1;
    }
    json!(counts)
}
