//! Machines of Cluster API: which Agent they take, and what they write into it.

use crate::lent::word;
use crate::machines::{Capi, TOKEN, agent_of, but, free, holder, message, says, user_data, waits};
use crate::world::{World, run};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{ListParams, Patch};
use muster_operator::Options;
use muster_operator::crd::keys::{annotation, label};
use muster_operator::crd::reference::ClusterRef;
use muster_operator::crd::{Agent, AgentCluster, AgentClusterInstall, ClusterDeployment};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_cluster_becomes_a_deployment_with_an_install() {
    for version in [Capi::V1Beta1, Capi::V1Beta2] {
        let world = World::without_operator().await;
        let provider = world.provider().await;
        world.pull_secret(&world.clusters, "blue-pull", "{}").await;
        let cluster = world.planned_cluster(version, "blue").await;
        world
            .when(&world.clusters, "blue", "waits", |cluster: &AgentCluster| {
                let status = cluster.status.clone().unwrap_or_default();
                status
                    .conditions
                    .iter()
                    .any(|one| one.reason == "WaitingForControlPlane")
            })
            .await;
        world.control_plane("blue").await;
        let ready = world
            .when(&world.clusters, "blue", "ready", |cluster: &AgentCluster| {
                cluster.status.as_ref().is_some_and(|status| status.ready)
            })
            .await;
        let status = ready.status.clone().unwrap();
        assert_eq!(Some(status.cluster_deployment_reference), world.reference("blue"));
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

fn zone(agent: &mut Agent, zone: &str) {
    agent.labels_mut().insert("zone".into(), zone.into());
}

fn north(agent: &mut Agent) {
    zone(agent, "north");
}

/// What a machine of the north asks for.
pub fn northern() -> Value {
    json!({ "agentLabelSelector": { "matchLabels": { "zone": "north" } } })
}

/// Ten Agents of the north that will not do, each for another reason.
pub async fn unfit_agents(world: &World) {
    let elsewhere = ClusterRef {
        name: "other".into(),
        namespace: "other".into(),
    };
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
}

#[tokio::test(flavor = "multi_thread")]
async fn of_eleven_agents_of_another_namespace_the_one_that_is_valid_is_reserved() {
    let world = World::without_operator().await;
    unfit_agents(&world).await;
    world.hand_made("k-valid", free(), north).await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", northern()).await;
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
    assert_eq!(agent.spec.cluster_deployment_name, world.reference("blue"));
    // Nobody is left for a second one, and it says why.
    world.capi_machine(Capi::V1Beta2, "blue", "m2", northern()).await;
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
    let both_events = async || {
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
    world.until("both have their events", both_events).await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_an_agent_is_woken_by_one_that_fits() {
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
async fn only_what_can_be_lent_is_free() {
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
    own_agent(&world, "beside").await;
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
async fn agents_are_taken_only_from_the_namespaces_that_the_operator_was_given() {
    let world = World::without_operator().await;
    world.hand_made("a-of-others", free(), |_| ()).await;
    let options = Options {
        agent_namespaces: vec![world.clusters.clone()],
        ..world.provider_options()
    };
    let provider = run(options).await;
    // One whose control plane wants those of another team, and one without a control plane.
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let refused = world
        .machine_when("m1", "is refused", |machine| {
            message(machine, "AgentReserved").contains("--agent-namespace")
        })
        .await;
    assert_eq!(says(&refused, "Ready"), word("False", "AgentNotYetFound"));
    world.running_cluster("red").await;
    world.capi_cluster(Capi::V1Beta2, "red").await;
    world.capi_machine(Capi::V1Beta2, "red", "m2", json!({})).await;
    let none = world.machine_when("m2", "has none", waits).await;
    let text = message(&none, "Ready");
    assert!(
        text.contains(&format!("no Agents in {}", world.clusters)),
        "{text}"
    );
    own_agent(&world, "b-own").await;
    assert_eq!(
        agent_of(&world.lent_machine("m2").await).as_deref(),
        Some("b-own")
    );
    provider.idle().await;
    assert_eq!(holder(&world.agent("a-of-others").await), None);
    provider.stop().await;
}

/// A free host in the namespace of the clusters.
async fn own_agent(world: &World, name: &str) {
    let mut agent = Agent::new(name, Default::default());
    agent.spec.approved = true;
    world.create(&world.clusters, &agent).await;
    world
        .api::<Agent>(&world.clusters)
        .patch_status(
            name,
            &Default::default(),
            &Patch::Merge(json!({ "status": free() })),
        )
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_claimed_before_a_bootstrap_provider_has_named_the_boot_data() {
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    world.user_data("user-data", TOKEN).await;
    let provider = world.provider().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    let promised = json!({ "configRef": {
        "apiGroup": "bootstrap.example.com", "kind": "ExampleConfig", "name": "workers",
    } });
    world
        .capi_machine_with(Capi::V1Beta2, "blue", "m1", json!({}), promised)
        .await;
    world
        .machine_when("m1", "waits for its data", |machine| {
            message(machine, "AgentReserved").contains("bootstrap provider")
        })
        .await;
    provider.idle().await;
    assert_eq!(holder(&world.agent("a").await), None);
    let named = Patch::Merge(json!({ "spec": { "bootstrap": { "dataSecretName": "user-data" } } }));
    world
        .capi(Capi::V1Beta2, "Machine")
        .patch("m1", &Default::default(), &named)
        .await
        .unwrap();
    world.lent_machine("m1").await;
    assert_eq!(world.agent("a").await.spec.machine_config_pool, "ignition");
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
async fn an_agent_gets_the_address_of_its_ignition_and_follows_its_token() {
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
