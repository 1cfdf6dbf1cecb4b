//! The history over REST v2.

use crate::door::{Door, V1, V2};
use crate::place::Place;
use axum::http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use muster_domain::{ClusterId, Entry, Severity};
use muster_hub::{Clock, worker};
use muster_store::{Commit, EventQuery};
use serde_json::json;

#[tokio::test]
async fn a_clusters_history_counts_severities_and_pages() {
    let door = Door::open().await;
    let (pool, cluster) = (door.infra_env("pool").await, door.cluster("alpha").await);
    let host = door.worker(pool, 1).await;
    assert_eq!(door.bind(pool, host, cluster).await.status, StatusCode::OK);
    let all = door.get(&format!("{V2}/events?cluster_id={cluster}")).await;
    assert_eq!(all.status, StatusCode::OK, "{}", all.text);
    let names: Vec<_> = all
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"cluster_registration_succeeded") && names.contains(&"host_bind_succeeded"),
        "{names:?}"
    );
    let count = |name: &str| all.headers[name].to_str().unwrap().parse::<usize>().unwrap();
    assert_eq!(count("event-count"), names.len());
    let severities = ["info", "warning", "error", "critical"];
    let sum: usize = severities
        .iter()
        .map(|word| count(&format!("severity-count-{word}")))
        .sum();
    assert_eq!(sum, names.len());

    let one = door
        .get(&format!("{V2}/events?cluster_id={cluster}&limit=1&order=desc"))
        .await;
    assert_eq!(one.body.as_array().unwrap().len(), 1);
    assert_eq!(one.body[0], *all.body.as_array().unwrap().last().unwrap());
    assert_eq!(one.headers["event-count"], all.headers["event-count"]);
    assert_eq!(
        door.get(&format!("{V2}/events?cluster_id={cluster}&limit=0"))
            .await
            .body,
        json!([])
    );
    let all_again = door
        .get(&format!("{V2}/events?cluster_id={cluster}&limit=-1"))
        .await;
    assert_eq!(all_again.body, all.body);
    let level = door
        .get(&format!("{V2}/events?cluster_id={cluster}&cluster_level=true"))
        .await;
    assert!(
        level
            .body
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event.get("host_id").is_none())
    );
}

#[tokio::test]
async fn a_free_hosts_events_have_no_cluster_and_no_severity_counts() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let host = door.worker(pool, 1).await;
    for scope in [
        format!("host_id={host}"),
        format!("host_ids={host},{pool}"),
        format!("infra_env_id={pool}"),
    ] {
        let answer = door.get(&format!("{V2}/events?{scope}")).await;
        let events = answer.body.as_array().unwrap();
        assert!(
            events
                .iter()
                .any(|event| event["name"] == "host_registration_succeeded"),
            "{scope}: {}",
            answer.text
        );
        assert!(events.iter().all(|event| event.get("cluster_id").is_none()));
        assert_eq!(answer.headers["severity-count-info"], "0");
        assert_ne!(answer.headers["event-count"], "0");
    }
}

#[tokio::test]
async fn a_controller_adds_an_event_with_its_own_time_and_properties() {
    let door = Door::open().await;
    let cluster = door.cluster("alpha").await;
    let event = json!({
        "name": "cluster_operator_status", "cluster_id": cluster, "severity": "warning", "message": "50% done_",
        "event_time": "2026-01-02T03:04:05.678Z", "props": "{\"a\":1}",
    });
    let answer = door.post(&format!("{V2}/events"), event.clone()).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let found = door
        .get(&format!(
            "{V2}/events?cluster_id={cluster}&severities=warning&message=50%25%20DONE_"
        ))
        .await;
    assert_eq!(found.body, json!([event]));
    assert_eq!(
        door.get(&format!("{V2}/events?cluster_id={cluster}&message=50_"))
            .await
            .body,
        json!([])
    );
}

