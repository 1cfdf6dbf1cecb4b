//! An InfraEnv has so many hosts and no more, and goes with all of them when nobody has lent any.

use crate::door::{Answer, Door, V1, V2};
use crate::place::Place;
use axum::http::{Method, StatusCode};
use muster_hub::Clock;
use muster_hub::config::MostHosts;
use serde_json::json;
use uuid::Uuid;

async fn small() -> Door {
    let limits = MostHosts {
        in_infra_env: 3,
        in_hub: 5,
    };
    Door::with(Place::new().await, Clock::System, |settings| {
        settings.most_hosts = limits
    })
    .await
}

async fn try_register(door: &Door, pool: Uuid, number: u128) -> Answer {
    let body = json!({ "host_id": Uuid::from_u128(number) });
    door.post(&format!("{V2}/infra-envs/{pool}/hosts"), body).await
}

#[tokio::test]
async fn a_full_infra_env_asks_further_agents_to_come_again_and_says_why() {
    let door = small().await;
    let (pool, other) = (door.infra_env("pool").await, door.infra_env("other").await);
    for number in 1..=3 {
        assert_eq!(
            try_register(&door, pool, number).await.status,
            StatusCode::CREATED
        );
    }
    let answer = try_register(&door, pool, 4).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text);
    for part in ["InfraEnv pool has 3 hosts", "--max-hosts-per-infra-env"] {
        assert!(answer.text.contains(part), "{}", answer.text);
    }
    // Whoever is known may come back.
    assert_eq!(try_register(&door, pool, 2).await.status, StatusCode::CREATED);
    for number in 1..=2 {
        assert_eq!(
            try_register(&door, other, number).await.status,
            StatusCode::CREATED
        );
    }
    let answer = try_register(&door, other, 3).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text);
    assert!(
        answer.text.contains("This hub has 5 hosts") && answer.text.contains("--max-hosts."),
        "{}",
        answer.text
    );
    // As soon as one goes there is room.
    let gone = format!("{V2}/infra-envs/{pool}/hosts/{}", Uuid::from_u128(1));
    assert_eq!(
        door.ask(Method::DELETE, &gone, None).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(try_register(&door, pool, 4).await.status, StatusCode::CREATED);
}

async fn delete(door: &Door, pool: Uuid, limit: u32) -> Answer {
    let path = format!("{V1}/infra-envs/{pool}/with-hosts?limit={limit}");
    door.ask(Method::DELETE, &path, None).await
}

async fn plan(door: &Door, pool: Uuid) -> Answer {
    let body = json!({ "verb": "delete-infra-env-with-hosts", "infra_env_id": pool });
    door.post(&format!("{V1}/plan"), body).await
}

#[tokio::test]
async fn an_infra_env_goes_with_hosts_that_were_never_lent_some_at_a_time() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    for number in 1..=25 {
        door.register(pool, Uuid::from_u128(number)).await;
    }
    let told = plan(&door, pool).await;
    assert_eq!(told.body["allowed"], true, "{}", told.text);
    assert_eq!(
        told.body["steps"][0]["action"],
        "delete 25 host(s) that were never lent"
    );
    let first = delete(&door, pool, 10).await;
    assert_eq!(
        first.body,
        json!({ "deleted": 10, "left": 15, "done": false }),
        "{}",
        first.text
    );
    // Whoever was interrupted asks again; one that registers meanwhile goes, too.
    door.register(pool, Uuid::from_u128(26)).await;
    let second = delete(&door, pool, 10).await;
    assert_eq!(
        second.body,
        json!({ "deleted": 10, "left": 6, "done": false }),
        "{}",
        second.text
    );
    let last = delete(&door, pool, 10).await;
    assert_eq!(
        last.body,
        json!({ "deleted": 6, "left": 0, "done": true }),
        "{}",
        last.text
    );
    assert_eq!(
        door.get(&format!("{V2}/infra-envs/{pool}")).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(delete(&door, pool, 10).await.status, StatusCode::NOT_FOUND);
    let reopened = door.blind().await;
    assert_eq!(
        reopened.get(&format!("{V1}/hosts")).await.body["hosts"],
        json!([])
    );
}

#[tokio::test]
async fn a_host_that_was_ever_lent_keeps_its_infra_env_and_is_named() {
    let door = Door::open().await;
    let (pool, cluster) = (door.infra_env("pool").await, door.cluster("prod").await);
    let lent = door.worker(pool, 1).await;
    door.worker(pool, 2).await;
    assert_eq!(door.bind(pool, lent, cluster).await.status, StatusCode::OK);
    for returned in [false, true] {
        if returned {
            let path = format!("{V2}/infra-envs/{pool}/hosts/{lent}/actions/unbind");
            assert_eq!(door.ask(Method::POST, &path, None).await.status, StatusCode::OK);
            door.register(pool, lent).await;
            door.report(pool, lent, 1).await;
            assert_eq!(door.status(pool, lent).await, "known-unbound");
        }
        let told = plan(&door, pool).await;
        assert_eq!(told.body["allowed"], false, "{}", told.text);
        assert_eq!(told.body["blockers"][0]["code"], "host-was-lent", "{}", told.text);
        let answer = delete(&door, pool, 10).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.text);
        assert!(
            answer.text.contains("worker-1") || answer.text.contains(&lent.to_string()),
            "{}",
            answer.text
        );
        let hosts = door.get(&format!("{V2}/infra-envs/{pool}/hosts")).await;
        assert_eq!(
            hosts.body.as_array().map(Vec::len),
            Some(2),
            "nothing of it was done"
        );
    }
    // REST v2 refuses as it always did.
    let answer = door
        .ask(Method::DELETE, &format!("{V2}/infra-envs/{pool}"), None)
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.text.contains("--with-hosts"), "{}", answer.text);
}
