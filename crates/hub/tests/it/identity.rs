//! Two machines behind one host id: the first is kept while it lives, and people are told what to do.

use crate::door::{Door, V1, V2};
use crate::place::Place;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use muster_hub::Clock;
use serde_json::Value;
use uuid::Uuid;

const FIRST: u8 = 1;
const SECOND: u8 = 2;

struct Pair {
    door: Door,
    pool: Uuid,
    host: Uuid,
}

impl Pair {
    /// The first machine is known and free.
    async fn start() -> Pair {
        let clock = Clock::manual(Timestamp::from_second(1_794_776_575).unwrap());
        let door = Door::at(Place::new().await, clock).await;
        let pool = door.infra_env("pool").await;
        let host = door.worker(pool, FIRST).await;
        Pair { door, pool, host }
    }

    async fn report(&self, machine: u8) {
        self.door.report(self.pool, self.host, machine).await;
    }

    fn later(&self, seconds: i64) {
        self.door.hub.clock.advance(SignedDuration::from_secs(seconds));
    }

    /// Status, and the name by which the host goes.
    async fn shown(&self) -> (String, String) {
        let host = format!("{V2}/infra-envs/{}/hosts/{}", self.pool, self.host);
        let host = self.door.get(&host).await.body;
        let inventory: Value = serde_json::from_str(host["inventory"].as_str().unwrap_or("{}")).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&host["status"]), text(&inventory["hostname"]))
    }

    async fn told(&self, event: &str) -> Vec<String> {
        let events = self.door.get(&format!("{V2}/events?host_id={}", self.host)).await;
        assert_eq!(events.status, StatusCode::OK, "{}", events.text);
        let all = events.body.as_array().unwrap().iter();
        let these = all.filter(|one| one["name"] == event);
        these
            .map(|one| one["message"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn explained(&self) -> Value {
        let path = format!("{V1}/infra-envs/{}/hosts/{}/explain", self.pool, self.host);
        self.door.get(&path).await.body
    }
}

fn free(name: &str) -> (String, String) {
    ("known-unbound".to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_second_machine_with_the_same_id_does_not_replace_a_live_one_and_is_told_of() {
    let pair = Pair::start().await;
    assert_eq!(pair.shown().await, free("worker-1"));
    pair.later(60);
    // The second one boots, registers and reports, again and again; the first goes on as ever.
    pair.door.register(pair.pool, pair.host).await;
    for _ in 0..10 {
        pair.report(SECOND).await;
        assert_ne!(pair.shown().await.1, "worker-2");
        pair.report(FIRST).await;
        assert_eq!(pair.shown().await, free("worker-1"));
        pair.later(60);
    }
    let warnings = pair.told("host_id_not_unique").await;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in [
        "52:54:00:00:00:01",
        "52:54:00:00:00:02",
        "worker-2",
        "muster.identity=mac",
    ] {
        assert!(warnings[0].contains(part), "{part}: {}", warnings[0]);
    }
    let explained = pair.explained().await;
    assert!(
        explained["why"].as_str().unwrap().contains("52:54:00:00:00:02"),
        "{explained}"
    );
    assert!(
        explained["next_action"]
            .as_str()
            .unwrap()
            .contains("muster.identity=mac"),
        "{explained}"
    );
}

#[tokio::test]
async fn a_machine_with_new_network_cards_is_taken_once_the_old_one_is_silent() {
    let pair = Pair::start().await;
    pair.later(90);
    pair.door.register(pair.pool, pair.host).await;
    pair.report(SECOND).await;
    assert_eq!(pair.shown().await.0, "discovering-unbound");
    pair.later(120);
    pair.report(SECOND).await;
    assert_eq!(pair.shown().await, free("worker-2"));
    assert_eq!(pair.told("host_machine_replaced").await.len(), 1);
    assert_eq!(pair.explained().await["next_action"], "Bind it to a cluster.");
}

#[tokio::test]
async fn a_machine_that_was_off_while_its_cards_were_replaced_is_taken_at_once() {
    let pair = Pair::start().await;
    pair.later(3600);
    pair.door.register(pair.pool, pair.host).await;
    pair.report(SECOND).await;
    assert_eq!(pair.shown().await, free("worker-2"));
    assert!(pair.told("host_id_not_unique").await.is_empty());
}

/// A hub that starts does not know who polled before: it does not give the place away at once.
#[tokio::test]
async fn a_restarted_hub_keeps_the_first_one_too() {
    let pair = Pair::start().await;
    let door = pair.door.beside().await;
    let pair = Pair { door, ..pair };
    pair.later(60);
    pair.report(SECOND).await;
    assert_eq!(pair.shown().await, free("worker-1"));
    assert_eq!(pair.told("host_id_not_unique").await.len(), 1);
}
