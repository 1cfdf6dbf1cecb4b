//! Machines of Cluster API that come back from a backup, in whatever order they and their Agents do; and what is shown of a
//! machine while its Agent changes.

use crate::lent::word;
use crate::machines::{Capi, address, agent_of, free, holder, installed, message, says};
use crate::world::World;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::DeleteParams;
use muster_operator::crd::keys::label;
use muster_operator::crd::{Agent, AgentMachine};
use serde_json::json;

fn is_ready(machine: &AgentMachine) -> bool {
    machine.status.as_ref().is_some_and(|status| status.ready)
}

/// It waits for this Agent, and says what to do if that is in vain.
fn waits_for(machine: &AgentMachine, agent: &str) -> bool {
    let text = message(machine, "Ready");
    says(machine, "AgentReserved") == word("False", "AgentNotYetFound")
        && text.contains(&format!("Agent {agent} of this machine"))
        && text.contains("delete the Machine")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_an_id_waits_for_its_agent_beside_a_free_one_and_keeps_its_node() {
    let world = World::without_operator().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.hand_made("b-free", free(), |_| ()).await;
    // A running node that carries its name as well: whoever wrote that, nobody throws it out.
    world
        .hand_made("c-node", installed(), world.claimed_by("m1"))
        .await;
    let id = json!({ "providerID": "agent://a-late" });
    world.restored_machine("blue", "m1", id).await;
    let provider = world.provider_without_nodes().await;
    world
        .machine_when("m1", "waits for its own", |machine| waits_for(machine, "a-late"))
        .await;
    provider.idle().await;
    assert_eq!(holder(&world.agent("b-free").await), None);
    // Its Agent is restored: first the object, then what it says.
    let late = world
        .hand_made("a-late", installed(), world.claimed_by("m1"))
        .await;
    let machine = world.machine_when("m1", "is ready", is_ready).await;
    assert_eq!(agent_of(&machine).as_deref(), Some("a-late"));
    assert_eq!(machine.spec.provider_id.as_deref(), Some("agent://a-late"));
    assert_eq!(address(&machine, "ExternalIP").as_deref(), Some("192.0.2.7"));
    provider.idle().await;
    for (name, cluster) in [
        ("a-late", world.reference("blue")),
        ("b-free", None),
        ("c-node", world.reference("blue")),
    ] {
        let agent = world.agent(name).await;
        assert_eq!(agent.spec.cluster_deployment_name, cluster, "{name}");
        assert_eq!(holder(&agent).is_some(), cluster.is_some(), "{name}");
    }
    assert_eq!(world.agent("a-late").await.spec, late.spec);
    provider.stop().await;
    let again = world.provider_without_nodes().await;
    again.idle().await;
    assert_eq!(again.requests.writes(), 0, "{:?}", again.requests.snapshot());
    again.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_whose_agent_is_gone_for_good_is_deleted_and_the_next_one_takes_another() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.lent_machine("m1").await;
    world.hand_made("b", free(), |_| ()).await;
    let agents = world.api::<Agent>(&world.pool);
    agents.delete("a", &DeleteParams::default()).await.unwrap();
    let key = format!("{}/a", world.pool);
    world
        .machine_when("m1", "says what to do", |machine| waits_for(machine, &key))
        .await;
    provider.idle().await;
    assert_eq!(holder(&world.agent("b").await), None);
    world.terminate(Capi::V1Beta2, "m1").await;
    world.unhooked("m1").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m2", json!({})).await;
    assert_eq!(agent_of(&world.lent_machine("m2").await).as_deref(), Some("b"));
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_of_a_host_arrives_until_it_is_installed_and_addresses_that_come_later_do_too() {
    let world = World::without_operator().await;
    let named = |name: &str| {
        let mut said = free();
        said["inventory"]["hostname"] = json!(name);
        said["inventory"]["interfaces"] = json!([]);
        said
    };
    world.hand_made("a", named("first"), |_| ()).await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let lent = world.lent_machine("m1").await;
    assert_eq!(address(&lent, "InternalDNS").as_deref(), Some("first"));
    let spec = |name: &str| json!({ "spec": { "hostname": name } });
    world.change_agent("a", spec("second")).await.unwrap();
    world
        .machine_when("m1", "has its new name", |machine| {
            address(machine, "InternalDNS").as_deref() == Some("second")
        })
        .await;
    let mut done = installed();
    done["inventory"] = named("first")["inventory"].take();
    world.show("a", done).await;
    let ready = world.machine_when("m1", "is ready", is_ready).await;
    assert_eq!(address(&ready, "ExternalIP"), None);
    // From now on the name is that of a node.
    world.change_agent("a", spec("third")).await.unwrap();
    world.show("a", installed()).await;
    let whole = world
        .machine_when("m1", "has an address", |machine| {
            address(machine, "ExternalIP").is_some()
        })
        .await;
    assert_eq!(address(&whole, "InternalDNS").as_deref(), Some("second"));
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_others_is_used_and_a_machine_that_is_ready_rests_when_its_data_is_gone() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    world.user_data("user-data", "token").await;
    // As the released provider leaves it.
    let token: Secret = serde_json::from_value(json!({
        "metadata": { "name": "agent-user-data", "labels": { label::WATCH: "true" } },
        "stringData": { "ignition-token": "token" },
    }))
    .unwrap();
    world.create(&world.clusters, &token).await;
    let provider = world.provider_without_nodes().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    let named = json!({ "dataSecretName": "user-data" });
    world
        .capi_machine_with(Capi::V1Beta2, "blue", "m1", json!({}), named)
        .await;
    world.lent_machine("m1").await;
    let kept: Secret = world.get(&world.clusters, "agent-user-data").await;
    assert_eq!(kept.labels()[label::BACKUP], "true");
    world.show("a", installed()).await;
    world.machine_when("m1", "is ready", is_ready).await;
    let secrets = world.api::<Secret>(&world.clusters);
    secrets
        .delete("user-data", &DeleteParams::default())
        .await
        .unwrap();
    world.gone::<Secret>(&world.clusters, "user-data").await;
    let reconciles = provider.counted("reconciles", "agent-machine").await;
    let touch = json!({ "metadata": { "labels": { "touched": "yes" } } });
    world
        .patch::<AgentMachine>(&world.clusters, "m1", touch)
        .await
        .unwrap();
    world
        .until("it was reconciled", async || {
            provider.counted("reconciles", "agent-machine").await > reconciles
        })
        .await;
    // Nothing is due any more, now or later.
    provider.idle().await;
    provider.stop().await;
}
