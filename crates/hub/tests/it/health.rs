//! Who watches the hub learns when it does not work any more.

use crate::door::Door;
use crate::place::Place;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use muster_hub::{Clock, worker};

#[tokio::test]
async fn a_hub_whose_workers_have_not_run_for_minutes_is_not_healthy() {
    let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
    let door = Door::at(Place::new().await, clock.clone()).await;
    let workers = worker::start(&door.hub);
    tokio::task::yield_now().await;
    assert_eq!(door.get("/health").await.status, StatusCode::OK);
    // They are gone, and nobody was told.
    drop(workers);
    clock.advance(SignedDuration::from_mins(4));
    assert_eq!(door.get("/health").await.status, StatusCode::OK);
    clock.advance(SignedDuration::from_mins(2));
    let answer = door.get("/health").await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(answer.bytes.is_empty(), "{}", answer.text);
    assert_eq!(door.get("/ready").await.status, StatusCode::OK);
}
