//! Whole installations against a hub that knows just enough, on a clock the test moves.

mod flow;
mod returning;
mod trouble;

use crate::answer::CANNOT_START;
use crate::fault::Fault;
use crate::host::{Condition, Installs, SimHost};
use crate::request::{Call, Next, Outcome, Request};
use crate::setup::Setup;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use uuid::Uuid;

const START: u64 = 1_800_000_000_000;
const MINUTE: u64 = 60_000;
const CLUSTER: Uuid = Uuid::from_u128(3);
const POOL: Uuid = Uuid::from_u128(7);

/// A host as the hub sees it.
#[derive(Debug, Default, Clone)]
struct Row {
    role: &'static str,
    bootstrap: bool,
    status: String,
    stage: String,
    /// What its agent must do; `install` follows from its status.
    orders: Vec<(&'static str, String)>,
    exits: bool,
}

/// One call that the hub got.
#[derive(Debug, Clone)]
struct Heard {
    at_ms: u64,
    host: usize,
    method: String,
    path: String,
    body: Value,
}

struct Hub {
    rows: BTreeMap<Uuid, Row>,
    cluster: String,
    kind: &'static str,
    ignition: &'static str,
    /// What the downloads of files answer.
    files: u16,
    operators: BTreeMap<String, String>,
    heard: Vec<Heard>,
    /// Paths that are not found.
    refuse: Option<&'static str>,
}

fn response(status: u16, body: &Value) -> Outcome {
    Outcome::Response {
        status,
        body: serde_json::to_vec(body).unwrap(),
    }
}

impl Hub {
    fn answer(&mut self, host: usize, id: Uuid, now_ms: u64, request: &Request) -> Outcome {
        let path = request.path.split("/v2").nth(1).unwrap().to_owned();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let method = request.method.as_str();
        self.heard.push(Heard {
            at_ms: now_ms,
            host,
            method: method.to_owned(),
            path: path.clone(),
            body: body.clone(),
        });
        if self.refuse.is_some_and(|what| path.contains(what)) {
            return response(404, &json!({}));
        }
        match (method, path.split('?').next().unwrap()) {
            ("POST", p) if p.ends_with("/hosts") => self.register(id),
            ("GET", p) if p.ends_with("/instructions") => self.steps(id),
            ("POST", p) if p.ends_with("/instructions") => response(204, &json!(null)),
            ("PUT", p) if p.starts_with("/infra-envs") && p.ends_with("/progress") => {
                self.progress(id, &body)
            }
            ("GET", p) if p.ends_with("/downloads/ignition") => match self.files {
                200 => Outcome::Response {
                    status: 200,
                    body: self.ignition.as_bytes().to_vec(),
                },
                status => response(status, &json!({})),
            },
            ("GET", p) if p.ends_with("/downloads/files") => response(self.files, &json!({})),
            ("GET", p) if p.ends_with(&format!("{CLUSTER}/hosts")) => self.hosts(),
            ("GET", p) if p.ends_with(&format!("/clusters/{CLUSTER}")) => response(
                200,
                &json!({"status": self.cluster, "kind": self.kind, "openshift_version": "4.20.1"}),
            ),
            ("GET", p) if p.ends_with("/monitored-operators") => {
                let list: Vec<Value> = self.operators.iter().map(operator).collect();
                response(200, &json!(list))
            }
            ("PUT", p) if p.ends_with("/monitored-operators") => {
                let word = |key: &str| body[key].as_str().unwrap().to_owned();
                self.operators.insert(word("name"), word("status"));
                response(200, &json!({}))
            }
            ("POST", p) if p.ends_with("/complete-installation") => {
                self.cluster = "installed".into();
                response(202, &json!({}))
            }
            ("GET", p) if p.starts_with("/infra-envs") => {
                response(200, &json!({"status": self.rows[&id].status}))
            }
            _ => response(200, &json!({})),
        }
    }

    fn register(&mut self, id: Uuid) -> Outcome {
        let row = self.rows.get_mut(&id).unwrap();
        if row.status.starts_with("unbinding") {
            row.status = "discovering-unbound".into();
        }
        let args = json!({"agent_version": "agent:1", "host_id": id, "infra_env_id": POOL}).to_string();
        response(
            201,
            &json!({"id": id, "cluster_id": CLUSTER, "next_step_runner_command": {"args": [args]}}),
        )
    }

    fn steps(&mut self, id: Uuid) -> Outcome {
        let masters = self.rows.values().filter(|row| row.role == "master").count();
        let row = &self.rows[&id];
        let mut steps: Vec<Value> = row
            .orders
            .iter()
            .map(|(word, args)| json!({"step_type": word, "step_id": format!("{word}-1"), "args": [args]}))
            .collect();
        if row.status == "installing" {
            let role = if row.bootstrap { "bootstrap" } else { row.role };
            let args = json!({"cluster_id": CLUSTER, "infra_env_id": POOL, "host_id": id, "role": role,
                "control_plane_count": masters, "boot_device": "/dev/sda", "notify_num_reboots": true});
            steps.push(json!({"step_type": "install", "step_id": "install-1", "args": [args.to_string()]}));
        }
        let action = if row.exits { "exit" } else { "continue" };
        response(
            200,
            &json!({"next_instruction_seconds": 60, "post_step_action": action, "instructions": steps}),
        )
    }

