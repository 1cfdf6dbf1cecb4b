//! What must be true after every step, whatever happened.

use crate::world::World;
use muster_domain::Timestamp;
use muster_domain::host::{Report, Status};
use muster_store::HostFilter;

/// Checked after every step of every schedule.
pub async fn hold(world: &mut World) {
    let rows = world
        .store
        .hosts_page(&HostFilter::default(), None, 1000, &Report::ALL)
        .await
        .expect("readable");
    for (host, reports) in &rows {
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
        if let Some(cluster) = host.cluster {
            let found = world.store.cluster_find(cluster).await.expect("readable");
            assert!(
                found.is_some(),
                "{} is bound to a cluster that is gone",
                host.name()
            );
        }
        if host.is_free() {
            let text = serde_json::to_string(host).expect("plain data");
            assert!(!text.contains("canary"), "a free host keeps a secret: {text}");
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
    }
    assert_eq!(
        rows.len(),
        world.hub.index.counts().0,
        "memory has no host that the database has not"
    );
    acknowledged(world).await;
    feed(world).await;
}

/// What a person was told is true, also after a crash.
async fn acknowledged(world: &mut World) {
    for machine in 0..world.machines.len() {
        let Some(promise) = world.promised[machine] else {
            continue;
        };
        let actual = world.cluster_of(machine).await;
        let host = world.store.host_find(world.key(machine)).await.expect("readable");
        // A host somebody deleted has no cluster to be wrong about.
        if host.is_some() {
            assert_eq!(
                actual, promise,
                "machine {machine}: an acknowledged change was lost"
            );
        }
    }
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

/// With everything powered and time to act, nobody is left in between.
pub async fn everybody_came_home(world: &mut World) {
    for machine in 0..world.machines.len() {
        let host = world.store.host_find(world.key(machine)).await.expect("readable");
        let host = host.unwrap_or_else(|| panic!("machine {machine} is not registered any more"));
        let resting = [
            Status::Known,
            Status::Insufficient,
            Status::PendingForInput,
            Status::KnownUnbound,
            Status::InsufficientUnbound,
        ];
        assert!(
            resting.contains(&host.status()),
            "machine {machine} is stuck in {}",
            host.status().word()
        );
        assert!(host.moving_to.is_none(), "machine {machine} still wants to move");
        assert!(host.checked_in_at <= Timestamp::MAX);
    }
}
