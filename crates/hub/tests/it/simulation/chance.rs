//! Chance: what happens next in a random schedule.

use crate::world::{V2, World};
use jiff::SignedDuration;
use muster_hub::worker;
use rand::RngExt;
use serde_json::json;

const MACHINES: u32 = 3;

impl World {
    /// Three machines and two clusters.
    pub async fn random(seed: u64) -> Self {
        let mut world = Self::empty(seed).await;
        world.infra_env = world.pool("sim", None).await;
        let mut setup = world.setup(world.infra_env, &[]);
        setup.profile = None;
        world.boot_as(setup, MACHINES);
        for name in ["alpha", "beta"] {
            world.new_cluster(name).await;
        }
        world.faults = true;
        world
    }

    pub async fn random_step(&mut self) {
        match self.rng.random_range(0..20) {
            0..9 => self.pass_time().await,
            9 => self.crash().await,
            10 => {
                let machine = self.any_machine();
                if self.is_powered(machine) {
                    self.power_off(machine)
                } else {
                    self.power_on(machine)
                }
            }
            11 => {
                worker::flush::once(&self.hub)
                    .await
                    .expect("signs of life are written");
            }
            _ => self.person_asks().await,
        }
    }

    async fn pass_time(&mut self) {
        let seconds = [1, 5, 30, 60, 61, 200, 1000][self.rng.random_range(0..7)];
        self.clock.advance(SignedDuration::from_secs(seconds));
        self.machines_act().await;
        // Workers are sometimes late.
        if self.rng.random_range(0..4) > 0 {
            self.settle().await;
        }
    }

    pub fn any_machine(&mut self) -> usize {
        self.rng.random_range(0..MACHINES) as usize
    }

    async fn person_asks(&mut self) {
        let (machine, cluster) = (self.any_machine(), self.rng.random_range(0..self.clusters.len()));
        match self.rng.random_range(0..12) {
            0..4 => drop(self.bind(machine, cluster).await),
            4..6 => drop(self.unbind(machine).await),
            6..8 => drop(self.move_host(machine, cluster).await),
            8 => {
                let path = self.host_path(machine);
                let (status, _) = self.call("DELETE", &path, None).await;
                if status == 204 {
                    self.promised[machine] = None;
                }
            }
            9 => self.replace_cluster(cluster).await,
            _ => self.plant_secrets(machine).await,
        }
    }

    /// A cluster goes and another comes.
    async fn replace_cluster(&mut self, cluster: usize) {
        let old = self.clusters[cluster];
        let (status, body) = self.call("DELETE", &format!("{V2}/clusters/{old}"), None).await;
        assert_eq!(status, 204, "{body}");
        for promise in &mut self.promised {
            if *promise == Some(Some(old)) {
                *promise = Some(None);
            }
        }
        let name = format!("gamma{}", self.rng.random_range(0..1000));
        self.new_cluster(&name).await;
        self.clusters.swap_remove(cluster);
    }

    /// Fills every secret a borrower can set with something to look for later.
    async fn plant_secrets(&mut self, machine: usize) {
        let path = self.host_path(machine);
        if self.cluster_of(machine).await.is_none() {
            return;
        }
        let change = json!({ "host_name": "canary-name", "ignition_endpoint_token": "canary-token",
            "ignition_endpoint_http_headers": [{ "key": "X-Canary", "value": "canary-header" }],
            "node_labels": [{ "key": "canary", "value": "canary-label" }],
            "machine_config_pool_name": "canary-pool" });
        self.call("PATCH", &path, Some(change)).await;
        let args = json!({ "args": ["--append-karg", "canary=1"] });
        self.call("PATCH", &format!("{path}/installer-args"), Some(args))
            .await;
        let config = json!({ "config": r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/canary"}]}}"# });
        self.call("PATCH", &format!("{path}/ignition"), Some(config))
            .await;
    }

    /// No more faults: everything is powered, and there is time.
    pub async fn calm_down(&mut self) {
        self.faults = false;
        for machine in 0..self.machines.len() {
            self.power_on(machine);
        }
        self.run_for(SignedDuration::from_mins(6)).await;
    }
}
