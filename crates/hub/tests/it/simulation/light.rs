//! Short schedules without installations: lending, moving, returning and everything that goes wrong meanwhile, by the
//! thousand.

use super::laws;
use crate::world::World;
use jiff::SignedDuration;
use rand::RngExt;

const STEPS: usize = 16;

/// What may be wrong with the machines for the whole of a short schedule.
const MISHAPS: [&str; 7] = [
    "dup-uuid:2",
    "doubled-replies:100%:50%",
    "slow-replies:#0:45s",
    "clock-skew:#0:90m",
    "flapping-inventory:#1:60s",
    "shrinking-disk:#0",
    "media-loss:#0:3m",
];

/// One schedule from its seed; everything random comes from it.
pub async fn play(seed: u64) {
    let mut world = World::light(seed).await;
    for _ in 0..STEPS {
        world.light_step().await;
        laws::hold(&mut world).await;
    }
    world.calm_down().await;
    laws::hold(&mut world).await;
    laws::everybody_is_at_rest(&mut world).await;
    for cluster in world.clusters.clone() {
        assert!(world.try_delete_cluster(cluster).await);
    }
    world.clusters.clear();
    world.run_for(SignedDuration::from_mins(5)).await;
    laws::hold(&mut world).await;
    laws::everybody_came_home(&mut world).await;
}

impl World {
    /// Two InfraEnvs with a machine or two each, and two clusters. In some worlds both images were booted by one machine.
    async fn light(seed: u64) -> Self {
        let mut world = Self::on_either(seed).await;
        world.infra_env = world.pool("west", None).await;
        let east = world.pool("east", None).await;
        let mut faults = Vec::new();
        if world.rng.random_range(0..2) == 0 {
            faults.push(MISHAPS[world.rng.random_range(0..MISHAPS.len())]);
        }
        world.boot(world.infra_env, 2, &faults);
        let mut other = world.setup(east, &[]);
        if world.rng.random_range(0..3) == 0 {
            other.first_index = 0;
        }
        world.boot_as(other, 1);
        world.new_cluster("alpha").await;
        let wish = world.single_node_wish("beta");
        world.create_cluster(wish).await;
        world.faults = true;
        world
    }

    async fn light_step(&mut self) {
        match self.rng.random_range(0..20) {
            0..9 => self.time_passes().await,
            9 => self.crash().await,
            10 => self.somebody_at_the_rack(),
            _ => self.somebody_lends().await,
        }
    }

    async fn time_passes(&mut self) {
        let seconds = [1, 5, 30, 60, 61, 200, 1000][self.rng.random_range(0..7)];
        self.clock.advance(SignedDuration::from_secs(seconds));
        self.machines_act().await;
        // Workers are sometimes late.
        if self.rng.random_range(0..4) > 0 {
            self.settle().await;
        }
    }

    fn somebody_at_the_rack(&mut self) {
        let machine = self.any_machine();
        match (self.is_powered(machine), self.rng.random_range(0..3)) {
            (_, 0) => self.boot_discovery(machine),
            (true, _) => self.power_off(machine),
            (false, _) => self.power_on(machine),
        }
    }

    async fn somebody_lends(&mut self) {
        let (machine, cluster) = (self.any_machine(), self.rng.random_range(0..self.clusters.len()));
        match self.rng.random_range(0..14) {
            0..5 => drop(self.bind(machine, cluster).await),
            5 | 6 => drop(self.unbind(machine).await),
            7..10 => drop(self.move_host(machine, cluster).await),
            10 => self.delete_host(machine).await,
            11 => self.replace_cluster(cluster).await,
            12 => drop(self.reclaim(machine).await),
            _ => self.plant_secrets(machine).await,
        }
    }
}
