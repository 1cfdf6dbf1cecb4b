//! Hosts that work for a cluster, and a hub that lost its records of them.

use crate::described::one_host;
use crate::lent::{machine, says, state, word};
use crate::world::World;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use muster_contract::v2::cluster_request::ClustersQuery;
use muster_operator::crd::Agent;
use muster_operator::crd::keys::annotation;

fn noted(agent: &Agent) -> &str {
    &agent.annotations()[annotation::AGENT_STATE]
}

/// How often people were warned that something about the Agent cannot be.
async fn warnings(world: &World, agent: &str) -> usize {
    let events: Api<Event> = Api::namespaced(world.kube.clone(), &world.pool);
    let about = ListParams::default().fields(&format!("regarding.name={agent}"));
    let all = events.list(&about).await.unwrap().items;
    let warns = |event: &&Event| {
        event.type_.as_deref() == Some("Warning") && event.reason.as_deref() == Some("InputError")
    };
    all.iter().filter(warns).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_installed_is_not_installed_again_by_a_hub_that_forgot_it() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let remote = world.fleet(pool, 1, |config| {
        config.first_index = 0;
        config.return_boots = None;
    });
    let host = machine(pool, 0).id();
    let name = host.to_string();
    world.agent_in(&name, "known-unbound").await;
    world.describe("blue", one_host()).await;
    world.approve(&name).await;
    world.want(&name, Some("blue")).await.unwrap();
    world.install_in("blue", "adding-hosts").await;
    world
        .agent_when(&name, "noted as installed", |agent| noted(agent) == "installed")
        .await;

    world.house.close().await;
    world.house.forget();
    world.house.reopen().await;
    world
        .until("the hub has the cluster again", async || {
            let clusters = world.hub.clusters(&ClustersQuery::default()).await;
            clusters.is_ok_and(|clusters| !clusters.is_empty())
        })
        .await;
    remote.boot_discovery(0);
    let is_held = |agent: &Agent| {
        state(agent) == "known-unbound" && says(agent, "SpecSynced") == word("False", "InputError")
    };
    world.agent_when(&name, "free and held", is_held).await;
    world.operator().idle().await;
    let agent = world.agent(&name).await;
    assert!(is_held(&agent) && noted(&agent) == "installed", "{agent:?}");
    assert_eq!(world.hub.host(pool, host).await.unwrap().cluster_id, None);
    world.assert_converged().await;
    assert_eq!(warnings(&world, &name).await, 1);

    world.want(&name, None).await.unwrap();
    let is_free = |agent: &Agent| {
        noted(agent) == "known-unbound" && says(agent, "SpecSynced") == word("True", "SyncOK")
    };
    world.agent_when(&name, "free", is_free).await;
    world.want(&name, Some("blue")).await.unwrap();
    world
        .until("it is lent again", async || {
            world.hub.host(pool, host).await.unwrap().cluster_id.is_some()
        })
        .await;
}
