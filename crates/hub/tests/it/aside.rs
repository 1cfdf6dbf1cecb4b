//! Rows that cannot be read: the hub starts and works without them, says which they are, and leaves them as they are.

use crate::door::{Answer, Door, PULL_SECRET, V1, V2};
use crate::place::{Place, is_postgres};
use crate::world::World;
use axum::http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use muster_domain::ClusterId;
use muster_domain::host::Effect;
use muster_hub::{Clock, worker};
use muster_store::Commit;
use serde_json::{Value, json};
use uuid::Uuid;

/// What makes an agent give up until somebody restarts it.
const FREEZES: [u16; 4] = [401, 403, 404, 409];

/// Two hosts in a pool and one more in another, and a cluster that has the first.
struct Site {
    door: Door,
    pool: Uuid,
    other_pool: Uuid,
    cluster: Uuid,
    bound: Uuid,
    free: Uuid,
    elsewhere: Uuid,
}

impl Site {
    async fn open() -> Self {
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
        let door = Door::at(Place::on_disk().await, clock).await;
        let (pool, other_pool) = (door.infra_env("pool").await, door.infra_env("other").await);
        let cluster = door.cluster("alpha").await;
        let bound = door.worker(pool, 1).await;
        let free = door.worker(pool, 2).await;
        let elsewhere = door.worker(other_pool, 3).await;
        assert_eq!(door.bind(pool, bound, cluster).await.status, StatusCode::OK);
        Self {
            door,
            pool,
            other_pool,
            cluster,
            bound,
            free,
            elsewhere,
        }
    }

    async fn spoil(&self, table: &str, change: &str, of: &str) {
        let text = format!("update {table} set {change} where {of}");
        self.door.tamper(&text, &text).await;
    }

    async fn spoil_host(&self, host: Uuid) {
        self.spoil(
            "hosts",
            "doc = '{\"secret\":\"correct-horse\"}'",
            &format!("host_id = '{host}'"),
        )
        .await;
    }

    async fn restarted(self) -> Self {
        Self {
            door: self.door.restarted().await,
            ..self
        }
    }

    async fn set_aside(&self) -> Vec<(String, String)> {
        let status = self.door.get(&format!("{V1}/status")).await;
        let rows = status.body["set_aside"].as_array().cloned().unwrap_or_default();
        assert_eq!(status.body["set_aside_count"], rows.len(), "{}", status.text);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        rows.iter()
            .map(|row| (text(&row["kind"]), text(&row["id"])))
            .collect()
    }

    async fn poll(&self, pool: Uuid, host: Uuid) -> Answer {
        self.door
            .get(&format!("{V2}/infra-envs/{pool}/hosts/{host}/instructions"))
            .await
    }

    async fn register(&self, pool: Uuid, host: Uuid) -> Answer {
        let wish = json!({ "host_id": host, "discovery_agent_version": self.door.hub.settings.images.agent });
        self.door
            .post(&format!("{V2}/infra-envs/{pool}/hosts"), wish)
            .await
    }

    async fn listed(&self, path: &str) -> Vec<Uuid> {
        let list = self.door.get(path).await;
        assert_eq!(list.status, StatusCode::OK, "{path}: {}", list.text);
        let ids = list.body.as_array().unwrap().iter();
        ids.map(|one| one["id"].as_str().unwrap().parse().unwrap())
            .collect()
    }

    async fn document(&self, host: Uuid) -> String {
        self.door
            .text(&format!("select doc from hosts where host_id = '{host}'"))
            .await
    }
}

fn is_told(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text);
    assert!(answer.text.contains("cannot read"), "{}", answer.text);
    assert!(answer.text.contains("muster status"), "{}", answer.text);
    assert!(!answer.text.contains("horse"), "{}", answer.text);
}

