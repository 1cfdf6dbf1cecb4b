//! Agents, and mistakes that are easily made.

use crate::lent::{machine, says, stage, state, word};
use crate::world::World;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use muster_contract::v2::cluster_setting::ReleaseArchitecture;
use muster_operator::crd::infra_env::AgentApproval;
use muster_operator::crd::keys::{annotation, finalizer, label};
use muster_operator::crd::reference::ClusterRef;
use muster_operator::crd::{Agent, InfraEnv};
use muster_simfleet::Profile;
use muster_vocabulary::InstallRole;
use serde_json::json;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_boots_the_image_gets_an_agent() {
    let mut world = World::start().await;
    let change =
        |infra_env: &mut InfraEnv| drop(infra_env.spec.agent_labels.insert("zone".into(), "north".into()));
    let pool = world.pool_of("lab", change).await;
    let name = world.free_host(pool).await;
    let agent = world
        .agent_when(&name, "synced", |agent| {
            says(agent, "SpecSynced") == word("True", "SyncOK")
        })
        .await;
    assert!(
        !agent.spec.approved && agent.spec.role.is_empty() && agent.spec.cluster_deployment_name.is_none()
    );
    assert_eq!(says(&agent, "Bound"), word("False", "Unbound"));
    assert_eq!(says(&agent, "Connected"), word("True", "AgentIsConnected"));
    assert_eq!(
        says(&agent, "RequirementsMet"),
        word("False", "AgentIsNotApproved")
    );
    assert_eq!(says(&agent, "Validated"), word("True", "ValidationsPassing"));
    assert_eq!(agent.labels()[label::INFRA_ENV], "lab");
    assert_eq!(
        (
            &*agent.labels()["zone"],
            &*agent.labels()[label::CPU_ARCHITECTURE]
        ),
        ("north", "x86_64")
    );
    assert_eq!(agent.finalizers(), [finalizer::AGENT]);
    let infra_env: InfraEnv = world.get(&world.pool, "lab").await;
    assert_eq!(agent.owner_references()[0].uid, infra_env.uid().unwrap());
    let status = agent.status.clone().unwrap();
    assert_eq!(status.inventory.hostname, machine(pool, 0).hostname());
    assert!(status.inventory.interfaces[0].ip_v4_addresses[0].contains('/'));
    assert!(status.debug_info.events_url.contains(&name));
    let noted = agent.annotations();
    assert_eq!(noted[annotation::AGENT_STATE], "known-unbound");
    assert!(
        noted[annotation::AGENT_INVENTORY].contains("hostname")
            && noted.contains_key(annotation::AGENT_STAGE)
    );
    let row = world
        .hub
        .host_rows(name.parse().unwrap())
        .await
        .unwrap()
        .hosts
        .remove(0);
    assert_eq!(noted[annotation::AGENT_ROLE], row.host.role.as_str());
    assert_eq!(noted[annotation::AGENT_VALIDATIONS], row.host.validations_info);
    let events: Api<Event> = world.api(&world.pool);
    let items = events.list(&ListParams::default()).await.unwrap().items;
    assert!(
        items
            .iter()
            .any(|event| event.reason.as_deref() == Some("Registered")),
        "there is an event"
    );
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_infra_env_can_approve_its_agents_at_once_and_later() {
    let world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.silent_host(pool).await;
    assert!(!world.agent(&name).await.spec.approved);
    let approve = json!({ "spec": { "agentApproval": AgentApproval { auto_approve: true } } });
    world
        .patch::<InfraEnv>(&world.pool, "lab", approve)
        .await
        .unwrap();
    world
        .agent_when(&name, "approved", |agent| agent.spec.approved)
        .await;
    let second = world.silent_host(pool).await;
    assert!(world.agent(&second).await.spec.approved);
    let id: Uuid = second.parse().unwrap();
    world
        .until("the hub knows", async || {
            world.hub.host_rows(id).await.unwrap().hosts[0].approved
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_registered_while_nobody_listened_get_their_agents_too() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    world.stop_operator().await;
    let host = Uuid::new_v4();
    world.register(pool, host).await;
    world.start_operator().await;
    world.agent_in(&host.to_string(), "discovering-unbound").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_arrive_at_once_cost_two_requests_each_and_few_events() {
    const HOSTS: usize = 80;
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    world.operator().idle().await;
    world.stop_operator().await;
    for _ in 0..HOSTS {
        world.register(pool, Uuid::new_v4()).await;
    }
    world.start_operator().await;
    let agents: Api<Agent> = world.api(&world.pool);
    let are_shown = async || {
        let agents = agents.list(&ListParams::default()).await.unwrap().items;
        agents.iter().filter(|agent| agent.status.is_some()).count() == HOSTS
    };
    world.until("all hosts have their Agents", are_shown).await;
    world.operator().idle().await;
    let requests = world.operator().requests.snapshot();
    let events: Api<Event> = world.api(&world.pool);
    let items = events.list(&ListParams::default()).await.unwrap().items;
    let registered = |event: &&Event| event.reason.as_deref() == Some("Registered");
    let count = items.iter().filter(registered).count();
    assert!((1..HOSTS).contains(&count), "{count} Events");
    let made = usize::try_from(requests["post"]).unwrap() - count;
    let changed = usize::try_from(requests["patch"]).unwrap();
    assert_eq!((made, changed), (HOSTS, HOSTS), "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_free_agent_is_bound_to_a_cluster_in_another_namespace() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    let free = world.agent(&name).await.status.unwrap().validations_info;
    let cluster = world.new_cluster("blue", |_| ()).await;
    world.want(&name, Some("blue")).await.unwrap();
    let agent = world
        .agent_when(&name, "bound", |agent| {
            says(agent, "Bound") == word("True", "Bound")
        })
        .await;
    assert_eq!(
        agent.labels()[label::CLUSTER_DEPLOYMENT_NAMESPACE],
        world.clusters
    );
    let host = world.hub.host(pool, name.parse().unwrap()).await.unwrap();
    assert_eq!(host.cluster_id, Some(cluster));
    let agent = world.agent_in(&name, "known").await;
    let lent = agent.status.unwrap().validations_info;
    let ids =
        |checks: &std::collections::BTreeMap<String, Vec<muster_operator::crd::agent::ValidationResult>>| {
            checks
                .values()
                .flatten()
                .filter(|check| check.status != "disabled")
                .map(|check| check.id.clone())
                .collect::<Vec<_>>()
        };
    assert!(
        ids(&lent).len() > ids(&free).len(),
        "checks that depend on the cluster start only now"
    );
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_waits_for_a_cluster_that_is_missing() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    world.want(&name, Some("blue")).await.unwrap();
    let waits = |agent: &Agent| says(agent, "SpecSynced") == word("False", "BackendError");
    world.agent_when(&name, "waiting", waits).await;
    world.new_cluster("blue", |_| ()).await;
    world.agent_in(&name, "known").await;
    world
        .agent_when(&name, "synced", |agent| {
            says(agent, "SpecSynced") == word("True", "SyncOK")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_not_ready_is_bound_as_soon_as_it_is() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    world.new_cluster("blue", |_| ()).await;
    let id = machine(pool, 0).id();
    world.register(pool, id).await;
    let name = id.to_string();
    world.agent_in(&name, "discovering-unbound").await;
    world.want(&name, Some("blue")).await.unwrap();
    let waits = |agent: &Agent| says(agent, "SpecSynced") == word("False", "BackendError");
    let agent = world.agent_when(&name, "waiting", waits).await;
    assert_eq!(
        agent.labels()[label::CLUSTER_DEPLOYMENT_NAMESPACE],
        world.clusters,
        "found by others already"
    );
    world.fleet(pool, 1, |config| config.first_index = 0);
    world.agent_in(&name, "known").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_another_architecture_does_not_take_the_agent() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    world
        .new_cluster("arm", |cluster| {
            cluster.cpu_architecture = Some(ReleaseArchitecture::Arm64)
        })
        .await;
    world.want(&name, Some("arm")).await.unwrap();
    let refused = |agent: &Agent| says(agent, "SpecSynced") == word("False", "InputError");
    let agent = world.agent_when(&name, "refused", refused).await;
    assert_eq!(state(&agent), "known-unbound");
    world.assert_converged().await;
    let events = world.hub.host_rows(name.parse().unwrap()).await.unwrap();
    assert_eq!(events.hosts[0].host.cluster_id, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_wrote_survives_the_return_and_is_given_to_the_host_again() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    world.new_cluster("blue", |_| ()).await;
    world.want(&name, Some("blue")).await.unwrap();
    let agent = world.agent_in(&name, "known").await;
    // Not the one that is chosen without being asked for.
    let status = agent.status.unwrap();
    let mut others = status
        .inventory
        .disks
        .iter()
        .filter(|disk| disk.installation_eligibility.eligible && disk.id != status.installation_disk_id);
    let disk = others.next_back().expect("a second disk that is good").id.clone();
    let patch = json!({ "spec": {
        "hostname": "chosen", "role": "worker", "installation_disk_id": disk, "approved": true,
        "installerArgs": "[\"--append-karg\", \"a=b\"]", "nodeLabels": { "zone": "north" },
    }});
    world.change_agent(&name, patch).await.unwrap();
    let id: Uuid = name.parse().unwrap();
    let row = async || world.hub.host_rows(id).await.unwrap().hosts.remove(0);
    world
        .until("it is to be installed to that disk", async || {
            row().await.host.installation_disk_id == disk
        })
        .await;
    world
        .until("the host is called so", async || {
            row().await.given_name == "chosen"
        })
        .await;
    world
        .until("and is a worker", async || row().await.host.role == "worker")
        .await;
    assert!(row().await.host.node_labels.contains("north"));
    let before = row().await.host.registered_at;
    world.want(&name, None).await.unwrap();
    world
        .agent_when(&name, "free", |agent| state(agent).ends_with("-unbound"))
        .await;
    let agent = world.agent_in(&name, "known-unbound").await;
    assert_eq!(
        (agent.spec.hostname.as_str(), agent.spec.role.as_str()),
        ("chosen", "worker")
    );
    assert_eq!(agent.spec.installation_disk_id, disk);
    assert!(row().await.host.registered_at > before, "it was discovered anew");
    world
        .until("the free host has its disk again", async || {
            row().await.host.installation_disk_id == disk
        })
        .await;
    world
        .until("the free host is called so", async || {
            row().await.given_name == "chosen"
        })
        .await;
    world
        .until("and is to be a worker", async || {
            row().await.host.role == "worker"
        })
        .await;
    world
        .until("with its arguments", async || {
            row().await.host.installer_args.contains("a=b")
        })
        .await;
    let agent = world
        .agent_when(&name, "synced", |agent| says(agent, "SpecSynced").0 == "True")
        .await;
    assert_eq!(agent.labels()[label::CLUSTER_DEPLOYMENT_NAMESPACE], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_goes_through_a_new_registration_and_never_shows_a_failure() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    world.new_cluster("blue", |_| ()).await;
    let green = world.new_cluster("green", |_| ()).await;
    world.want(&name, Some("blue")).await.unwrap();
    world.agent_in(&name, "known").await;
    let id: Uuid = name.parse().unwrap();
    let before = world.hub.host(pool, id).await.unwrap();
    world.want(&name, Some("green")).await.unwrap();
    let moved = |agent: &Agent| {
        assert_ne!(says(agent, "SpecSynced").0, "False", "{agent:?}");
        state(agent) == "known" && agent.annotations()[annotation::AGENT_STATE] == "known"
    };
    let api = world.api::<Agent>(&world.pool);
    world
        .until("it is there, registered anew", async || {
            let is_known = moved(&api.get(&name).await.unwrap());
            let host = world.hub.host(pool, id).await.unwrap();
            is_known && host.cluster_id == Some(green) && host.registered_at > before.registered_at
        })
        .await;
}

/// Bound to a new cluster that is being installed, slowly.
async fn installing(world: &mut World, pool: Uuid) -> (String, Uuid) {
    world.fleet(pool, 1, |config| {
        config.first_index = 0;
        config.install_time = Some(std::time::Duration::from_secs(600));
    });
    let name = machine(pool, 0).id().to_string();
    world.agent_in(&name, "known-unbound").await;
    let cluster = world.new_cluster("blue", |_| ()).await;
    world.want(&name, Some("blue")).await.unwrap();
    world.agent_in(&name, "known").await;
    let ignition = json!({ "ignition": { "version": "3.4.0" } }).to_string();
    world
        .hub
        .upload_ignition(cluster, InstallRole::Master, ignition.into_bytes())
        .await
        .unwrap();
    let ready = async || world.hub.cluster(cluster).await.unwrap().status == "ready";
    world.until("the cluster is ready", ready).await;
    world.hub.install_cluster(cluster).await.unwrap();
    world
        .agent_when(&name, "installing", |agent| {
            state(agent).starts_with("installing")
        })
        .await;
    (name, cluster)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_a_new_cluster_stays_in_it_while_it_is_installed() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let (name, cluster) = installing(&mut world, pool).await;
    world.new_cluster("green", |_| ()).await;
    for wanted in [None, Some("green")] {
        let refused = world.want(&name, wanted).await.unwrap_err();
        // A rule of the schema is broken, which the API server calls an object it cannot process.
        assert!(
            matches!(&refused, kube::Error::Api(status) if status.code == 422),
            "{refused}"
        );
    }
    // Somebody gets past the API server's check all the same.
    let api = world.api::<Agent>(&world.pool);
    for wanted in [None, Some("green")] {
        world.stop_operator().await;
        let innocent = json!({ "status": { "debugInfo": { "state": "known" } } });
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(innocent))
            .await
            .unwrap();
        world.want(&name, wanted).await.unwrap();
        world.start_operator().await;
        let refused = |agent: &Agent| {
            says(agent, "SpecSynced") == word("False", "InputError") && state(agent) != "known"
        };
        let agent = world.agent_when(&name, "refused", refused).await;
        assert_eq!(agent.status.unwrap().deprovision_info, None);
        let host = world.hub.host(pool, name.parse().unwrap()).await.unwrap();
        assert_eq!(
            (host.cluster_id, host.kind.as_str()),
            (Some(cluster), "Host"),
            "{wanted:?}"
        );
        world.operator().idle().await;
        let writes = world.operator().requests.writes();
        world.hub.hub_status().await.unwrap();
        world.operator().idle().await;
        assert_eq!(
            world.operator().requests.writes(),
            writes,
            "it does not go round in circles"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_an_infra_env_with_a_cluster_stay_in_it() {
    let world = World::start().await;
    let cluster = world.new_cluster("blue", |_| ()).await;
    let clusters = world.clusters.clone();
    let bound = |infra_env: &mut InfraEnv| {
        infra_env.spec.cluster_ref = Some(ClusterRef {
            name: "blue".into(),
            namespace: clusters,
        });
    };
    let pool = world.pool_of("early", bound).await;
    let host = Uuid::new_v4();
    world.register(pool, host).await;
    let name = host.to_string();
    let agent = world.agent_in(&name, "discovering").await;
    assert_eq!(agent.spec.cluster_deployment_name.unwrap().name, "blue");
    world.want(&name, None).await.unwrap();
    let refused = |agent: &Agent| says(agent, "SpecSynced") == word("False", "InputError");
    world.agent_when(&name, "refused", refused).await;
    assert_eq!(
        world.hub.host(pool, host).await.unwrap().cluster_id,
        Some(cluster)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_free_host_is_judged_by_its_hardware_alone() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    let checks = world.agent(&name).await.status.unwrap().validations_info;
    let asked: Vec<&str> = checks
        .values()
        .flatten()
        .filter(|check| check.status != "disabled")
        .map(|check| check.id.as_str())
        .collect();
    assert!(
        asked.contains(&"has-inventory") && asked.contains(&"has-min-memory"),
        "{asked:?}"
    );
    assert!(
        !asked.contains(&"machine-cidr-defined") && !asked.contains(&"api-vip-connected"),
        "{asked:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_free_host_with_weak_hardware_says_so_and_cannot_be_lent() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    world.fleet(pool, 1, |config| config.profile = Some(Profile::TooSmall));
    let agents = async || world.agents().await;
    world
        .until("it has registered", async || agents().await.len() == 1)
        .await;
    let name = agents().await[0].name_any();
    let agent = world.agent_in(&name, "insufficient-unbound").await;
    assert_eq!(says(&agent, "Validated"), word("False", "ValidationsFailing"));
    assert_eq!(says(&agent, "RequirementsMet"), word("False", "AgentNotReady"));
    assert_eq!(says(&agent, "Bound"), word("False", "Unbound"));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_infra_env_an_agent_goes_too() {
    let world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.silent_host(pool).await;
    world.delete::<InfraEnv>(&world.pool, "lab").await;
    world.gone::<InfraEnv>(&world.pool, "lab").await;
    world.gone::<Agent>(&world.pool, &name).await;
    assert_eq!(
        world
            .hub
            .host_rows(name.parse().unwrap())
            .await
            .unwrap()
            .hosts
            .len(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_agent_takes_its_host_out_of_the_hub() {
    let world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.silent_host(pool).await;
    world.delete::<Agent>(&world.pool, &name).await;
    world.gone::<Agent>(&world.pool, &name).await;
    assert_eq!(
        world
            .hub
            .host_rows(name.parse().unwrap())
            .await
            .unwrap()
            .hosts
            .len(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_host_the_hub_forgot_stays_and_gets_its_host_back() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.silent_host(pool).await;
    let patch = json!({ "spec": { "hostname": "chosen", "approved": true } });
    world.change_agent(&name, patch).await.unwrap();
    let id: Uuid = name.parse().unwrap();
    world.hub.delete_host(pool, id).await.unwrap();
    let lost =
        |agent: &Agent| says(agent, "Bound") == word("Unknown", "NotAvailable") && state(agent).is_empty();
    let agent = world.agent_when(&name, "lost", lost).await;
    assert_eq!(agent.spec.hostname, "chosen");
    world.assert_converged().await;
    world.register(pool, id).await;
    let agent = world.agent_in(&name, "discovering-unbound").await;
    assert!(agent.spec.approved && agent.spec.hostname == "chosen");
    let row = async || world.hub.host_rows(id).await.unwrap().hosts.remove(0);
    world
        .until("it is given everything again", async || {
            let row = row().await;
            row.given_name == "chosen" && row.approved
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_same_infra_env_the_spec_stays_and_in_another_it_goes() {
    let world = World::start().await;
    let (pool, other) = (
        world.pool_of("lab", |_| ()).await,
        world.pool_of("other", |_| ()).await,
    );
    let name = world.silent_host(pool).await;
    let id: Uuid = name.parse().unwrap();
    let patch = json!({ "metadata": { "labels": { "mine": "yes" } },
        "spec": { "hostname": "chosen", "approved": true, "role": "worker" } });
    world.change_agent(&name, patch).await.unwrap();
    world.register(pool, id).await;
    world.operator().idle().await;
    let agent = world.agent(&name).await;
    assert!(agent.spec.approved && agent.spec.hostname == "chosen" && agent.labels()["mine"] == "yes");
    world.register(other, id).await;
    let moved = |agent: &Agent| {
        agent
            .labels()
            .get(label::INFRA_ENV)
            .is_some_and(|name| name == "other")
    };
    let agent = world.agent_when(&name, "at home elsewhere", moved).await;
    assert!(!agent.spec.approved && agent.spec.hostname.is_empty() && agent.spec.role.is_empty());
    assert_eq!(agent.labels().get("mine"), None);
    assert_eq!(agent.owner_references().len(), 1);
    let rows = async || world.hub.host_rows(id).await.unwrap().hosts;
    world
        .until("only the new host is left", async || rows().await.len() == 1)
        .await;
    assert_eq!(rows().await[0].host.infra_env_id, other);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_return_nobody_can_choose_the_host_before_its_last_owner_has_let_go() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    world.new_cluster("blue", |_| ()).await;
    world.want(&name, Some("blue")).await.unwrap();
    world.agent_in(&name, "known").await;
    world.want(&name, None).await.unwrap();
    let selectable = |agent: &Agent| {
        let is = |type_: &str| says(agent, type_).0 == "True";
        says(agent, "Bound").0 == "False" && is("Connected") && is("Validated")
    };
    let back = world
        .agent_when(&name, "free", |agent| state(agent).ends_with("-unbound"))
        .await;
    assert!(!selectable(&back), "{back:?}");
    let started = std::time::Instant::now();
    world
        .agent_when(&name, "offered", |agent| {
            selectable(agent) && stage(agent).is_empty()
        })
        .await;
    assert!(
        started.elapsed().as_secs() >= 4,
        "whoever waits for its release asks every five seconds"
    );
}
