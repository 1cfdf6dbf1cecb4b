//! What the controller inside a cluster reports.

use crate::door::{Door, V2};
use crate::fake_installer::alter;
use axum::http::{Method, StatusCode};
use muster_domain::cluster::Phase;
use serde_json::{Value, json};
use uuid::Uuid;

async fn put(door: &Door, id: Uuid, rest: &str, body: Value) -> crate::door::Answer {
    door.ask(Method::PUT, &format!("{V2}/clusters/{id}/{rest}"), Some(&body))
        .await
}

async fn cluster(door: &Door, id: Uuid) -> Value {
    door.get(&format!("{V2}/clusters/{id}")).await.body
}

#[tokio::test]
async fn operators_are_listed_and_reported() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    alter(&door.hub, id, |cluster| cluster.phase = Phase::Finalizing).await;
    let path = format!("{V2}/clusters/{id}/monitored-operators");
    let before = door.get(&path).await.body;
    assert_eq!(
        before[0],
        json!({ "bundles": null, "cluster_id": id, "name": "console", "operator_type": "builtin",
            "source_bundles": null, "status_updated_at": "0001-01-01T00:00:00.000Z", "timeout_seconds": 3600 })
    );
    for status in ["progressing", "available"] {
        let report =
            json!({ "name": "console", "status": status, "status_info": "all good", "version": "4.20.33" });
        let kept = put(&door, id, "monitored-operators", report).await;
        assert_eq!((kept.status, kept.text.as_str()), (StatusCode::OK, ""));
    }
    let after = door.get(&format!("{path}?operator_name=console")).await.body;
    assert_eq!(
        (&after[0]["status"], &after[0]["version"]),
        (&json!("available"), &json!("4.20.33"))
    );
    assert_ne!(after[0]["status_updated_at"], before[0]["status_updated_at"]);
    assert_eq!(
        cluster(&door, id).await["progress"]["finalizing_stage_percentage"],
        100
    );
    assert_eq!(cluster(&door, id).await["monitored_operators"], after);
}

#[tokio::test]
async fn reports_about_nobody_are_refused() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let report = |name: &str| json!({ "name": name, "status": "available" });
    let refused = put(&door, id, "monitored-operators", report("nope")).await;
    assert_eq!(
        (refused.status, &refused.body["kind"]),
        (StatusCode::NOT_FOUND, &json!("Error"))
    );
    let path = format!("{V2}/clusters/{id}/monitored-operators?operator_name=nope");
    assert_eq!(door.get(&path).await.status, StatusCode::NOT_FOUND);
    let nobody = Uuid::new_v4();
    assert_eq!(
        put(&door, nobody, "monitored-operators", report("console"))
            .await
            .status,
        StatusCode::NOT_FOUND
    );
    let path = format!("{V2}/clusters/{nobody}/monitored-operators");
    assert_eq!(door.get(&path).await.body, json!([]));
    for wrong in [
        json!({ "name": "console", "status": "fine" }),
        json!({ "name": "console", "mood": "fine" }),
    ] {
        let refused = put(&door, id, "monitored-operators", wrong).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (StatusCode::BAD_REQUEST, &json!(400))
        );
    }
}

#[tokio::test]
async fn finalizing_stages_are_kept_while_it_is_installed() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let stage = |word: &str| json!({ "finalizing_stage": word });
    let early = put(&door, id, "progress", stage("Done")).await;
    assert_eq!(
        (early.status, &early.body["kind"]),
        (StatusCode::BAD_REQUEST, &json!("Error"))
    );
    let unknown = put(&door, id, "progress", stage("Lunch")).await;
    assert_eq!(
        (unknown.status, &unknown.body["code"]),
        (StatusCode::BAD_REQUEST, &json!(400))
    );
    assert_eq!(
        put(&door, id, "progress", json!({})).await.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        put(&door, Uuid::new_v4(), "progress", stage("Done")).await.status,
        StatusCode::NOT_FOUND
    );
    alter(&door.hub, id, |cluster| cluster.phase = Phase::Finalizing).await;
    for word in ["Waiting for cluster operators", "Adding router ca"] {
        assert_eq!(
            put(&door, id, "progress", stage(word)).await.status,
            StatusCode::OK
        );
        let progress = cluster(&door, id).await["progress"].clone();
        assert_eq!(progress["finalizing_stage"], word);
        assert_ne!(
            progress["finalizing_stage_started_at"],
            "0001-01-01T00:00:00.000Z"
        );
    }
}

#[tokio::test]
async fn the_word_of_the_end_is_taken_and_a_failure_s_report_becomes_an_event() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let path = format!("{V2}/clusters/{id}/actions/complete-installation");
    let done = door.post(&path, json!({ "is_success": true })).await;
    assert_eq!(
        (done.status, &done.body["id"]),
        (StatusCode::ACCEPTED, &json!(id))
    );
    let report = json!({ "is_success": false, "error_info": "timeout",
        "data": { "CLUSTER_OPERATORS_REPORT": "etcd is sad" } });
    assert_eq!(door.post(&path, report).await.status, StatusCode::ACCEPTED);
    let events = door.get(&format!("{V2}/events?cluster_id={id}")).await.body;
    let told: Vec<_> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["name"] == "cluster_operator_report")
        .collect();
    assert_eq!(told.len(), 1);
    assert!(told[0]["message"].as_str().unwrap().contains("etcd is sad"));
    assert_eq!(door.post(&path, json!({})).await.status, StatusCode::BAD_REQUEST);
    let nobody = format!("{V2}/clusters/{}/actions/complete-installation", Uuid::new_v4());
    assert_eq!(
        door.post(&nobody, json!({ "is_success": true })).await.status,
        StatusCode::NOT_FOUND
    );
}
