//! Whole installations against a hub that knows just enough, on a clock the test moves.

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
    /// What its agent is told; `install` follows from its status.
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
    /// All machines are told to install; the first is the bootstrap host.
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

#[test]
fn three_masters_install_and_their_controller_finishes_the_cluster() {
    let mut world = World::installing(setup(), THREE);
    world.run_for(15 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
    assert_eq!(
        world.stages(0),
        [
            "Starting installation",
            "Installing",
            "Writing image to disk",
            "Waiting for control plane",
            "Waiting for bootkube",
            "Waiting for controller",
            "Rebooting",
            "Configuring",
            "Joined",
            "Done"
        ]
    );
    for master in [1, 2] {
        assert_eq!(
            world.stages(master),
            [
                "Starting installation",
                "Installing",
                "Writing image to disk",
                "Rebooting",
                "Configuring",
                "Joined",
                "Done"
            ]
        );
        assert_eq!(world.info(master, "Installing"), ["master"]);
    }
    assert_eq!(world.info(0, "Installing"), ["bootstrap"]);
    assert_eq!(world.info(1, "Writing image to disk")[..3], ["", "5%", "10%"]);
    assert_eq!(world.installs(), [DONE; 3]);
    assert!(
        world
            .hosts
            .iter()
            .all(|host| host.condition() == Condition::Installed)
    );
}

#[test]
fn the_controller_runs_once_and_says_what_real_ones_say() {
    let mut world = World::installing(setup(), THREE);
    world.run_for(20 * MINUTE);
    let cluster = format!("/clusters/{CLUSTER}");
    let told: Vec<(String, Value)> = world
        .hub
        .heard
        .iter()
        .filter(|call| call.method != "GET" && call.path.starts_with(&cluster))
        .filter(|call| !call.path.contains("logs_type=host"))
        .map(|call| {
            let what = call.path[cluster.len()..].to_owned();
            let word = ["finalizing_stage", "status", "logs_state", "is_success"];
            let word = word.iter().find_map(|key| call.body.get(key)).cloned();
            (what, word.unwrap_or_default())
        })
        .collect();
    let told: Vec<(&str, Value)> = told
        .iter()
        .map(|(what, word)| (what.as_str(), word.clone()))
        .collect();
    assert_eq!(
        told,
        [
            ("/progress", json!("Waiting for cluster operators")),
            ("/monitored-operators", json!("progressing")),
            ("/monitored-operators", json!("available")),
            ("/progress", json!("Adding router ca")),
            ("/uploads/ingress-cert", json!(null)),
            ("/progress", json!("Done")),
            ("/logs-progress", json!("requested")),
            ("/actions/complete-installation", json!(true)),
            ("/logs?logs_type=controller", json!(null)),
            ("/logs-progress", json!("completed")),
        ]
    );
    let events: Vec<&Heard> = world
        .hub
        .heard
        .iter()
        .filter(|call| call.path == "/events")
        .collect();
    assert_eq!(events.len(), 3);
    assert_eq!(events[0].body["name"], "reboots_for_node");
    let certificate = world
        .hub
        .heard
        .iter()
        .find(|call| call.path.ends_with("ingress-cert"));
    assert!(
        certificate
            .unwrap()
            .body
            .as_str()
            .unwrap()
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    // When it is done, nobody asks anything any more.
    assert!(
        world
            .hosts
            .iter_mut()
            .all(|host| matches!(host.poll(world.now_ms), Next::Idle))
    );
}

#[test]
fn the_bootstrap_host_waits_until_two_masters_have_joined_and_reboots_last() {
    let mut world = World::installing(with_faults(&["silent:#2:0s:30m"]), THREE);
    world.run_for(25 * MINUTE);
    assert_eq!(world.stages(0).last().unwrap(), "Waiting for control plane");
    assert_eq!(world.stages(1).last().unwrap(), "Joined");
    world.run_for(20 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
    let at = |host: usize, stage: &str| {
        let calls = world.calls(host, "/progress");
        calls
            .iter()
            .find(|call| call.body["current_stage"] == stage)
            .unwrap()
            .at_ms
    };
    assert!(at(0, "Waiting for bootkube") >= at(2, "Joined"));
    assert!(at(1, "Done") >= at(0, "Waiting for controller"));
}

#[test]
fn workers_wait_for_the_control_plane() {
    let mut world = World::installing(setup(), &["master", "master", "master", "worker", "worker"]);
    world.run_for(20 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
    assert_eq!(
        world.stages(4),
        [
            "Starting installation",
            "Installing",
            "Writing image to disk",
            "Waiting for control plane",
            "Rebooting",
            "Configuring",
            "Joined",
            "Done"
        ]
    );
}

#[test]
fn a_single_node_installs_by_itself() {
    let mut world = World::installing(setup(), &["master"]);
    world.run_for(15 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
    assert_eq!(
        world.stages(0),
        [
            "Starting installation",
            "Installing",
            "Waiting for bootkube",
            "Writing image to disk",
            "Rebooting",
            "Joined",
            "Done"
        ]
    );
}

#[test]
fn an_installer_fetches_its_files_and_sends_its_logs_before_it_reboots() {
    let mut world = World::installing(setup(), &["master"]);
    world.run_for(15 * MINUTE);
    let id = world.hosts[0].id();
    let order: Vec<&str> = world
        .hub
        .heard
        .iter()
        .filter(|call| !call.path.contains("instructions") && call.body.get("progress_info").is_none())
        .map(|call| call.path.as_str())
        .collect();
    let place = |what: &str| order.iter().position(|path| path.contains(what)).expect(what);
    let bootstrap = place("/downloads/files?file_name=bootstrap.ign");
    let ignition = place(&format!("/infra-env/{POOL}/hosts/{id}/downloads/ignition"));
    let logs = place(&format!(
        "/clusters/{CLUSTER}/logs?logs_type=host&host_id={id}&infra_env_id={POOL}"
    ));
    assert!(bootstrap < ignition && ignition < logs);
    assert!(order[logs - 1].ends_with("/logs-progress") && order[logs + 1].ends_with("/logs-progress"));
    assert!(
        order[logs + 2].ends_with("/progress"),
        "Rebooting is reported last"
    );
}

#[test]
fn the_agent_is_gone_after_the_reboot() {
    let mut world = World::installing(setup(), &["master"]);
    world.run_for(15 * MINUTE);
    let rebooted = world.calls(0, "/progress");
    let rebooted = rebooted
        .iter()
        .find(|call| call.body["current_stage"] == "Rebooting")
        .unwrap()
        .at_ms;
    let calls = world.calls(0, "/instructions");
    assert!(calls.iter().all(|call| call.at_ms <= rebooted));
}

#[test]
fn a_second_install_step_finds_the_first_running() {
    let mut world = World::installing(setup(), THREE);
    let args = json!({"cluster_id": CLUSTER, "infra_env_id": POOL, "host_id": world.hosts[1].id(), "role": "master"});
    world.run_for(MINUTE / 2);
    world.row(1).orders = vec![("install", args.to_string())];
    world.run_for(MINUTE);
    let replies = world.calls(1, "/instructions");
    let codes: Vec<i64> = replies
        .iter()
        .filter(|call| call.body["step_type"] == "install")
        .map(|call| call.body["exit_code"].as_i64().unwrap_or(0))
        .collect();
    assert_eq!(codes, [0, CANNOT_START]);
}

#[test]
fn hosts_added_to_a_running_cluster_are_not_heard_of_after_their_reboot() {
    let mut world = World::installing(setup(), &["worker"]);
    world.hub.kind = "AddHostsCluster";
    world.run_for(15 * MINUTE);
    assert_eq!(
        world.stages(0),
        [
            "Starting installation",
            "Installing",
            "Writing image to disk",
            "Rebooting"
        ]
    );
    assert_eq!(world.installs(), [DONE]);
    assert!(matches!(world.hosts[0].poll(world.now_ms), Next::Idle));
}

#[test]
fn clusters_without_a_controller_hear_from_their_hosts_themselves() {
    let mut world = World::installing(setup(), &["worker", "master"]);
    world.hub.ignition = r#"{"systemd":{"units":[{"name":"muster-installed.service"}]}}"#;
    world.run_for(15 * MINUTE);
    for host in [0, 1] {
        let stages = world.stages(host);
        assert_eq!(stages[stages.len() - 3..], ["Configuring", "Joined", "Done"]);
    }
    assert!(world.calls(1, "monitored-operators").is_empty() && world.calls(1, "credentials").is_empty());
    assert_eq!(world.installs(), [DONE; 2]);
}

#[test]
fn an_installer_without_its_files_fails_after_a_while() {
    for status in [404, 409] {
        let mut world = World::installing(setup(), &["worker"]);
        world.hub.files = status;
        world.run_for(10 * MINUTE);
        assert_eq!(world.calls(0, "downloads/ignition").len(), 11);
        assert_eq!(world.stages(0).last().unwrap(), "Failed");
        assert_eq!(world.row(0).status, "error");
        assert_eq!(world.installs(), [FAILED]);
        assert_eq!(
            world.hosts[0].condition(),
            Condition::Running,
            "its agent lives on"
        );
    }
}

#[test]
fn files_that_come_late_are_waited_for() {
    let mut world = World::installing(setup(), &["master"]);
    world.hub.files = 404;
    world.run_for(MINUTE);
    world.hub.files = 200;
    world.run_for(15 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
}

#[test]
fn a_refused_report_ends_the_installer_quietly() {
    let mut world = World::installing(setup(), &["master"]);
    world.run_for(MINUTE);
    world.row(0).status = "cancelled".into();
    world.run_for(10 * MINUTE);
    assert_eq!(world.installs(), [Installs::default()]);
    let reports = world.calls(0, "/progress").len();
    world.run_for(10 * MINUTE);
    assert_eq!(world.calls(0, "/progress").len(), reports);
}

#[test]
fn stop_installation_kills_the_installer() {
    let mut world = World::installing(setup(), &["master"]);
    world.run_for(MINUTE);
    world.row(0).orders = vec![("stop-installation", String::new())];
    world.run_for(MINUTE);
    let reply = world.last_reply(0, "stop-installation").unwrap();
    assert_eq!(reply.get("exit_code"), None, "zero is left out");
    let reports = world.calls(0, "/progress").len();
    world.run_for(20 * MINUTE);
    assert_eq!(world.calls(0, "/progress").len(), reports);
    assert_eq!(world.hosts[0].condition(), Condition::Running);
}

#[test]
fn gathered_logs_are_announced_uploaded_and_completed() {
    let mut world = World::installing(setup(), &["master"]);
    let id = world.hosts[0].id();
    world.row(0).status = "error".into();
    let args = json!({"cluster_id": CLUSTER, "infra_env_id": POOL, "host_id": id}).to_string();
    world.row(0).orders = vec![("logs-gather", args)];
    world.run_for(MINUTE);
    let logs: Vec<&str> = world
        .calls(0, "logs")
        .iter()
        .map(|call| call.path.as_str())
        .collect();
    assert_eq!(
        logs,
        [
            format!("/infra-envs/{POOL}/hosts/{id}/logs-progress"),
            format!("/clusters/{CLUSTER}/logs?logs_type=host&host_id={id}&infra_env_id={POOL}"),
            format!("/infra-envs/{POOL}/hosts/{id}/logs-progress"),
        ]
    );
}

fn installed(setup: Setup) -> World {
    let mut world = World::installing(setup, &["master"]);
    world.run_for(15 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
    world
}

#[test]
fn an_installed_machine_boots_discovery_only_when_told() {
    let mut world = installed(setup());
    world.row(0).status = "unbinding-pending-user-action".into();
    world.run_for(600 * MINUTE);
    assert_eq!(world.registrations(0), 1);
    world.hosts[0].boot_discovery(world.now_ms);
    world.run_for(5 * MINUTE);
    assert_eq!(world.registrations(0), 2);
    assert_eq!(world.row(0).status, "discovering-unbound");
    assert_eq!(world.hosts[0].condition(), Condition::Running);
}

#[test]
fn someone_who_looks_after_installed_machines_boots_discovery_when_the_hub_waits_for_it() {
    let mut world = installed(Setup {
        return_boots_ms: Some(MINUTE),
        ..setup()
    });
    world.run_for(30 * MINUTE);
    assert_eq!(world.registrations(0), 1, "an installed machine is left alone");
    world.row(0).status = "unbinding-pending-user-action".into();
    world.run_for(5 * MINUTE);
    assert_eq!(world.registrations(0), 2);
    assert_eq!(world.row(0).status, "discovering-unbound");
}

/// Asks for a reclaim, and says what a hub says at each step of it.
fn reclaim(world: &mut World) {
    world.row(0).status = "reclaiming".into();
    world.row(0).orders = vec![("download-boot-artifacts", r#"{"kernel_url":"k"}"#.to_owned())];
    world.hosts[0].start_reclaim(world.now_ms);
    world.run_for(2 * MINUTE);
}

#[test]
fn a_reclaimed_machine_boots_discovery_by_itself() {
    let mut world = installed(setup());
    reclaim(&mut world);
    assert_eq!(
        world
            .last_reply(0, "download-boot-artifacts")
            .unwrap()
            .get("exit_code"),
        None
    );
    assert_eq!(world.hosts[0].condition(), Condition::Installed);
    world.row(0).orders = vec![(
        "reboot-for-reclaim",
        r#"{"host_fs_mount_dir":"/host"}"#.to_owned(),
    )];
    world.row(0).exits = true;
    world.run_for(2 * MINUTE);
    assert!(world.last_reply(0, "reboot-for-reclaim").is_some());
    world.row(0).orders.clear();
    world.row(0).exits = false;
    world.run_for(5 * MINUTE);
    assert_eq!(world.registrations(0), 2);
    assert_eq!(world.hosts[0].condition(), Condition::Running);
}

#[test]
fn a_reclaim_that_cannot_store_its_artifacts_says_so_and_leaves_the_system() {
    let mut world = installed(with_faults(&["reclaim-failure:1"]));
    reclaim(&mut world);
    let replies = world.calls(0, "/instructions");
    let first = replies
        .iter()
        .find(|call| call.body["step_type"] == "download-boot-artifacts");
    assert_eq!(first.unwrap().body["exit_code"], 1);
    world.row(0).orders.clear();
    world.row(0).exits = true;
    world.run_for(10 * MINUTE);
    assert_eq!(world.hosts[0].condition(), Condition::Installed);
    assert_eq!(
        world.registrations(0),
        1,
        "there is no agent on an installed system"
    );
}

#[test]
fn someone_who_looks_after_installed_machines_starts_reclaims() {
    let mut world = installed(Setup {
        return_boots_ms: Some(MINUTE),
        ..setup()
    });
    world.row(0).status = "reclaiming".into();
    world.row(0).orders = vec![("download-boot-artifacts", r#"{"kernel_url":"k"}"#.to_owned())];
    world.run_for(5 * MINUTE);
    assert!(world.last_reply(0, "download-boot-artifacts").is_some());
}

#[test]
fn an_installation_fails_in_the_stage_it_was_asked_to() {
    for stage in [
        "starting-installation",
        "writing-image-to-disk",
        "waiting-for-control-plane",
        "joined",
    ] {
        let mut world = World::installing(with_faults(&[&format!("fail:#0:{stage}")]), THREE);
        world.run_for(20 * MINUTE);
        let stages = world.stages(0);
        let [.., before, last] = stages.as_slice() else {
            panic!("{stages:?}")
        };
        assert_eq!(last, "Failed");
        assert_eq!(before.to_lowercase().replace(' ', "-"), stage);
        assert_eq!(world.hosts[0].installs(), FAILED);
        assert_ne!(world.hub.cluster, "installed");
    }
}

#[test]
fn a_failed_installation_can_be_repeated() {
    let mut world = World::installing(with_faults(&["fail:1:installing"]), &["master"]);
    world.run_for(10 * MINUTE);
    assert_eq!(world.row(0).status, "error");
    world.row(0).status = "installing".into();
    world.run_for(15 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
    assert_eq!(world.installs(), [Installs { done: 1, failed: 1 }]);
}

#[test]
fn an_installer_that_cannot_start_says_so_once() {
    let mut world = World::installing(with_faults(&["install-exit:1:2"]), &["master"]);
    world.run_for(MINUTE / 2);
    assert_eq!(world.last_reply(0, "install").unwrap()["exit_code"], 2);
    assert!(world.stages(0).is_empty());
    world.run_for(15 * MINUTE);
    assert_eq!(world.hub.cluster, "installed", "the next one starts");
}

#[test]
fn a_machine_that_restarts_in_a_stage_registers_again() {
    let mut world = World::installing(with_faults(&["reboot:#1:writing-image-to-disk"]), THREE);
    world.run_for(20 * MINUTE);
    assert_eq!(world.registrations(1), 2);
    assert_eq!(world.stages(1).last().unwrap(), "Writing image to disk");
}

#[test]
fn a_wrong_boot_order_brings_discovery_and_its_correction_the_installed_system() {
    let mut world = World::installing(with_faults(&["wrong-boot:#1"]), THREE);
    world.run_for(20 * MINUTE);
    assert_eq!(world.stages(1).last().unwrap(), "Rebooting");
    assert_eq!(world.registrations(1), 2);
    assert_eq!(world.stages(0).last().unwrap(), "Waiting for control plane");
    world.hosts[1].boot_disk(world.now_ms);
    world.run_for(20 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
    assert_eq!(world.installs(), [DONE; 3]);
}

#[test]
fn a_machine_without_power_is_silent_until_it_comes_back() {
    let mut world = World::installing(with_faults(&["power-off:1:installing:30m"]), &["master"]);
    world.run_for(10 * MINUTE);
    assert_eq!(world.hosts[0].condition(), Condition::Off);
    let calls = world.hub.heard.len();
    world.run_for(15 * MINUTE);
    assert_eq!(world.hub.heard.len(), calls);
    world.run_for(15 * MINUTE);
    assert_eq!(
        world.registrations(0),
        2,
        "it boots discovery: nothing was installed yet"
    );

    let mut world = World::installing(with_faults(&["power-off:1:rebooting:30m"]), &["master"]);
    world.run_for(20 * MINUTE);
    assert_eq!(world.stages(0).last().unwrap(), "Rebooting");
    world.run_for(40 * MINUTE);
    assert_eq!(world.hub.cluster, "installed", "it boots its disk");
}

#[test]
fn an_installation_goes_on_after_half_an_hour_without_a_hub() {
    let mut world = World::installing(with_faults(&["cut-off:100%:writing-image-to-disk:30m"]), THREE);
    world.run_for(20 * MINUTE);
    let calls = world.hub.heard.len();
    world.run_for(10 * MINUTE);
    assert_eq!(world.hub.heard.len(), calls, "nothing gets through");
    world.run_for(30 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
    assert_eq!(world.installs(), [DONE; 3]);
    assert!(
        (0..3).all(|host| world.registrations(host) == 2),
        "agents give up after a quarter of an hour"
    );
}

#[test]
fn preparations_can_be_slow_and_fail() {
    let images = r#"{"images":["a/b:c"]}"#.to_owned();
    let disk = "installation-disk-speed-check";
    let faults = &["slow-images:1:5m", "image-failure:1", "shrinking-disk:1"];
    let mut world = World::installing(with_faults(faults), &["master"]);
    world.row(0).status = "preparing-for-installation".into();
    world.row(0).orders = vec![
        ("container-image-availability", images),
        ("inventory", "id".to_owned()),
    ];
    world.run_for(4 * MINUTE);
    let output = |reply: Option<Value>| reply.map(|reply| reply["output"].as_str().unwrap_or("").to_owned());
    let busy = output(world.last_reply(0, "container-image-availability"));
    assert_eq!(busy.as_deref(), Some(""), "it still runs");
    assert!(
        output(world.last_reply(0, "inventory"))
            .unwrap()
            .contains(r#""size_bytes":8000000000"#)
    );
    world.run_for(20 * MINUTE);
    let replies = world.calls(0, "/instructions");
    let results: Vec<bool> = replies
        .iter()
        .filter(|call| call.body["step_type"] == "container-image-availability")
        .filter_map(|call| call.body["output"].as_str())
        .map(|text| text.contains(r#""result":"success""#))
        .collect();
    assert_eq!(
        results,
        [false, true],
        "the second check finds them, and is not repeated"
    );

    let setup = Arc::new(with_faults(&["slow-disk:1:25"]));
    let mut host = SimHost::new(setup, 0, START);
    let step = json!({"step_type": disk, "step_id": "d-1", "args": [r#"{"path":"/dev/sda"}"#, "480.00"]});
    let answers = |request: &Request| match request.tag.call {
        Call::Register => response(201, &json!({"next_step_runner_command": {"args": []}})),
        _ => response(
            200,
            &json!({"next_instruction_seconds": 60, "instructions": [step]}),
        ),
    };
    let mut now = START;
    let reply = loop {
        match host.poll(now) {
            Next::Send(request) if matches!(request.tag.call, Call::Reply(_)) => break request,
            Next::Send(request) => {
                let answer = answers(&request);
                host.receive(now, request.tag, answer);
            }
            Next::WaitUntil(at) => now = at,
            Next::Idle => panic!("the host waits for ever"),
        }
    };
    assert!(
        String::from_utf8(reply.body)
            .unwrap()
            .contains(r#"\"io_sync_duration\":25"#)
    );
}

#[test]
fn a_whole_installation_takes_as_long_as_it_should() {
    let ended = |setup: Setup| {
        let mut world = World::installing(setup, THREE);
        world.run_for(20 * MINUTE);
        assert_eq!(world.hub.cluster, "installed");
        let began = world
            .hub
            .heard
            .iter()
            .find(|call| call.path.ends_with("/progress"))
            .unwrap()
            .at_ms;
        let ended = world
            .hub
            .heard
            .iter()
            .find(|call| call.path.contains("complete-"))
            .unwrap()
            .at_ms;
        ended - began
    };
    let usual = ended(setup());
    assert!((7 * MINUTE..11 * MINUTE).contains(&usual), "{usual}");
    let fast = ended(Setup {
        poll_ms: Some(1_000),
        install_ms: Some(20_000),
        ..setup()
    });
    assert!((12_000..30_000).contains(&fast), "{fast}");
}

#[test]
fn the_same_seed_gives_the_same_installation() {
    let story = |seed: u64| {
        let faults = with_faults(&["lost-replies:50%:30%", "cut-off:50%:installing:5m"]).faults;
        let mut world = World::installing(
            Setup {
                seed,
                faults,
                ..setup()
            },
            THREE,
        );
        world.run_for(60 * MINUTE);
        let calls = world
            .hub
            .heard
            .iter()
            .map(|call| format!("{} {} {}", call.at_ms, call.path, call.body));
        calls.collect::<Vec<_>>()
    };
    assert_eq!(story(5), story(5));
    assert_ne!(story(5), story(6));
}

#[test]
fn only_one_of_the_masters_speaks_as_the_controller() {
    let mut world = World::installing(setup(), THREE);
    world.run_for(20 * MINUTE);
    let mut speakers: HashMap<usize, usize> = HashMap::new();
    for call in world
        .hub
        .heard
        .iter()
        .filter(|call| call.path.contains("monitored-operators"))
    {
        *speakers.entry(call.host).or_default() += 1;
    }
    assert_eq!(speakers.len(), 1);
    assert!(
        !speakers.contains_key(&0),
        "the bootstrap host is the last choice"
    );
}

#[test]
fn a_controller_that_is_refused_starts_over_and_tells_reboots_once() {
    let mut world = World::installing(setup(), &["master"]);
    world.hub.refuse = Some("/downloads/credentials");
    world.run_for(30 * MINUTE);
    assert_eq!(world.hub.cluster, "finalizing");
    assert!(world.calls(0, "/downloads/credentials").len() > 5);
    assert_eq!(world.calls(0, "/events").len(), 1);
    world.hub.refuse = None;
    world.run_for(5 * MINUTE);
    assert_eq!(world.hub.cluster, "installed");
}

#[test]
fn the_controller_of_a_lost_cluster_sends_its_logs_and_ends() {
    let mut world = World::installing(setup(), &["master"]);
    world.hub.refuse = Some("/downloads/credentials");
    world.run_for(15 * MINUTE);
    world.hub.cluster = "error".into();
    world.row(0).status = "error".into();
    world.run_for(5 * MINUTE);
    assert_eq!(world.calls(0, "logs_type=controller").len(), 1);
    assert!(matches!(world.hosts[0].poll(world.now_ms), Next::Idle));
}
