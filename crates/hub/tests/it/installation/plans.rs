//! What a plan says is what then happens: asked before every verb, in random fleets and states.

mod followed;
mod promises;

use crate::world::{V2, World};
use jiff::SignedDuration;
use muster_domain::HostKey;
use promises::Promises;
use rand::RngExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

const SCHEDULES: u64 = 40;
/// On PostgreSQL each change is a conversation with a server: a sample shows what is different there.
const SCHEDULES_ON_POSTGRES: u64 = 8;
const ROUNDS: usize = 3;
const STEPS: usize = 14;

/// What has happened so far: verbs that were carried out, and what was promised with them.
#[derive(Debug, Default)]
struct Diary {
    done: BTreeMap<&'static str, u32>,
    promises: Promises,
}

/// What a verb is asked about.
#[derive(Debug, Clone, Copy)]
enum About {
    Host(usize),
    Cluster(Uuid),
    /// A host that shall come to a cluster.
    Both(usize, Uuid),
}

/// Everybody's status. Names change when a tenant leaves, ids do not.
#[derive(Debug, Default, PartialEq)]
struct Statuses {
    hosts: BTreeMap<HostKey, &'static str>,
    clusters: BTreeMap<Uuid, &'static str>,
}

fn statuses(world: &World) -> Statuses {
    let index = &world.hub.index;
    Statuses {
        hosts: index
            .keys()
            .into_iter()
            .filter_map(|key| Some((key, index.host(key)?.status().word())))
            .collect(),
        clusters: index
            .clusters()
            .iter()
            .map(|cluster| (cluster.id.0, cluster.status().word()))
            .collect(),
    }
}

/// Who is meant by the subject of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    Host(HostKey),
    Cluster(Uuid),
}

fn subjects(world: &World) -> BTreeMap<String, Subject> {
    let index = &world.hub.index;
    let hosts = index
        .keys()
        .into_iter()
        .filter_map(|key| Some((format!("host/{}", index.host(key)?.name()), Subject::Host(key))));
    let clusters = index
        .clusters()
        .into_iter()
        .map(|row| (format!("cluster/{}", row.name), Subject::Cluster(row.id.0)));
    hosts.chain(clusters).collect()
}

impl Statuses {
    fn of(&self, subject: Subject) -> Option<&'static str> {
        match subject {
            Subject::Host(key) => self.hosts.get(&key).copied(),
            Subject::Cluster(id) => self.clusters.get(&id).copied(),
        }
    }
}

fn request(world: &World, verb: &str, about: About) -> Value {
    let host = |machine: usize| (world.pools[machine], world.machines[machine].id());
    match about {
        About::Cluster(cluster) => json!({ "verb": verb, "cluster_id": cluster }),
        About::Host(machine) => {
            let (pool, id) = host(machine);
            json!({ "verb": verb, "infra_env_id": pool, "host_id": id })
        }
        About::Both(machine, cluster) => {
            let (pool, id) = host(machine);
            json!({ "verb": verb, "infra_env_id": pool, "host_id": id, "cluster_id": cluster })
        }
    }
}

async fn perform(world: &mut World, verb: &str, about: About) -> (u16, Value) {
    match (verb, about) {
        ("install-cluster", About::Cluster(id)) => world.act(id, "install").await,
        ("cancel-cluster", About::Cluster(id)) => world.act(id, "cancel").await,
        ("reset-cluster", About::Cluster(id)) => world.act(id, "reset").await,
        ("delete-cluster", About::Cluster(id)) => {
            world.call("DELETE", &format!("{V2}/clusters/{id}"), None).await
        }
        ("install-host", About::Host(machine)) => world.host_act(machine, "install").await,
        ("reset-host", About::Host(machine)) => world.host_act(machine, "reset").await,
        ("unbind", About::Host(machine)) => world.host_act(machine, "unbind").await,
        ("reclaim-host", About::Host(machine)) => world.reclaim(machine).await,
        ("delete-host", About::Host(machine)) => {
            let path = world.host_path(machine);
            world.call("DELETE", &path, None).await
        }
        ("bind", About::Both(machine, cluster)) => world.bind_to(machine, cluster).await,
        (verb, about) => panic!("{verb} cannot be asked about {about:?}"),
    }
}

/// Asks, does, and compares.
async fn as_planned(world: &mut World, verb: &str, about: About, diary: &mut Diary) -> bool {
    diary.promises.kept(world);
    // Workers are sometimes late; then others may change in the same moment, for reasons of their own.
    let settled = world.rng.random_range(0..3) > 0;
    if settled {
        world.settle().await;
    }
    let question = request(world, verb, about);
    let plan = world.plan(question).await;
    let (before, who) = (statuses(world), subjects(world));
    let (status, body) = perform(world, verb, about).await;
    let after = statuses(world);
    let allowed = plan["allowed"].as_bool().expect("yes or no");
    assert_eq!(allowed, status < 300, "{verb}: {status} {body}\nplanned: {plan}");
    if allowed {
        happened(&plan, &who, &before, &after, settled);
        diary.promises.made(world, &plan, &who);
    } else {
        assert!(
            !settled || before == after,
            "a refused {verb} changes nothing: {before:?} {after:?}"
        );
        refused_alike(&plan, &body);
    }
    allowed
}

