//! Plans to their last step: what they say comes later does come, in that order.

use super::{About, Subject, perform, request, statuses, subjects};
use crate::installation::THREE;
use crate::world::World;
use jiff::SignedDuration;
use muster_store::{ChangeKind, ChangeOp};
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// What a plan says somebody goes through, from its first status to its last.
struct Promised {
    verb: String,
    plan: Value,
    ways: Vec<(Subject, Vec<String>)>,
    since: i64,
}

const GONE: &str = "gone";

async fn ask(world: &mut World, verb: &str, about: About) -> Promised {
    world.settle().await;
    let question = request(world, verb, about);
    let plan = world.plan(question).await;
    assert_eq!(plan["allowed"], true, "{verb}: {plan}");
    let who = subjects(world);
    let mut ways: Vec<(Subject, Vec<String>)> = Vec::new();
    for step in plan["steps"].as_array().expect("a list") {
        let subject = who[step["subject"].as_str().expect("a subject")];
        if !ways.iter().any(|(other, _)| *other == subject) {
            let now = statuses(world).of(subject).expect("it has a status").to_owned();
            ways.push((subject, vec![now]));
        }
        let (_, way) = ways
            .iter_mut()
            .find(|(other, _)| *other == subject)
            .expect("pushed above");
        let action = step["action"].as_str().expect("an action");
        let to = if action.starts_with("delete") {
            Some(GONE)
        } else {
            step["to"].as_str()
        };
        for word in [step["from"].as_str(), to].into_iter().flatten() {
            if way.last().is_none_or(|last| last != word) {
                way.push(word.to_owned());
            }
        }
    }
    let since = world.store.changes_range().await.expect("readable").last;
    Promised {
        verb: verb.to_owned(),
        plan,
        ways,
        since,
    }
}

/// Asks, and does it.
async fn begin(world: &mut World, verb: &str, about: About) -> Promised {
    let promised = ask(world, verb, about).await;
    let before = statuses(world);
    for (subject, way) in &promised.ways {
        assert_eq!(before.of(*subject), Some(way[0].as_str()), "{}", promised.plan);
    }
    let (status, body) = perform(world, verb, about).await;
    assert!(status < 300, "{verb}: {status} {body}");
    promised
}

/// All statuses somebody had since then, and that it is gone at last.
async fn trail(world: &World, since: i64) -> BTreeMap<(bool, Uuid), Vec<String>> {
    let mut all: BTreeMap<(bool, Uuid), Vec<String>> = BTreeMap::new();
    for change in world.store.changes_after(since, 100_000).await.expect("readable") {
        let word = match change.op {
            ChangeOp::Delete => GONE.to_owned(),
            ChangeOp::Put => change.status,
        };
        let trail = all
            .entry((change.kind == ChangeKind::Host, change.id))
            .or_default();
        trail.push(word);
    }
    all
}

/// Whether the way's words come in that order; others may lie between.
fn is_walked(way: &[String], trail: &[String]) -> bool {
    // The first is where it stood before.
    let mut rest = trail.iter();
    way[1..].iter().all(|word| rest.any(|seen| seen == word))
}

async fn comes_true(world: &mut World, promised: &[Promised]) {
    let end = world.clock.now() + SignedDuration::from_mins(150);
    loop {
        let mut missing = Vec::new();
        for one in promised {
            let trails = trail(world, one.since).await;
            for (subject, way) in &one.ways {
                let id = match subject {
                    Subject::Host(key) => (true, key.host.0),
                    Subject::Cluster(id) => (false, *id),
                };
                let seen = trails.get(&id).cloned().unwrap_or_default();
                if !is_walked(way, &seen) {
                    missing.push(format!(
                        "{}: {subject:?}: {way:?}, but {seen:?}\n{}",
                        one.verb, one.plan
                    ));
                }
            }
        }
        if missing.is_empty() {
            return;
        }
        assert!(world.clock.now() < end, "{}", missing.join("\n"));
        for _ in 0..10 {
            world.step(end).await;
        }
    }
}

async fn follow(world: &mut World, verb: &str, about: About) {
    let promised = begin(world, verb, about).await;
    // What a plan leaves to people is done by people.
    for step in promised.plan["steps"].as_array().expect("a list") {
        let by_hand = step["action"]
            .as_str()
            .expect("an action")
            .starts_with("boot the discovery image");
        if let (true, About::Host(machine)) = (by_hand, about) {
            world.boot_discovery(machine);
        }
    }
    if let ("reclaim-host", About::Host(machine)) = (verb, about) {
        world.start_reclaim(machine);
    }
    comes_true(world, &[promised]).await;
}

async fn bound(world: &mut World, name: &str, machines: &[usize]) -> Uuid {
    let cluster = world.new_cluster(name).await;
    let mut promised = Vec::new();
    for machine in machines {
        promised.push(begin(world, "bind", About::Both(*machine, cluster)).await);
    }
    comes_true(world, &promised).await;
    world.until_cluster(cluster, "ready", 15).await;
    cluster
}

#[tokio::test]
async fn a_plan_comes_true_to_its_last_step() {
    let mut world = World::with_machines(420, 4, &[]).await;
    let prod = bound(&mut world, "prod", &THREE).await;
    follow(&mut world, "install-cluster", About::Cluster(prod)).await;
    world.until_cluster(prod, "installed", 120).await;
    assert_eq!(world.act(prod, "allow-add-hosts").await.0, 202);
    follow(&mut world, "bind", About::Both(3, prod)).await;
    follow(&mut world, "install-host", About::Host(3)).await;
    follow(&mut world, "unbind", About::Host(3)).await;
    follow(&mut world, "reclaim-host", About::Host(0)).await;
    follow(&mut world, "delete-cluster", About::Cluster(prod)).await;
    crate::installation::moments::boot_those_who_wait(&mut world);
    world.until_hosts(&[0, 1, 2, 3], "known-unbound", 30).await;

    let next = bound(&mut world, "next", &THREE).await;
    follow(&mut world, "unbind", About::Host(0)).await;
    follow(&mut world, "bind", About::Both(0, next)).await;
    world.until_cluster(next, "ready", 15).await;
    world.install(next).await;
    world.until_stage(1, "Writing image to disk", 60).await;
    follow(&mut world, "cancel-cluster", About::Cluster(next)).await;
    follow(&mut world, "reset-cluster", About::Cluster(next)).await;
    follow(&mut world, "delete-host", About::Host(3)).await;
}

#[test]
fn a_way_is_walked_in_its_order_only() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(is_walked(
        &words("known installing installed"),
        &words("known installing x installed")
    ));
    assert!(!is_walked(
        &words("known installing installed"),
        &words("installed installing")
    ));
    assert!(!is_walked(&words("known installing"), &[]));
}
