//! Our Agents are good for the released provider, too: people keep it while they try Muster's hub. It chooses by three
//! conditions alone, polls every five seconds, and writes whole objects. Here it does not run; what it does is done by
//! hand.

use crate::lent::{machine, says as said, state, word};
use crate::machines::{Capi, HOOK, but, free};
use crate::world::{World, run};
use futures_util::StreamExt;
use jiff::SignedDuration;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{CustomResourceExt, ResourceExt};
use muster_operator::Options;
use muster_operator::crd::infra_env::AgentApproval;
use muster_operator::crd::keys::{annotation, label};
use muster_operator::crd::{Agent, AgentMachine};
use muster_simfleet::Remote;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The hub's side alone.
const WITHOUT_PROVIDER: &str = "-agent-cluster,-agent-machine,-node-provider-id";

/// What the released provider takes.
fn is_selectable(agent: &Agent) -> bool {
    let is = |type_: &str, wanted: &str| said(agent, type_).0 == wanted;
    agent.spec.approved && is("Bound", "False") && is("Connected", "True") && is("Validated", "True")
}

/// Where it lets a Machine go.
const LEFT: [&str; 7] = [
    "discovering-unbound",
    "known-unbound",
    "disconnected-unbound",
    "insufficient-unbound",
    "disabled-unbound",
    "unbinding-pending-user-action",
    "error",
];

/// Every version of the Agents of a pool, in the order of the watch.
struct Diary {
    pages: Arc<Mutex<Vec<(Instant, Agent)>>>,
    task: JoinHandle<()>,
}

impl Diary {
    fn open(world: &World) -> Self {
        let pages = Arc::new(Mutex::new(Vec::new()));
        let (written, api) = (pages.clone(), world.api::<Agent>(&world.pool));
        let task = tokio::spawn(async move {
            // Without a pause after a failure this would never yield while the test ends, and keep it from ending.
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
            while let Some(event) = events.next().await {
                if let Ok(Event::Apply(agent) | Event::InitApply(agent)) = event {
                    written.lock().unwrap().push((Instant::now(), agent));
                }
            }
        });
        Self { pages, task }
    }

