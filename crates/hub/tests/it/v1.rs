//! Muster's own API: plans, explanations, moves, pages and the feed.

use crate::door::{Door, V1, V2};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;
use uuid::Uuid;

async fn plan(door: &Door, verb: &str, ids: Value) -> Value {
    let mut body = json!({ "verb": verb });
    body.as_object_mut()
        .unwrap()
        .extend(ids.as_object().unwrap().clone());
    let answer = door.post(&format!("{V1}/plan"), body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.body
}

fn moves(plan: &Value) -> Vec<(String, String)> {
    let word = |step: &Value, key: &str| step[key].as_str().unwrap_or("-").to_owned();
    plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (word(step, "from"), word(step, "to")))
        .collect()
}

fn codes(plan: &Value) -> Vec<&str> {
    plan["blockers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].as_str().unwrap())
        .collect()
}

fn pair(from: &str, to: &str) -> (String, String) {
    (from.into(), to.into())
}

#[tokio::test]
async fn the_plan_of_a_bind_is_what_the_bind_then_does() {
    let door = Door::open().await;
    let (pool, cluster) = (door.infra_env("pool").await, door.cluster("alpha").await);
    let host = door.worker(pool, 1).await;
    let ids = json!({ "infra_env_id": pool, "host_id": host, "cluster_id": cluster });
    let told = plan(&door, "bind", ids.clone()).await;
    assert_eq!(told["allowed"], true, "{told}");
    assert_eq!(
        moves(&told)[..2],
        [pair("known-unbound", "binding"), pair("binding", "discovering")]
    );
    assert!(
        told["warnings"][0].as_str().unwrap().contains("worker only"),
        "{told}"
    );
    assert_eq!(
        door.status(pool, host).await,
        "known-unbound",
        "a plan changes nothing"
    );

    assert_eq!(door.bind(pool, host, cluster).await.status, StatusCode::OK);
    assert_eq!(door.status(pool, host).await, "binding");
    let again = plan(&door, "bind", ids).await;
    assert_eq!(again["allowed"], false);
    assert_eq!(codes(&again), ["host-is-bound"]);
    door.register(pool, host).await;
    assert_eq!(door.status(pool, host).await, "discovering");
}

#[tokio::test]
async fn a_plan_names_everything_that_blocks() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let body = json!({ "name": "arm", "openshift_version": "4.20", "pull_secret": crate::door::PULL_SECRET,
        "base_dns_domain": "example.com", "cpu_architecture": "arm64" });
    let answer = door.post(&format!("{V2}/clusters"), body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let host = Uuid::from_u128(1);
    door.register(pool, host).await;
    let ids = json!({ "infra_env_id": pool, "host_id": host, "cluster_id": answer.body["id"] });
    let told = plan(&door, "bind", ids).await;
    assert_eq!(told["allowed"], false);
    assert_eq!(codes(&told), ["host-not-ready", "architecture-differs"]);
    assert!(
        told["blockers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["next_action"] != ""),
        "{told}"
    );
    assert_eq!(told["steps"], json!([]));
}

#[tokio::test]
async fn deleting_a_cluster_is_planned_host_by_host() {
    let door = Door::open().await;
    let (pool, cluster) = (door.infra_env("pool").await, door.cluster("alpha").await);
    let host = door.worker(pool, 1).await;
    door.bind(pool, host, cluster).await;
    let told = plan(&door, "delete-cluster", json!({ "cluster_id": cluster })).await;
    assert_eq!(told["allowed"], true);
    assert_eq!(moves(&told)[0], pair("binding", "unbinding"));
    assert_eq!(
        told["steps"].as_array().unwrap().last().unwrap()["subject"],
        "cluster/alpha"
    );

    let refused = plan(&door, "delete-infra-env", json!({ "infra_env_id": pool })).await;
    assert_eq!(codes(&refused), ["pool-has-hosts"]);
    let gone = plan(
        &door,
        "delete-host",
        json!({ "infra_env_id": pool, "host_id": host }),
    )
    .await;
    assert_eq!(gone["allowed"], true);
}

#[tokio::test]
async fn a_plan_without_its_ids_or_of_what_does_not_exist_is_a_problem() {
    let door = Door::open().await;
    let (some, other) = (Uuid::new_v4(), Uuid::new_v4());
    let cases = [
        (json!({ "verb": "bind" }), 400, "invalid"),
        (json!({ "verb": "dance" }), 400, "invalid"),
        (
            json!({ "verb": "unbind", "infra_env_id": some, "host_id": other }),
            404,
            "not-found",
        ),
        (
            json!({ "verb": "delete-cluster", "cluster_id": some }),
            404,
            "not-found",
        ),
        (
            json!({ "verb": "delete-cluster", "cluster_id": some, "force": true }),
            400,
            "invalid",
        ),
    ];
    for (body, status, code) in cases {
        let answer = door.post(&format!("{V1}/plan"), body.clone()).await;
        assert_eq!(answer.status.as_u16(), status, "{body}");
        assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(answer.body["code"], code, "{}", answer.text);
    }
    let answer = door.get(&format!("{V1}/clusters/not-an-id/explain")).await;
    assert_eq!(
        (answer.status, answer.body["code"].as_str()),
        (StatusCode::BAD_REQUEST, Some("invalid"))
    );
    let told = "an id in /clusters/not-an-id/explain is not a UUID";
    assert_eq!(answer.body["detail"], told);
}

#[tokio::test]
async fn a_host_is_moved_in_one_request_and_the_move_can_be_watched() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let (alpha, beta) = (door.cluster("alpha").await, door.cluster("beta").await);
    let host = door.worker(pool, 1).await;
    let path = format!("{V1}/infra-envs/{pool}/hosts/{host}/move");
    assert_eq!(
        door.get(&path).await.status,
        StatusCode::NOT_FOUND,
        "a free host does not move"
    );
    door.bind(pool, host, alpha).await;
    let told = plan(
        &door,
        "move",
        json!({ "infra_env_id": pool, "host_id": host, "cluster_id": beta }),
    )
    .await;
    assert_eq!(told["allowed"], true, "{told}");
    assert_eq!(moves(&told)[0], pair("binding", "unbinding"));

    let answer = door.post(&path, json!({ "cluster_id": beta })).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    assert_eq!(answer.body["from"], json!(alpha));
    assert_eq!(answer.body["done"], false);
    door.register(pool, host).await;
    door.report(pool, host, 1).await;
    door.settle().await;
    assert_eq!(
        door.get(&path).await.body["done"],
        false,
        "binding is not the end"
    );
    door.register(pool, host).await;
    let done = door.get(&path).await.body;
    assert_eq!((&done["done"], &done["to"]), (&json!(true), &json!(beta)));
    let same = door.post(&path, json!({ "cluster_id": beta })).await;
    assert_eq!(
        (same.status, same.body["code"].as_str()),
        (StatusCode::CONFLICT, Some("host-is-there"))
    );
}

#[tokio::test]
async fn explanations_say_why_until_when_and_what_next() {
    let door = Door::open().await;
    let (pool, cluster) = (door.infra_env("pool").await, door.cluster("alpha").await);
    let host = door.worker(pool, 1).await;
    let path = format!("{V1}/infra-envs/{pool}/hosts/{host}");
    let told = door.get(&format!("{path}/explain?cluster_id={cluster}")).await;
    assert_eq!(told.status, StatusCode::OK, "{}", told.text);
    assert_eq!(told.body["status"], "known-unbound");
    assert!(told.body["deadline"]["at"].is_string());
    assert_eq!(told.body["verbs"][0]["verb"], "bind");
    let fits = |body: &Value| {
        let all = body.as_array().unwrap().iter().filter(|one| one["fits"] == true);
        all.map(|one| one["role"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(fits(&told.body["verdicts"]), ["arbiter", "worker"]);
    assert_eq!(
        fits(&door.get(&format!("{path}/verdicts")).await.body),
        ["arbiter", "worker"]
    );

    door.bind(pool, host, cluster).await;
    door.settle().await;
    let told = door.get(&format!("{V1}/clusters/{cluster}/explain")).await.body;
    assert_eq!(told["status"], "pending-for-input", "{told}");
    assert!(
        told["blockers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["next_action"] != ""),
        "{told}"
    );
    let told = door.get(&format!("{V1}/infra-envs/{pool}/explain")).await.body;
    assert_eq!(told["status"], "no-free-hosts");
    assert_eq!(told["verbs"][0]["allowed"], false);
}

#[tokio::test]
async fn hosts_are_listed_page_by_page_and_filtered() {
    let door = Door::open().await;
    let (one, two) = (door.infra_env("one").await, door.infra_env("two").await);
    let cluster = door.cluster("alpha").await;
    for number in 1..=4 {
        door.worker(one, number).await;
    }
    let lent = door.worker(two, 9).await;
    door.bind(two, lent, cluster).await;
    let mut seen = Vec::new();
    let mut next = String::new();
    loop {
        let page = door.get(&format!("{V1}/hosts?limit=2{next}")).await.body;
        let hosts = page["hosts"].as_array().unwrap();
        seen.extend(hosts.iter().map(|host| host["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(place) => next = format!("&after={place}"),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 5);
    let count = async |query: &str| {
        door.get(&format!("{V1}/hosts?{query}")).await.body["hosts"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!(count("free=true").await, Some(4));
    assert_eq!(count(&format!("cluster_id={cluster}")).await, Some(1));
    assert_eq!(count("status=binding,known-unbound&limit=2").await, Some(2));
    assert_eq!(count("status=binding").await, Some(1));
    for wrong in ["status=sleeping", "after=zz", "limit=-1", "infra_env_id=1"] {
        let answer = door.get(&format!("{V1}/hosts?{wrong}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

#[tokio::test]
async fn the_feed_is_read_waited_for_and_resumed() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let page = door.get(&format!("{V1}/changes")).await.body;
    assert_eq!(page["changes"][0]["id"], json!(pool));
    let next = page["next"].as_i64().unwrap();
    let empty = door.get(&format!("{V1}/changes?after={next}")).await.body;
    assert_eq!(
        (empty["changes"].as_array().unwrap().len(), empty["next"].as_i64()),
        (0, Some(next))
    );

    let path = format!("{V1}/changes?after={next}&wait_seconds=30");
    let (waited, cluster) = tokio::join!(door.get(&path), door.cluster("alpha"));
    assert_eq!(waited.body["changes"][0]["id"], json!(cluster));
    let ahead = door.get(&format!("{V1}/changes?after=999999")).await;
    assert_eq!(
        (ahead.status, ahead.body["code"].as_str()),
        (StatusCode::GONE, Some("feed-pruned"))
    );
}

#[tokio::test]
async fn a_host_shows_the_revision_that_the_feed_tells() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let host = door.worker(pool, 1).await;
    let newest = async || {
        let page = door.get(&format!("{V1}/changes")).await.body;
        let changes = page["changes"].as_array().unwrap();
        let of_host = changes.iter().rev().find(|change| change["id"] == json!(host));
        of_host.unwrap()["revision"].clone()
    };
    let shown = async || {
        let rows = door.get(&format!("{V1}/hosts/{host}")).await.body;
        rows["hosts"][0]["revision"].clone()
    };
    let before = newest().await;
    assert_eq!(shown().await, before);
    let path = format!("{V1}/infra-envs/{pool}/hosts/{host}");
    let approve = json!({ "approved": true });
    let changed = door.ask(Method::PATCH, &path, Some(&approve)).await;
    assert!(
        changed.body["revision"].as_i64() > before.as_i64(),
        "{}",
        changed.text
    );
    assert_eq!(newest().await, changed.body["revision"]);
    assert_eq!(shown().await, changed.body["revision"]);
}

#[tokio::test]
async fn the_feed_streams_what_is_there_and_what_comes() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let request = Request::builder()
        .method(Method::GET)
        .uri(format!("{V1}/changes?after=0"));
    let request = request
        .header(header::ACCEPT, "text/event-stream")
        .body(Body::empty())
        .unwrap();
    let response = door.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    let mut text = String::new();
    let mut until = async |wanted: String| {
        while !text.contains(&wanted) {
            let piece = tokio::time::timeout(Duration::from_secs(10), stream.next())
                .await
                .expect("an event in time");
            text.push_str(std::str::from_utf8(&piece.unwrap().unwrap()).unwrap());
        }
        text.clone()
    };
    let first = until(pool.to_string()).await;
    assert!(
        first.contains("id: 1\n") && first.contains("event: change\n"),
        "{first}"
    );
    let cluster = door.cluster("alpha").await;
    until(cluster.to_string()).await;

    let request = Request::builder()
        .uri(format!("{V1}/changes?after=0"))
        .header("last-event-id", "1");
    let request = request
        .header(header::ACCEPT, "text/event-stream")
        .body(Body::empty())
        .unwrap();
    let mut stream = door
        .router
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .into_body()
        .into_data_stream();
    let piece = tokio::time::timeout(Duration::from_secs(10), stream.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(String::from_utf8(piece.to_vec()).unwrap().contains("id: 2\n"));
}

#[tokio::test]
async fn the_hub_tells_how_it_is() {
    let door = Door::open().await;
    door.infra_env("pool").await;
    let status = door.get(&format!("{V1}/status")).await.body;
    assert_eq!(
        (&status["infra_envs"], &status["database"]),
        (&json!(1), &json!(door.hub.settings.database))
    );
    let metrics = door.get("/metrics").await;
    assert!(metrics.text.contains("muster_infra_envs 1\n"), "{}", metrics.text);
    let line = r#"muster_http_request_duration_seconds_count{method="POST",route="/api/assisted-install/v2/infra-envs",status="2xx"} 1"#;
    assert!(metrics.text.contains(line), "{}", metrics.text);
    door.get("/nowhere/at/all").await;
    assert!(
        door.get("/metrics")
            .await
            .text
            .contains(r#"route="none",status="4xx"} 1"#)
    );
}

#[tokio::test]
async fn the_release_of_an_image_is_told_and_a_cluster_can_be_made_of_it_though_it_is_not_listed() {
    let door = Door::open().await;
    let image = "registry.example.com:5000/ocp/release:4.20.7-x86_64";
    let release = door.get(&format!("{V1}/releases?image={image}")).await;
    let told = json!({ "version": "4.20.7", "cpu_architecture": "x86_64", "image": image });
    assert_eq!((release.status, release.body), (StatusCode::OK, told));
    let unknown = door
        .get(&format!(
            "{V1}/releases?image=registry.example.com/release@sha256:01"
        ))
        .await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST, "{}", unknown.text);

    let wish = json!({ "name": "alpha", "openshift_version": "4.20.7", "ocp_release_image": image,
        "pull_secret": crate::door::PULL_SECRET });
    let id = Uuid::from_u128(7);
    let path = format!("{V1}/clusters/{id}");
    let put = || door.ask(Method::PUT, &path, Some(&wish));
    let made = put().await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    assert_eq!(
        (&made.body["openshift_version"], &made.body["ocp_release_image"]),
        (&json!("4.20.7"), &json!(image))
    );
    assert_eq!(put().await.status, StatusCode::OK, "asking twice makes one");

    let links = door.get(&format!("{V1}/clusters/{id}/links")).await.body;
    assert!(
        links["events"]
            .as_str()
            .unwrap()
            .ends_with(&format!("/events?cluster_id={id}")),
        "{links}"
    );
    assert!(
        links["logs"]
            .as_str()
            .unwrap()
            .ends_with(&format!("/clusters/{id}/logs")),
        "{links}"
    );
    let nowhere = door.get(&format!("{V1}/clusters/{}/links", Uuid::nil())).await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_host_is_found_by_its_id_alone_in_every_infra_env_that_knows_it() {
    let door = Door::open().await;
    let (one, two) = (door.infra_env("one").await, door.infra_env("two").await);
    let host = door.worker(one, 1).await;
    door.register(two, host).await;
    let found = door.get(&format!("{V1}/hosts/{host}")).await.body;
    let mut pools: Vec<&str> = found["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| text(row, "infra_env_id"))
        .collect();
    pools.sort();
    let mut wanted = [one.to_string(), two.to_string()];
    wanted.sort();
    assert_eq!(pools, wanted);
    assert!(
        text(&found["hosts"][0], "events_url").ends_with(&format!("/events?host_id={host}")),
        "{found}"
    );
    let nobody = door.get(&format!("{V1}/hosts/{}", Uuid::new_v4())).await;
    assert_eq!(
        (nobody.status, nobody.body),
        (StatusCode::OK, json!({ "hosts": [] }))
    );
}

#[tokio::test]
async fn approval_and_following_stay_and_a_name_can_be_taken_away() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let host = door.worker(pool, 1).await;
    let reported =
        door.get(&format!("{V1}/hosts/{host}")).await.body["hosts"][0]["requested_hostname"].clone();
    let v2 = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    let v1 = format!("{V1}/infra-envs/{pool}/hosts/{host}");
    let named = door
        .ask(Method::PATCH, &v2, Some(&json!({ "host_name": "chosen" })))
        .await;
    assert_eq!(named.status, StatusCode::CREATED, "{}", named.text);
    let change = json!({ "approved": true, "followed": true });
    let changed = door.ask(Method::PATCH, &v1, Some(&change)).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
    assert_eq!(
        (text(&changed.body, "given_name"), &changed.body["approved"]),
        ("chosen", &json!(true))
    );
    let cleared = door
        .ask(Method::PATCH, &v1, Some(&json!({ "clear": ["hostname"] })))
        .await;
    assert_eq!(cleared.body["given_name"], Value::Null);
    assert_eq!(cleared.body["requested_hostname"], reported);
    assert_eq!(
        (&cleared.body["approved"], &cleared.body["followed"]),
        (&json!(true), &json!(true))
    );
    let unknown = door
        .ask(Method::PATCH, &v1, Some(&json!({ "clear": ["everything"] })))
        .await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[tokio::test]
async fn arbiters_and_fencing_are_for_control_planes_of_two() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let mut clusters = Vec::new();
    for count in [1, 2, 3] {
        let body = json!({ "name": format!("c{count}"), "openshift_version": "4.20", "base_dns_domain": "example.com",
            "pull_secret": crate::door::PULL_SECRET, "control_plane_count": count });
        let made = door.post(&format!("{V2}/clusters"), body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        clusters.push((count, made.body["id"].as_str().unwrap().parse::<Uuid>().unwrap()));
    }
    let fencing = json!({ "address": "redfish://bmc", "username": "u", "password": "p" });
    for (number, change, code) in [
        (1, json!({ "host_role": "arbiter" }), "role-not-supported"),
        (
            2,
            json!({ "fencing_credentials": fencing }),
            "fencing-not-supported",
        ),
    ] {
        let host = door.worker(pool, number).await;
        let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
        let changed = door.ask(Method::PATCH, &path, Some(&change)).await;
        assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
        for (count, cluster) in clusters.iter().rev() {
            let ids = json!({ "infra_env_id": pool, "host_id": host, "cluster_id": cluster });
            let told = plan(&door, "bind", ids).await;
            let bound = door.bind(pool, host, *cluster).await;
            if *count == 2 {
                assert_eq!(told["allowed"], true, "{told}");
                assert_eq!(bound.status, StatusCode::OK, "{}", bound.text);
                break;
            }
            assert_eq!(codes(&told), [code], "{told}");
            assert_eq!(bound.status, StatusCode::BAD_REQUEST, "{}", bound.text);
        }
        let single = door.worker(pool, number + 10).await;
        let path = format!("{V2}/infra-envs/{pool}/hosts/{single}");
        door.ask(Method::PATCH, &path, Some(&change)).await;
        let bound = door.bind(pool, single, clusters[0].1).await;
        assert_eq!(bound.status, StatusCode::BAD_REQUEST, "{}", bound.text);
    }
}