#[tokio::test]
async fn a_wrong_query_or_event_is_refused_in_the_shape_of_the_framework() {
    let door = Door::open().await;
    for query in [
        "cluster_id=x",
        "severities=loud",
        "limit=many",
        "order=up",
        "host_ids=1,2",
    ] {
        let answer = door.get(&format!("{V2}/events?{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(answer.body["code"], 400, "{query}");
    }
    for body in [
        json!({ "message": "m" }),
        json!({ "severity": "info", "message": "m", "event_time": "", "more": 1 }),
    ] {
        let answer = door.post(&format!("{V2}/events"), body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    }
}

async fn named(door: &Door, query: &str, name: &str) -> usize {
    let all = door.get(&format!("{V2}/events?{query}")).await;
    let all = all.body.as_array().unwrap();
    all.iter().filter(|event| event["name"] == name).count()
}

#[tokio::test]
async fn what_could_not_be_made_or_deleted_is_history_too() {
    let door = Door::open().await;
    let cluster = door.cluster("alpha").await;
    let wish = json!({ "name": "odd", "pull_secret": "no json", "cluster_id": cluster });
    let refused = door.post(&format!("{V2}/infra-envs"), wish).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    let query = format!("cluster_id={cluster}");
    assert_eq!(named(&door, &query, "infra_env_registration_failed").await, 1);

    let mut installing =
        muster_domain::cluster::Cluster::clone(&door.hub.index.cluster(ClusterId(cluster)).unwrap());
    installing.phase = muster_domain::cluster::Phase::Installing;
    installing.revision += 1;
    door.hub.index.put(installing.into());
    let path = format!("{V2}/clusters/{cluster}");
    let refused = door.ask(Method::DELETE, &path, None).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    assert_eq!(named(&door, &query, "cluster_deregister_failed").await, 1);
}

#[tokio::test]
async fn approval_and_other_proxies_are_told_when_they_change() {
    let door = Door::open().await;
    let (pool, cluster) = (door.infra_env("pool").await, door.cluster("alpha").await);
    let host = door.worker(pool, 1).await;
    for approved in [true, true, false] {
        let body = json!({ "approved": approved });
        let path = format!("{V1}/infra-envs/{pool}/hosts/{host}");
        let answer = door.ask(Method::PATCH, &path, Some(&body)).await;
        assert!(answer.status.is_success(), "{}", answer.text);
    }
    let query = format!("infra_env_id={pool}");
    assert_eq!(named(&door, &query, "host_approved_updated").await, 2);

    for proxy in ["http://user:pa55word@proxy.example.com:3128"; 2] {
        let body = json!({ "http_proxy": proxy });
        let answer = door
            .ask(Method::PATCH, &format!("{V2}/clusters/{cluster}"), Some(&body))
            .await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    }
    let query = format!("cluster_id={cluster}");
    assert_eq!(named(&door, &query, "proxy_settings_changed").await, 1);
    let all = door.get(&format!("{V2}/events?{query}")).await;
    assert!(!all.text.contains("pa55word"), "{}", all.text);
}

#[tokio::test]
async fn an_answer_has_a_bound_and_says_how_many_there_are() {
    let door = Door::open().await;
    let most = usize::try_from(EventQuery::MOST).unwrap();
    let lines = (0..most + 2).map(|number| Entry::new("test", Severity::Info, number.to_string()));
    let commit = Commit {
        journal: lines.collect(),
        ..Commit::new(door.hub.now())
    };
    door.hub.store.commit(commit).await.unwrap();
    for query in ["", "limit=-1", "limit=1000000"] {
        let answer = door.get(&format!("{V2}/events?{query}")).await;
        assert_eq!(answer.body.as_array().unwrap().len(), most, "{query}");
        assert_eq!(answer.headers["event-count"], (most + 2).to_string().as_str());
    }
    let rest = door.get(&format!("{V2}/events?limit=-1&offset={most}")).await;
    assert_eq!(rest.body.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn history_is_kept_for_as_many_days_as_the_site_says() {
    let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
    let door = Door::with(Place::new().await, clock.clone(), |settings| {
        settings.event_days = 30
    })
    .await;
    door.infra_env("pool").await;
    let count = async || {
        worker::flush::once(&door.hub).await.unwrap();
        let all = door.get(&format!("{V2}/events")).await;
        all.body.as_array().unwrap().len()
    };
    clock.advance(SignedDuration::from_hours(29 * 24));
    assert_ne!(count().await, 0);
    clock.advance(SignedDuration::from_hours(2 * 24));
    assert_eq!(count().await, 0);
}
