//! Installations that go well.

use super::*;

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
            "Copying registry data to disk",
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
                "Copying registry data to disk",
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
            "Waiting for ignition",
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
            "Copying registry data to disk",
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
