//! Whoever changed something reads what follows from it, though no worker has run since.

use crate::door::{Answer, Door, V1, V2};
use crate::place::Place;
use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use muster_hub::Clock;
use serde_json::{Value, json};
use uuid::Uuid;

struct Lent {
    door: Door,
    pool: Uuid,
    host: Uuid,
    cluster: Uuid,
}

impl Lent {
    /// A cluster and a free host, everything looked at.
    async fn new() -> Self {
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
        let door = Door::at(Place::new().await, clock).await;
        let (pool, cluster) = (door.infra_env("pool").await, door.cluster("alpha").await);
        let host = door.worker(pool, 1).await;
        door.settle().await;
        Self {
            door,
            pool,
            host,
            cluster,
        }
    }

    fn path(&self) -> String {
        format!("{V2}/infra-envs/{}/hosts/{}", self.pool, self.host)
    }

    /// Lent, or taken back, up to its hardware's report.
    async fn change(&self, is_lent: bool) {
        let changed = match is_lent {
            true => self.door.bind(self.pool, self.host, self.cluster).await,
            false => {
                self.door
                    .post(&format!("{}/actions/unbind", self.path()), Value::Null)
                    .await
            }
        };
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.text);
        self.door.register(self.pool, self.host).await;
        self.door.report(self.pool, self.host, 1).await;
    }

    async fn read(&self, what: &str) -> Answer {
        let own = self.path().replace(V2, V1);
        let path = match what {
            "plan" => {
                let wish = json!({ "verb": "install-cluster", "cluster_id": self.cluster });
                return self.door.post(&format!("{V1}/plan"), wish).await;
            }
            "cluster" => format!("{V2}/clusters/{}", self.cluster),
            "clusters" => format!("{V2}/clusters?with_hosts=true"),
            "hosts of the cluster" => format!("{V2}/clusters/{}/hosts", self.cluster),
            "hosts of the pool" => format!("{V2}/infra-envs/{}/hosts", self.pool),
            "host" => self.path(),
            "host by its id" => format!("{V1}/hosts/{}", self.host),
            "own list" => format!("{V1}/hosts"),
            "why the host" => format!("{own}/explain"),
            "why the cluster" => format!("{V1}/clusters/{}/explain", self.cluster),
            "history" => format!("{V2}/events?cluster_id={}", self.cluster),
            other => panic!("{other}"),
        };
        self.door.get(&path).await
    }
}

const READS: [&str; 11] = [
    "cluster",
    "clusters",
    "hosts of the cluster",
    "hosts of the pool",
    "host",
    "host by its id",
    "own list",
    "why the host",
    "why the cluster",
    "history",
    "plan",
];

#[tokio::test]
async fn every_read_after_a_change_shows_what_the_workers_would_have_made_of_it() {
    let lent = Lent::new().await;
    for what in READS {
        for is_lent in [true, false] {
            lent.change(is_lent).await;
            let at_once = lent.read(what).await;
            assert_eq!(at_once.status, StatusCode::OK, "{what}: {}", at_once.text);
            lent.door.settle().await;
            assert_eq!(at_once.text, lent.read(what).await.text, "{what}");
        }
    }
}

#[tokio::test]
async fn the_answer_to_a_change_of_a_cluster_shows_what_follows_from_it() {
    let lent = Lent::new().await;
    lent.change(true).await;
    lent.door.settle().await;
    let wish = json!({ "api_vips": [{ "ip": "192.0.2.5" }], "ingress_vips": [{ "ip": "192.0.2.6" }] });
    let path = format!("{V2}/clusters/{}", lent.cluster);
    let answer = lent.door.ask(Method::PATCH, &path, Some(&wish)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    lent.door.settle().await;
    let later = lent.door.get(&path).await;
    for field in ["status", "status_info", "validations_info"] {
        assert_eq!(answer.body[field], later.body[field], "{field}");
    }
}

#[tokio::test]
async fn an_agent_that_asks_for_work_waits_for_no_look() {
    let lent = Lent::new().await;
    lent.change(true).await;
    assert_eq!(lent.door.hub.looks_waiting(), 1);
    let steps = lent.door.get(&format!("{}/instructions", lent.path())).await;
    assert_eq!(steps.status, StatusCode::OK, "{}", steps.text);
    assert_eq!(lent.door.hub.looks_waiting(), 1);
    lent.read("cluster").await;
    assert_eq!(lent.door.hub.looks_waiting(), 0);
}

#[tokio::test]
async fn another_hub_on_the_same_database_shows_what_follows_as_well() {
    let lent = Lent::new().await;
    let other = lent.door.beside().await;
    lent.change(true).await;
    let path = format!("{V2}/clusters/{}", lent.cluster);
    let there = other.get(&path).await;
    lent.door.settle().await;
    let here = lent.door.get(&path).await;
    for field in [
        "status",
        "validations_info",
        "connectivity_majority_groups",
        "total_host_count",
    ] {
        assert_eq!(there.body[field], here.body[field], "{field}");
    }
    assert_eq!(there.body["hosts"][0]["status"], here.body["hosts"][0]["status"]);
}
