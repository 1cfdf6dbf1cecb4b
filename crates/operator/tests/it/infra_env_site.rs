//! InfraEnvs and what surrounds them: a cluster that is made anew, time sources of the site.

use crate::described::one_host;
use crate::world::World;
use muster_operator::crd::InfraEnv;
use muster_simfleet::Power;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_an_infra_env_belong_to_its_cluster_also_when_that_is_made_again() {
    let mut world = World::start().await;
    world.describe("blue", one_host()).await;
    let (pool, host, remote) = world.early_host("blue").await;
    let first = world.cluster_id("blue").await;
    // One that runs would register again before the cluster is gone.
    remote.power(0, Power::Off);
    world.delete_deployment("blue").await;
    world.cluster_is_gone("blue", first).await;

    world.deploy("blue", |_| ()).await;
    world.install("blue", one_host()).await;
    world.install_waits("blue").await;
    let second = world.cluster_id("blue").await;
    assert_ne!(first, second);
    world
        .until("the InfraEnv belongs to the new cluster", async || {
            world.hub.infra_env(pool).await.unwrap().cluster_id == Some(second)
        })
        .await;
    remote.power(0, Power::BootDiscovery);
    world.agent_in(&host, "known").await;
    let row = world.hub.host(pool, host.parse().unwrap()).await.unwrap();
    assert_eq!(row.cluster_id, Some(second));
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_infra_env_has_the_time_sources_of_the_site_unless_it_names_its_own() {
    let mut world = World::without_operator().await;
    world.house.close().await;
    world
        .house
        .reopen_with(|config| config.site.default_ntp = Some("ntp.site.example.com".into()))
        .await;
    world.start_operator().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let sources = async || {
        let row = world.hub.infra_env(pool).await.unwrap();
        (row.additional_ntp_sources, row.ntp_sources)
    };
    let of_the_site = ("ntp.site.example.com".to_owned(), String::new());
    assert_eq!(sources().await, of_the_site);
    world.operator().idle().await;
    let row = world.hub.infra_env(pool).await.unwrap();
    assert_eq!(sources().await, of_the_site, "a second reconcile removes nothing");
    assert_eq!(
        row.updated_at, row.created_at,
        "and the image is as old as it was"
    );

    let change = async |sources: serde_json::Value| {
        let patch = json!({ "spec": { "ntpSources": sources } });
        world.patch::<InfraEnv>(&world.pool, "lab", patch).await.unwrap();
    };
    change(json!(["ntp.example.com"])).await;
    world
        .until("its own word counts", async || {
            sources().await == (String::new(), "ntp.example.com".to_owned())
        })
        .await;
    change(json!(null)).await;
    world
        .until("the site's counts again", async || sources().await == of_the_site)
        .await;
    world.operator().idle().await;
    world.assert_converged().await;
}
