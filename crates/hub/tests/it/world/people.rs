//! The people's side: clusters are made, hosts lent and returned, installations started and stopped.

use super::{PULL_SECRET, Promise, V1, V2, World, id};
use serde_json::{Value, json};
use uuid::Uuid;

impl World {
    /// Settings with which a cluster of three masters, given hosts, is ready. Each has virtual addresses of its own.
    pub fn cluster_wish(&mut self, name: &str) -> Value {
        self.networks_given = (self.networks_given + 2) % 200;
        let address = |last: u8| json!([{ "ip": format!("10.64.0.{last}") }]);
        json!({ "name": name, "openshift_version": "4.20", "pull_secret": PULL_SECRET,
            "base_dns_domain": "example.com", "api_vips": address(20 + self.networks_given),
            "ingress_vips": address(21 + self.networks_given) })
    }

    pub fn single_node_wish(&mut self, name: &str) -> Value {
        json!({ "name": name, "openshift_version": "4.20", "pull_secret": PULL_SECRET,
            "base_dns_domain": "example.com", "control_plane_count": 1, "high_availability_mode": "None" })
    }

    pub async fn create_cluster(&mut self, wish: Value) -> Uuid {
        let (status, body) = self.call("POST", &format!("{V2}/clusters"), Some(wish)).await;
        assert_eq!(status, 201, "{body}");
        let id = id(&body);
        self.clusters.push(id);
        id
    }

    pub async fn new_cluster(&mut self, name: &str) -> Uuid {
        let wish = self.cluster_wish(name);
        self.create_cluster(wish).await
    }

    /// A cluster with these machines, ready to be installed.
    pub async fn ready_cluster(&mut self, name: &str, machines: &[usize]) -> Uuid {
        let wish = self.cluster_wish(name);
        self.ready(wish, machines).await
    }

    pub async fn ready(&mut self, wish: Value, machines: &[usize]) -> Uuid {
        let cluster = self.create_cluster(wish).await;
        for machine in machines {
            let (status, body) = self.bind_to(*machine, cluster).await;
            assert_eq!(status, 200, "{body}");
        }
        self.until_cluster(cluster, "ready", 15).await;
        cluster
    }

    pub async fn installed_cluster(&mut self, name: &str, machines: &[usize]) -> Uuid {
        let cluster = self.ready_cluster(name, machines).await;
        self.install(cluster).await;
        self.until_cluster(cluster, "installed", 120).await;
        cluster
    }

    pub async fn install(&mut self, cluster: Uuid) {
        let (status, body) = self.act(cluster, "install").await;
        assert_eq!(status, 202, "{body}");
    }

    /// `install`, `cancel`, `reset`, `allow-add-hosts`.
    pub async fn act(&mut self, cluster: Uuid, verb: &str) -> (u16, Value) {
        self.call("POST", &format!("{V2}/clusters/{cluster}/actions/{verb}"), None)
            .await
    }

    pub async fn cancel(&mut self, cluster: Uuid) {
        let (status, body) = self.act(cluster, "cancel").await;
        assert_eq!(status, 202, "{body}");
    }

    pub async fn reset(&mut self, cluster: Uuid) {
        let (status, body) = self.act(cluster, "reset").await;
        assert_eq!(status, 202, "{body}");
    }

    pub async fn delete_cluster(&mut self, cluster: Uuid) {
        let (status, body) = self
            .call("DELETE", &format!("{V2}/clusters/{cluster}"), None)
            .await;
        assert_eq!(status, 204, "{body}");
    }

    pub async fn bind_to(&mut self, machine: usize, cluster: Uuid) -> (u16, Value) {
        let path = format!("{}/actions/bind", self.host_path(machine));
        let (status, body) = self
            .call("POST", &path, Some(json!({ "cluster_id": cluster })))
            .await;
        if status == 200 {
            self.promise(machine, Some(Promise::In(Some(cluster))));
        }
        (status, body)
    }

    pub async fn bind(&mut self, machine: usize, cluster: usize) -> u16 {
        self.bind_to(machine, self.clusters[cluster]).await.0
    }

    pub async fn unbind(&mut self, machine: usize) -> u16 {
        let (status, _) = self.host_act(machine, "unbind").await;
        if status == 200 {
            self.promise(machine, Some(Promise::In(None)));
        }
        status
    }

    /// Machines that show one id are one host.
    pub fn promise(&mut self, machine: usize, promise: Option<Promise>) {
        let key = self.key(machine);
        for other in 0..self.machines.len() {
            if self.key(other) == key {
                self.promised[other] = promise;
            }
        }
    }

    /// `install`, `reset`, `unbind`.
    pub async fn host_act(&mut self, machine: usize, verb: &str) -> (u16, Value) {
        let path = self.host_path(machine);
        self.call("POST", &format!("{path}/actions/{verb}"), None).await
    }

    pub async fn reclaim(&mut self, machine: usize) -> (u16, Value) {
        let path = format!("{}/actions/reclaim", self.host_path(machine).replace(V2, V1));
        let (status, body) = self.call("POST", &path, None).await;
        if status < 300 {
            self.promise(machine, Some(Promise::In(None)));
        }
        (status, body)
    }

    pub async fn move_host(&mut self, machine: usize, cluster: usize) -> u16 {
        let id = self.clusters[cluster];
        let path = format!("{}/move", self.host_path(machine).replace(V2, V1));
        let (status, _) = self.call("POST", &path, Some(json!({ "cluster_id": id }))).await;
        if status == 202 {
            self.promise(machine, Some(Promise::Moving(id)));
        }
        status
    }

    pub async fn change_host(&mut self, machine: usize, change: Value) {
        let path = self.host_path(machine);
        let (status, body) = self.call("PATCH", &path, Some(change)).await;
        assert!((200..300).contains(&status), "{status} {body}");
    }

    pub async fn upload_ignition(&mut self, cluster: Uuid, role: &str, config: Value) {
        let path = format!("{V1}/clusters/{cluster}/ignition/{role}");
        let (status, body) = self.call("PUT", &path, Some(config)).await;
        assert_eq!(status, 200, "{body}");
    }

    pub async fn plan(&mut self, request: Value) -> Value {
        let (status, body) = self.call("POST", &format!("{V1}/plan"), Some(request)).await;
        assert_eq!(status, 200, "{body}");
        body
    }
}
