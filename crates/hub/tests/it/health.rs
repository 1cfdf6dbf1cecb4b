//! Who watches the hub learns whether it lives, whether it can write, and what is wrong.

use crate::door::{Door, V1};
use crate::place::{Place, is_postgres};
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use muster_hub::{Clock, worker};

#[tokio::test]
async fn a_clock_that_jumps_makes_nobody_unhealthy() {
    let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
    let door = Door::at(Place::new().await, clock.clone()).await;
    let _workers = worker::start(&door.hub);
    tokio::task::yield_now().await;
    for hours in [2, -4, 1000] {
        clock.advance(SignedDuration::from_hours(hours));
        let answer = door.get("/health").await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        assert_eq!(answer.body["status"], "ok");
    }
}

#[tokio::test]
async fn a_hub_that_cannot_write_lives_is_not_ready_and_says_why_until_it_can() {
    let place = Place::on_disk().await;
    let door = Door::at(place, Clock::System).await;
    // The write that only tries counts its changes, too.
    door.break_writes().await;
    assert_eq!(door.get("/livez").await.status, StatusCode::OK);
    for (path, status) in [
        ("/ready", StatusCode::SERVICE_UNAVAILABLE),
        ("/readyz", StatusCode::SERVICE_UNAVAILABLE),
        ("/health", StatusCode::INTERNAL_SERVER_ERROR),
    ] {
        let answer = door.get(path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        assert_eq!(answer.body["troubles"][0]["what"], "writes", "{}", answer.text);
    }
    if is_postgres() {
        let said = door.get("/ready").await.text;
        assert!(said.contains("no room left on its disk"), "{said}");
        let refused = door.post("/api/assisted-install/v2/infra-envs", wish()).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(
            refused.text.contains("no room left on its disk"),
            "{}",
            refused.text
        );
        let told = door.get(&format!("{V1}/status")).await;
        assert!(
            told.body["trouble"].as_str().unwrap().contains("no room"),
            "{}",
            told.text
        );
    }
    door.mend_writes().await;
    // Nothing else is written meanwhile.
    door.until(&format!("{V1}/status"), |told| told.body["trouble"].is_null())
        .await;
    for path in ["/livez", "/ready", "/readyz", "/health"] {
        let answer = door.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
    }
    door.infra_env("pool").await;
}

fn wish() -> serde_json::Value {
    serde_json::json!({ "name": "pool", "pull_secret": crate::door::PULL_SECRET })
}
