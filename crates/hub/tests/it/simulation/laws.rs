//! What must be true after every step, whatever happened.

use crate::world::{Promise, World};
use muster_domain::cluster::{self, Phase};
use muster_domain::host::{Host, Media, Report, Status};
use muster_simfleet::Condition;
use muster_store::HostFilter;
use serde_json::json;
use uuid::Uuid;

/// Checked after every step of every schedule.
pub async fn hold(world: &mut World) {
    let rows = world
        .store
        .hosts_page(&HostFilter::default(), None, 1000, &Report::ALL, |_, _| None)
        .await
        .expect("readable");
    for (host, reports) in &rows {
        lending(host);
        if let Some(cluster) = host.cluster {
            let found = world.store.find(cluster).await.expect("readable");
            assert!(
                found.is_some(),
                "{} is bound to a cluster that is gone",
                host.name()
            );
        }
        if host.is_free() {
            let text = serde_json::to_string(host).expect("plain data");
            assert!(!text.contains("canary"), "a free host keeps a secret: {text}");
            assert!(
                host.tenant.skip_formatting.is_empty(),
                "a free host keeps a tenant's list of disks"
            );
            for (report, body) in reports {
                assert!(
                    !body.contains("canary"),
                    "a free host keeps a secret in {report:?}"
                );
            }
        }
        let known = world
            .hub
            .index
            .slot(host.key())
            .expect("every stored host is in memory")
            .row();
        assert_eq!(known.revision, host.revision, "memory and database agree");
        assert_eq!(known.cluster, host.cluster);
        assert_eq!(known.status(), host.status());
        assert!(
            !host.status_info.is_empty(),
            "{} is {} without a word",
            host.name(),
            host.status().word()
        );
    }
    assert_eq!(
        rows.len(),
        world.hub.index.counts().0,
        "memory has no host that the database has not"
    );
    machines(world);
    clusters(world);
    acknowledged(world).await;
    feed(world).await;
}

fn lending(host: &Host) {
    assert!(
        !host.phase.is_returning() || host.is_free(),
        "{} is {:?} and bound",
        host.name(),
        host.phase
    );
    assert!(
        !host.phase.needs_cluster() || !host.is_free(),
        "{} is {:?} and free",
        host.name(),
        host.phase
    );
}

/// Whoever may be lent has no installer of an earlier tenant; and no agent was ever told to give up.
fn machines(world: &World) {
    for (at, machine) in world.machines.iter().enumerate() {
        assert_ne!(
            machine.condition(),
            Condition::Blocked,
            "machine {at} gave up\n{}",
            world.describe()
        );
        let Some(host) = world.hub.index.host(world.key(at)) else {
            continue;
        };
        if host.status() == Status::KnownUnbound {
            assert!(
                !host.installer_may_run,
                "{} is free and its installer may run",
                host.name()
            );
            assert!(
                !machine.is_installing(),
                "machine {at} is free and its installer runs\n{}",
                world.describe()
            );
        }
    }
}

/// A phase that others end has a limit; it cannot last for ever.
fn clusters(world: &World) {
    for cluster in world.hub.index.clusters() {
        let waits = matches!(
            cluster.phase,
            Phase::Preparing | Phase::Installing | Phase::BootFix | Phase::Finalizing
        );
        let limit = cluster::deadline::of(&cluster, &world.settings.cluster_timers);
        assert!(
            !waits || limit.is_some(),
            "{} is {:?} without a limit",
            cluster.name,
            cluster.phase
        );
        assert!(
            !cluster.status_info.is_empty(),
            "{} is {:?} without a word",
            cluster.name,
            cluster.phase
        );
    }
}

/// What a person was told is true, also after a crash.
async fn acknowledged(world: &mut World) {
    for machine in 0..world.machines.len() {
        let Some(promise) = world.promised[machine] else {
            continue;
        };
        // A host somebody deleted has no cluster to be wrong about.
        let Some(host) = world.store.find(world.key(machine)).await.expect("readable") else {
            continue;
        };
        let actual = host.cluster.map(|cluster| cluster.0);
        match promise {
            Promise::In(cluster) => assert_eq!(
                actual, cluster,
                "machine {machine}: an acknowledged change was lost"
            ),
            Promise::Moving(to) if actual == Some(to) => {
                world.promise(machine, Some(Promise::In(actual)));
            }
            Promise::Moving(to) => {
                assert_eq!(actual, None, "machine {machine} moved elsewhere");
                if host.moving_to.map(|cluster| cluster.0) != Some(to) {
                    gave_up(world, machine, to).await;
                    world.promise(machine, Some(Promise::In(None)));
                }
            }
        }
    }
}