    fn pages(&self) -> Vec<(Instant, Agent)> {
        self.pages.lock().unwrap().clone()
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The hub's side alone, and a host that is free and approved.
struct Shared {
    world: World,
    pool: Uuid,
    name: String,
    remote: Remote,
    diary: Diary,
}

impl Shared {
    async fn start() -> Self {
        Self::with(true).await
    }

    async fn with(auto_approve: bool) -> Self {
        let mut world = World::without_operator().await;
        world.start_operator_with(WITHOUT_PROVIDER).await;
        let diary = Diary::open(&world);
        let pool = world
            .pool_of("lab", |infra_env| {
                infra_env.spec.agent_approval = Some(AgentApproval { auto_approve });
            })
            .await;
        let remote = world.fleet(pool, 1, |config| {
            config.first_index = 0;
            config.return_boots = None;
        });
        let name = machine(pool, 0).id().to_string();
        world.agent_in(&name, "known-unbound").await;
        Self {
            world,
            pool,
            name,
            remote,
            diary,
        }
    }

    async fn selectable(&self) -> Agent {
        self.world
            .agent_when(&self.name, "can be chosen", is_selectable)
            .await
    }

    /// As the Go type writes it: one PUT of the whole object, guarded by its version, and again when that was too old.
    async fn claim(&self, cluster: &str) -> Agent {
        let agents: Api<Agent> = self.world.api(&self.world.pool);
        loop {
            let claimed = self.claimed(self.selectable().await, cluster);
            match agents.replace(&self.name, &PostParams::default(), &claimed).await {
                Ok(agent) => return agent,
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn claimed(&self, mut agent: Agent, cluster: &str) -> Agent {
        agent
            .labels_mut()
            .insert(label::AGENT_MACHINE.into(), "m1".into());
        let note = (
            annotation::AGENT_MACHINE_NAMESPACE.to_owned(),
            self.world.clusters.clone(),
        );
        agent.annotations_mut().extend([note]);
        let mut wire = serde_json::to_value(&agent).unwrap();
        let known = |field: &String| GO_SPEC.contains(&field.as_str());
        let spec = wire["spec"].as_object().unwrap().clone();
        wire["spec"] = spec.into_iter().filter(|(field, _)| known(field)).collect();
        wire["spec"]["clusterDeploymentName"] = json!({ "name": cluster, "namespace": self.world.clusters });
        wire["spec"]["machineConfigPool"] = json!("ignition");
        serde_json::from_value(wire).unwrap()
    }
}

/// All that the released provider knows of an Agent's spec; it erases the rest.
const GO_SPEC: [&str; 13] = [
    "clusterDeploymentName",
    "role",
    "hostname",
    "machineConfigPool",
    "approved",
    "installation_disk_id",
    "installation_disk_path",
    "installerArgs",
    "ignitionConfigOverrides",
    "ignitionEndpointTokenReference",
    "ignitionEndpointHTTPHeaders",
    "nodeLabels",
    "fencingCredentialsSecretRef",
];

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_1_2_3_from_discovery_to_return() {
    let shared = Shared::start().await;
    let world = &shared.world;
    world.running_cluster("blue").await;
    shared.claim("blue").await;
    world.agent_in(&shared.name, "known").await;
    world
        .hub
        .install_host(shared.pool, shared.name.parse().unwrap())
        .await
        .unwrap();
    world
        .agent_when(&shared.name, "rebooting", |agent| {
            crate::lent::stage(agent) == "Rebooting"
        })
        .await;
    let before = shared.diary.pages().len();
    // The release: what the claim set is taken off in one write.
    let free = json!({
        "metadata": { "labels": { label::AGENT_MACHINE: null }, "annotations": { annotation::AGENT_MACHINE_NAMESPACE: null } },
        "spec": { "clusterDeploymentName": null, "machineConfigPool": null },
    });
    world.change_agent(&shared.name, free).await.unwrap();
    world
        .agent_in(&shared.name, "unbinding-pending-user-action")
        .await;
    assert!(shared.remote.boot_discovery(0));
    let offered = async || {
        shared.diary.pages()[before..]
            .iter()
            .any(|(_, agent)| is_selectable(agent))
    };
    world.until("it can be chosen again", offered).await;
    let pages = shared.diary.pages();
    let returning = &pages[before..];
    for (_, agent) in returning {
        let on_its_way = [
            "unbinding",
            "unbinding-pending-user-action",
            "reclaiming",
            "reclaiming-rebooting",
        ];
        assert!(
            !on_its_way.contains(&state(agent)) || !is_selectable(agent),
            "{agent:#?}"
        );
    }
    // 1: whoever waits for the release polls once more before anybody else can choose the host.
    let unbound = |agent: &Agent| LEFT.contains(&state(agent)) && state(agent).ends_with("-unbound");
    let left = returning.iter().find(|(_, agent)| unbound(agent)).unwrap().0;
    let offered = returning
        .iter()
        .find(|(_, agent)| is_selectable(agent))
        .unwrap()
        .0;
    assert!(offered - left > Duration::from_secs(5), "{:?}", offered - left);
    for (_, agent) in &pages {
        // 2: a condition without a reason is refused, and with it all others.
        let conditions = agent.status.iter().flat_map(|status| &status.conditions);
        conditions
            .into_iter()
            .for_each(|one| assert!(!one.reason.is_empty(), "{one:?}"));
        // 3: a name, and addresses with the length of their prefix.
        if is_selectable(agent) {
            let inventory = &agent.status.as_ref().unwrap().inventory;
            assert!(!inventory.hostname.is_empty() || !agent.spec.hostname.is_empty());
            let addresses: Vec<_> = inventory
                .interfaces
                .iter()
                .flat_map(|one| &one.ip_v4_addresses)
                .collect();
            assert!(
                !addresses.is_empty() && addresses.iter().all(|one| one.contains('/')),
                "{addresses:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_1_also_when_nobody_saw_the_return() {
    let mut shared = Shared::start().await;
    shared.world.running_cluster("blue").await;
    shared.claim("blue").await;
    shared.world.agent_in(&shared.name, "known").await;
    let free = json!({
        "metadata": { "labels": { label::AGENT_MACHINE: null }, "annotations": { annotation::AGENT_MACHINE_NAMESPACE: null } },
        "spec": { "clusterDeploymentName": null, "machineConfigPool": null },
    });
    shared.world.stop_operator().await;
    shared.world.change_agent(&shared.name, free).await.unwrap();
    // The hub takes it back, and has had it for longer than anybody would wait, before an operator reconciles again.
    let host: Uuid = shared.name.parse().unwrap();
    shared.world.hub.unbind_host(shared.pool, host).await.unwrap();
    let row = async || shared.world.hub.host(shared.pool, host).await.unwrap();
    shared
        .world
        .until("it is back for a while", async || {
            let row = row().await;
            let since = row.registered_at.0.unwrap_or_default();
            row.status == "known-unbound"
                && jiff::Timestamp::now().duration_since(since) > SignedDuration::from_secs(8)
        })
        .await;
    let before = shared.diary.pages().len();
    shared.world.start_operator_with(WITHOUT_PROVIDER).await;
    let offered = async || {
        shared.diary.pages()[before..]
            .iter()
            .any(|(_, agent)| is_selectable(agent))
    };
    shared.world.until("it can be chosen again", offered).await;
    let pages = shared.diary.pages();
    let at =
        |holds: &dyn Fn(&Agent) -> bool| pages[before..].iter().find(|(_, agent)| holds(agent)).unwrap().0;
    let left = at(&|agent| state(agent).ends_with("-unbound"));
    let waited = at(&is_selectable) - left;
    assert!(waited > Duration::from_secs(5), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_1_also_when_the_claim_never_took_effect() {
    // The cluster is not there, and the owner of the claim goes again: it strips the claim, and once more five seconds
    // later, whoever has the host by then.
    let shared = Shared::start().await;
    let world = &shared.world;
    shared.claim("nowhere").await;
    let held = world
        .agent_when(&shared.name, "is not offered", |agent| {
            said(agent, "Validated").0 != "True"
        })
        .await;
    assert_eq!(state(&held), "known-unbound");
    assert_eq!(held.labels()[label::AGENT_MACHINE], "m1");
    let before = shared.diary.pages().len();
    let free = json!({
        "metadata": { "labels": { label::AGENT_MACHINE: null }, "annotations": { annotation::AGENT_MACHINE_NAMESPACE: null } },
        "spec": { "clusterDeploymentName": null, "machineConfigPool": null },
    });
    world.change_agent(&shared.name, free).await.unwrap();
    let offered = async || {
        shared.diary.pages()[before..]
            .iter()
            .any(|(_, agent)| is_selectable(agent))
    };
    world.until("it can be chosen again", offered).await;
    let pages = shared.diary.pages();
    let unclaimed = |agent: &Agent| !agent.labels().contains_key(label::AGENT_MACHINE);
    let at =
        |holds: &dyn Fn(&Agent) -> bool| pages[before..].iter().find(|(_, agent)| holds(agent)).unwrap().0;
    let waited = at(&is_selectable) - at(&unclaimed);
    assert!(waited > Duration::from_secs(5), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_4_a_claim_is_a_put_of_what_it_knows() {
    let crd = serde_json::to_value(Agent::crd()).unwrap();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let ours: Vec<_> = spec.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(
        ours.iter().all(|field| GO_SPEC.contains(field)),
        "nothing of our own is in the spec: {ours:?}"
    );
    let shared = Shared::start().await;
    let world = &shared.world;
    world.running_cluster("blue").await;
    let before = shared.selectable().await;
    shared.claim("blue").await;
    let bound = world.agent_in(&shared.name, "known").await;
    assert_eq!(bound.finalizers(), before.finalizers());
    for key in before.annotations().keys() {
        assert!(bound.annotations().contains_key(key), "{key}");
    }
    assert_eq!(said(&bound, "SpecSynced"), word("True", "SyncOK"));
    assert_eq!(bound.labels()[label::AGENT_MACHINE], "m1");
    assert_eq!(
        bound.annotations()[annotation::AGENT_MACHINE_NAMESPACE],
        world.clusters
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_5_puts_that_change_nothing_are_accepted() {
    let shared = Shared::start().await;
    let world = &shared.world;
    world.running_cluster("blue").await;
    shared.claim("blue").await;
    let agents: Api<Agent> = world.api(&world.pool);
    let put_again = async || {
        let same = async || {
            let before = agents.get(&shared.name).await.unwrap();
            match agents
                .replace(&shared.name, &PostParams::default(), &before)
                .await
            {
                // Nothing was written.
                Ok(after) => after.resource_version() == before.resource_version(),
                // Somebody else wrote in between; the provider tries again, too.
                Err(kube::Error::Api(status)) if status.code == 409 => false,
                Err(error) => panic!("{error}"),
            }
        };
        for _ in 0..5 {
            world.until("it is accepted", same).await;
        }
    };
    world.agent_in(&shared.name, "known").await;
    put_again().await;
    world
        .hub
        .install_host(shared.pool, shared.name.parse().unwrap())
        .await
        .unwrap();
    world.agent_in(&shared.name, "installing-in-progress").await;
    put_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_6_one_that_goes_is_not_offered() {
    let shared = Shared::start().await;
    shared.selectable().await;
    let agents: Api<Agent> = shared.world.api(&shared.world.pool);
    agents
        .delete(&shared.name, &DeleteParams::default())
        .await
        .unwrap();
    let withdrawn = async || {
        let pages = shared.diary.pages();
        let leaving: Vec<_> = pages
            .iter()
            .filter(|(_, agent)| agent.metadata.deletion_timestamp.is_some())
            .collect();
        leaving.iter().any(|(_, agent)| {
            let words = [said(agent, "Connected").0, said(agent, "Validated").0];
            !agent.finalizers().is_empty() && words.iter().all(|word| word == "Unknown")
        })
    };
    shared
        .world
        .until("it was withdrawn before it went", withdrawn)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_6_also_while_the_hub_does_not_answer() {
    let shared = Shared::start().await;
    let world = &shared.world;
    let before = shared.selectable().await;
    world.house.close().await;
    let agents: Api<Agent> = world.api(&world.pool);
    agents
        .delete(&shared.name, &DeleteParams::default())
        .await
        .unwrap();
    let hidden = world
        .agent_when(&shared.name, "is withdrawn", |agent| !is_selectable(agent))
        .await;
    assert!(hidden.metadata.deletion_timestamp.is_some());
    assert_eq!(
        hidden.finalizers(),
        before.finalizers(),
        "its host is still the hub's"
    );
    for type_ in ["Connected", "Validated"] {
        assert_eq!(said(&hidden, type_), word("Unknown", "NotAvailable"));
    }
    world.house.reopen().await;
    let pages = async || {
        let pages = shared.diary.pages();
        pages.iter().any(|(_, agent)| agent.uid() != before.uid())
    };
    world.until("it went, and its host got another", pages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_7_one_that_comes_back_knows_its_cluster() {
    let shared = Shared::start().await;
    let world = &shared.world;
    world.running_cluster("blue").await;
    world.capi_cluster(Capi::V1Beta2, "blue").await;
    world.cluster_is_ready("blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    shared.claim("blue").await;
    world.machine_has("m1", &shared.name).await;
    let bound = world.agent_in(&shared.name, "known").await;
    let agents: Api<Agent> = world.api(&world.pool);
    agents
        .delete(&shared.name, &DeleteParams::default())
        .await
        .unwrap();
    let again = world
        .agent_when(&shared.name, "is there again", |agent| {
            agent.uid() != bound.uid() && state(agent) == "known"
        })
        .await;
    assert_eq!(again.spec.cluster_deployment_name, world.reference("blue"));
    assert_eq!(again.labels()[label::AGENT_MACHINE], "m1");
    assert_eq!(
        again.annotations()[annotation::AGENT_MACHINE_NAMESPACE],
        world.clusters
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_7_one_that_comes_back_is_approved_and_labelled_as_before()
 {
    let shared = Shared::with(false).await;
    let world = &shared.world;
    world.running_cluster("blue").await;
    world.capi_cluster(Capi::V1Beta2, "blue").await;
    world.cluster_is_ready("blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let by_people = json!({ "metadata": { "labels": { "rack": "7" } }, "spec": { "approved": true } });
    world.change_agent(&shared.name, by_people).await.unwrap();
    shared.claim("blue").await;
    world.machine_has("m1", &shared.name).await;
    let bound = world.agent_in(&shared.name, "known").await;
    world.delete::<Agent>(&world.pool, &shared.name).await;
    let again = world
        .agent_when(&shared.name, "is there again", |agent| {
            agent.uid() != bound.uid() && state(agent) == "known"
        })
        .await;
    assert!(again.spec.approved, "nobody would approve it a second time");
    assert_eq!(again.labels()["rack"], "7");
    let host = shared.name.parse().unwrap();
    let row = async || world.hub.host_rows(host).await.unwrap().hosts.pop().unwrap();
    world.until("the hub knows", async || row().await.approved).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_7_also_when_only_the_id_is_left_of_a_machine() {
    let mut world = World::without_operator().await;
    world.start_operator_with(WITHOUT_PROVIDER).await;
    let pool = world.pool_of("lab", |_| ()).await;
    world.running_cluster("blue").await;
    world.capi_cluster(Capi::V1Beta2, "blue").await;
    world.cluster_is_ready("blue").await;
    let host = Uuid::new_v4();
    let id = json!({ "providerID": format!("agent://{host}") });
    world.restored_machine("blue", "m1", id).await;
    world.operator().idle().await;
    world.register(pool, host).await;
    let agent = world
        .agent_when(&host.to_string(), "is there", |agent| !state(agent).is_empty())
        .await;
    assert_eq!(agent.labels()[label::AGENT_MACHINE], "m1");
    assert_eq!(agent.spec.cluster_deployment_name, world.reference("blue"));
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_7_also_when_the_host_booted_another_image() {
    let mut world = World::without_operator().await;
    world.start_operator_with(WITHOUT_PROVIDER).await;
    let pool = world.pool_of("lab", |_| ()).await;
    let annex = world.pool_of("annex", |_| ()).await;
    world.running_cluster("blue").await;
    world.capi_cluster(Capi::V1Beta2, "blue").await;
    world.cluster_is_ready("blue").await;
    let name = world.silent_host(pool).await;
    let (machine, cluster) = ("m1", world.reference("blue"));
    world
        .capi_machine(Capi::V1Beta2, "blue", machine, json!({}))
        .await;
    let claim = json!({
        "metadata": { "labels": { label::AGENT_MACHINE: machine },
            "annotations": { annotation::AGENT_MACHINE_NAMESPACE: world.clusters } },
        "spec": { "clusterDeploymentName": cluster, "hostname": "written-by-people" },
    });
    world.change_agent(&name, claim).await.unwrap();
    world.machine_has(machine, &name).await;
    world.register(annex, name.parse().unwrap()).await;
    let moved = world
        .agent_when(&name, "is at home elsewhere", |agent| {
            agent.labels()[label::INFRA_ENV] == "annex"
        })
        .await;
    assert_eq!(moved.labels()[label::AGENT_MACHINE], machine);
    assert_eq!(
        moved.annotations()[annotation::AGENT_MACHINE_NAMESPACE],
        world.clusters
    );
    assert_eq!(moved.spec.cluster_deployment_name, cluster);
    assert_eq!(moved.spec.hostname, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_8_the_core_finds_the_older_version() {
    let world = World::without_operator().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.kube.clone());
    for kind in ["AgentMachine", "AgentMachineTemplate", "AgentCluster"] {
        let name = format!(
            "{}s.capi-provider.agent-install.openshift.io",
            kind.to_lowercase()
        );
        let definition = definitions.get(&name).await.unwrap();
        assert_eq!(definition.labels()["cluster.x-k8s.io/v1beta1"], "v1alpha1");
        let served = definition.spec.versions.iter().filter(|version| version.served);
        let served: Vec<_> = served.map(|version| version.name.as_str()).collect();
        assert_eq!(served, ["v1alpha1", "v1beta1"], "{kind}");
    }
    let older = world.kind(
        "capi-provider.agent-install.openshift.io",
        "v1alpha1",
        "AgentMachine",
    );
    let made = DynamicObject::new("m1", &kube::api::ApiResource::erase::<AgentMachine>(&()))
        .data(json!({ "spec": { "agentLabelSelector": { "matchLabels": { "zone": "north" } } } }));
    let mut made = serde_json::to_value(made).unwrap();
    made["apiVersion"] = json!("capi-provider.agent-install.openshift.io/v1alpha1");
    world.put(&older, made).await;
    let newer: AgentMachine = world.get(&world.clusters, "m1").await;
    let selector = newer.spec.agent_label_selector.unwrap().match_labels.unwrap();
    assert_eq!(selector["zone"], "north");
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_9_words_that_come_apart_are_understood() {
    // Its conditions come before its providerID, and that before agentRef and addresses. Who reads them here is the
    // controller that names nodes, which works beside the released provider.
    let world = World::without_operator().await;
    world.running_cluster("blue").await;
    world.kubeconfig_of("blue").await;
    world.capi_cluster(Capi::V1Beta2, "blue").await;
    world.cluster_is_ready("blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    let nodes: Api<Node> = Api::all(world.kube.clone());
    let node = format!("node-{}", Uuid::new_v4().simple());
    let new: Node = serde_json::from_value(json!({ "metadata": { "name": node } })).unwrap();
    nodes.create(&PostParams::default(), &new).await.unwrap();
    let options = Options {
        controllers: "node-provider-id".parse().unwrap(),
        ..world.options()
    };
    let operator = run(options).await;
    operator.idle().await;
    let machines = world.api::<AgentMachine>(&world.clusters);
    let said = json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let status = |part: Value| Patch::Merge(json!({ "status": part }));
    let params = PatchParams::default();
    machines
        .patch_status(
            "m1",
            &params,
            &status(json!({ "ready": true, "conditions": said })),
        )
        .await
        .unwrap();
    operator.idle().await;
    let id = json!({ "spec": { "providerID": "agent://a" } });
    machines.patch("m1", &params, &Patch::Merge(id)).await.unwrap();
    operator.idle().await;
    assert_eq!(
        operator.requests.writes(),
        0,
        "half a machine is nothing to act upon, or to complain of"
    );
    let rest = json!({ "agentRef": { "name": "a", "namespace": world.pool },
        "addresses": [{ "type": "ExternalIP", "address": "192.0.2.7" }, { "type": "InternalDNS", "address": node }] });
    machines.patch_status("m1", &params, &status(rest)).await.unwrap();
    world
        .until("the node knows which machine it is", async || {
            let found = nodes.get(&node).await.unwrap();
            found.spec.and_then(|spec| spec.provider_id).as_deref() == Some("agent://a")
        })
        .await;
    operator.stop().await;
    nodes.delete(&node, &DeleteParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_9_what_was_said_once_is_not_taken_back() {
    // Ours keeps to the same: whoever was told that a machine is ready, and where, has built on it.
    let world = World::without_operator().await;
    world.hand_made("a", free(), |_| ()).await;
    let provider = world.provider_without_nodes().await;
    world.hosted_cluster(Capi::V1Beta2, "blue").await;
    world.capi_machine(Capi::V1Beta2, "blue", "m1", json!({})).await;
    world.lent_machine("m1").await;
    world
        .show("a", but("Installed", "True", "InstallationCompleted"))
        .await;
    let ready = world
        .machine_when("m1", "is ready", |machine| {
            machine.status.as_ref().is_some_and(|status| status.ready)
        })
        .await;
    let mut worse = but("Installed", "False", "InstallationFailed");
    worse["inventory"]["hostname"] = json!("another");
    worse["inventory"]["interfaces"][0]["ipV4Addresses"] = json!(["192.0.2.99/24"]);
    world.show("a", worse).await;
    world
        .change_agent("a", json!({ "metadata": { "labels": { "seen": "yes" } } }))
        .await
        .unwrap();
    provider.idle().await;
    let after: AgentMachine = world.get(&world.clusters, "m1").await;
    let (before, after) = (ready.status.unwrap(), after.status.unwrap());
    assert!(after.ready);
    assert_eq!(after.addresses, before.addresses);
    assert_eq!(after.agent_ref, before.agent_ref);
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_agents_are_good_for_the_released_provider_10_the_role_may_write_the_hook() {
    let world = World::without_operator().await;
    let kube = crate::world::Server::shared().connection().await.kube;
    let asks: SelfSubjectAccessReview = serde_json::from_value(json!({ "spec": { "resourceAttributes": {
        "namespace": world.clusters, "group": "cluster.x-k8s.io", "resource": "machines", "verb": "patch",
    } } }))
    .unwrap();
    let reviews: Api<SelfSubjectAccessReview> = Api::all(kube);
    let answer = reviews.create(&PostParams::default(), &asks).await.unwrap();
    assert!(
        answer.status.unwrap().allowed,
        "without it the hook {HOOK} is never placed nor taken off"
    );
}
