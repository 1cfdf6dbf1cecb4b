//! Chance: what happens next in a random schedule.

use crate::world::{Promise, V2, World};
use jiff::SignedDuration;
use muster_domain::host::rules;
use muster_hub::worker;
use rand::RngExt;
use serde_json::{Value, json};
use uuid::Uuid;

const MACHINES: u32 = 3;

/// What may be wrong with one of the machines for the whole of a schedule.
const MISHAPS: [&str; 10] = [
    "fail:#0:writing-image-to-disk",
    "fail:#1:joined",
    "fail:#2:starting-installation",
    "install-exit:#1",
    "wrong-boot:#2",
    "image-failure:#0:2",
    "reclaim-failure:#1",
    "reboot:#0:installing",
    "power-off:#2:rebooting:10m",
    "shrinking-disk:#1",
];

impl World {
    /// Three machines, a cluster for all of them and one for any of them.
    pub async fn random(seed: u64) -> Self {
        let mut world = Self::on_either(seed).await;
        world.infra_env = world.pool("sim", None).await;
        let mut faults = Vec::new();
        if world.rng.random_range(0..2) == 0 {
            faults.push(MISHAPS[world.rng.random_range(0..MISHAPS.len())]);
        }
        let mut setup = world.setup(world.infra_env, &faults);
        if world.rng.random_range(0..4) == 0 {
            setup.profile = None;
        }
        // In half of all worlds somebody with a power controller looks after the machines.
        setup.return_boots_ms = (world.rng.random_range(0..2) == 0).then_some(600_000);
        world.boot_as(setup, MACHINES);
        world.new_cluster("alpha").await;
        let wish = world.single_node_wish("beta");
        world.create_cluster(wish).await;
        world.faults = true;
        world
    }

    pub async fn random_cluster(&mut self, name: &str) -> Uuid {
        let wish = match self.rng.random_range(0..2) {
            0 => self.cluster_wish(name),
            _ => self.single_node_wish(name),
        };
        self.create_cluster(wish).await
    }

    pub async fn random_step(&mut self) {
        match self.rng.random_range(0..20) {
            0..12 => self.random_happening().await,
            _ => self.person_asks().await,
        }
    }

    /// Something nobody asked for.
    pub async fn random_happening(&mut self) {
        match self.rng.random_range(0..24) {
            0..18 => self.pass_time().await,
            18 | 19 => self.crash().await,
            20 | 21 => {
                let machine = self.any_machine();
                if self.is_powered(machine) {
                    self.power_off(machine)
                } else {
                    self.power_on(machine)
                }
            }
            22 => {
                let machine = self.any_machine();
                self.boot_discovery(machine);
            }
            _ => {
                worker::flush::once(&self.hub)
                    .await
                    .expect("signs of life are written");
            }
        }
    }

    async fn pass_time(&mut self) {
        // Installations need somebody to act at many moments; the rest is content with one.
        if self.rng.random_range(0..3) == 0 {
            let minutes = [1, 3, 10, 30][self.rng.random_range(0..4)];
            return self.run_for(SignedDuration::from_mins(minutes)).await;
        }
        let seconds = [1, 5, 30, 60, 61, 200, 1000][self.rng.random_range(0..7)];
        self.clock.advance(SignedDuration::from_secs(seconds));
        self.machines_act().await;
        // Workers are sometimes late.
        if self.rng.random_range(0..4) > 0 {
            self.settle().await;
        }
    }

    pub fn any_machine(&mut self) -> usize {
        self.rng.random_range(0..self.machines.len())
    }

    async fn person_asks(&mut self) {
        let (machine, cluster) = (self.any_machine(), self.rng.random_range(0..self.clusters.len()));
        let id = self.clusters[cluster];
        match self.rng.random_range(0..25) {
            22.. => self.means_to_install(cluster).await,
            0..5 => drop(self.bind(machine, cluster).await),
            5 | 6 => drop(self.unbind(machine).await),
            7 => drop(self.move_host(machine, cluster).await),
            8 => self.delete_host(machine).await,
            9 => self.replace_cluster(cluster).await,
            10..15 => drop(self.act(id, "install").await),
            15 => drop(self.act(id, "cancel").await),
            16 | 17 => drop(self.act(id, "reset").await),
            18 => drop(self.reclaim(machine).await),
            19 => drop(self.act(id, "allow-add-hosts").await),
            20 => drop(self.host_act(machine, "install").await),
            _ => self.plant_secrets(machine).await,
        }
    }

