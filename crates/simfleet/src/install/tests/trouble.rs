//! Installations that go wrong, on request or because the hub says so.

use super::*;

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
