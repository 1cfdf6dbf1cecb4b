//! Clusters that go, and what becomes of their hosts.

use crate::agent_day_two::Joining;
use crate::described::{one_host, says, waits};
use crate::lent::{self, machine, word};
use crate::world::World;
use futures_util::StreamExt;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use muster_contract::v2::event::EventsQuery;
use muster_operator::crd::keys::finalizer;
use muster_operator::crd::reference::ClusterRef;
use muster_operator::crd::{Agent, AgentClusterInstall, ClusterDeployment, InfraEnv};
use muster_simfleet::{FleetConfig, Power, Remote};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use uuid::Uuid;

fn is_free(agent: &Agent) -> bool {
    agent.spec.cluster_deployment_name.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_an_early_bound_cluster_go_with_it() {
    let mut world = World::start().await;
    world.describe("blue", one_host()).await;
    let clusters = world.clusters.clone();
    let early = |infra_env: &mut InfraEnv| {
        infra_env.spec.cluster_ref = Some(ClusterRef {
            name: "blue".into(),
            namespace: clusters.clone(),
        });
    };
    let pool = world.pool_of("lab", early).await;
    let remote = world.fleet(pool, 1, |config| config.first_index = 0);
    let name = machine(pool, 0).id().to_string();
    world.agent_in(&name, "known").await;
    let id = world.cluster_id("blue").await;
    // One that runs would register again as a host of the InfraEnv.
    remote.power(0, Power::Off);
    world.delete_deployment("blue").await;
    world.cluster_is_gone("blue", id).await;
    world.gone::<Agent>(&world.pool, &name).await;
    let rows = world.hub.host_rows(name.parse().unwrap()).await.unwrap();
    assert!(rows.hosts.is_empty(), "the hub does not know it any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_an_early_bound_cluster_goes_with_it_though_somebody_freed_it() {
    let mut world = World::start().await;
    world.describe("blue", one_host()).await;
    let (_, name, remote) = world.early_host("blue").await;
    world.want(&name, None).await.unwrap();
    let refused = |agent: &Agent| lent::says(agent, "SpecSynced") == word("False", "InputError");
    world.agent_when(&name, "says that it stays", refused).await;
    let id = world.cluster_id("blue").await;
    remote.power(0, Power::Off);
    world.delete_deployment("blue").await;
    world.cluster_is_gone("blue", id).await;
    world.gone::<Agent>(&world.pool, &name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_keeps_its_cluster_from_going_is_named() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_hosts(pool, 1).await.remove(0);
    world.describe("blue", one_host()).await;
    world.want(&host, Some("blue")).await.unwrap();
    world.agent_in(&host, "known").await;
    world.want(&host, Some("nowhere")).await.unwrap();
    let refused = |agent: &Agent| lent::says(agent, "SpecSynced") == word("False", "BackendError");
    world
        .agent_when(&host, "says that there is no such cluster", refused)
        .await;
    world.delete_deployment("blue").await;
    let events: Api<Event> = world.api(&world.clusters);
    world
        .until("an event says who is waited for, and why", async || {
            let items = events.list(&ListParams::default()).await.unwrap().items;
            items.iter().any(|event| {
                let note = event.note.clone().unwrap_or_default();
                event.reason.as_deref() == Some("DeletionDelayed")
                    && note.contains(&host)
                    && note.contains("/nowhere")
            })
        })
        .await;
    let id = world.cluster_id("blue").await;
    world.want(&host, None).await.unwrap();
    world.cluster_is_gone("blue", id).await;
    world.agent_in(&host, "known-unbound").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_bound_agents_of_a_cluster_that_was_never_installed_return_to_the_pool() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_hosts(pool, 1).await.remove(0);
    world.describe("blue", one_host()).await;
    world.want(&host, Some("blue")).await.unwrap();
    world.agent_in(&host, "known").await;
    let id = world.cluster_id("blue").await;
    world.delete_deployment("blue").await;
    world.cluster_is_gone("blue", id).await;
    let agent = world.agent_in(&host, "known-unbound").await;
    assert!(is_free(&agent));
    assert_eq!(lent::says(&agent, "Bound"), word("False", "Unbound"));
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_an_installed_cluster_wait_for_somebody_to_boot_them() {
    let mut world = World::start().await;
    let (_, host) = world.installed("blue").await;
    let id = world.cluster_id("blue").await;
    world.delete_deployment("blue").await;
    world.cluster_is_gone("blue", id).await;
    let waits = |agent: &Agent| lent::says(agent, "Bound") == word("False", "UnbindingPendingUserAction");
    let agent = world.agent_when(&host, "waiting for somebody", waits).await;
    assert!(is_free(&agent));
    assert!(agent.spec.approved, "what people wrote stays");
}

/// A cluster of one host whose installation begins; the host's name, and what switches it off.
async fn installing(world: &mut World, change: impl FnOnce(&mut FleetConfig)) -> (String, Remote) {
    let pool = world.pool_of("lab", |_| ()).await;
    let remote = world.fleet(pool, 1, |config| {
        config.first_index = 0;
        config.return_boots = None;
        change(config);
    });
    let host = machine(pool, 0).id().to_string();
    world.agent_in(&host, "known-unbound").await;
    world.describe("blue", one_host()).await;
    world.approve(&host).await;
    world.want(&host, Some("blue")).await.unwrap();
    (host, remote)
}

/// The cluster goes, and the host waits for somebody to boot it, as it says.
async fn waits_after_deletion(world: &World, host: &str, remote: &Remote) {
    // One whose agent still runs would come back by itself.
    remote.power(0, Power::Off);
    let id = world.cluster_id("blue").await;
    world.delete_deployment("blue").await;
    world.cluster_is_gone("blue", id).await;
    let agent = world.agent_in(host, "unbinding-pending-user-action").await;
    assert!(is_free(&agent));
    assert_eq!(
        lent::says(&agent, "Bound"),
        word("False", "UnbindingPendingUserAction")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_whose_installation_failed_wait_for_somebody_to_boot_them() {
    let mut world = World::start().await;
    let (host, remote) = installing(&mut world, |config| {
        config.faults = vec!["fail:#0:writing-image-to-disk".parse().unwrap()];
    })
    .await;
    let agent = world.agent_in(&host, "error").await;
    assert_eq!(
        lent::says(&agent, "Installed"),
        word("False", "InstallationFailed")
    );
    assert_eq!(
        lent::says(&agent, "RequirementsMet"),
        word("True", "AgentInstallationStopped")
    );
    let install = world
        .install_says("blue", "Failed", "True", "InstallationFailed")
        .await;
    for (type_, status) in [("Completed", "False"), ("Stopped", "True")] {
        assert_eq!(
            says(&install, type_),
            word(status, "InstallationFailed"),
            "{type_}"
        );
    }
    waits_after_deletion(&world, &host, &remote).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_whose_installation_was_cancelled_wait_for_somebody_to_boot_them() {
    let mut world = World::start().await;
    let (host, remote) = installing(&mut world, |config| {
        config.install_time = Some(std::time::Duration::from_secs(600));
    })
    .await;
    world.agent_in(&host, "installing-in-progress").await;
    let id = world.cluster_id("blue").await;
    world.hub.cancel_cluster(id).await.unwrap();
    let agent = world.agent_in(&host, "cancelled").await;
    assert_eq!(
        lent::says(&agent, "Installed"),
        word("False", "InstallationFailed")
    );
    assert_eq!(
        lent::says(&agent, "RequirementsMet"),
        word("True", "AgentInstallationStopped")
    );
    world
        .install_says("blue", "Stopped", "True", "InstallationCancelled")
        .await;
    waits_after_deletion(&world, &host, &remote).await;
}

/// Everything that an Agent ever says from now on.
async fn listen(world: &World, name: &str) -> (Arc<Mutex<Vec<Agent>>>, JoinHandle<()>) {
    let api = world.api::<Agent>(&world.pool);
    let now = api.get(name).await.unwrap();
    let version = now.resource_version().unwrap();
    let heard = Arc::new(Mutex::new(vec![now]));
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut news = Box::pin(api.watch(&params, &version).await.unwrap());
    let all = heard.clone();
    let task = tokio::spawn(async move {
        while let Some(event) = news.next().await {
            if let WatchEvent::Modified(agent) = event.unwrap() {
                all.lock().unwrap().push(agent);
            }
        }
    });
    (heard, task)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_comes_or_goes_is_not_bound_and_not_free_either() {
    let mut world = World::start().await;
    let (_, host) = world.installed("blue").await;
    let (heard, task) = listen(&world, &host).await;
    world.want(&host, None).await.unwrap();
    let waits = |agent: &Agent| lent::says(agent, "Bound") == word("False", "UnbindingPendingUserAction");
    world.agent_when(&host, "waiting for somebody", waits).await;

    let other = world.pool_of("other", |_| ()).await;
    let remote = world.fleet(other, 1, |config| config.first_index = 1);
    let second = machine(other, 1).id().to_string();
    world.agent_in(&second, "known-unbound").await;
    let (moves, second_task) = listen(&world, &second).await;
    world.describe("red", one_host()).await;
    // A machine that is off stays where it is until somebody sees it there.
    for (cluster, on_the_way, there) in [
        (Some("red"), "Binding", "known"),
        (None, "Unbinding", "known-unbound"),
    ] {
        assert!(remote.power(1, Power::Off));
        world.want(&second, cluster).await.unwrap();
        let is_moving = |agent: &Agent| lent::says(agent, "Bound") == word("False", on_the_way);
        world.agent_when(&second, on_the_way, is_moving).await;
        assert!(remote.boot_discovery(1));
        world.agent_in(&second, there).await;
    }
    task.abort();
    second_task.abort();

    let heard: Vec<Agent> = [heard, moves]
        .iter()
        .flat_map(|list| list.lock().unwrap().clone())
        .collect();
    for reason in ["Binding", "Unbinding", "UnbindingPendingUserAction"] {
        let those: Vec<&Agent> = heard
            .iter()
            .filter(|agent| lent::says(agent, "Bound") == word("False", reason))
            .collect();
        assert!(!those.is_empty(), "{reason} was never said");
        for agent in those {
            for type_ in ["Validated", "RequirementsMet", "Installed"] {
                assert_eq!(lent::says(agent, type_).0, "False", "{reason}: {type_}");
            }
        }
    }
    let free = |agent: &&Agent| lent::says(agent, "Bound") == word("False", "Unbound");
    assert!(
        heard
            .iter()
            .filter(free)
            .any(|agent| lent::says(agent, "Validated").0 == "True"),
        "in the end it is free"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_were_added_wait_for_somebody_to_boot_them_without_a_reclaim_image() {
    let joining = Joining::described(World::start().await, json!({})).await;
    joining.rebooted().await;
    joining.join().await;
    let world = &joining.world;
    let id = world.cluster_id("spoke").await;
    world.delete_deployment("spoke").await;
    world.cluster_is_gone("spoke", id).await;
    let agent = world
        .agent_in(&joining.name, "unbinding-pending-user-action")
        .await;
    assert!(is_free(&agent));
    assert_eq!(
        lent::says(&agent, "Bound"),
        word("False", "UnbindingPendingUserAction")
    );
}

/// The hub's events about a host, in their order.
async fn history(world: &World, host: &str) -> Vec<String> {
    let query = EventsQuery {
        host_id: Some(host.parse().unwrap()),
        ..EventsQuery::default()
    };
    let events = world.hub.events(&query).await.unwrap();
    events.into_iter().map(|event| event.name.into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_runs_is_cancelled_first() {
    let mut world = World::start().await;
    let (host, remote) = installing(&mut world, |config| {
        config.install_time = Some(std::time::Duration::from_secs(600));
    })
    .await;
    world.install_in("blue", "installing").await;
    world.agent_in(&host, "installing-in-progress").await;
    waits_after_deletion(&world, &host, &remote).await;
    let events = history(&world, &host).await;
    let place = |name: &str| events.iter().position(|event| event == name);
    let (cancelled, unbound) = (
        place("host_installation_cancelled"),
        place("host_unbind_succeeded"),
    );
    assert!(cancelled.is_some() && cancelled < unbound, "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_a_preserved_cluster_are_left_alone_and_never_lent_again() {
    let mut world = World::start().await;
    let (_, host) = world.installed("blue").await;
    let preserve = json!({ "spec": { "preserveOnDelete": true } });
    world
        .patch::<ClusterDeployment>(&world.clusters, "blue", preserve)
        .await
        .unwrap();
    world.operator().idle().await;
    let id = world.cluster_id("blue").await;
    world.delete_deployment("blue").await;
    world.cluster_is_gone("blue", id).await;
    world.gone::<Agent>(&world.pool, &host).await;
    let rows = world.hub.host_rows(host.parse::<Uuid>().unwrap()).await.unwrap();
    assert!(rows.hosts.is_empty(), "the hub does not know it any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_install_a_cluster_goes_and_the_deployment_stays() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_hosts(pool, 1).await.remove(0);
    world.describe("blue", one_host()).await;
    world.want(&host, Some("blue")).await.unwrap();
    world.agent_in(&host, "known").await;
    let id = world.cluster_id("blue").await;
    world.delete::<AgentClusterInstall>(&world.clusters, "blue").await;
    world.gone::<AgentClusterInstall>(&world.clusters, "blue").await;
    assert!(world.hub.cluster(id).await.is_err());
    let agent = world.agent_in(&host, "known-unbound").await;
    assert!(is_free(&agent));
    let deployment: ClusterDeployment = world.get(&world.clusters, "blue").await;
    assert!(deployment.metadata.deletion_timestamp.is_none());
    world.install("blue", one_host()).await;
    world
        .install_when("blue", "described again", |install| {
            waits(install) && install.metadata.deletion_timestamp.is_none()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_install_an_installed_cluster_goes_and_its_hosts_wait_for_somebody_to_boot_them() {
    let mut world = World::start().await;
    let (_, host) = world.installed("blue").await;
    let id = world.cluster_id("blue").await;
    world.delete::<AgentClusterInstall>(&world.clusters, "blue").await;
    world.gone::<AgentClusterInstall>(&world.clusters, "blue").await;
    assert!(world.hub.cluster(id).await.is_err());
    let agent = world.agent_in(&host, "unbinding-pending-user-action").await;
    assert!(is_free(&agent));
    world.operator().idle().await;
    let deployment: ClusterDeployment = world.get(&world.clusters, "blue").await;
    assert!(deployment.metadata.deletion_timestamp.is_none());
    assert!(deployment.spec.installed, "what is known of the cluster stays");
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deployment_stays_as_long_as_somebody_holds_the_install() {
    let world = World::start().await;
    world.describe("blue", one_host()).await;
    world.install_waits("blue").await;
    let theirs =
        json!({ "metadata": { "finalizers": [finalizer::AGENT_CLUSTER_INSTALL, "example.com/theirs"] } });
    world.change_install("blue", theirs).await;
    let id = world.cluster_id("blue").await;
    world.delete_deployment("blue").await;
    let ours_is_off = |install: &AgentClusterInstall| install.finalizers() == ["example.com/theirs"];
    world.install_when("blue", "let go by us", ours_is_off).await;
    world.operator().idle().await;
    let deployment: ClusterDeployment = world.get(&world.clusters, "blue").await;
    assert!(deployment.metadata.deletion_timestamp.is_some());
    assert_eq!(deployment.finalizers(), [finalizer::CLUSTER_DEPLOYMENT]);
    world
        .change_install("blue", json!({ "metadata": { "finalizers": null } }))
        .await;
    world.cluster_is_gone("blue", id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_was_killed_in_the_middle_finishes_the_deletion() {
    let mut world = World::start().await;
    let (_, host) = world.installed("blue").await;
    let id = world.cluster_id("blue").await;
    world.stop_operator().await;
    world.delete_deployment("blue").await;
    world.start_operator().await;
    world.stop_operator().await;
    world.start_operator().await;
    world.cluster_is_gone("blue", id).await;
    world.agent_when(&host, "free", is_free).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_without_its_deployment_can_be_deleted() {
    let world = World::start().await;
    world.describe("blue", one_host()).await;
    world.install_waits("blue").await;
    let id = world.cluster_id("blue").await;
    // By force: without waiting for anybody.
    let force = json!({ "metadata": { "finalizers": null } });
    let orphan = json!({ "metadata": { "ownerReferences": null } });
    let mut stopped = world;
    stopped.stop_operator().await;
    let world = stopped;
    world.change_install("blue", orphan).await;
    world
        .patch::<ClusterDeployment>(&world.clusters, "blue", force)
        .await
        .unwrap();
    world.delete_deployment("blue").await;
    world.gone::<ClusterDeployment>(&world.clusters, "blue").await;
    let mut world = world;
    world.start_operator().await;
    world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    world.delete::<AgentClusterInstall>(&world.clusters, "blue").await;
    world.gone::<AgentClusterInstall>(&world.clusters, "blue").await;
    assert!(
        world.hub.cluster(id).await.is_err(),
        "and the hub's cluster goes with it"
    );
}
