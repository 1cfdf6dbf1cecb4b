//! Two hubs as processes on one PostgreSQL: either sees what the other did, and neither undoes it.

use crate::machines::{Machines, cluster};
use crate::served::{Place, Served, until};
use futures_util::future::join;
use muster_contract::ClientError;
use muster_contract::v2::host::ClusterHostsQuery;
use muster_contract::v2::step::{NextStepsQuery, PostStepAction};
use std::time::{Duration, Instant};

/// The feed is read twice a second; a busy machine takes a little longer.
const SOON: Duration = Duration::from_secs(10);

fn pair(place: &Place) -> (Served, Served) {
    (Served::start(place), Served::start(place))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bind_through_one_is_seen_by_agents_and_people_at_the_other() {
    let Some(place) = Place::postgres().await else {
        return;
    };
    let (a, b) = pair(&place);
    let machines = Machines::new(&a.hub).await;
    machines.arrive(&b.hub, [0]).await;
    let (host, alpha) = (machines.id(0), cluster(&a.hub, "alpha").await);
    let poll = NextStepsQuery::default();
    let before = b.hub.next_steps(machines.infra_env, host, &poll).await.unwrap();
    assert_eq!(before.post_step_action, PostStepAction::Continue);
    a.hub.bind_host(machines.infra_env, host, alpha).await.unwrap();
    let start = Instant::now();
    until("the agent is told to register again", async || {
        let steps = b.hub.next_steps(machines.infra_env, host, &poll).await.unwrap();
        (steps.post_step_action == PostStepAction::Exit).then_some(())
    })
    .await;
    until("the cluster's list has the host", async || {
        let listed = b
            .hub
            .cluster_hosts(alpha, &ClusterHostsQuery::default())
            .await
            .unwrap();
        (listed.len() == 1 && listed[0].id == host).then_some(())
    })
    .await;
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    // Registers and reports through both in turn, as behind a load balancer.
    machines.register(&b.hub, 0).await.unwrap();
    machines.report(&a.hub, 0).await.unwrap();
    until("both tell the same", async || {
        let (one, other) = join(
            a.hub.host(machines.infra_env, host),
            b.hub.host(machines.infra_env, host),
        )
        .await;
        let (one, other) = (one.unwrap(), other.unwrap());
        (one.status == other.status && one.cluster_id == Some(alpha) && other.cluster_id == Some(alpha))
            .then_some(())
    })
    .await;
    comes_to_rest(&a, &b).await;
    drop((a, b));
    place.remove().await;
}

/// Two hubs that look at the same cluster must agree, or they would correct each other for ever.
async fn comes_to_rest(a: &Served, b: &Served) {
    until("nothing changes any more", async || {
        let before = a.seq().await;
        // Waits at the other one for a change that does not come.
        let mut feed = b.hub.follow(before);
        let page = feed.next(3).await.unwrap();
        page.changes.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_binds_at_once_through_two_hubs_one_wins() {
    const HOSTS: u32 = 30;
    let Some(place) = Place::postgres().await else {
        return;
    };
    let (a, b) = pair(&place);
    let machines = Machines::new(&a.hub).await;
    machines.arrive(&a.hub, 0..HOSTS).await;
    let (alpha, beta) = (cluster(&a.hub, "alpha").await, cluster(&b.hub, "beta").await);
    for index in 0..HOSTS {
        let host = machines.id(index);
        let (first, second) = join(
            a.hub.bind_host(machines.infra_env, host, alpha),
            b.hub.bind_host(machines.infra_env, host, beta),
        )
        .await;
        let (winner, loser) = match (first, second) {
            (Ok(bound), Err(refused)) => ((bound, alpha), refused),
            (Err(refused), Ok(bound)) => ((bound, beta), refused),
            (first, second) => panic!("host {index}: {first:?} and {second:?}"),
        };
        assert_eq!(winner.0.cluster_id, Some(winner.1));
        assert!(
            matches!(loser, ClientError::Refused { status: 409, .. }),
            "{loser}"
        );
        let seen = until("the loser knows", async || {
            b.hub.host(machines.infra_env, host).await.unwrap().cluster_id
        });
        assert_eq!(seen.await, winner.1);
    }
    let query = ClusterHostsQuery::default();
    let (one, other) = join(
        a.hub.cluster_hosts(alpha, &query),
        b.hub.cluster_hosts(beta, &query),
    )
    .await;
    assert_eq!(one.unwrap().len() + other.unwrap().len(), HOSTS as usize);
    comes_to_rest(&a, &b).await;
    drop((a, b));
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_is_the_same_at_both_and_wakes_whoever_waits_at_either() {
    let Some(place) = Place::postgres().await else {
        return;
    };
    let (a, b) = pair(&place);
    let mut feed = b.hub.follow(b.seq().await);
    let (news, made) = join(feed.next(10), Machines::new(&a.hub)).await;
    assert_eq!(
        news.unwrap().changes[0].id,
        made.infra_env,
        "a waiting follower hears of the other hub's work"
    );
    made.arrive(&a.hub, 0..5).await;
    made.arrive(&b.hub, 5..10).await;
    comes_to_rest(&a, &b).await;
    assert_eq!(a.changes().await, b.changes().await);
    drop((a, b));
    place.remove().await;
}
