//! Failures at each stage of each role: told with their reason, and everybody can start over.

use crate::installation::moments::{boot_those_who_wait, bring_home, try_again};
use crate::installation::{THREE, boot_home};
use crate::world::World;
use muster_domain::host::{Host, Role, Stage, stage};
use serde_json::Value;
use uuid::Uuid;

/// Whose installation fails.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Who {
    Bootstrap,
    Master,
    SingleNode,
    Worker,
    DayTwo,
}

const SEED: u64 = 331;
/// The place of the host that joins a running cluster.
const JOINS: usize = 3;

/// Machines of the same seed are the same in every world, so whoever has a role once has it always.
async fn install(who: Who, fault: Option<&str>) -> (World, Uuid) {
    let faults: Vec<&str> = fault.into_iter().collect();
    let count = match who {
        Who::SingleNode => 1,
        Who::Bootstrap | Who::Master => 3,
        Who::DayTwo => 4,
        Who::Worker => 6,
    };
    let mut world = World::with_machines(SEED, count, &faults).await;
    let cluster = match who {
        Who::SingleNode => {
            let wish = world.single_node_wish("edge");
            world.ready(wish, &[0]).await
        }
        Who::Bootstrap | Who::Master => world.ready_cluster("prod", &THREE).await,
        Who::Worker => world.ready_cluster("wide", &[0, 1, 2, 3, 4, 5]).await,
        Who::DayTwo => {
            let cluster = world.installed_cluster("prod", &THREE).await;
            assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
            add(&mut world, cluster).await;
            return (world, cluster);
        }
    };
    world.install(cluster).await;
    (world, cluster)
}

async fn add(world: &mut World, cluster: Uuid) {
    assert_eq!(world.bind_to(JOINS, cluster).await.0, 200);
    world.until_host(JOINS, "known", 15).await;
    assert_eq!(world.host_act(JOINS, "install").await.0, 202);
}

/// Who it is, and through which stages it goes before it is done.
async fn scout(who: Who) -> (usize, Vec<Stage>) {
    let (world, _) = install(who, None).await;
    let fits = |host: &Host| match who {
        Who::Bootstrap | Who::SingleNode => host.bootstrap,
        Who::Master => host.role == Role::Master && !host.bootstrap,
        Who::Worker => host.role == Role::Worker,
        Who::DayTwo => host.id.0 == world.machines[JOINS].id(),
    };
    let rows = (0..world.machines.len()).filter_map(|at| Some((at, world.hub.index.host(world.key(at))?)));
    let (machine, host) = rows
        .into_iter()
        .find(|(_, host)| fits(host))
        .expect("somebody has the role");
    let mut stages = stage::order(&host, who == Who::SingleNode).to_vec();
    // The control plane of a running cluster is not waited for, and the reboot is the last that is heard.
    let unheard: &[Stage] = match who {
        Who::DayTwo => &[Stage::WaitingForControlPlane, Stage::Rebooting],
        Who::Bootstrap | Who::Master | Who::SingleNode | Who::Worker => &[Stage::Done],
    };
    stages.retain(|stage| !unheard.contains(stage));
    (machine, stages)
}

async fn fails_at_each_stage(who: Who) {
    let (machine, stages) = scout(who).await;
    assert!(stages.len() >= 3, "{stages:?}");
    for stage in stages {
        let fault = format!(
            "fail:#{machine}:{}",
            stage.word().to_lowercase().replace(' ', "-")
        );
        let (mut world, cluster) = install(who, Some(&fault)).await;
        world.until_host(machine, "error", 180).await;
        let host: Value = world.host(machine).await;
        let told = host["status_info"].as_str().expect("text");
        assert!(told.contains("asked to fail"), "{who:?} {stage:?}: {host}");
        assert_eq!(
            world.stage(machine),
            stage.word(),
            "{who:?}: how far it came is kept"
        );
        world.nobody_is_left_without_a_word().await;
        if stage == Stage::Rebooting {
            // It hangs on its way to the disk; somebody switches it off.
            world.power_off(machine);
        }
        start_over(&mut world, who, cluster, machine).await;
    }
}

async fn start_over(world: &mut World, who: Who, cluster: Uuid, machine: usize) {
    match who {
        Who::Bootstrap | Who::Master | Who::SingleNode => {
            world.until_cluster(cluster, "error", 120).await;
            world.nobody_is_left_without_a_word().await;
            try_again(world, cluster).await;
            bring_home(world, cluster).await;
        }
        // Two more are left, so the cluster does without it.
        Who::Worker => {
            world.until_cluster(cluster, "installed", 180).await;
            world.nobody_is_left_without_a_word().await;
            come_back(world, machine).await;
        }
        Who::DayTwo => {
            assert_eq!(world.cluster_status(cluster), "adding-hosts");
            come_back(world, machine).await;
            add(world, cluster).await;
            world.until_host(machine, "added-to-existing-cluster", 60).await;
        }
    }
}

async fn come_back(world: &mut World, machine: usize) {
    assert_eq!(world.unbind(machine).await, 200);
    boot_those_who_wait(world);
    if world.host_status(machine) != "known-unbound" && !world.machines[machine].is_installing() {
        boot_home(world, &[machine]).await;
    }
    world.until_host(machine, "known-unbound", 20).await;
}

#[tokio::test]
async fn a_bootstrap_host_fails_at_each_stage() {
    fails_at_each_stage(Who::Bootstrap).await;
}

#[tokio::test]
async fn a_master_fails_at_each_stage() {
    fails_at_each_stage(Who::Master).await;
}

#[tokio::test]
async fn a_single_node_fails_at_each_stage() {
    fails_at_each_stage(Who::SingleNode).await;
}

#[tokio::test]
async fn a_worker_fails_at_each_stage() {
    fails_at_each_stage(Who::Worker).await;
}

#[tokio::test]
async fn a_host_that_joins_a_running_cluster_fails_at_each_stage() {
    fails_at_each_stage(Who::DayTwo).await;
}