/// What the target of a move can have against it. Nothing that is the matter with the host itself ends one.
const TARGET_SAYS: [&str; 5] = [
    "cluster-not-found",
    "cluster-takes-no-hosts",
    "architecture-differs",
    "role-not-supported",
    "fencing-not-supported",
];

/// A move that does not end where it was told to was refused there, and history says why, once.
async fn gave_up(world: &mut World, machine: usize, to: Uuid) {
    let mut events = world.events_of_host(machine).await;
    events.retain(|event| event["name"] == "host_bind_failed" && event["cluster_id"] == json!(to));
    let last = events.last().map(ToString::to_string).unwrap_or_default();
    let refused = TARGET_SAYS
        .iter()
        .any(|code| last.contains(&format!(r#"\"code\":\"{code}\""#)));
    assert!(
        refused,
        "machine {machine}: an acknowledged move to {to} was dropped: {last}\n{}",
        world.describe()
    );
    let telling: Vec<_> = events
        .iter()
        .filter(|event| event["event_time"] == events[events.len() - 1]["event_time"])
        .collect();
    let by_itself = telling
        .iter()
        .filter(|event| event.get("request_id").is_none_or(|id| id.is_null()));
    assert_eq!(
        by_itself.count(),
        1,
        "machine {machine}: told more than once: {telling:?}"
    );
}

/// The feed has no gap and tells of nothing twice.
async fn feed(world: &mut World) {
    let changes = world
        .store
        .changes_after(world.last_seq, 10_000)
        .await
        .expect("readable");
    for change in &changes {
        assert_eq!(change.seq, world.last_seq + 1, "a gap in the feed");
        world.last_seq = change.seq;
    }
}

/// With everything powered and time to act, whoever is not being installed is at rest.
pub async fn everybody_is_at_rest(world: &mut World) {
    for machine in 0..world.machines.len() {
        let waiting = [
            Status::Discovering,
            Status::DiscoveringUnbound,
            Status::Disconnected,
            Status::DisconnectedUnbound,
            Status::Binding,
            Status::Unbinding,
            Status::Resetting,
        ];
        // A machine that runs its own system again does not poll, and nobody asked it back.
        if world.machines[machine].condition() == Condition::Installed {
            continue;
        }
        let host = world.store.find(world.key(machine)).await.expect("readable");
        let host = host.unwrap_or_else(|| panic!("machine {machine} is not registered any more"));
        // Who cannot read the image it runs from waits for a person.
        let waits_for_media = host.media == Media::Disconnected;
        // Who waits for a person takes the move with it.
        if !waits_for_media && !host.phase.is_returning() {
            let moves = matches!(world.promised[machine], Some(Promise::Moving(_)));
            assert!(!moves, "machine {machine} never arrived\n{}", world.describe());
        }
        // Two machines behind one id undo each other's beginnings until somebody tells them apart.
        let has_twin =
            (0..world.machines.len()).any(|other| other != machine && world.key(other) == world.key(machine));
        assert!(
            waits_for_media || has_twin || !waiting.contains(&host.status()),
            "machine {machine} is stuck\n{}",
            world.describe()
        );
    }
}

/// Without clusters, and with somebody who boots machines, all of them are free.
pub async fn everybody_came_home(world: &mut World) {
    for machine in 0..world.machines.len() {
        let host = world.store.find(world.key(machine)).await.expect("readable");
        let Some(host) = host else {
            // Deleted while it ran its own system: nobody knows it until somebody boots it.
            assert_eq!(
                world.machines[machine].condition(),
                Condition::Installed,
                "machine {machine}"
            );
            continue;
        };
        let free = [Status::KnownUnbound, Status::InsufficientUnbound];
        assert!(
            free.contains(&host.status()) || host.media == Media::Disconnected,
            "machine {machine} did not come home\n{}",
            world.describe()
        );
        assert!(
            host.moving_to.is_none(),
            "machine {machine} still wants to move\n{}",
            world.describe()
        );
    }
}
