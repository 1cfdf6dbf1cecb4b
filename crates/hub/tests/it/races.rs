//! Requests at the same moment.

use crate::door::{Door, PULL_SECRET, V2};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use futures_util::future::{join, join_all};
use muster_domain::ClusterId;
use serde_json::json;
use std::sync::Arc;
use tower::ServiceExt;
use uuid::Uuid;

#[tokio::test]
async fn a_host_bound_while_its_cluster_is_deleted_is_never_left_in_nothing() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    for round in 1..=20 {
        let host = door.worker(pool, round).await;
        let cluster = door.cluster(&format!("c{round}")).await;
        let path = format!("{V2}/clusters/{cluster}");
        let delete = door.ask(Method::DELETE, &path, None);
        let (bound, deleted) = match round % 2 {
            0 => join(door.bind(pool, host, cluster), delete).await,
            _ => {
                let (deleted, bound) = join(delete, door.bind(pool, host, cluster)).await;
                (bound, deleted)
            }
        };
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.text);
        assert!(
            bound.status == StatusCode::OK || bound.status.is_client_error(),
            "{}",
            bound.text
        );
        let seen = door.get(&format!("{V2}/infra-envs/{pool}/hosts/{host}")).await;
        assert!(
            seen.body.get("cluster_id").is_none(),
            "round {round}: {}",
            seen.text
        );
        assert!(door.hub.index.cluster(ClusterId(cluster)).is_none());
    }
}

#[tokio::test]
async fn of_many_binds_at_once_one_wins() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let host = door.worker(pool, 1).await;
    let mut clusters = Vec::new();
    for number in 0..8 {
        clusters.push(door.cluster(&format!("c{number}")).await);
    }
    let answers = join_all(clusters.iter().map(|cluster| door.bind(pool, host, *cluster))).await;
    let count = |status| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(StatusCode::OK), count(StatusCode::CONFLICT)), (1, 7));
    let mut there = 0;
    for id in clusters {
        there += door
            .get(&format!("{V2}/clusters/{id}/hosts"))
            .await
            .body
            .as_array()
            .unwrap()
            .len();
    }
    assert_eq!(there, 1, "it is in one cluster");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_machine_that_registers_many_times_at_once_is_one_host() {
    let door = Arc::new(Door::open().await);
    let pool = door.infra_env("pool").await;
    for number in 1..=40 {
        let mut agents = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let door = door.clone();
            agents.spawn(async move { door.register(pool, Uuid::from_u128(number)).await });
        }
        // None of them was refused: each registration answers 201, or its task panics.
        agents.join_all().await;
    }
    let listed = door.get(&format!("{V2}/infra-envs/{pool}/hosts")).await;
    assert_eq!(listed.body.as_array().unwrap().len(), 40);
}

#[tokio::test]
async fn a_machine_that_registered_a_moment_ago_where_nobody_looked_is_registered_again() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let blind = door.blind().await;
    let host = Uuid::from_u128(7);
    door.register(pool, host).await;
    blind.register(pool, host).await;
    let listed = door.get(&format!("{V2}/infra-envs/{pool}/hosts")).await;
    assert_eq!(listed.body.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_machine_whose_cluster_was_deleted_a_moment_ago_keeps_asking() {
    let door = Door::open().await;
    let cluster = door.cluster("early").await;
    let wish = json!({ "name": "pool", "pull_secret": PULL_SECRET, "cluster_id": cluster });
    let made = door.post(&format!("{V2}/infra-envs"), wish).await;
    let pool = made.body["id"].as_str().unwrap().to_owned();
    let blind = door.blind().await;
    let deleted = door
        .ask(Method::DELETE, &format!("{V2}/clusters/{cluster}"), None)
        .await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let body = json!({ "host_id": Uuid::from_u128(7), "discovery_agent_version": "agent" });
    let answer = blind.post(&format!("{V2}/infra-envs/{pool}/hosts"), body).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text);
}

#[tokio::test]
async fn a_long_list_of_hosts_can_be_compressed() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    door.worker(pool, 1).await;
    let request =
        Request::get(format!("{V2}/infra-envs/{pool}/hosts")).header(header::ACCEPT_ENCODING, "gzip");
    let answer = door
        .router
        .clone()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(answer.headers()[header::CONTENT_ENCODING], "gzip");
    let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX)
        .await
        .unwrap();
    let listed: serde_json::Value =
        serde_json::from_reader(flate2::read::GzDecoder::new(&bytes[..])).unwrap();
    assert_eq!(listed[0]["id"], json!(Uuid::from_u128(1)));
}
