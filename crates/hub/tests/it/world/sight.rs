//! What an onlooker sees: statuses, events, explanations, and the moment at which something has come true.

use super::{V1, V2, World};
use jiff::SignedDuration;
use muster_domain::ClusterId;
use serde_json::Value;
use std::fmt::Write;
use uuid::Uuid;

impl World {
    pub async fn host(&mut self, machine: usize) -> Value {
        let path = self.host_path(machine);
        self.call("GET", &path, None).await.1
    }

    pub async fn status(&mut self, machine: usize) -> String {
        self.host(machine).await["status"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub async fn statuses(&mut self, machines: &[usize]) -> Vec<String> {
        let mut all = Vec::new();
        for machine in machines {
            all.push(self.status(*machine).await);
        }
        all
    }

    pub async fn cluster(&mut self, cluster: Uuid) -> Value {
        self.call("GET", &format!("{V2}/clusters/{cluster}"), None)
            .await
            .1
    }

    pub fn cluster_status(&self, cluster: Uuid) -> &'static str {
        let row = self.hub.index.cluster(ClusterId(cluster));
        row.map_or("gone", |row| row.status().word())
    }

    pub fn host_status(&self, machine: usize) -> &'static str {
        let row = self.hub.index.host(self.key(machine));
        row.map_or("gone", |row| row.status().word())
    }

    pub fn stage(&self, machine: usize) -> &'static str {
        let row = self.hub.index.host(self.key(machine));
        row.and_then(|row| row.progress.stage)
            .map_or("", |stage| stage.word())
    }

    pub async fn cluster_of(&self, machine: usize) -> Option<Uuid> {
        let host = self.store.find(self.key(machine)).await.expect("readable");
        host.and_then(|host| host.cluster).map(|cluster| cluster.0)
    }

    /// Lets time pass until it has come true; a panic with everybody's state when it does not within the limit.
    pub async fn until(&mut self, what: &str, minutes: i64, is_true: impl Fn(&World) -> bool) {
        let end = self.clock.now() + SignedDuration::from_mins(minutes);
        while !is_true(self) {
            if self.clock.now() >= end {
                let news = self.latest_news().await;
                panic!("{what}: not within {minutes} minutes\n{}{news}", self.describe());
            }
            self.step(end).await;
        }
    }

    /// The last lines of the history, for whoever has to find out what went wrong.
    async fn latest_news(&mut self) -> String {
        let events = self.events("").await;
        let lines = events.iter().rev().take(60).rev().map(|event| {
            let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}: {}\n", text("event_time"), text("name"), text("message"))
        });
        lines.collect()
    }

    pub async fn until_cluster(&mut self, cluster: Uuid, status: &str, minutes: i64) {
        let what = format!("the cluster is {status}");
        self.until(&what, minutes, |world| world.cluster_status(cluster) == status)
            .await;
    }

    pub async fn until_host(&mut self, machine: usize, status: &str, minutes: i64) {
        let what = format!("machine {machine} is {status}");
        self.until(&what, minutes, |world| world.host_status(machine) == status)
            .await;
    }

    pub async fn until_hosts(&mut self, machines: &[usize], status: &str, minutes: i64) {
        for machine in machines {
            self.until_host(*machine, status, minutes).await;
        }
    }

    pub async fn until_stage(&mut self, machine: usize, stage: &str, minutes: i64) {
        let what = format!("machine {machine} reports {stage}");
        self.until(&what, minutes, |world| world.stage(machine) == stage)
            .await;
    }

    pub fn describe(&self) -> String {
        let mut text = String::new();
        for cluster in self.hub.index.clusters() {
            let _ = writeln!(
                text,
                "cluster {}: {} ({}) {:?}",
                cluster.name,
                cluster.status(),
                cluster.status_info,
                cluster.install.preparation,
            );
        }
        for machine in 0..self.machines.len() {
            let Some(host) = self.hub.index.host(self.key(machine)) else {
                let _ = writeln!(text, "machine {machine}: not registered");
                continue;
            };
            let _ = writeln!(
                text,
                "machine {machine} {}: {} ({}) stage {:?}, {:?}, installer may run: {}, {:?}",
                host.name(),
                host.status().word(),
                host.status_info,
                host.progress.stage,
                host.role,
                host.installer_may_run,
                self.machines[machine].condition(),
            );
        }
        text
    }

    /// The names of events, oldest first.
    pub async fn events(&mut self, query: &str) -> Vec<Value> {
        let path = format!("{V2}/events?{query}&order=ascending&limit=5000");
        let (status, body) = self.call("GET", &path, None).await;
        assert_eq!(status, 200, "{body}");
        body.as_array().cloned().unwrap_or_default()
    }

    pub async fn events_of_host(&mut self, machine: usize) -> Vec<Value> {
        let id = self.machines[machine].id();
        self.events(&format!("host_id={id}&infra_env_id={}", self.pools[machine]))
            .await
    }

    pub async fn event_names(&mut self, query: &str) -> Vec<String> {
        let events = self.events(query).await;
        let name = |event: &Value| event["name"].as_str().unwrap_or_default().to_owned();
        events.iter().map(name).collect()
    }

    /// The receipts of a host's returns, newest last.
    pub async fn receipts(&mut self, machine: usize) -> Vec<Value> {
        let mut events = self.events_of_host(machine).await;
        events.retain(|event| event["name"] == "host_returned");
        events
    }

    pub async fn explain_host(&mut self, machine: usize) -> Value {
        let path = format!("{}/explain", self.host_path(machine).replace(V2, V1));
        let (status, body) = self.call("GET", &path, None).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    pub async fn explain_cluster(&mut self, cluster: Uuid) -> Value {
        let path = format!("{V1}/clusters/{cluster}/explain");
        let (status, body) = self.call("GET", &path, None).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Wherever everybody is, it says why, and what to do next.
    pub async fn nobody_is_left_without_a_word(&mut self) {
        for cluster in self.hub.index.clusters() {
            let told = self.explain_cluster(cluster.id.0).await;
            says_why_and_what_next(&told);
        }
        for machine in 0..self.machines.len() {
            if self.hub.index.slot(self.key(machine)).is_some() {
                let told = self.explain_host(machine).await;
                says_why_and_what_next(&told);
            }
        }
    }
}

fn says_why_and_what_next(told: &Value) {
    for field in ["status_info", "why", "next_action"] {
        let text = told[field].as_str().unwrap_or_default();
        assert!(!text.trim().is_empty(), "no {field}: {told}");
    }
}
