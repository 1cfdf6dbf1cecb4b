//! Requests whose senders are gone before the answer: what they changed is carried through all the same.

use crate::door::{Door, PULL_SECRET, V1, V2};
use crate::installation::boot_home;
use crate::world::World;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, header};
use jiff::Timestamp;
use muster_domain::ClusterId;
use muster_hub::Hub;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::ServiceExt;
use uuid::Uuid;

/// Much longer than anything takes; only a failure waits for it.
const DEADLINE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What is asked, of a hub that has everything for it.
type Deed = (&'static str, Method, String, Option<Value>);

/// One of each kind. Names and numbers are of their own in each round.
async fn deeds(door: &Door, round: u8) -> Vec<Deed> {
    let name = |what: &str| format!("{what}-{round}");
    let [pool, empty] = [
        door.infra_env(&name("pool")).await,
        door.infra_env(&name("empty")).await,
    ];
    let [home, target, left] = [
        door.cluster(&name("home")).await,
        door.cluster(&name("target")).await,
        door.cluster(&name("left")).await,
    ];
    let mut hosts = Vec::new();
    for number in 0..7 {
        hosts.push(door.worker(pool, round * 10 + number).await);
    }
    for host in [hosts[1], hosts[2]] {
        assert!(door.bind(pool, host, home).await.status.is_success());
    }
    assert!(door.bind(pool, hosts[3], left).await.status.is_success());
    let of = |host: usize| format!("{V2}/infra-envs/{pool}/hosts/{}", hosts[host]);
    let made =
        |name: String| json!({ "name": name, "openshift_version": "4.20", "pull_secret": PULL_SECRET });
    let pooled = |name: String| json!({ "name": name, "pull_secret": PULL_SECRET });
    let stranger =
        json!({ "host_id": Uuid::from_u128(1000 + u128::from(round)), "discovery_agent_version": "a" });
    let chosen = |kind: &str| format!("{V1}/{kind}/{}", Uuid::from_u128(2000 + u128::from(round)));
    vec![
        (
            "bind",
            Method::POST,
            format!("{}/actions/bind", of(0)),
            Some(json!({ "cluster_id": home })),
        ),
        ("unbind", Method::POST, format!("{}/actions/unbind", of(1)), None),
        (
            "move",
            Method::POST,
            format!("{V1}/infra-envs/{pool}/hosts/{}/move", hosts[2]),
            Some(json!({ "cluster_id": target })),
        ),
        (
            "host",
            Method::PATCH,
            of(4),
            Some(json!({ "host_name": name("named") })),
        ),
        ("no host", Method::DELETE, of(5), None),
        ("poll", Method::GET, format!("{}/instructions", of(6)), None),
        (
            "registration",
            Method::POST,
            format!("{V2}/infra-envs/{pool}/hosts"),
            Some(stranger),
        ),
        (
            "cluster",
            Method::POST,
            format!("{V2}/clusters"),
            Some(made(name("new"))),
        ),
        (
            "chosen cluster",
            Method::PUT,
            chosen("clusters"),
            Some(made(name("chosen"))),
        ),
        (
            "other cluster",
            Method::PATCH,
            format!("{V2}/clusters/{home}"),
            Some(json!({ "name": name("other") })),
        ),
        (
            "no cluster",
            Method::DELETE,
            format!("{V2}/clusters/{left}"),
            None,
        ),
        (
            "pool",
            Method::POST,
            format!("{V2}/infra-envs"),
            Some(pooled(name("new"))),
        ),
        (
            "chosen pool",
            Method::PUT,
            chosen("infra-envs"),
            Some(pooled(name("chosen"))),
        ),
        (
            "other pool",
            Method::PATCH,
            format!("{V2}/infra-envs/{pool}"),
            Some(json!({ "additional_ntp_sources": "clock.example.com" })),
        ),
        (
            "no pool",
            Method::DELETE,
            format!("{V2}/infra-envs/{empty}"),
            None,
        ),
    ]
}

/// A future that is dropped when it would go on for the so-many-th time.
struct Cut<F> {
    work: Option<Pin<Box<F>>>,
    left: usize,
}

impl<F: Future> Future for Cut<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            self.work = None;
        }
        let Some(work) = &mut self.work else {
            return Poll::Ready(None);
        };
        let polled = work.as_mut().poll(context).map(Some);
        self.left -= 1;
        polled
    }
}

/// What was answered, unless the sender was gone by then.
async fn asked(router: &Router, (_, method, path, body): &Deed, left: usize) -> Option<u16> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        // To polls, news.
        .header("discovery_agent_version", format!("agent-{path}"));
    let body = body
        .as_ref()
        .map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let work = router.clone().oneshot(request.body(body).unwrap());
    let work = Some(Box::pin(work));
    Some(Cut { work, left }.await?.unwrap().status().as_u16())
}