/// The first step of each subject is what happens at once; nobody else changes.
fn happened(
    plan: &Value,
    who: &BTreeMap<String, Subject>,
    before: &Statuses,
    after: &Statuses,
    settled: bool,
) {
    let mut told: Vec<Subject> = Vec::new();
    for step in plan["steps"].as_array().expect("a list") {
        let name = step["subject"].as_str().expect("a subject");
        let subject = *who.get(name).unwrap_or_else(|| panic!("who is {name}? {plan}"));
        if told.contains(&subject) {
            continue;
        }
        told.push(subject);
        // Without a word about where it stands the step begins where it is.
        let from = step["from"].as_str().or(before.of(subject));
        assert_eq!(from, before.of(subject), "{name}: {plan}");
        let deleted = step["action"].as_str().expect("an action").starts_with("delete");
        if deleted {
            assert_eq!(after.of(subject), None, "{name}: {plan}");
        } else {
            let to = step["to"].as_str().or(from);
            assert_eq!(to, after.of(subject), "{name}: {plan}");
        }
    }
    for subject in who.values() {
        assert!(
            !settled || told.contains(subject) || before.of(*subject) == after.of(*subject),
            "{subject:?} went from {:?} to {:?} and the plan is silent: {plan}",
            before.of(*subject),
            after.of(*subject)
        );
    }
}

fn refused_alike(plan: &Value, body: &Value) {
    let said = body["reason"]
        .as_str()
        .or(body["detail"].as_str())
        .expect("a reason");
    let blockers = plan["blockers"].as_array().expect("a list");
    let same = blockers.iter().any(|blocker| {
        assert!(!blocker["code"].as_str().expect("a code").is_empty(), "{plan}");
        match body["code"].as_str().filter(|_| body["detail"].is_string()) {
            Some(code) => blocker["code"] == code,
            None => said.starts_with(blocker["reason"].as_str().expect("a reason")),
        }
    });
    assert!(same, "refused with {body}\nplanned: {plan}");
}

async fn random_verb(world: &mut World, diary: &mut Diary) {
    let machine = world.any_machine();
    let cluster = world.clusters[world.rng.random_range(0..world.clusters.len())];
    let is_known = world.hub.index.slot(world.key(machine)).is_some();
    let (verb, about) = match world.rng.random_range(0..24) {
        0..5 => ("bind", About::Both(machine, cluster)),
        5..10 => ("install-cluster", About::Cluster(cluster)),
        10..12 => ("cancel-cluster", About::Cluster(cluster)),
        12..15 => ("reset-cluster", About::Cluster(cluster)),
        15 => ("delete-cluster", About::Cluster(cluster)),
        16 => ("install-host", About::Host(machine)),
        17 => ("reset-host", About::Host(machine)),
        18..20 => ("reclaim-host", About::Host(machine)),
        20..22 => ("unbind", About::Host(machine)),
        22 => ("delete-host", About::Host(machine)),
        _ => {
            // Opens an installed cluster for more hosts, so that there is something to do for single ones.
            world.act(cluster, "allow-add-hosts").await;
            return;
        }
    };
    if !is_known && !matches!(about, About::Cluster(_)) {
        return;
    }
    if as_planned(world, verb, about, diary).await {
        *diary.done.entry(verb).or_default() += 1;
    }
    if world.cluster_status(cluster) == "gone" {
        world.clusters.retain(|id| *id != cluster);
        let name = format!("next{}", world.rng.random_range(0..100_000));
        world.random_cluster(&name).await;
    }
    world.promised.fill(None);
}

/// Somebody means it: binds what is free, waits, and installs. Then some time passes.
async fn mean_it(world: &mut World, diary: &mut Diary) {
    let cluster = world.clusters[world.rng.random_range(0..world.clusters.len())];
    for machine in 0..world.machines.len() {
        if world.host_status(machine) == "known-unbound" {
            as_planned(world, "bind", About::Both(machine, cluster), diary).await;
        }
    }
    world.run_for(SignedDuration::from_mins(7)).await;
    if as_planned(world, "install-cluster", About::Cluster(cluster), diary).await {
        *diary.done.entry("install-cluster").or_default() += 1;
    }
    let minutes = world.rng.random_range(0..25);
    world.run_for(SignedDuration::from_mins(minutes)).await;
}

async fn play(seed: u64, diary: &mut Diary) {
    let mut world = World::random(seed).await;
    // Promises are about the hosts of this world.
    diary.promises.begin(&mut world);
    world.faults = world.rng.random_range(0..2) == 0;
    world.run_for(SignedDuration::from_mins(4)).await;
    for _ in 0..ROUNDS {
        mean_it(&mut world, diary).await;
        for _ in 0..STEPS {
            if world.rng.random_range(0..3) == 0 {
                world.random_happening().await;
            } else {
                random_verb(&mut world, diary).await;
            }
        }
    }
    diary.promises.kept(&mut world);
}

#[tokio::test]
async fn a_plan_equals_what_then_happens() {
    let is_sample = crate::place::is_postgres();
    let schedules = if is_sample {
        SCHEDULES_ON_POSTGRES
    } else {
        SCHEDULES
    };
    let mut diary = Diary::default();
    for seed in 0..schedules {
        println!("seed {seed}");
        play(seed, &mut diary).await;
    }
    let done = &diary.done;
    println!("{done:?}, {} orders", diary.promises.ordered);
    assert!(
        u64::from(diary.promises.ordered) > schedules / 4,
        "installers were started"
    );
    // A test that never gets to the interesting states proves nothing.
    for verb in [
        "bind",
        "install-cluster",
        "cancel-cluster",
        "reset-cluster",
        "delete-cluster",
        "unbind",
        "reclaim-host",
        "delete-host",
    ] {
        assert!(
            done.get(verb).copied().unwrap_or_default() > u32::from(!is_sample),
            "{verb}: {done:?}"
        );
    }
}