#[tokio::test]
async fn the_hub_starts_without_rows_that_cannot_be_read_and_says_which_they_are() {
    let site = Site::open().await;
    let other_cluster = site.door.cluster("beta").await;
    let commit = Commit {
        effects: vec![Effect::DropFiles {
            cluster: ClusterId(other_cluster),
        }],
        ..Commit::new(site.door.hub.now())
    };
    site.door.hub.store.commit(commit).await.unwrap();
    site.spoil_host(site.free).await;
    site.spoil("clusters", "version = 99", &format!("id = '{other_cluster}'"))
        .await;
    site.spoil("infra_envs", "doc = 'x'", &format!("id = '{}'", site.other_pool))
        .await;
    site.spoil("outbox", "effect = '{}'", "id > 0").await;
    let order = site.door.text("select cast(id as text) from outbox").await;

    let site = site.restarted().await;
    worker::outbox::once(&site.door.hub).await.unwrap();
    let expected = [
        ("infra-env", site.other_pool.to_string()),
        ("cluster", other_cluster.to_string()),
        ("host", format!("{}/{}", site.pool, site.free)),
        ("order", order),
    ];
    let told = site.set_aside().await;
    for (kind, id) in &expected {
        assert!(
            told.contains(&((*kind).to_owned(), id.clone())),
            "{kind} {id}: {told:?}"
        );
    }
    assert_eq!(told.len(), expected.len());
    for path in ["/livez", "/ready", "/readyz"] {
        assert_eq!(site.door.get(path).await.status, StatusCode::OK, "{path}");
    }
    let health = site.door.get("/health").await;
    assert_eq!(
        (health.status, &health.body["status"]),
        (StatusCode::OK, &json!("ok"))
    );
    assert_eq!(health.body["set_aside_count"], 4, "{}", health.text);
    assert!(
        health.text.contains(&site.free.to_string()) && !health.text.contains("horse"),
        "{}",
        health.text
    );
    let metrics = site.door.get("/metrics").await.text;
    for kind in ["host", "cluster", "infra-env", "order"] {
        let line = format!("muster_unreadable_rows{{kind=\"{kind}\"}} 1");
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }

    // Everybody else is there, and works.
    assert_eq!(
        site.listed(&format!("{V2}/infra-envs/{}/hosts", site.pool)).await,
        [site.bound]
    );
    assert_eq!(site.listed(&format!("{V2}/clusters")).await, [site.cluster]);
    assert_eq!(site.listed(&format!("{V2}/infra-envs")).await, [site.pool]);
    let unbound = format!(
        "{V2}/infra-envs/{}/hosts/{}/actions/unbind",
        site.pool, site.bound
    );
    let answer = site.door.ask(Method::POST, &unbound, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    site.door.worker(site.pool, 9).await;
    worker::run_until_idle(&site.door.hub).await.unwrap();
    assert_eq!(
        site.set_aside().await.len(),
        expected.len(),
        "told, and not more of them"
    );
}

#[tokio::test]
async fn the_agent_of_a_host_that_cannot_be_read_is_refused_so_that_it_asks_again() {
    let site = Site::open().await;
    site.spoil_host(site.free).await;
    let before = site.document(site.free).await;
    let site = site.restarted().await;
    let reply =
        json!({ "step_type": "inventory", "step_id": "1", "exit_code": 0, "output": "{}", "error": "" });
    let host = format!("{V2}/infra-envs/{}/hosts/{}", site.pool, site.free);
    let answers = [
        site.register(site.pool, site.free).await,
        site.poll(site.pool, site.free).await,
        site.door.post(&format!("{host}/instructions"), reply).await,
        site.door
            .ask(
                Method::PUT,
                &format!("{host}/progress"),
                Some(&json!({ "current_stage": "Rebooting" })),
            )
            .await,
    ];
    for answer in &answers {
        assert!(!FREEZES.contains(&answer.status.as_u16()));
        is_told(answer);
    }
    // "Not found" would be a lie to everybody else.
    for path in [
        host.clone(),
        format!("{V1}/hosts/{}", site.free),
        host.replace(V2, V1) + "/explain",
    ] {
        is_told(&site.door.get(&path).await);
    }
    is_told(&site.door.ask(Method::DELETE, &host, None).await);
    is_told(&site.door.bind(site.pool, site.free, site.cluster).await);
    let plan = json!({ "verb": "delete-host", "infra_env_id": site.pool, "host_id": site.free });
    is_told(&site.door.post(&format!("{V1}/plan"), plan).await);
    assert_eq!(site.document(site.free).await, before, "nobody wrote over it");
    assert_eq!(site.poll(site.pool, site.bound).await.status, StatusCode::OK);
}

#[tokio::test]
async fn nothing_is_made_or_deleted_in_the_place_of_what_cannot_be_read() {
    let site = Site::open().await;
    let beta = site.door.cluster("beta").await;
    site.spoil_host(site.bound).await;
    site.spoil("clusters", "doc = 'x'", &format!("id = '{beta}'"))
        .await;
    site.spoil("infra_envs", "doc = 'x'", &format!("id = '{}'", site.other_pool))
        .await;
    let site = site.restarted().await;
    let wish = json!({ "name": "beta", "openshift_version": "4.20", "pull_secret": PULL_SECRET,
        "base_dns_domain": "example.com" });
    let put = async |path: String, wish: &Value| site.door.ask(Method::PUT, &path, Some(wish)).await;
    is_told(&put(format!("{V1}/clusters/{beta}"), &wish).await);
    let wish = json!({ "name": "other", "pull_secret": PULL_SECRET });
    is_told(&put(format!("{V1}/infra-envs/{}", site.other_pool), &wish).await);
    let wish = json!({ "name": "own", "pull_secret": PULL_SECRET, "cluster_id": beta });
    is_told(&site.door.post(&format!("{V2}/infra-envs"), wish).await);

    // What has such a host stays, and says whose sake it stays for.
    let cluster = format!("{V2}/clusters/{}", site.cluster);
    for (path, verb, about) in [
        (cluster, "delete-cluster", ("cluster_id", site.cluster)),
        (
            format!("{V2}/infra-envs/{}", site.pool),
            "delete-infra-env",
            ("infra_env_id", site.pool),
        ),
        (
            format!("{V1}/infra-envs/{}/with-hosts", site.pool),
            "delete-infra-env-with-hosts",
            ("infra_env_id", site.pool),
        ),
    ] {
        let plan = json!({ "verb": verb, about.0: about.1 });
        let plan = site.door.post(&format!("{V1}/plan"), plan).await;
        assert_eq!(plan.body["allowed"], false, "{verb}: {}", plan.text);
        assert!(
            plan.text.contains(&site.bound.to_string()),
            "{verb}: {}",
            plan.text
        );
        let answer = site.door.ask(Method::DELETE, &path, None).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{verb}: {}", answer.text);
        assert!(
            answer.text.contains(&site.bound.to_string()),
            "{verb}: {}",
            answer.text
        );
    }
    assert_eq!(site.listed(&format!("{V2}/clusters")).await, [site.cluster]);
}

#[tokio::test]
async fn hosts_of_a_cluster_that_cannot_be_read_wait_and_those_of_an_infra_env_go_on() {
    let site = Site::open().await;
    site.spoil("clusters", "doc = 'x'", &format!("id = '{}'", site.cluster))
        .await;
    site.spoil("infra_envs", "doc = 'x'", &format!("id = '{}'", site.other_pool))
        .await;
    let site = site.restarted().await;
    is_told(&site.poll(site.pool, site.bound).await);
    is_told(&site.register(site.pool, site.bound).await);
    assert_eq!(
        site.poll(site.other_pool, site.elsewhere).await.status,
        StatusCode::OK
    );
    is_told(&site.register(site.other_pool, Uuid::from_u128(77)).await);
    // Their time does not come meanwhile.
    let before = site.document(site.bound).await;
    site.door.hub.clock.advance(SignedDuration::from_hours(3));
    worker::run_until_idle(&site.door.hub).await.unwrap();
    assert_eq!(site.document(site.bound).await, before);
    let seen = site.door.status(site.other_pool, site.elsewhere).await;
    assert_eq!(seen, "disconnected-unbound", "others' time does");
}

#[tokio::test]
async fn a_row_that_was_mended_is_picked_up_by_a_restart() {
    let site = Site::open().await;
    let good = site.document(site.free).await.replace('\'', "''");
    site.spoil_host(site.free).await;
    let site = site.restarted().await;
    assert_eq!(site.set_aside().await.len(), 1);
    site.spoil(
        "hosts",
        &format!("doc = '{good}'"),
        &format!("host_id = '{}'", site.free),
    )
    .await;
    let site = site.restarted().await;
    assert_eq!(site.set_aside().await, []);
    assert_eq!(site.poll(site.pool, site.free).await.status, StatusCode::OK);
    let bound = site.door.bind(site.pool, site.free, site.cluster).await;
    assert_eq!(bound.status, StatusCode::OK, "{}", bound.text);
}

#[tokio::test]
async fn a_hub_that_meets_such_a_row_through_the_feed_sets_it_aside_and_follows_on() {
    let site = Site::open().await;
    let beside = site.door.beside().await;
    assert_eq!(beside.hub.index.keys().len(), 3);
    // Another program writes what this one does not know.
    let key = format!("host_id = '{}'", site.free);
    site.door.bind(site.pool, site.free, site.cluster).await;
    let (renamed, name) = (
        format!("{V2}/clusters/{}", site.cluster),
        json!({ "name": "omega" }),
    );
    site.door.ask(Method::PATCH, &renamed, Some(&name)).await;
    site.spoil("hosts", "version = 99", &key).await;
    site.spoil("clusters", "doc = 'x'", &format!("id = '{}'", site.cluster))
        .await;
    worker::feed::catch_up(&beside.hub).await.unwrap();
    assert_eq!(beside.hub.index.keys().len(), 2, "memory goes on without it");
    let status = beside.get(&format!("{V1}/status")).await;
    assert_eq!(status.body["set_aside_count"], 2, "{}", status.text);
    let health = beside.get("/health").await;
    assert_eq!(
        (health.status, &health.body["set_aside_count"]),
        (StatusCode::OK, &json!(2))
    );
    is_told(
        &beside
            .get(&format!("{V2}/infra-envs/{}/hosts/{}", site.pool, site.free))
            .await,
    );
    is_told(&beside.get(&format!("{V2}/clusters/{}", site.cluster)).await);
    // It is told once, and read again only when it changes.
    worker::feed::catch_up(&beside.hub).await.unwrap();
    let cluster = site.door.cluster("gamma").await;
    worker::feed::catch_up(&beside.hub).await.unwrap();
    let listed = beside.get(&format!("{V2}/clusters")).await.text;
    assert!(listed.contains(&cluster.to_string()), "{listed}");
}

#[tokio::test]
async fn an_installation_waits_for_a_host_that_cannot_be_read_and_goes_on_when_it_can() {
    let mut world = World::on(Place::on_disk().await, 470, |_| ()).await;
    world.infra_env = world.pool("sim", None).await;
    world.boot(world.infra_env, 3, &[]);
    world.run_for(SignedDuration::from_mins(3)).await;
    let cluster = world.ready_cluster("prod", &[0, 1, 2]).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installing", 30).await;
    let of = format!("host_id = '{}'", world.machines[1].id());
    let version = async |world: &World, version: i64| {
        let text = format!("update hosts set version = {version} where {of}");
        world.place.tamper(&text, &text).await;
    };
    version(&world, 99).await;
    world.crash().await;
    world.run_for(SignedDuration::from_mins(10)).await;
    assert_eq!(
        world.cluster_status(cluster),
        "installing",
        "its hosts were not counted without one"
    );
    for verb in ["cancel", "reset"] {
        let (status, body) = world.act(cluster, verb).await;
        assert_eq!(status, 409, "{verb}: {body}");
        assert!(
            body.to_string().contains(&world.machines[1].id().to_string()),
            "{body}"
        );
    }
    version(&world, 1).await;
    world.crash().await;
    world.until_cluster(cluster, "installed", 180).await;
    assert_eq!(world.statuses(&[0, 1, 2]).await, ["installed"; 3]);
    if is_postgres() {
        assert!(world.hub.shares_database());
    }
}
