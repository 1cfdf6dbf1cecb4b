//! A hub on a database that is older than its machines.

use crate::door::V2;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use muster_hub::{Clock, Hub, Settings, http};
use muster_store::{Database, Store};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};
use std::path::Path;
use tower::ServiceExt;
use uuid::Uuid;

const PULL_SECRET: &str = crate::door::PULL_SECRET;
/// What makes an agent give up until somebody restarts it.
const FREEZES: [u16; 4] = [401, 403, 404, 409];

async fn hub_on(file: &Path) -> Router {
    let store = Store::open(&Database::Sqlite(file.into())).await.unwrap();
    let hub = Hub::open(store, Settings::plain().unwrap(), Clock::System)
        .await
        .unwrap();
    http::router(hub)
}

async fn ask(hub: &Router, method: &str, path: &str, body: Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(format!("{V2}{path}"));
    let request = match body {
        Value::Null => request.body(Body::empty()),
        body => request
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string())),
    };
    let response = hub.clone().oneshot(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

async fn pool(hub: &Router, name: &str) -> Uuid {
    let wish = json!({ "name": name, "pull_secret": PULL_SECRET });
    let (status, body) = ask(hub, "POST", "/infra-envs", wish).await;
    assert_eq!(status, 201, "{body}");
    body["id"].as_str().unwrap().parse().unwrap()
}

async fn register(hub: &Router, pool: Uuid, host: Uuid) -> u16 {
    let wish = json!({ "host_id": host, "discovery_agent_version": "agent:1" });
    ask(hub, "POST", &format!("/infra-envs/{pool}/hosts"), wish)
        .await
        .0
}

async fn poll(hub: &Router, pool: Uuid, host: Uuid) -> (u16, Value) {
    let path = format!("/infra-envs/{pool}/hosts/{host}/instructions");
    ask(hub, "GET", &path, Value::Null).await
}

/// As an administrator makes it while the hub runs.
async fn backup(from: &Path, to: &Path) {
    let mut connection = sqlx::SqliteConnection::connect(&format!("sqlite://{}", from.display()))
        .await
        .unwrap();
    sqlx::query(AssertSqlSafe(format!("vacuum into '{}'", to.display())))
        .execute(&mut connection)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_hub_restored_from_an_old_database_blocks_no_machine() {
    let dir = tempfile::tempdir().unwrap();
    let (live, old) = (dir.path().join("live.db"), dir.path().join("old.db"));
    let [before, after, elsewhere] = [1, 2, 3].map(Uuid::from_u128);

    let hub = hub_on(&live).await;
    let known = pool(&hub, "known").await;
    assert_eq!(register(&hub, known, before).await, 201);
    backup(&live, &old).await;
    let lost = pool(&hub, "made-after-the-backup").await;
    assert_eq!(register(&hub, known, after).await, 201);
    assert_eq!(register(&hub, lost, elsewhere).await, 201);
    drop(hub);

    let hub = hub_on(&old).await;
    let (status, steps) = poll(&hub, known, before).await;
    assert_eq!((status, &steps["post_step_action"]), (200, &json!("continue")));
    let (status, steps) = poll(&hub, known, after).await;
    assert_eq!((status, &steps["post_step_action"]), (200, &json!("exit")));
    assert_eq!(register(&hub, known, after).await, 201, "it is a host again");
    assert_eq!(poll(&hub, known, after).await.1["post_step_action"], "continue");

    // Its InfraEnv may be restored as well: it is kept asking.
    let answers = [
        poll(&hub, lost, elsewhere).await.0,
        register(&hub, lost, elsewhere).await,
    ];
    assert!(
        answers.iter().all(|status| !FREEZES.contains(status)),
        "{answers:?}"
    );
    assert_eq!(answers, [503, 400], "and its client can read why");
}