    /// Binds what is free, gives it time, and installs.
    async fn means_to_install(&mut self, cluster: usize) {
        for machine in 0..self.machines.len() {
            if self.host_status(machine) == "known-unbound" {
                self.bind(machine, cluster).await;
            }
        }
        self.run_for(SignedDuration::from_mins(7)).await;
        self.act(self.clusters[cluster], "install").await;
        let minutes = self.rng.random_range(0..30);
        self.run_for(SignedDuration::from_mins(minutes)).await;
    }

    pub async fn delete_host(&mut self, machine: usize) {
        let path = self.host_path(machine);
        let (status, _) = self.call("DELETE", &path, None).await;
        if status == 204 {
            self.promise(machine, None);
        }
    }

    /// A cluster goes and another comes.
    pub async fn replace_cluster(&mut self, cluster: usize) {
        let old = self.clusters[cluster];
        if !self.try_delete_cluster(old).await {
            return;
        }
        let name = format!("gamma{}", self.rng.random_range(0..1000));
        self.random_cluster(&name).await;
        self.clusters.swap_remove(cluster);
    }

    /// Whether it went; one that is being installed does not.
    pub async fn try_delete_cluster(&mut self, old: Uuid) -> bool {
        let status = self.cluster_status(old);
        let (code, body) = self.call("DELETE", &format!("{V2}/clusters/{old}"), None).await;
        if status == "installing" {
            assert_eq!(code, 409, "{body}");
            return false;
        }
        assert_eq!(code, 204, "{body}");
        for promise in self.promised.iter_mut().flatten() {
            // A host that was on its way there stays free.
            if [Promise::In(Some(old)), Promise::Moving(old)].contains(promise) {
                *promise = Promise::In(None);
            }
        }
        true
    }

    /// Fills every secret a borrower can set with something to look for later.
    pub async fn plant_secrets(&mut self, machine: usize) {
        let path = self.host_path(machine);
        // What somebody writes on a free host is for whoever gets it next. On its way back it would be a late edit.
        let row = self.hub.index.host(self.key(machine));
        if row.is_none_or(|row| row.is_free() && !rules::is_coming_back(&row)) {
            return;
        }
        let change = json!({ "host_name": format!("canary-name-{machine}"), "ignition_endpoint_token": "canary-token",
            "ignition_endpoint_http_headers": [{ "key": "X-Canary", "value": "canary-header" }],
            "node_labels": [{ "key": "canary", "value": "canary-label" }],
            "machine_config_pool_name": "canary-pool",
            "fencing_credentials": { "address": "redfish://canary", "username": "canary", "password": "canary" } });
        self.call("PATCH", &path, Some(change)).await;
        if let Some(disk) = self.other_disk(machine).await {
            let skip = json!({ "disks_skip_formatting": [{ "disk_id": disk, "skip_formatting": true }] });
            self.call("PATCH", &path, Some(skip)).await;
        }
        let args = json!({ "args": ["--append-karg", "canary=1"] });
        self.call("PATCH", &format!("{path}/installer-args"), Some(args))
            .await;
        let config = json!({ "config": r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/canary"}]}}"# });
        self.call("PATCH", &format!("{path}/ignition"), Some(config))
            .await;
    }

    /// A disk of the machine that nothing is installed to.
    async fn other_disk(&mut self, machine: usize) -> Option<String> {
        let host = self.host(machine).await;
        let inventory: Value = serde_json::from_str(host["inventory"].as_str()?).ok()?;
        let mut disks = inventory["disks"].as_array()?.iter();
        let other = disks.find(|disk| disk["id"] != host["installation_disk_id"])?;
        other["id"].as_str().map(str::to_owned)
    }

    /// No more faults: everything is powered, and there is time.
    pub async fn calm_down(&mut self) {
        self.faults = false;
        for machine in 0..self.machines.len() {
            self.power_on(machine);
        }
        self.run_for(SignedDuration::from_mins(6)).await;
    }

    /// All clusters go, and somebody boots the discovery image where it is needed.
    pub async fn send_everybody_home(&mut self) {
        for cluster in self.clusters.clone() {
            if !self.try_delete_cluster(cluster).await {
                self.cancel(cluster).await;
                assert!(self.try_delete_cluster(cluster).await);
            }
        }
        self.clusters.clear();
        for machine in 0..self.machines.len() {
            if self.host_status(machine).starts_with("reclaiming") {
                self.start_reclaim(machine);
            }
        }
        // Some fetch the image themselves and fail; then somebody has to come for them, too.
        for _ in 0..2 {
            crate::installation::moments::boot_those_who_wait(self);
            self.run_for(SignedDuration::from_mins(15)).await;
        }
    }
}
