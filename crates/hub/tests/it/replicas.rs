//! Two hubs on one database, each asked what the other one has just done.

use crate::door::{Door, V1, V2};
use crate::place::Place;
use axum::http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use muster_hub::{Clock, worker};
use serde_json::json;
use uuid::Uuid;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK5fZ7RM4rPRmz3yCqBRUGGcbgyWYFXr8nYrVvYyB7Ck me";

async fn pair() -> (Door, Door) {
    let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
    let first = Door::at(Place::new().await, clock).await;
    // Both must know that they are not alone.
    let first = first.beside().await;
    let second = first.beside().await;
    (first, second)
}

#[tokio::test]
async fn what_one_made_the_other_finds_at_once() {
    let (a, b) = pair().await;
    let pool = a.infra_env("pool").await;
    let host = Uuid::from_u128(1);
    b.register(pool, host).await;
    a.report(pool, host, 1).await;
    let poll = format!("{V2}/infra-envs/{pool}/hosts/{host}/instructions");
    assert_eq!(
        a.get(&poll).await.status,
        StatusCode::OK,
        "an agent is never told that it does not exist"
    );
    let cluster = a.cluster("alpha").await;
    assert_eq!(b.bind(pool, host, cluster).await.status, StatusCode::OK);
    let other = a.cluster("beta").await;
    let moved = b
        .post(
            &format!("{V1}/infra-envs/{pool}/hosts/{host}/move"),
            json!({ "cluster_id": other }),
        )
        .await;
    assert_eq!(moved.status, StatusCode::ACCEPTED, "{}", moved.text);
    assert_eq!(
        b.get(&format!("{V1}/clusters/{other}/explain")).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn whoever_heard_of_a_change_reads_it_at_either() {
    let (a, b) = pair().await;
    let (pool, cluster) = (a.infra_env("pool").await, a.cluster("alpha").await);
    let host = a.worker(pool, 1).await;
    let [of_pool, of_cluster, of_host] = [
        format!("{V2}/infra-envs/{pool}"),
        format!("{V2}/clusters/{cluster}"),
        format!("{V1}/hosts/{host}"),
    ];
    // The second one has them in mind, and nobody tells it of what comes.
    for path in [&of_pool, &of_cluster, &of_host] {
        assert_eq!(b.get(path).await.status, StatusCode::OK);
    }
    assert_eq!(b.status(pool, host).await, "known-unbound");
    for (path, change) in [
        (&of_pool, json!({ "ssh_authorized_key": KEY })),
        (&of_cluster, json!({ "name": "omega" })),
    ] {
        let changed = a.ask(Method::PATCH, path, Some(&change)).await;
        assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    }
    assert_eq!(a.bind(pool, host, cluster).await.status, StatusCode::OK);
    let feed = format!("{V1}/changes");
    let told = b.get(&feed).await.body["changes"].as_array().unwrap().len();
    assert_eq!(told, a.get(&feed).await.body["changes"].as_array().unwrap().len());
    assert_eq!(b.get(&of_pool).await.body["ssh_authorized_key"], KEY);
    let seen = b.get(&of_cluster).await.body;
    assert_eq!(
        (&seen["name"], seen["hosts"].as_array().unwrap().len()),
        (&json!("omega"), 1)
    );
    assert_eq!(b.get(&of_host).await.body["hosts"][0]["status"], "binding");
    let gone = a
        .ask(
            Method::DELETE,
            &format!("{V2}/infra-envs/{pool}/hosts/{host}"),
            None,
        )
        .await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    assert_eq!(b.get(&of_host).await.body["hosts"], json!([]));
}

#[tokio::test]
async fn a_machine_that_registers_through_both_is_one_host() {
    let (a, b) = pair().await;
    let pool = a.infra_env("pool").await;
    let host = Uuid::from_u128(1);
    futures_util::future::join(a.register(pool, host), b.register(pool, host)).await;
    let listed = a.get(&format!("{V2}/infra-envs/{pool}/hosts")).await;
    assert_eq!(listed.body.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_one_deleted_the_other_does_not_use() {
    let (a, b) = pair().await;
    let (pool, cluster) = (a.infra_env("pool").await, a.cluster("alpha").await);
    let host = a.worker(pool, 1).await;
    assert_eq!(
        b.get(&format!("{V2}/clusters/{cluster}")).await.status,
        StatusCode::OK
    );
    assert_eq!(b.status(pool, host).await, "known-unbound");
    let path = format!("{V2}/clusters/{cluster}");
    assert_eq!(
        a.ask(Method::DELETE, &path, None).await.status,
        StatusCode::NO_CONTENT
    );
    let bound = b.bind(pool, host, cluster).await;
    assert_eq!(bound.status, StatusCode::BAD_REQUEST, "{}", bound.text);
    let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    assert_eq!(
        a.ask(Method::DELETE, &path, None).await.status,
        StatusCode::NO_CONTENT
    );
    let other = b.cluster("beta").await;
    let bound = b.bind(pool, host, other).await;
    assert_eq!(bound.status, StatusCode::NOT_FOUND, "{}", bound.text);
}

#[tokio::test]
async fn a_host_that_asks_only_one_is_connected_for_both() {
    let (a, b) = pair().await;
    let pool = a.infra_env("pool").await;
    let host = a.worker(pool, 1).await;
    let poll = format!("{V2}/infra-envs/{pool}/hosts/{host}/instructions");
    for _ in 0..10 {
        a.hub.clock.advance(SignedDuration::from_secs(60));
        assert_eq!(b.get(&poll).await.status, StatusCode::OK);
        worker::flush::once(&b.hub).await.unwrap();
        worker::deadlines::once(&a.hub).await.unwrap();
        worker::deadlines::once(&b.hub).await.unwrap();
        assert_eq!(a.status(pool, host).await, "known-unbound");
    }
    // Silence towards both is noticed by either; the first check learns when it polled the other hub last.
    a.hub.clock.advance(SignedDuration::from_secs(3 * 60 + 10));
    worker::deadlines::once(&a.hub).await.unwrap();
    worker::deadlines::once(&a.hub).await.unwrap();
    assert_eq!(a.status(pool, host).await, "disconnected-unbound");
}

#[tokio::test]
async fn of_two_binds_through_two_hubs_one_wins() {
    let (a, b) = pair().await;
    let pool = a.infra_env("pool").await;
    let (alpha, beta) = (a.cluster("alpha").await, a.cluster("beta").await);
    for number in 1..=10 {
        let host = a.worker(pool, number).await;
        assert_eq!(b.status(pool, host).await, "known-unbound");
        let (first, second) =
            futures_util::future::join(a.bind(pool, host, alpha), b.bind(pool, host, beta)).await;
        let mut statuses = [first.status, second.status];
        statuses.sort();
        assert_eq!(
            statuses,
            [StatusCode::OK, StatusCode::CONFLICT],
            "{} {}",
            first.text,
            second.text
        );
    }
}
