//! Copies of InfraEnvs and ClusterDeployments that carry the id of the original: they neither get nor move Agents.

use crate::lent::{says, word};
use crate::world::{PULL_SECRET, World, condition, id_of};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use muster_operator::crd::infra_env::IMAGE_CREATED;
use muster_operator::crd::keys::{annotation, label};
use muster_operator::crd::{Agent, InfraEnv};
use serde_json::json;
use uuid::Uuid;

/// As somebody makes it who exports an object and applies it under another name.
async fn copy(world: &World, namespace: &str, name: &str) {
    let original: InfraEnv = world.get(&world.pool, "lab").await;
    let mut copy = InfraEnv::new(name, original.spec.clone());
    let id = id_of(&original).to_string();
    copy.annotations_mut().insert(annotation::INFRA_ENV_ID.into(), id);
    world.create(namespace, &copy).await;
    let refused = |copy: &InfraEnv| {
        let status = copy.status.clone().unwrap_or_default();
        condition(&status.conditions, IMAGE_CREATED)
            .is_some_and(|(status, _, message)| status == "False" && message.contains("has the same id"))
    };
    world
        .when::<InfraEnv>(namespace, name, "says that it is a copy", refused)
        .await;
}

async fn agents_in(world: &World, namespace: &str) -> Vec<String> {
    let agents: Api<Agent> = world.api(namespace);
    let all = agents.list(&ListParams::default()).await.unwrap().items;
    all.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_stay_with_their_infra_env_when_a_copy_of_it_comes_and_goes() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.silent_host(pool).await;
    let id: Uuid = name.parse().unwrap();
    let patch = json!({ "spec": { "hostname": "chosen", "approved": true, "role": "worker" } });
    let spec = world.change_agent(&name, patch).await.unwrap().spec;
    // By its name it comes before the original.
    copy(&world, &world.pool.clone(), "a-copy").await;
    world.register(pool, id).await;
    world.operator().idle().await;
    world.stop_operator().await;
    world.start_operator().await.idle().await;
    let agent = world.agent(&name).await;
    assert_eq!((&agent.spec, &*agent.labels()[label::INFRA_ENV]), (&spec, "lab"));
    let owners: Vec<_> = agent
        .owner_references()
        .iter()
        .map(|owner| &*owner.name)
        .collect();
    assert_eq!(owners, ["lab"]);
    let second = world.silent_host(pool).await;
    assert_eq!(world.agent(&second).await.labels()[label::INFRA_ENV], "lab");
    world.delete::<InfraEnv>(&world.pool, "a-copy").await;
    world.gone::<InfraEnv>(&world.pool, "a-copy").await;
    world.operator().idle().await;
    let agent = world.agent(&name).await;
    assert_eq!((agent.spec, agent.metadata.deletion_timestamp), (spec, None));
    assert_eq!(world.hub.host_rows(id).await.unwrap().hosts.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_in_another_namespace_gets_no_agents() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let first = world.silent_host(pool).await;
    let elsewhere = world.clusters.clone();
    world.pull_secret(&elsewhere, "lab-pull", PULL_SECRET).await;
    copy(&world, &elsewhere, "lab").await;
    let second = world.silent_host(pool).await;
    world.stop_operator().await;
    world.start_operator().await.idle().await;
    assert_eq!(agents_in(&world, &elsewhere).await, [] as [String; 0]);
    let mut known = [first, second];
    known.sort();
    assert_eq!(agents_in(&world, &world.pool).await, known);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_names_a_copy_of_a_cluster_is_not_bound_to_the_original() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    let blue = world.new_cluster("blue", |_| ()).await;
    world.deployment("copy", blue).await;
    world.want(&name, Some("copy")).await.unwrap();
    let waits = |agent: &Agent| says(agent, "SpecSynced") == word("False", "BackendError");
    world.agent_when(&name, "waiting", waits).await;
    let id: Uuid = name.parse().unwrap();
    assert_eq!(world.hub.host(pool, id).await.unwrap().cluster_id, None);
    world.want(&name, Some("blue")).await.unwrap();
    world.agent_in(&name, "known").await;
    assert_eq!(world.hub.host(pool, id).await.unwrap().cluster_id, Some(blue));
}
