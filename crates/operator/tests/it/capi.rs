//! Machines of Cluster API: which Agent they take, how they show it, and how they give it back.

use crate::machines::{Capi, HOOK, TOKEN, agent_of, but, free, holder, message, says, user_data};
use crate::world::World;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use muster_operator::crd::keys::{annotation, label};
use muster_operator::crd::reference::ClusterRef;
use muster_operator::crd::{Agent, AgentClusterInstall, AgentMachine, ClusterDeployment};
use muster_operator::{Election, Options};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

fn word(status: &str, reason: &str) -> (String, String) {
    (status.into(), reason.into())
}

fn waits(machine: &AgentMachine) -> bool {
    let none = word("False", "NoSuitableAgents");
    says(machine, "AgentReserved") == none && says(machine, "Ready") == none
}

fn to_blue(world: &World) -> Option<ClusterRef> {
    Some(ClusterRef {
        name: "blue".into(),
        namespace: world.clusters.clone(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_cluster_becomes_a_deployment_with_an_install() {
    for version in [Capi::V1Beta1, Capi::V1Beta2] {
        let world = World::without_operator().await;
        let provider = world.provider().await;
        world.pull_secret(&world.clusters, "blue-pull", "{}").await;
        let cluster = world.capi_cluster(version, "blue").await;
        world
            .when(
                &world.clusters,
                "blue",
                "waits",
                |cluster: &muster_operator::crd::AgentCluster| {
                    let status = cluster.status.clone().unwrap_or_default();
                    status
                        .conditions
                        .iter()
                        .any(|one| one.reason == "WaitingForControlPlane")
                },
            )
            .await;
        world.control_plane("blue").await;
        let ready = world
            .when(
                &world.clusters,
                "blue",
                "ready",
                |cluster: &muster_operator::crd::AgentCluster| {
                    cluster.status.as_ref().is_some_and(|status| status.ready)
                },
            )
            .await;
        let status = ready.status.clone().unwrap();
        assert_eq!(Some(status.cluster_deployment_reference), to_blue(&world));
        assert!(ready.finalizers()[0].starts_with("agentclustercapi-provider."));
        let deployment: ClusterDeployment = world.get(&world.clusters, "blue").await;
        assert!(deployment.spec.installed);
        assert_eq!(deployment.labels()[label::AGENT_CLUSTER], "blue");
        assert_eq!(
            Some(&deployment.owner_references()[0].uid),
            cluster.metadata.uid.as_ref()
        );
        let metadata = deployment.spec.cluster_metadata.unwrap();
        assert_eq!(metadata.cluster_id, cluster.owner_references()[0].uid);
        assert_eq!(metadata.admin_kubeconfig_secret_ref.name, "admin-kubeconfig");
        let install: AgentClusterInstall = world.get(&world.clusters, "blue").await;
        assert_eq!(install.spec.networking.user_managed_networking, Some(true));
        let secret: Secret = world.get(&world.clusters, "blue-pull").await;
        assert_eq!(secret.labels()[label::BACKUP], "true");
        provider.idle().await;
        provider.stop().await;
        let again = world.provider().await;
        again.idle().await;
        assert_eq!(again.requests.writes(), 0, "{:?}", again.requests.snapshot());
        again.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c1_of_eleven_agents_the_one_that_is_valid_is_reserved() {
    let world = World::without_operator().await;
    let elsewhere = ClusterRef {
        name: "other".into(),
        namespace: "other".into(),
    };
    let zone = |agent: &mut Agent, zone: &str| {
        agent.labels_mut().insert("zone".into(), zone.into());
    };
    let north = |agent: &mut Agent| zone(agent, "north");
    world
        .hand_made("a-other-label", free(), |agent| zone(agent, "south"))
        .await;
    world.hand_made("b-no-label", free(), |_| ()).await;
    world
        .hand_made("c-not-approved", free(), |agent| {
            north(agent);
            agent.spec.approved = false;
        })
        .await;
    for (name, said) in [
        ("d-bound", but("Bound", "True", "Bound")),
        ("e-binding", but("Bound", "False", "Binding")),
        ("f-disconnected", but("Connected", "False", "AgentIsDisconnected")),
        ("g-failing", but("Validated", "False", "ValidationsFailing")),
        ("h-unchecked", but("Validated", "Unknown", "ValidationsUnknown")),
    ] {
        world.hand_made(name, said, north).await;
    }
    world
        .hand_made("i-reserved", free(), |agent| {
            north(agent);
            agent
                .labels_mut()
                .insert(label::AGENT_MACHINE.into(), "other".into());
        })
        .await;
    world
        .hand_made("j-wanted-elsewhere", free(), |agent| {
            north(agent);
            agent.spec.cluster_deployment_name = Some(elsewhere);
        })
        .await;
    world.hand_made("k-valid", free(), north).await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    let selector = json!({ "agentLabelSelector": { "matchLabels": { "zone": "north" } } });
    world
        .capi_machine(Capi::V1Beta2, "blue", "m1", selector.clone())
        .await;
    let provider = world.provider().await;
    let machine = world.lent_machine("m1").await;
    assert_eq!(agent_of(&machine).as_deref(), Some("k-valid"));
    assert_eq!(machine.spec.provider_id.as_deref(), Some("agent://k-valid"));
    assert_eq!(says(&machine, "AgentReserved"), word("True", "AgentReserved"));
    assert_eq!(says(&machine, "Ready"), word("False", "InstallationNotStarted"));
    let addresses: Vec<_> = machine
        .status
        .iter()
        .flat_map(|status| &status.addresses)
        .collect();
    assert_eq!(
        serde_json::to_value(addresses).unwrap(),
        json!([{ "type": "ExternalIP", "address": "192.0.2.7" }, { "type": "InternalDNS", "address": "host" }])
    );
    let agent = world.agent("k-valid").await;
    assert_eq!(holder(&agent), Some("m1"));
    assert_eq!(
        agent.annotations()[annotation::AGENT_MACHINE_NAMESPACE],
        world.clusters
    );
    assert_eq!(agent.spec.cluster_deployment_name, to_blue(&world));
    // Nobody is left for a second one, and it says why.
    world.capi_machine(Capi::V1Beta2, "blue", "m2", selector).await;
    let none = world.machine_when("m2", "has none", waits).await;
    let text = message(&none, "AgentReserved");
    for part in [
        "2 without the labels",
        "2 reserved",
        "2 bound",
        "1 on the way",
        "1 not approved",
        "1 not connected",
        "2 failing",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let told = async || {
        let events = world
            .api::<Event>(&world.clusters)
            .list(&ListParams::default())
            .await
            .unwrap();
        let of = |event: &Event, name: &str, reason: &str| {
            let about = event.regarding.as_ref().and_then(|about| about.name.as_deref());
            about == Some(name) && event.reason.as_deref() == Some(reason)
        };
        events.iter().any(|event| of(event, "m1", "AgentReserved"))
            && events.iter().any(|event| of(event, "m2", "NoSuitableAgents"))
    };
    world.until("both were told", told).await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c4_a_machine_without_an_agent_is_woken_by_one_that_fits() {
    let world = World::without_operator().await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.machine_when("m1", "has none", waits).await;
    // Nothing is due: only a change can wake it.
    provider.idle().await;
    world
        .hand_made("a", but("Validated", "False", "ValidationsFailing"), |_| ())
        .await;
    world
        .machine_when("m1", "says why", |machine| {
            message(machine, "Ready").contains("1 failing")
        })
        .await;
    provider.idle().await;
    world.show("a", free()).await;
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn toy_03_only_what_can_be_lent_is_free() {
    let world = World::without_operator().await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world
        .hand_made("a", free(), |agent| agent.spec.approved = false)
        .await;
    for reason in ["Binding", "Unbinding", "UnbindingPendingUserAction"] {
        world.show("a", but("Bound", "False", reason)).await;
        world
            .change_agent("a", json!({ "spec": { "approved": true } }))
            .await
            .unwrap();
        world
            .machine_when("m1", reason, |machine| {
                message(machine, "Ready").contains("1 on the way")
            })
            .await;
        world
            .change_agent("a", json!({ "spec": { "approved": false } }))
            .await
            .unwrap();
        provider.idle().await;
    }
    assert_eq!(holder(&world.agent("a").await), None);
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_namespace_of_the_control_plane_is_kept_to() {
    let world = World::without_operator().await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    let mut beside = Agent::new("beside", Default::default());
    beside.spec.approved = true;
    world.create(&world.clusters, &beside).await;
    world
        .api::<Agent>(&world.clusters)
        .patch_status(
            "beside",
            &Default::default(),
            &kube::api::Patch::Merge(json!({ "status": free() })),
        )
        .await
        .unwrap();
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let none = world.machine_when("m1", "has none", waits).await;
    let text = message(&none, "Ready");
    assert!(
        text.contains(&format!("no Agents in namespace {}", world.pool)),
        "{text}"
    );
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_smallest_agent_is_taken_first() {
    let world = World::without_operator().await;
    for (name, gib) in [("large", 256_i64), ("small", 16), ("middle", 64)] {
        let mut said = free();
        said["inventory"]["memory"]["physicalBytes"] = json!(gib << 30);
        world.hand_made(name, said, |_| ()).await;
    }
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    for (machine, agent) in [("m1", "small"), ("m2", "middle"), ("m3", "large")] {
        world
            .capi_machine(Capi::V1Beta2, "blue", machine, json!({}))
            .await;
        assert_eq!(
            agent_of(&world.lent_machine(machine).await).as_deref(),
            Some(agent)
        );
    }
    provider.stop().await;
}

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
async fn a_claim_cut_off_in_the_middle_is_taken_up_again() {
    let world = World::without_operator().await;
    world.hand_made("a-smaller", free(), |_| ()).await;
    // The label is there, the machine does not know of it yet.
    world
        .hand_made("b-claimed", but("Bound", "True", "Bound"), |agent| {
            agent
                .labels_mut()
                .insert(label::AGENT_MACHINE.into(), "m1".into());
            let note = (
                annotation::AGENT_MACHINE_NAMESPACE.to_owned(),
                world.clusters.clone(),
            );
            agent.annotations_mut().extend([note]);
            agent.spec.cluster_deployment_name = to_blue(&world);
        })
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

#[tokio::test(flavor = "multi_thread")]
async fn c2_a_deleted_machine_gives_its_agent_back_before_it_goes() {
    for version in [Capi::V1Beta1, Capi::V1Beta2] {
        let world = World::without_operator().await;
        world
            .hand_made("a", free(), |agent| agent.spec.hostname = "kept".into())
            .await;
        let provider = world.provider().await;
        world.hosted_cluster(version, "blue").await;
        world.capi_machine(version, "blue", "m1", json!({})).await;
        world.lent_machine("m1").await;
        assert!(world.is_hooked("m1").await);
        world.show("a", but("Bound", "True", "Bound")).await;
        world.show_state("a", "installed").await;
        // The next one waits for the same host.
        world.capi_machine(version, "blue", "m2", json!({})).await;
        world.machine_when("m2", "waits", waits).await;
        world.terminate(version, "m1").await;
        let freed = world
            .agent_when("a", "is let go", |agent| {
                agent.spec.cluster_deployment_name.is_none()
            })
            .await;
        assert_eq!(holder(&freed), None);
        assert!(freed.spec.approved && freed.spec.hostname == "kept");
        // toy 17: not before the host has left.
        for state in ["unbinding", "reclaiming", "reclaiming-rebooting"] {
            world.show_state("a", state).await;
            provider.idle().await;
            assert!(world.is_hooked("m1").await, "{state}");
        }
        world.show_state("a", "unbinding-pending-user-action").await;
        world.unhooked("m1").await;
        let machine = world
            .machine_when("m1", "may go", |machine| machine.finalizers().is_empty())
            .await;
        assert_eq!(
            agent_of(&machine).as_deref(),
            Some("a"),
            "it is not claimed again"
        );
        world.show("a", free()).await;
        assert_eq!(agent_of(&world.lent_machine("m2").await).as_deref(), Some("a"));
        // The one that left does not undo what the next one did.
        let machines = world.api::<AgentMachine>(&world.clusters);
        machines.delete("m1", &DeleteParams::default()).await.unwrap();
        world.gone::<AgentMachine>(&world.clusters, "m1").await;
        provider.idle().await;
        let agent = world.agent("a").await;
        assert_eq!(holder(&agent), Some("m2"));
        assert_eq!(agent.spec.cluster_deployment_name, to_blue(&world));
        provider.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn toy_17_the_hook_holds_through_a_restart() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.lent_machine("m1").await;
    world.show("a", but("Bound", "True", "Bound")).await;
    // A state from before anybody has taken the host out must not let the Machine go.
    world.show_state("a", "error").await;
    world.terminate(Capi::V1Beta2, "m1").await;
    world
        .agent_when("a", "is let go", |agent| holder(agent).is_none())
        .await;
    provider.kill();
    let provider = world.provider().await;
    provider.idle().await;
    assert!(world.is_hooked("m1").await);
    world.show_state("a", "known-unbound").await;
    world.unhooked("m1").await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c3_a_machine_that_is_paused_and_deleted_leaves_its_agent_bound() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.lent_machine("m1").await;
    let before = world.agent("a").await;
    let pause = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "true" } } });
    world
        .patch::<AgentMachine>(&world.clusters, "m1", pause)
        .await
        .unwrap();
    let machines = world.api::<AgentMachine>(&world.clusters);
    machines.delete("m1", &DeleteParams::default()).await.unwrap();
    world.gone::<AgentMachine>(&world.clusters, "m1").await;
    world.unhooked("m1").await;
    assert_eq!(world.agent("a").await.spec, before.spec);
    assert_eq!(holder(&world.agent("a").await), Some("m1"));
    // Restored, it finds its Agent.
    world
        .capi(Capi::V1Beta2, "Machine")
        .patch(
            "m1",
            &Default::default(),
            &kube::api::Patch::Merge(json!({ "metadata": { "finalizers": null } })),
        )
        .await
        .unwrap();
    let machines = world.capi(Capi::V1Beta2, "Machine");
    machines.delete("m1", &DeleteParams::default()).await.unwrap();
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_machine_is_left_alone_until_it_is_not() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let pause = |value: Value| json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": value } } });
    world
        .patch::<AgentMachine>(&world.clusters, "m1", pause(json!("true")))
        .await
        .unwrap();
    let provider = world.provider().await;
    provider.idle().await;
    let machine: AgentMachine = world.get(&world.clusters, "m1").await;
    assert!(machine.finalizers().is_empty() && machine.status.is_none());
    assert!(!world.is_hooked("m1").await);
    assert_eq!(holder(&world.agent("a").await), None);
    world
        .patch::<AgentMachine>(&world.clusters, "m1", pause(Value::Null))
        .await
        .unwrap();
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    let machine = world.capi(Capi::V1Beta2, "Machine").get("m1").await.unwrap();
    assert_eq!(machine.annotations()[HOOK], "");
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn toy_15_an_agent_is_told_where_its_ignition_is_and_follows_its_token() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    let data = json!({ "dataSecretName": "user-data" });
    world
        .capi_machine_with(Capi::V1Beta2, "blue", "m1", json!({}), data)
        .await;
    world
        .machine_when("m1", "waits for its data", |machine| {
            says(machine, "AgentReserved") == word("False", "AgentNotYetFound")
        })
        .await;
    world.user_data("user-data", TOKEN).await;
    world.lent_machine("m1").await;
    let install: AgentClusterInstall = world.get(&world.clusters, "blue").await;
    assert_eq!(
        install.spec.ignition_endpoint.unwrap().url,
        "https://ignition.example.com"
    );
    let spec = world.agent("a").await.spec;
    assert_eq!(spec.machine_config_pool, "ignition");
    let reference = spec.ignition_endpoint_token_reference.unwrap();
    assert_eq!(
        (reference.namespace.as_str(), reference.name.as_str()),
        (world.clusters.as_str(), "agent-user-data")
    );
    assert_eq!(spec.ignition_endpoint_http_headers["NodePool"], "clusters/blue");
    assert_eq!(spec.ignition_endpoint_http_headers.len(), 1);
    let token = async || {
        let secret: Secret = world.get(&world.clusters, "agent-user-data").await;
        let bytes = secret
            .data
            .clone()
            .unwrap_or_default()
            .remove("ignition-token")
            .unwrap();
        (String::from_utf8(bytes.0).unwrap(), secret)
    };
    let (value, secret) = token().await;
    assert_eq!(value, TOKEN);
    assert_eq!(
        (&*secret.labels()[label::WATCH], &*secret.labels()[label::BACKUP]),
        ("true", "true")
    );
    assert_eq!(
        secret.owner_references()[0].name,
        "user-data",
        "it goes with its source"
    );
    provider.idle().await;
    let rotated = json!({ "stringData": { "value": user_data("another") } });
    world
        .patch::<Secret>(&world.clusters, "user-data", rotated)
        .await
        .unwrap();
    world
        .until("the token was renewed", async || token().await.0 == "another")
        .await;
    // Nothing of it is left when the host is given back.
    world.terminate(Capi::V1Beta2, "m1").await;
    let freed = world
        .agent_when("a", "is let go", |agent| holder(agent).is_none())
        .await;
    assert_eq!(freed.spec.machine_config_pool, "");
    assert!(freed.spec.ignition_endpoint_token_reference.is_none());
    assert!(freed.spec.ignition_endpoint_http_headers.is_empty());
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_another_provider_holds_its_lease_this_one_stands_back() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let lease: Lease = serde_json::from_value(json!({
        "metadata": { "name": "7605f49b.agent-install.openshift.io" },
        "spec": { "holderIdentity": "capi-provider-1", "leaseDurationSeconds": 3600,
            "renewTime": "2100-01-01T00:00:00.000000Z" },
    }))
    .unwrap();
    world.create(&world.clusters, &lease).await;
    let provider = world.provider().await;
    let looked = async || {
        let text = provider.metrics().await.unwrap_or_default();
        let line = text
            .lines()
            .find(|line| line.starts_with("muster_operator_looks_total{controller=\"agent-machine\""));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .unwrap_or_default()
    };
    world.until("it has looked", async || looked().await > 1).await;
    assert_eq!(provider.requests.writes(), 0);
    let leases = world.api::<Lease>(&world.clusters);
    leases
        .delete("7605f49b.agent-install.openshift.io", &DeleteParams::default())
        .await
        .unwrap();
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
            terms: muster_operator::runtime::lease::Terms {
                duration: Duration::from_secs(3),
                deadline: Duration::from_secs(2),
                every: Duration::from_millis(300),
            },
        },
        ..world.provider_options()
    };
    let provider = crate::world::run(electing).await;
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
    let clusters = crate::world::run(only("agent-cluster")).await;
    clusters.idle().await;
    world.get::<ClusterDeployment>(&world.clusters, "blue").await;
    assert_eq!(holder(&world.agent("a").await), None);
    clusters.stop().await;
    let machines = crate::world::run(only("agent-machine")).await;
    assert_eq!(agent_of(&world.lent_machine("m1").await).as_deref(), Some("a"));
    machines.stop().await;
}
