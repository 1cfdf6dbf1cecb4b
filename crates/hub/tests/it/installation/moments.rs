//! The moments of an installation, in their order, and what people do afterwards whatever happened at one of them.

use crate::world::World;
use muster_domain::host::{Host, Role};
use muster_simfleet::Condition;
use uuid::Uuid;

/// When something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The cluster has this status.
    Cluster(&'static str),
    /// A host has this status.
    Host(&'static str),
    /// The host that starts the control plane is at this stage.
    Bootstrap(&'static str),
    /// Another master is.
    Master(&'static str),
}

use Moment::{Bootstrap, Cluster, Master};

/// Nothing is written to a disk yet.
pub const BEFORE_WRITING: [Moment; 3] = [
    Cluster("preparing-for-installation"),
    Moment::Host("preparing-for-installation"),
    Moment::Host("preparing-successful"),
];
/// The installer runs beside the agent.
pub const WHILE_WRITING: [Moment; 12] = [
    Moment::Host("installing"),
    Bootstrap("Starting installation"),
    Master("Starting installation"),
    Bootstrap("Installing"),
    Master("Installing"),
    Bootstrap("Writing image to disk"),
    Master("Writing image to disk"),
    Bootstrap("Copying registry data to disk"),
    Master("Copying registry data to disk"),
    Bootstrap("Waiting for control plane"),
    Bootstrap("Waiting for bootkube"),
    Bootstrap("Waiting for controller"),
];
/// The installed system runs.
pub const AFTER_WRITING: [Moment; 8] = [
    Master("Rebooting"),
    Master("Configuring"),
    Master("Joined"),
    Bootstrap("Rebooting"),
    Bootstrap("Configuring"),
    Bootstrap("Joined"),
    Bootstrap("Done"),
    Cluster("finalizing"),
];

pub fn all() -> impl Iterator<Item = Moment> {
    BEFORE_WRITING
        .into_iter()
        .chain(WHILE_WRITING)
        .chain(AFTER_WRITING)
}

impl Moment {
    fn is_now(self, world: &World, cluster: Uuid) -> bool {
        match self {
            Cluster(status) => world.cluster_status(cluster) == status,
            Moment::Host(_) | Bootstrap(_) | Master(_) => self.of(world).is_some(),
        }
    }

    /// Whose moment it is.
    pub fn of(self, world: &World) -> Option<usize> {
        let fits = |host: &Host| match self {
            Cluster(_) => true,
            Moment::Host(status) => host.status().word() == status,
            Bootstrap(stage) => host.bootstrap && at(host, stage),
            Master(stage) => !host.bootstrap && host.role == Role::Master && at(host, stage),
        };
        (0..world.machines.len()).find(|machine| {
            let host = world.hub.index.host(world.key(*machine));
            host.is_some_and(|host| fits(&host))
        })
    }
}

fn at(host: &Host, stage: &str) -> bool {
    host.progress.stage.is_some_and(|now| now.word() == stage)
}

/// Lets an installation go on until that moment; says whose it is.
pub async fn reach(world: &mut World, cluster: Uuid, moment: Moment) -> usize {
    let what = format!("{moment:?}");
    world
        .until(&what, 120, |world| moment.is_now(world, cluster))
        .await;
    moment.of(world).expect("somebody's moment")
}

/// Three machines in a cluster whose installation has come to that moment, and whose moment it is.
pub async fn installing(seed: u64, moment: Moment) -> (World, Uuid, usize) {
    let mut world = World::with_machines(seed, 3, &[]).await;
    let cluster = world.ready_cluster("prod", &[0, 1, 2]).await;
    world.install(cluster).await;
    let who = reach(&mut world, cluster, moment).await;
    (world, cluster, who)
}

/// What people do about hosts that wait for them: boot the discovery image where nothing else runs.
pub fn boot_those_who_wait(world: &mut World) {
    for machine in 0..world.machines.len() {
        let waits = matches!(
            world.host_status(machine),
            "unbinding-pending-user-action" | "resetting-pending-user-action"
        );
        let gone = matches!(
            world.machines[machine].condition(),
            Condition::Installed | Condition::Off
        );
        if waits && (gone || !world.is_powered(machine)) {
            world.boot_discovery(machine);
        }
    }
}

/// Resets the cluster and installs it once more.
pub async fn try_again(world: &mut World, cluster: Uuid) {
    if !["ready", "insufficient", "pending-for-input"].contains(&world.cluster_status(cluster)) {
        world.reset(cluster).await;
    }
    world.nobody_is_left_without_a_word().await;
    boot_those_who_wait(world);
    world.until_cluster(cluster, "ready", 30).await;
    // Hosts that were discovered one after the other measure their connections once more when the last one is there.
    world.run_for(jiff::SignedDuration::from_mins(3)).await;
    world.until_cluster(cluster, "ready", 10).await;
    world.install(cluster).await;
    world.until_cluster(cluster, "installed", 180).await;
}

/// Deletes the cluster, and waits until all of its hosts are free: never while an installer still runs there.
pub async fn bring_home(world: &mut World, cluster: Uuid) {
    if world.cluster_status(cluster) == "installing" {
        world.cancel(cluster).await;
    }
    world.delete_cluster(cluster).await;
    world.nobody_is_left_without_a_word().await;
    boot_those_who_wait(world);
    let everybody: Vec<_> = (0..world.machines.len()).collect();
    let end = world.clock.now() + jiff::SignedDuration::from_mins(30);
    loop {
        let mut missing = 0;
        for machine in &everybody {
            let free = world.host_status(*machine) == "known-unbound";
            assert!(
                !(free && world.machines[*machine].is_installing()),
                "machine {machine} is lent while an installer writes to its disk\n{}",
                world.describe()
            );
            missing += usize::from(!free);
        }
        if missing == 0 {
            return;
        }
        assert!(
            world.clock.now() < end,
            "not everybody came home\n{}",
            world.describe()
        );
        world.step(end).await;
    }
}
