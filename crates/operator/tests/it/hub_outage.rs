//! A hub that does not answer for a while, in the middle of things.

use crate::described::one_host;
use crate::killed::{Ids, deeds, once};
use crate::lent::{machine, says, state, word};
use crate::world::{Running, World};
use muster_operator::crd::{Agent, InfraEnv};
use serde_json::json;
use std::time::Duration;

/// The value of one line of the metrics.
async fn figure(running: &Running, line: &str) -> f64 {
    let text = running.metrics().await.unwrap_or_default();
    let found = text.lines().find_map(|one| one.strip_prefix(line));
    found
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or_default()
}

const AGENT_RECONCILES: &str = "muster_operator_reconciles_total{controller=\"agent\"}";

#[tokio::test(flavor = "multi_thread")]
async fn while_the_hub_does_not_answer_objects_stay_as_they_are_and_afterwards_they_take_effect() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_host(pool).await;
    world.operator().idle().await;
    world.house.close().await;
    let running = world.operator();
    world
        .until("the operator notices", async || {
            figure(running, "muster_operator_hub_up").await == 0.0
        })
        .await;
    let (reconciles, writes) = (figure(running, AGENT_RECONCILES).await, running.requests.writes());
    let before = world.agent(&host).await;
    let after = world
        .change_agent(&host, json!({ "spec": { "hostname": "named-meanwhile" } }))
        .await
        .unwrap();
    world
        .until("the operator tries more than once", async || {
            figure(running, AGENT_RECONCILES).await >= reconciles + 2.0
        })
        .await;
    assert_eq!(
        running.requests.writes(),
        writes,
        "no status says that the hub restarts"
    );
    assert_eq!(world.agent(&host).await.status, before.status);
    assert_eq!(
        world.agent(&host).await.metadata.resource_version,
        after.metadata.resource_version
    );
    world.house.reopen().await;
    world
        .until("the hub has the name", async || {
            let rows = world.hub.host_rows(host.parse().unwrap()).await.unwrap();
            rows.hosts[0].host.requested_hostname == "named-meanwhile"
        })
        .await;
    world
        .agent_when(&host, "synced", |agent| {
            says(agent, "SpecSynced") == word("True", "SyncOK")
        })
        .await;
    world
        .until("the operator follows the hub again", async || {
            figure(world.operator(), "muster_operator_hub_up").await == 1.0
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_comes_back_with_other_settings_is_asked_for_everything_again() {
    let world = World::start().await;
    world.pool_of("lab", |_| ()).await;
    world.operator().idle().await;
    world.house.close().await;
    let elsewhere = "http://hub.example.com:8090";
    world
        .house
        .reopen_with(|config| config.base_url = Some(elsewhere.into()))
        .await;
    let moved = |infra_env: &InfraEnv| {
        let status = infra_env.status.as_ref();
        status.is_some_and(|status| status.iso_download_url.starts_with(elsewhere))
    };
    world
        .when(&world.pool, "lab", "its image is elsewhere", moved)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_restarts_at_every_turn_delays_an_installation_and_no_more() {
    let mut world = World::start().await;
    let house = world.house.clone();
    lend_install_and_return(&mut world, async || {
        house.close().await;
        house.reopen().await;
    })
    .await;
}

/// A host is lent, installed and returned; at every turn somebody is away for a while. Nothing is done twice, and nothing
/// is left undone.
pub async fn lend_install_and_return(world: &mut World, mut interrupt: impl AsyncFnMut()) {
    let pool = world.pool_of("lab", |_| ()).await;
    world.fleet(pool, 1, |config| {
        config.install_time = Some(Duration::from_secs(4))
    });
    let host = machine(pool, 0).id();
    let name = host.to_string();
    world.agent_in(&name, "known-unbound").await;
    interrupt().await;
    world.describe("blue", one_host()).await;
    world.approve(&name).await;
    world.want(&name, Some("blue")).await.unwrap();
    for moment in ["binding", "known", "installing-in-progress"] {
        let reached = |agent: &Agent| state(agent) == moment || is_beyond(agent, moment);
        world.agent_when(&name, moment, reached).await;
        interrupt().await;
    }
    world.install_in("blue", "adding-hosts").await;
    let id = world.cluster_id("blue").await;
    world.delete_deployment("blue").await;
    interrupt().await;
    world.cluster_is_gone("blue", id).await;
    interrupt().await;
    let agent = world.agent_in(&name, "known-unbound").await;
    assert!(agent.spec.approved, "what people wrote stays");
    let ids = Ids {
        infra_env: pool,
        host,
        cluster: id,
    };
    assert_eq!(deeds(world, &ids).await, once());
    world.operator().idle().await;
    world.assert_converged().await;
}

/// Some states last for a moment only.
fn is_beyond(agent: &Agent, moment: &str) -> bool {
    let way = [
        "known-unbound",
        "binding",
        "discovering",
        "known",
        "preparing-for-installation",
        "preparing-successful",
        "installing",
        "installing-in-progress",
        "installed",
    ];
    let place = |state: &str| way.iter().position(|one| *one == state);
    place(state(agent)) > place(moment)
}
