//! An API server that restarts, and watches that have expired by the time it is back. Such a server is a test's own.

use crate::hub_outage::lend_install_and_return;
use crate::own_server::{Place, world_at};
use crate::world::{World, run_over};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use muster_operator::crd::infra_env::InfraEnv;
use muster_operator::crd::{Agent, NMStateConfig};
use muster_operator::runtime::lease::Terms;
use muster_operator::{Election, Options};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// Whether the server can no longer tell what happened since a version.
async fn has_expired(networks: &Api<NMStateConfig>, version: &str) -> bool {
    let expired = |status: &Status| status.code == 410;
    let mut events = match networks.watch(&WatchParams::default(), version).await {
        Ok(events) => events.boxed(),
        Err(kube::Error::Api(status)) => return expired(&status),
        Err(error) => panic!("{error}"),
    };
    match events.try_next().await.unwrap() {
        Some(WatchEvent::Error(status)) => expired(&status),
        _ => false,
    }
}

/// Terms so short that a restart of the API server is longer.
fn electing(world: &World) -> Options {
    Options {
        election: Election::On {
            namespace: Some(world.pool.clone()),
            terms: Terms {
                duration: Duration::from_secs(3),
                deadline: Duration::from_secs(1),
                every: Duration::from_millis(200),
            },
        },
        ..world.options()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_restarts_finds_everything_as_the_hub_has_it() {
    let place = Place::open().await;
    let mut front = place.front("one").await;
    place.define_kinds(&front).await;
    let mut world = world_at(&front).await;
    let running = run_over(electing(&world), world.server.connection().await);
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_host(pool).await;
    let patch = json!({ "spec": { "hostname": "kept-by-people", "approved": true } });
    world.change_agent(&host, patch).await.unwrap();
    running.idle().await;
    front.stop().await;
    world
        .until("the operator knows that it cannot hold its lease", async || {
            let metrics = running.metrics().await.unwrap_or_default();
            metrics.contains("muster_operator_leads 0")
        })
        .await;
    // Meanwhile the hub gets a new host, and an old one changes.
    let late = Uuid::new_v4();
    world.register(pool, late).await;
    front.start(&place).await;
    world.agent_in(&late.to_string(), "discovering-unbound").await;
    let agent = world.agent_in(&host, "known-unbound").await;
    assert!(agent.spec.approved && agent.spec.hostname == "kept-by-people");
    running.idle().await;
    let agents: Vec<Agent> = world.agents().await;
    assert_eq!(agents.len(), 2);
    running.stop().await;
    let leases: Api<Lease> = world.api(&world.pool);
    let lease = leases.get("77190dcb.agent-install.openshift.io").await.unwrap();
    assert_eq!(
        lease.spec.unwrap().holder_identity.as_deref(),
        Some(""),
        "given back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_watch_has_expired_everything_is_read_anew() {
    let place = Place::open().await;
    let mut front = place.front("one").await;
    place.define_kinds(&front).await;
    let mut world = world_at(&front).await;
    world.start_operator().await;
    let network = json!({ "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "NMStateConfig",
        "metadata": { "name": "static", "labels": { "site": "north" } },
        "spec": { "interfaces": [{ "name": "eth0", "macAddress": "02:00:00:00:00:01" }],
            "config": { "interfaces": [{ "name": "eth0", "type": "ethernet", "state": "up" }] } } });
    let network: NMStateConfig = serde_json::from_value(network).unwrap();
    world.create(&world.pool, &network).await;
    let selector = json!({ "matchLabels": { "site": "north" } });
    let chooses = |infra_env: &mut InfraEnv| {
        infra_env.spec.nm_state_config_label_selector = serde_json::from_value(selector).unwrap();
    };
    let pool = world.pool_of("lab", chooses).await;
    let configs = async || world.hub.infra_env(pool).await.unwrap().static_network_config;
    world
        .until("the hub has the network", async || !configs().await.is_empty())
        .await;
    world.operator().idle().await;
    let networks: Api<NMStateConfig> = world.api(&world.pool);
    let version = networks
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();

    front.stop().await;
    let key = format!(
        "/registry/agent-install.openshift.io/nmstateconfigs/{}/static",
        world.pool
    );
    place.delete_unnoticed(&key).await;
    front.start(&place).await;
    assert!(has_expired(&networks, &version).await);

    world
        .until("the network is gone from the hub, too", async || {
            configs().await.is_empty()
        })
        .await;
    // And from then on it is watched as before.
    world.pool_of("late", |_| ()).await;
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_restarts_at_every_turn_delays_an_installation_and_no_more() {
    let place = Place::open().await;
    let mut front = place.front("one").await;
    place.define_kinds(&front).await;
    let _collector = place.collector(&front);
    let mut world = world_at(&front).await;
    world.start_operator().await;
    lend_install_and_return(&mut world, async || {
        front.stop().await;
        front.start(&place).await;
    })
    .await;
}