    fn progress(&mut self, id: Uuid, body: &Value) -> Outcome {
        let row = self.rows.get_mut(&id).unwrap();
        let stage = body["current_stage"].as_str().unwrap();
        if row.status == "cancelled" {
            return response(409, &json!({}));
        }
        row.status = match stage {
            "Failed" => "error",
            "Done" => "installed",
            _ => "installing-in-progress",
        }
        .into();
        row.stage = stage.into();
        if self.rows.values().all(|row| row.status == "installed") {
            self.cluster = "finalizing".into();
        }
        response(200, &json!({}))
    }

    fn hosts(&self) -> Outcome {
        let list: Vec<Value> = self
            .rows
            .iter()
            .map(|(id, row)| {
                json!({"id": id, "role": row.role, "bootstrap": row.bootstrap, "status": row.status,
                    "inventory": "{}", "progress": {"current_stage": row.stage}})
            })
            .collect();
        response(200, &json!(list))
    }
}

fn operator((name, status): (&String, &String)) -> Value {
    json!({"name": name, "status": status, "operator_type": "builtin"})
}

/// A hub and some machines.
struct World {
    hub: Hub,
    hosts: Vec<SimHost>,
    now_ms: u64,
}

fn setup() -> Setup {
    Setup {
        infra_env_id: POOL,
        ..Setup::default()
    }
}

fn with_faults(faults: &[&str]) -> Setup {
    let faults = faults.iter().map(|text| text.parse::<Fault>().unwrap()).collect();
    Setup { faults, ..setup() }
}

impl World {
    /// All machines must install; the first is the bootstrap host.
    fn installing(setup: Setup, roles: &[&'static str]) -> Self {
        let setup = Arc::new(setup);
        let hosts: Vec<SimHost> = (0..roles.len() as u32)
            .map(|index| SimHost::new(setup.clone(), index, START))
            .collect();
        let row = |(at, role): (usize, &&'static str)| {
            let row = Row {
                role,
                bootstrap: at == 0 && *role == "master",
                status: "installing".into(),
                ..Row::default()
            };
            (hosts[at].id(), row)
        };
        let hub = Hub {
            rows: roles.iter().enumerate().map(row).collect(),
            cluster: "installing".into(),
            kind: "Cluster",
            ignition: "{}",
            files: 200,
            operators: [("console".to_owned(), String::new())].into(),
            heard: Vec::new(),
            refuse: None,
        };
        Self {
            hub,
            hosts,
            now_ms: START,
        }
    }

    fn row(&mut self, host: usize) -> &mut Row {
        self.hub.rows.get_mut(&self.hosts[host].id()).unwrap()
    }

    /// Everything happens in its order until this time.
    fn run_for(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        loop {
            let mut wake = end;
            let mut acted = false;
            for at in 0..self.hosts.len() {
                match self.hosts[at].poll(self.now_ms) {
                    Next::Send(request) => {
                        acted = true;
                        let id = self.hosts[at].id();
                        let outcome = self.hub.answer(at, id, self.now_ms, &request);
                        self.hosts[at].receive(self.now_ms, request.tag, outcome);
                    }
                    Next::WaitUntil(ms) => wake = wake.min(ms),
                    Next::Idle => {}
                }
            }
            if acted {
                continue;
            }
            self.now_ms = wake;
            if wake >= end {
                return;
            }
        }
    }

    fn calls(&self, host: usize, what: &str) -> Vec<&Heard> {
        let heard = self.hub.heard.iter();
        heard
            .filter(|call| call.host == host && call.path.contains(what))
            .collect()
    }

    /// The stages that a host reported, each once.
    fn stages(&self, host: usize) -> Vec<String> {
        let mut stages: Vec<String> = self
            .calls(host, "hosts/")
            .iter()
            .filter_map(|call| call.body["current_stage"].as_str().map(str::to_owned))
            .collect();
        stages.dedup();
        stages
    }

    fn info(&self, host: usize, stage: &str) -> Vec<&str> {
        let reports = self
            .calls(host, "/progress")
            .into_iter()
            .filter(|call| call.body["current_stage"] == stage);
        reports
            .map(|call| call.body["progress_info"].as_str().unwrap_or(""))
            .collect()
    }

    fn installs(&self) -> Vec<Installs> {
        self.hosts.iter().map(SimHost::installs).collect()
    }

    fn registrations(&self, host: usize) -> usize {
        let calls = self.calls(host, "/hosts");
        calls
            .iter()
            .filter(|call| call.method == "POST" && call.path.ends_with("/hosts"))
            .count()
    }

    fn last_reply(&self, host: usize, step: &str) -> Option<Value> {
        let calls = self.calls(host, "/instructions");
        calls
            .iter()
            .rev()
            .find(|call| call.body["step_type"] == step)
            .map(|call| call.body.clone())
    }
}

const DONE: Installs = Installs { done: 1, failed: 0 };
const FAILED: Installs = Installs { done: 0, failed: 1 };
const THREE: &[&str] = &["master", "master", "master"];
