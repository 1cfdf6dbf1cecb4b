//! Whoever changed something reads what follows from it, though no worker has run since.

use crate::door::{Answer, Door, V1, V2, inventory};
use crate::place::Place;
use crate::world::World;
use axum::http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use muster_domain::cluster::Cluster;
use muster_domain::host::{Host, Report};
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_hub::Clock;
use muster_hub::change::OpContext;
use muster_hub::usecase::cluster_install::cluster_install;
use muster_hub::usecase::cluster_update::cluster_change;
use muster_store::ChangeKind;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

struct Lent {
    door: Door,
    pool: Uuid,
    host: Uuid,
    cluster: Uuid,
}

impl Lent {
    /// A cluster and a free host, everything reconciled.
    async fn new() -> Self {
        Self::at(Place::new().await).await
    }

    async fn at(place: Place) -> Self {
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
        let door = Door::at(place, clock).await;
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

impl Lent {
    /// A lent host whose network is named by what is asked for: the host's checks say something else then, and its cluster's.
    async fn with_a_wish(place: Place) -> (Self, String, Value) {
        let lent = Self::at(place).await;
        lent.change(true).await;
        lent.door.settle().await;
        let path = format!("{V2}/clusters/{}", lent.cluster);
        let wish =
            json!({ "api_vips": [{ "ip": "192.168.7.5" }], "ingress_vips": [{ "ip": "192.168.7.6" }] });
        (lent, path, wish)
    }

    /// What the feed has told since then.
    async fn told(&self, since: i64) -> Vec<(ChangeKind, Uuid, String)> {
        let told = self.door.hub.store.changes_after(since, 100).await.unwrap();
        told.into_iter()
            .map(|change| (change.kind, change.id, change.status))
            .collect()
    }

    /// The cluster and its host as the hub has them, without anybody asking for what follows.
    async fn rows(&self) -> (Cluster, Host, Option<String>) {
        let hub = &self.door.hub;
        let key = HostKey {
            infra_env: InfraEnvId(self.pool),
            host: HostId(self.host),
        };
        let cluster = hub.index.cluster(ClusterId(self.cluster)).unwrap();
        let mut reports = hub.store.host_reports(key).await.unwrap();
        let host = hub.index.host(key).unwrap();
        (
            Cluster::clone(&cluster),
            host,
            reports.remove(&Report::Validations),
        )
    }
}

#[tokio::test]
async fn a_change_of_a_cluster_and_what_follows_from_it_are_one_change() {
    let (lent, path, wish) = Lent::with_a_wish(Place::new().await).await;
    let before = lent.rows().await;
    let since = lent.door.hub.store.changes_last().await.unwrap();
    let answer = lent.door.ask(Method::PATCH, &path, Some(&wish)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert_eq!(
        lent.door.hub.clusters_to_reconcile(),
        0,
        "nothing is left to find out"
    );

    let after = lent.rows().await;
    assert_ne!(before.0.status(), after.0.status());
    assert_ne!(before.1.status(), after.1.status());
    assert_ne!(before.2, after.2);
    let once = lent.told(since).await;
    assert_eq!(once.len(), 2, "each of them changes once: {once:?}");
    let host = (ChangeKind::Host, lent.host, after.1.status().word().to_owned());
    let cluster = (
        ChangeKind::Cluster,
        lent.cluster,
        after.0.status().word().to_owned(),
    );
    assert!(once.contains(&host) && once.contains(&cluster), "{once:?}");

    lent.door.hub.mark_dirty(ClusterId(lent.cluster));
    lent.door.settle().await;
    assert_eq!(lent.told(since).await, once, "and nothing follows later");
    assert_eq!(lent.rows().await, after);
}

#[tokio::test]
async fn a_hub_that_is_killed_after_a_change_of_a_cluster_comes_back_with_what_follows_from_it() {
    let (mut lent, path, wish) = Lent::with_a_wish(Place::on_disk().await).await;
    let answer = lent.door.ask(Method::PATCH, &path, Some(&wish)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    // No worker has run since, and none has run when it is looked at.
    lent.door = lent.door.restarted().await;
    let (cluster, host, findings) = lent.rows().await;
    assert_eq!(cluster.machine_networks, ["192.168.7.0/24"]);
    assert_eq!(answer.body["status"], cluster.status().word());
    assert_eq!(answer.body["validations_info"], json!(cluster.validations));
    assert_eq!(answer.body["hosts"][0]["status"], host.status().word());
    let since = lent.door.hub.store.changes_last().await.unwrap();
    lent.door.settle().await;
    assert_eq!(lent.rows().await.2, findings);
    assert_eq!(lent.told(since).await, Vec::new());
}

#[tokio::test]
async fn a_change_of_a_cluster_is_not_made_when_what_follows_from_it_cannot_be_written() {
    let (lent, path, wish) = Lent::with_a_wish(Place::on_disk().await).await;
    let before = lent.rows().await;
    let since = lent.door.hub.store.changes_last().await.unwrap();
    lent.door
        .tamper(
            "create trigger fault before insert on host_reports begin select raise(abort, 'injected'); end",
            "create function fault() returns trigger language plpgsql as $$
             begin raise exception 'injected'; end $$;
             create trigger fault before insert on host_reports for each row execute function fault()",
        )
        .await;
    let refused = lent.door.ask(Method::PATCH, &path, Some(&wish)).await;
    assert!(refused.status.is_server_error(), "{}", refused.text);
    assert_eq!(lent.rows().await, before);
    assert_eq!(lent.told(since).await, Vec::new());

    lent.door
        .tamper("drop trigger fault", "drop trigger fault on host_reports")
        .await;
    let made = lent.door.ask(Method::PATCH, &path, Some(&wish)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    assert_ne!(lent.rows().await.2, before.2);
}

/// Somebody else changes the host at the same moment, or another hub on the same database has an old copy of it.
#[tokio::test]
async fn what_follows_is_found_out_anew_when_somebody_else_was_faster() {
    let (lent, path, wish) = Lent::with_a_wish(Place::new().await).await;
    let other = lent.door.blind().await;
    let role = json!({ "host_role": "worker" });
    let changed = lent.door.ask(Method::PATCH, &lent.path(), Some(&role)).await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    let name = json!({ "tags": "one" });
    let renamed = lent.door.ask(Method::PATCH, &path, Some(&name)).await;
    assert_eq!(renamed.status, StatusCode::CREATED, "{}", renamed.text);

    let answer = other.ask(Method::PATCH, &path, Some(&wish)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert_eq!(answer.body["tags"], "one");
    assert_eq!(answer.body["hosts"][0]["role"], "worker");
    let since = other.hub.store.changes_last().await.unwrap();
    other.settle().await;
    let later = other.get(&path).await;
    for field in ["status", "status_info", "validations_info"] {
        assert_eq!(answer.body[field], later.body[field], "{field}");
    }
    assert_eq!(lent.told(since).await, Vec::new());
}

#[tokio::test]
async fn a_change_of_a_cluster_whose_turn_does_not_come_is_made_alone_and_followed_later() {
    let (lent, path, wish) = Lent::with_a_wish(Place::new().await).await;
    let (hub, id) = (&lent.door.hub, ClusterId(lent.cluster));
    let gate = hub.stale_clusters.gate(id);
    let turn = gate.lock().await;
    let letting_go = async {
        while hub.index.cluster(id).unwrap().api_vips.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(hub.clusters_to_reconcile(), 1);
        drop(turn);
    };
    let (answer, ()) = tokio::join!(lent.door.ask(Method::PATCH, &path, Some(&wish)), letting_go);
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert_eq!(
        hub.clusters_to_reconcile(),
        0,
        "whoever is answered waited for it"
    );
    let later = lent.door.get(&path).await;
    assert_eq!(answer.body["validations_info"], later.body["validations_info"]);
}

#[tokio::test]
async fn an_installation_is_decided_over_what_follows_from_a_change_that_nobody_has_reconciled() {
    let mut world = World::with_machines(501, 3, &[]).await;
    let cluster = world.ready_cluster("alpha", &[0, 1, 2]).await;
    let (hub, id, opctx) = (world.hub.clone(), ClusterId(cluster), OpContext::hub());
    let with = hub.index.cluster(id).unwrap();
    let mut without = Cluster::clone(&with);
    without.api_vips.clear();
    without.ingress_vips.clear();
    let set = async |wanted: &Cluster| {
        let changed = cluster_change(&hub, id, &opctx, |cluster| {
            cluster.api_vips.clone_from(&wanted.api_vips);
            cluster.ingress_vips.clone_from(&wanted.ingress_vips);
            Ok(Vec::new())
        });
        changed.await.unwrap();
    };
    set(&without).await;
    world.settle().await;
    set(&with).await;
    assert_eq!(hub.clusters_to_reconcile(), 1);
    assert_eq!(world.cluster_status(cluster), "pending-for-input");

    let since = hub.store.changes_last().await.unwrap();
    let started = cluster_install(&hub, id, &opctx).await.unwrap();
    assert_eq!(started.status().word(), "preparing-for-installation");
    let told = hub.store.changes_after(since, 100).await.unwrap();
    let ids: BTreeSet<Uuid> = told.iter().map(|change| change.id).collect();
    assert_eq!(
        (told.len(), ids.len()),
        (4, 4),
        "each of them changes once: {told:?}"
    );
    world.until_cluster(cluster, "installed", 120).await;
}

#[tokio::test]
async fn an_agent_that_asks_for_work_waits_for_no_look() {
    let lent = Lent::new().await;
    lent.change(true).await;
    assert_eq!(lent.door.hub.clusters_to_reconcile(), 1);
    let steps = lent.door.get(&format!("{}/instructions", lent.path())).await;
    assert_eq!(steps.status, StatusCode::OK, "{}", steps.text);
    assert_eq!(lent.door.hub.clusters_to_reconcile(), 1);
    lent.read("cluster").await;
    assert_eq!(lent.door.hub.clusters_to_reconcile(), 0);
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

#[tokio::test]
async fn reads_after_each_other_change_show_what_follows_from_it_as_well() {
    let lent = Lent::new().await;
    lent.change(true).await;
    lent.door.settle().await;
    let cluster = format!("{V2}/clusters/{}", lent.cluster);
    let manifests = format!("{cluster}/manifests");
    let ignition = format!("{V1}/clusters/{}/ignition/worker", lent.cluster);
    let manifest = json!({ "folder": "manifests", "file_name": "a.yaml", "content": "YTogMQo=" });
    let other = json!({ "folder": "manifests", "file_name": "a.yaml", "updated_content": "YTogMgo=" });
    let deeds = [
        (Method::PATCH, lent.path(), Some(json!({ "host_role": "worker" }))),
        (
            Method::PATCH,
            cluster.clone(),
            Some(json!({ "network_type": "Calico" })),
        ),
        (Method::POST, manifests.clone(), Some(manifest)),
        (Method::PATCH, manifests.clone(), Some(other)),
        (
            Method::DELETE,
            format!("{manifests}?folder=manifests&file_name=a.yaml"),
            None,
        ),
        (
            Method::PUT,
            ignition.clone(),
            Some(json!({ "ignition": { "version": "3.2.0" } })),
        ),
        (Method::DELETE, ignition, None),
        (
            Method::PUT,
            format!("{cluster}/ignored-validations"),
            Some(json!({ "host-validation-ids": r#"["all"]"# })),
        ),
        (Method::DELETE, lent.path(), None),
    ];
    for (method, path, body) in deeds {
        let done = lent.door.ask(method.clone(), &path, body.as_ref()).await;
        assert!(done.status.is_success(), "{method} {path}: {}", done.text);
        let reads = ["cluster", "clusters", "hosts of the cluster", "why the cluster"];
        let mut at_once = Vec::new();
        for what in reads {
            at_once.push(lent.read(what).await.text);
        }
        lent.door.settle().await;
        for (what, before) in reads.into_iter().zip(at_once) {
            assert_eq!(before, lent.read(what).await.text, "{what} after {method} {path}");
        }
    }
}

#[tokio::test]
async fn reads_in_the_middle_of_an_installation_show_what_was_just_told() {
    let three = [0, 1, 2];
    let mut world = World::with_machines(500, 3, &[]).await;
    let cluster = world.ready_cluster("alpha", &three).await;
    world.install(cluster).await;
    world.until_stage(1, "Installing", 60).await;
    let progress = format!("{}/progress", world.host_path(1));
    let path = format!("{V2}/clusters/{cluster}");
    let told = json!({ "current_stage": "Writing image to disk" });
    let (status, body) = world.call("PUT", &progress, Some(told)).await;
    assert_eq!(status, 200, "{body}");
    let (_, at_once) = world.call("GET", &path, None).await;
    world.settle().await;
    assert_eq!(at_once, world.call("GET", &path, None).await.1);

    world.until_cluster(cluster, "installed", 120).await;
    assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
    let (_, at_once) = world.call("GET", &path, None).await;
    world.settle().await;
    assert_eq!(at_once, world.call("GET", &path, None).await.1);
}

#[tokio::test]
async fn a_change_is_made_though_what_follows_from_it_cannot_be_found_out_and_is_looked_at_later() {
    let lent = Lent::at(Place::on_disk().await).await;
    lent.change(true).await;
    lent.door.settle().await;
    let rename = async |from: &str, to: &str| {
        let text = format!("alter table {from} rename to {to}");
        lent.door.tamper(&text, &text).await;
    };
    rename("host_reports", "away").await;
    let path = format!("{V2}/clusters/{}/ignored-validations", lent.cluster);
    let wish = json!({ "host-validation-ids": r#"["all"]"# });
    let answer = lent.door.ask(Method::PUT, &path, Some(&wish)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    assert_eq!(lent.door.hub.clusters_to_reconcile(), 1);
    rename("away", "host_reports").await;
    lent.door.hub.clock.advance(SignedDuration::from_secs(2));
    lent.door.settle().await;
    assert_eq!(lent.door.hub.clusters_to_reconcile(), 0);
}

#[tokio::test]
async fn free_hosts_are_judged_anew_when_their_pool_gets_its_first_time_server() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let host = Uuid::from_u128(1);
    door.register(pool, host).await;
    let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    let body = json!({ "step_type": "inventory", "step_id": "inventory-1", "exit_code": 0,
        "output": inventory(1).to_string(), "error": "" });
    assert_eq!(
        door.post(&format!("{path}/instructions"), body).await.status,
        StatusCode::NO_CONTENT
    );
    let is_checked = async || {
        let found = door.get(&path).await.body["validations_info"].to_string();
        found.contains("ntp-synced")
    };
    assert!(!is_checked().await);
    let wish = json!({ "additional_ntp_sources": "clock.example.com" });
    let changed = door
        .ask(Method::PATCH, &format!("{V2}/infra-envs/{pool}"), Some(&wish))
        .await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    let judged = async {
        while !is_checked().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), judged)
        .await
        .unwrap();
}
