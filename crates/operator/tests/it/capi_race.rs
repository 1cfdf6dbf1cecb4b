//! Several who want the same Agents: machines, operators, other providers, and an operator that dies in between.

use crate::machines::{Capi, agent_of, but, free, holder, waits};
use crate::world::{World, run};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use muster_operator::crd::keys::{annotation, label};
use muster_operator::crd::{Agent, AgentMachine, ClusterDeployment};
use muster_operator::runtime::lease::Terms;
use muster_operator::{Election, Options};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn of_machines_that_race_for_agents_each_gets_its_own_also_with_two_operators() {
    let world = World::without_operator().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    for index in 0..12 {
        world
            .capi_machine(Capi::V1Beta2, "blue", &format!("m{index:02}"), json!({}))
            .await;
    }
    // Both act: as when a lease changes hands while its old holder is slow.
    let (first, second) = (world.provider().await, world.provider().await);
    world.machine_when("m00", "waits", waits).await;
    for index in 0..8 {
        world.hand_made(&format!("a{index}"), free(), |_| ()).await;
    }
    let machines = async || {
        let all = world
            .api::<AgentMachine>(&world.clusters)
            .list(&ListParams::default())
            .await;
        all.unwrap().items
    };
    let lent = async || {
        machines()
            .await
            .iter()
            .filter(|machine| agent_of(machine).is_some())
            .count()
    };
    world
        .until("all Agents are lent", async || lent().await == 8)
        .await;
    first.idle().await;
    second.idle().await;
    let machines = machines().await;
    let pairs: Vec<_> = machines
        .iter()
        .filter_map(|machine| Some((machine.name_any(), agent_of(machine)?)))
        .collect();
    let agents: BTreeSet<_> = pairs.iter().map(|(_, agent)| agent.clone()).collect();
    assert_eq!((pairs.len(), agents.len()), (8, 8), "{pairs:?}");
    for (machine, agent) in pairs {
        assert_eq!(holder(&world.agent(&agent).await), Some(machine.as_str()));
    }
    assert_eq!(machines.iter().filter(|machine| waits(machine)).count(), 4);
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_agents_that_were_claimed_for_one_machine_one_is_let_go() {
    let world = World::without_operator().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    for name in ["a", "b"] {
        world.hand_made(name, free(), world.claimed_by("m1")).await;
    }
    let provider = world.provider().await;
    let machine = world.lent_machine("m1").await;
    let kept = agent_of(&machine).unwrap();
    let other = if kept == "a" { "b" } else { "a" };
    let is_free = |agent: &Agent| holder(agent).is_none() && agent.spec.cluster_deployment_name.is_none();
    world.agent_when(other, "is let go", is_free).await;
    assert_eq!(holder(&world.agent(&kept).await), Some("m1"));
    // And one more that turns up while the machine goes.
    provider.stop().await;
    world.hand_made("late", free(), world.claimed_by("m1")).await;
    world.terminate(Capi::V1Beta2, "m1").await;
    let provider = world.provider().await;
    world.agent_when("late", "is let go", is_free).await;
    world.agent_when(&kept, "is let go", is_free).await;
    world.unhooked("m1").await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_cut_off_in_the_middle_is_taken_up_again() {
    let world = World::without_operator().await;
    world.hand_made("a-smaller", free(), |_| ()).await;
    // The label is there, the machine does not know of it yet.
    world
        .hand_made("b-claimed", but("Bound", "True", "Bound"), world.claimed_by("m1"))
        .await;
    // Of the same name elsewhere.
    world
        .hand_made("c-foreign", but("Bound", "True", "Bound"), |agent| {
            agent
                .labels_mut()
                .insert(label::AGENT_MACHINE.into(), "m1".into());
            let note = (
                annotation::AGENT_MACHINE_NAMESPACE.to_owned(),
                "elsewhere".to_owned(),
            );
            agent.annotations_mut().extend([note]);
        })
        .await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let provider = world.provider().await;
    assert_eq!(
        agent_of(&world.lent_machine("m1").await).as_deref(),
        Some("b-claimed")
    );
    assert_eq!(holder(&world.agent("a-smaller").await), None);
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_the_provider_lends_every_agent_once() {
    let world = World::without_operator().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    for index in 0..6 {
        world.hand_made(&format!("a{index}"), free(), |_| ()).await;
        world
            .capi_machine(Capi::V1Beta2, "blue", &format!("m{index}"), json!({}))
            .await;
    }
    let claims = async || {
        let agents = world
            .api::<Agent>(&world.pool)
            .list(&ListParams::default())
            .await
            .unwrap();
        agents.iter().filter(|agent| holder(agent).is_some()).count()
    };
    for count in 1..=5 {
        let provider = world.provider().await;
        world
            .until("one more is claimed", async || claims().await >= count)
            .await;
        provider.kill();
    }
    let provider = world.provider().await;
    let mut agents = BTreeSet::new();
    for index in 0..6 {
        let machine = world.lent_machine(&format!("m{index}")).await;
        let agent = agent_of(&machine).unwrap();
        assert_eq!(
            holder(&world.agent(&agent).await),
            Some(machine.name_any().as_str())
        );
        agents.insert(agent);
    }
    assert_eq!(agents.len(), 6);
    provider.stop().await;
}

const LEASE: &str = "7605f49b.agent-install.openshift.io";

/// As a provider leaves it behind that was switched off for a while.
async fn stale_lease(world: &World) {
    let lease: Lease = serde_json::from_value(json!({
        "metadata": { "name": LEASE },
        "spec": { "holderIdentity": "capi-provider-1", "leaseDurationSeconds": i32::MAX,
            "renewTime": "1999-01-01T00:00:00.000000Z" },
    }))
    .unwrap();
    world.create(&world.clusters, &lease).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_comes_right_before_a_claim_is_noticed_in_time() {
    let world = World::without_operator().await;
    let options = Options {
        // What was found is believed for so long, but not where it counts.
        retry: Duration::from_secs(600),
        ..world.provider_options()
    };
    let provider = run(options).await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.machine_when("m1", "waits", waits).await;
    provider.idle().await;
    stale_lease(&world).await;
    let stepped_back = async || provider.counted("reconcile_conflicts", "agent-machine").await;
    let before = stepped_back().await;
    world.hand_made("a", free(), |_| ()).await;
    world
        .until("it stepped back", async || stepped_back().await > before)
        .await;
    provider.stop().await;
    assert_eq!(holder(&world.agent("a").await), None);
    let machine: AgentMachine = world.get(&world.clusters, "m1").await;
    assert_eq!((agent_of(&machine), machine.spec.provider_id), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_another_provider_has_its_lease_this_one_stands_back_until_it_is_deleted() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    stale_lease(&world).await;
    let provider = world.provider().await;
    let reconciled = async || provider.counted("reconciles", "agent-machine").await > 1;
    world.until("it has reconciled", reconciled).await;
    assert_eq!(provider.requests.writes(), 0);
    let leases = world.api::<Lease>(&world.clusters);
    leases.delete(LEASE, &DeleteParams::default()).await.unwrap();
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_this_operator_does_not_hold_it_back() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let electing = Options {
        election: Election::On {
            namespace: Some(world.clusters.clone()),
            terms: Terms {
                duration: Duration::from_secs(3),
                deadline: Duration::from_secs(2),
                every: Duration::from_millis(300),
            },
        },
        ..world.provider_options()
    };
    let provider = run(electing).await;
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_controller_of_the_provider_can_be_switched_off() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let only = |names: &str| Options {
        controllers: names.parse().unwrap(),
        ..world.options()
    };
    let clusters = run(only("agent-cluster")).await;
    clusters.idle().await;
    world.get::<ClusterDeployment>(&world.clusters, "blue").await;
    assert_eq!(holder(&world.agent("a").await), None);
    clusters.stop().await;
    let machines = run(only("agent-machine")).await;
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    machines.stop().await;
}
