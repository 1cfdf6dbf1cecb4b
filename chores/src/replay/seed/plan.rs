//! Which infra-envs, clusters and hosts existed before the first request, read off the recorded answers.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::recording::{Exchange, Recording, objects, word};

/// How far a host has to be brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Registered,
    Reported,
    Binding,
    /// Registered again after the bind, inventory not sent yet.
    Rejoined,
    Bound,
    Unbinding,
}

#[derive(Debug, Clone)]
pub struct HostSeed {
    pub view: Map<String, Value>,
    pub start: Start,
}

#[derive(Debug, Default)]
pub struct Plan {
    pub infra_envs: Vec<Map<String, Value>>,
    pub clusters: Vec<Map<String, Value>>,
    pub hosts: Vec<HostSeed>,
}

impl Plan {
    pub fn of(recording: &Recording) -> Self {
        let mut plan = Self::default();
        let mut known = BTreeSet::new();
        for exchange in &recording.exchanges {
            if !(200..300).contains(&exchange.response.status) {
                continue;
            }
            let creates = creates(exchange);
            objects(&exchange.response.body, &mut |view| {
                let new = known.insert((word(view, "infra_env_id").to_owned(), word(view, "id").to_owned()));
                if new && !creates {
                    plan.see(view, exchange);
                }
            });
        }
        let created = |id: &str| known.iter().any(|(_, known)| known == id);
        plan.hosts_implied_by_refusals(recording);
        plan.hosts_that_are_only_counted();
        plan.parents(&created);
        plan
    }

    fn see(&mut self, view: &Map<String, Value>, exchange: &Exchange) {
        match word(view, "kind") {
            "InfraEnv" => self.infra_envs.push(view.clone()),
            "Cluster" | "AddHostsCluster" => self.clusters.push(view.clone()),
            "Host" | "AddToExistingClusterHost" => {
                let start = start(view, exchange);
                let mut view = view.clone();
                if exchange.request.route().ends_with("/actions/bind") {
                    view.remove("cluster_id");
                }
                self.hosts.push(HostSeed { view, start });
            }
            _ => {}
        }
    }

    /// An infra-env that could not be deleted has a host, shown or not.
    fn hosts_implied_by_refusals(&mut self, recording: &Recording) {
        for exchange in recording
            .exchanges
            .iter()
            .filter(|exchange| exchange.response.status == 400)
        {
            let (method, route) = (exchange.request.method.as_str(), exchange.request.route());
            let Some(id) = route
                .strip_prefix("/infra-envs/")
                .filter(|rest| !rest.contains('/'))
            else {
                continue;
            };
            let empty = !self
                .hosts
                .iter()
                .any(|host| word(&host.view, "infra_env_id") == id);
            if method == "DELETE" && empty && self.infra_envs.iter().any(|view| word(view, "id") == id) {
                self.stand_in(id, None);
            }
        }
    }

    /// A cluster may count hosts that no answer shows.
    fn hosts_that_are_only_counted(&mut self) {
        for cluster in self.clusters.clone() {
            let id = word(&cluster, "id");
            let shown = self
                .hosts
                .iter()
                .filter(|host| word(&host.view, "cluster_id") == id)
                .count();
            let counted = cluster
                .get("total_host_count")
                .and_then(Value::as_u64)
                .unwrap_or_default() as usize;
            let infra_env = self
                .infra_envs
                .first()
                .map_or("", |view| word(view, "id"))
                .to_owned();
            for _ in shown..counted {
                self.stand_in(&infra_env, Some(id));
            }
        }
    }

    fn stand_in(&mut self, infra_env: &str, cluster: Option<&str>) {
        let number = self.hosts.len();
        let mut view = Map::new();
        view.insert(
            "id".into(),
            json!(format!("5eed0000-0000-4000-8000-{number:012}")),
        );
        // A recording that shows no infra-env gets one of its own.
        let infra_env = if infra_env.is_empty() {
            "5eed0000-0000-4000-8000-aaaaaaaaaaaa"
        } else {
            infra_env
        };
        view.insert("infra_env_id".into(), json!(infra_env));
        if let Some(cluster) = cluster {
            view.insert("cluster_id".into(), json!(cluster));
        }
        let start = if cluster.is_some() {
            Start::Bound
        } else {
            Start::Reported
        };
        self.hosts.push(HostSeed { view, start });
    }

    /// Infra-envs and clusters that hosts refer to without any answer showing them.
    fn parents(&mut self, known: &impl Fn(&str) -> bool) {
        for host in &mut self.hosts {
            let leaves = host.start == Start::Unbinding && word(&host.view, "cluster_id").is_empty();
            if leaves {
                let any = self
                    .clusters
                    .first()
                    .map_or("5eed0000-0000-4000-8000-cccccccccccc", |view| word(view, "id"));
                host.view.insert("cluster_id".into(), json!(any));
            }
        }
        for (number, host) in self.hosts.iter().enumerate() {
            let missing = |list: &[Map<String, Value>], id: &str| {
                !id.is_empty() && !known(id) && !list.iter().any(|view| word(view, "id") == id)
            };
            let (infra_env, cluster) = (word(&host.view, "infra_env_id"), word(&host.view, "cluster_id"));
            if missing(&self.infra_envs, infra_env) {
                self.infra_envs.push(stub(infra_env, "InfraEnv", number));
            }
            if missing(&self.clusters, cluster) {
                let day2 = word(&host.view, "kind") == "AddToExistingClusterHost";
                self.clusters.push(stub(
                    cluster,
                    if day2 { "AddHostsCluster" } else { "Cluster" },
                    number,
                ));
            }
        }
    }
}

fn stub(id: &str, kind: &str, number: usize) -> Map<String, Value> {
    let view = json!({ "id": id, "kind": kind, "name": format!("seed-{number}") });
    view.as_object().cloned().unwrap_or_default()
}

fn creates(exchange: &Exchange) -> bool {
    let route = exchange.request.route();
    exchange.request.method == "POST"
        && (["/infra-envs", "/clusters", "/clusters/import"].contains(&route) || route.ends_with("/hosts"))
}

/// Where the host has to be for the exchange that shows it first.
fn start(view: &Map<String, Value>, exchange: &Exchange) -> Start {
    let route = exchange.request.route();
    if route.ends_with("/actions/bind") {
        return Start::Reported;
    }
    if route.ends_with("/actions/unbind") {
        return Start::Bound;
    }
    let reported = !word(view, "inventory").is_empty();
    match word(view, "status") {
        "discovering-unbound" if !reported => Start::Registered,
        "discovering-unbound" | "known-unbound" | "insufficient-unbound" | "disconnected-unbound" => {
            Start::Reported
        }
        "binding" => Start::Binding,
        "discovering" if !reported => Start::Rejoined,
        "unbinding" | "unbinding-pending-user-action" => Start::Unbinding,
        _ => Start::Bound,
    }
}