/// All rows as working memory has them, with their revisions.
fn rows(hub: &Hub) -> BTreeMap<String, i64> {
    let hosts = hub.index.keys().into_iter().filter_map(|key| hub.index.slot(key));
    let hosts = hosts.map(|slot| (format!("host {}", slot.row().key()), slot.row().revision));
    let clusters = hub.index.clusters().into_iter();
    let clusters = clusters.map(|cluster| (format!("cluster {}", cluster.id), cluster.revision));
    let pools = hub.index.infra_envs().into_iter();
    let pools = pools.map(|pool| (format!("infra-env {}", pool.id), pool.revision));
    hosts.chain(clusters).chain(pools).collect()
}

/// Memory is what a hub would read that opens the database now.
async fn memory_is_true(door: &Door, what: &str) {
    let compared = async {
        loop {
            // Whatever waited for the writer is written.
            door.hub
                .store
                .tombstones_prune(Timestamp::UNIX_EPOCH)
                .await
                .unwrap();
            let (known, written) = (rows(&door.hub), rows(&door.blind().await.hub));
            if known == written {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    if tokio::time::timeout(DEADLINE, compared).await.is_err() {
        let (known, written) = (rows(&door.hub), rows(&door.blind().await.hub));
        let differs = |(row, revision): &(&String, &i64)| known.get(*row) != Some(*revision);
        let differing: Vec<_> = written.iter().filter(differs).collect();
        panic!(
            "{what}: of {} rows the hub has {}, and not these: {differing:?}",
            written.len(),
            known.len()
        );
    }
}

#[tokio::test]
async fn what_a_sender_who_is_gone_has_changed_is_known_to_working_memory() {
    let door = Door::open().await;
    let mut cut = 0;
    for round in 0.. {
        let mut answered = 0;
        let deeds = deeds(&door, round).await;
        for deed in &deeds {
            let what = format!("{} after {round} steps", deed.0);
            match asked(&door.router, deed, round.into()).await {
                Some(status) => {
                    assert!((200..300).contains(&status), "{what}: {status}");
                    answered += 1;
                }
                None => cut += 1,
            }
            memory_is_true(&door, &what).await;
        }
        if answered == deeds.len() {
            break;
        }
    }
    assert!(cut > 0, "somebody was gone before the answer");
}

#[tokio::test]
async fn a_host_hears_of_its_binding_when_whoever_bound_it_is_gone() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let (host, cluster) = (door.worker(pool, 1).await, door.cluster("blue").await);
    let of_host = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    let wish = Some(json!({ "cluster_id": cluster }));
    let bind = ("bind", Method::POST, format!("{of_host}/actions/bind"), wish);
    assert_eq!(
        asked(&door.router, &bind, 1).await,
        None,
        "it did not wait for the answer"
    );
    let told = async {
        loop {
            let steps = door.get(&format!("{of_host}/instructions")).await.body;
            if steps["post_step_action"] == "exit" {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    assert!(
        tokio::time::timeout(DEADLINE, told).await.is_ok(),
        "the hub says {}, and the agent does not hear of it",
        door.status(pool, host).await
    );
}

/// By somebody who never waits for an answer, and asks again for what the database says was not done.
#[tokio::test]
async fn a_machine_is_lent_installed_and_returned_by_a_sender_who_is_always_gone() {
    for steps in 1..=4 {
        let mut world = World::with_machines(1, 1, &[]).await;
        let wish = world.single_node_wish("blue");
        let cluster = world.create_cluster(wish).await;
        let of_cluster = format!("{V2}/clusters/{cluster}");
        let bind = format!("{}/actions/bind", world.host_path(0));
        let wish = Some(json!({ "cluster_id": cluster }));
        abandoned(&world, ("bind", Method::POST, bind, wish), steps).await;
        if world.cluster_of(0).await.is_none() {
            world.bind_to(0, cluster).await;
        }
        world.until_cluster(cluster, "ready", 15).await;
        let install = format!("{of_cluster}/actions/install");
        abandoned(&world, ("install", Method::POST, install, None), steps).await;
        if status(&world, cluster).await == Some("ready") {
            world.act(cluster, "install").await;
        }
        world.until_cluster(cluster, "installed", 120).await;
        abandoned(&world, ("delete", Method::DELETE, of_cluster, None), steps).await;
        if status(&world, cluster).await.is_some() {
            world.delete_cluster(cluster).await;
        }
        boot_home(&mut world, &[0]).await;
    }
}

async fn abandoned(world: &World, deed: Deed, steps: usize) {
    asked(&muster_hub::http::router(world.hub.clone()), &deed, steps).await;
    // Whatever waited for the writer is written.
    world.store.tombstones_prune(Timestamp::UNIX_EPOCH).await.unwrap();
}

/// As the database has it.
async fn status(world: &World, cluster: Uuid) -> Option<&'static str> {
    let row = world.store.find(ClusterId(cluster)).await.unwrap();
    row.map(|row| row.status().word())
}
