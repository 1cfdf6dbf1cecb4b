//! Registering, polling, replying; and coming back from everything.

use crate::world::*;
use serde_json::{Value, json};
use std::time::Duration;

const NTP: fn() -> (&'static str, Value) = || ("upgrade-agent", json!({"agent_image": "agent:1"}));

fn inventory() -> (&'static str, Value) {
    ("inventory", json!([HOST.to_string()]))
}

fn dry() -> World {
    World::new().flag("--dry-run")
}

#[test]
fn it_registers_polls_and_replies_with_all_headers() {
    let world = dry().flag("--agent-version=mine:1");
    world.file("proc/sys/kernel/hostname", "node-1\n");
    world.script.say(steps(&[inventory()])).after(1, steps(&[]));
    world.run();
    let seen = world.seen.all();
    let register = &seen[0];
    assert_eq!(
        register.path,
        format!("/api/assisted-install/v2/infra-envs/{INFRA_ENV}/hosts")
    );
    assert_eq!(
        register.json(),
        json!({"host_id": HOST, "discovery_agent_version": "mine:1"})
    );
    assert_eq!(register.header("discovery_agent_version"), Some("mine:1"));
    assert_eq!(register.header("x-secret-key"), Some("secret-token"));
    assert!(register.header("x-request-id").is_some());
    let poll = &seen[1];
    assert!(poll.path.contains("/instructions?timestamp="), "{}", poll.path);
    // The version that runs is the one the hub chose.
    assert_eq!(poll.header("discovery_agent_version"), Some("agent:1"));
    let told = &world.replies()[0];
    assert_eq!(
        (&told["step_type"], &told["step_id"], &told["exit_code"]),
        (&json!("inventory"), &json!("inventory-1"), &json!(0))
    );
    let inventory: Value = serde_json::from_str(told["output"].as_str().unwrap()).unwrap();
    assert_eq!(inventory["hostname"], "node-1");
}

#[test]
fn the_same_good_answer_is_told_once() {
    let world = dry();
    world
        .script
        .say(steps(&[inventory()]))
        .after(1, steps(&[]))
        .say(steps(&[]))
        .say(steps(&[inventory()]))
        .say(steps(&[NTP()]))
        .after(2, steps(&[]));
    world.run();
    let kinds: Vec<Value> = world
        .replies()
        .iter()
        .map(|told| told["step_type"].clone())
        .collect();
    assert_eq!(kinds, ["inventory", "upgrade-agent"]);
}

#[test]
fn after_a_failed_poll_everything_is_told_again() {
    let world = dry();
    world
        .script
        .say(steps(&[inventory()]))
        .after(1, status(500))
        .say(steps(&[inventory()]))
        .after(2, steps(&[]));
    world.run();
    assert_eq!(world.replies().len(), 2);
}

#[test]
fn exit_means_register_again_and_tell_everything_again() {
    let world = dry();
    world
        .script
        .say(steps(&[inventory()]))
        .after(1, exit(&[]))
        .say(steps(&[inventory()]))
        .after(2, steps(&[]));
    world.run();
    assert!(world.count(Request::is_register) >= 2);
    assert_eq!(world.replies().len(), 2);
}

#[test]
fn refused_registrations_are_tried_again_more_and_more_slowly() {
    let world = dry();
    for code in [401, 403, 404, 409, 500, 409] {
        world.script.registers.lock().unwrap().push_back(status(code));
    }
    world.run();
    assert!(world.count(Request::is_register) >= 7);
    let slept = world.clock.slept();
    assert!(slept[0] >= Duration::from_secs(48), "{slept:?}");
    assert!(
        slept[..6].iter().max() > Some(&Duration::from_secs(100)),
        "{slept:?}"
    );
    assert!(slept.iter().all(|pause| *pause <= Duration::from_secs(360)));
}

#[test]
fn an_answer_without_a_command_does_not_stop_it_for_an_hour() {
    let world = dry();
    world.script.registers.lock().unwrap().push_back(Answer {
        status: 201,
        ..reply(json!({"id": HOST}))
    });
    world.run();
    assert_eq!(world.clock.slept()[0], Duration::from_secs(60));
}

#[test]
fn a_hub_that_forgot_the_host_gets_it_back() {
    let world = dry();
    world
        .script
        .say(status(404))
        .say(steps(&[inventory()]))
        .after(1, steps(&[]));
    world.run();
    assert!(world.count(Request::is_register) >= 2);
    assert_eq!(world.replies().len(), 1);
}

#[test]
fn failing_polls_come_slower_and_do_not_end() {
    let world = dry();
    for _ in 0..12 {
        world.script.say(status(401));
    }
    world.script.say(steps(&[inventory()])).after(1, steps(&[]));
    world.run();
    let slept = world.clock.slept();
    assert!(
        slept[0] < Duration::from_secs(1) && slept[11] > Duration::from_secs(20),
        "{slept:?}"
    );
    assert_eq!(
        world.count(Request::is_register),
        world.count(Request::is_register).min(3)
    );
}

#[test]
fn an_answer_that_cannot_be_read_is_no_reason_to_give_up() {
    let world = dry();
    world.script.say(Answer {
        status: 200,
        body: b"<html>".to_vec(),
        ..Answer::default()
    });
    world.script.say(steps(&[inventory()])).after(1, steps(&[]));
    world.run();
    assert_eq!(world.replies().len(), 1);
}

#[test]
fn no_time_to_wait_is_not_a_hot_loop() {
    let world = dry();
    let at_once = reply(json!({"post_step_action": "continue", "instructions": null}));
    world.script.say(at_once.clone()).say(at_once);
    world.run();
    assert_eq!(world.clock.slept()[..2], [Duration::from_secs(60); 2]);
}

#[test]
fn unknown_steps_and_wrong_arguments_are_told() {
    let world = dry();
    world.script.say(steps(&[
        ("make-coffee", json!({})),
        ("ntp-synchronizer", json!(["{}", "{}"])),
        ("install", json!("nonsense")),
    ]));
    world.script.after(3, steps(&[]));
    world.run();
    let mut replies = world.replies();
    replies.sort_by_key(|told| told["step_id"].to_string());
    assert!(replies.iter().all(|told| told["exit_code"] == -1), "{replies:?}");
    assert!(
        replies[1]["error"]
            .as_str()
            .unwrap()
            .contains("failed to find action for step make-coffee")
    );
}

#[test]
fn a_lost_medium_is_told_with_its_own_code() {
    let drive: std::sync::Arc<std::sync::OnceLock<std::path::PathBuf>> = Default::default();
    let own = drive.clone();
    let world = World::with(move |request| {
        // Somebody puts it back when the loss was told.
        if request.is_reply() {
            std::fs::write(own.get().unwrap(), "CD").unwrap();
        }
        None
    })
    .flag("--dry-run");
    world.file("proc/mounts", "/dev/sr0 /run/media/iso iso9660 ro 0 0\n");
    std::fs::create_dir(world.path("dev")).unwrap();
    drive.set(world.path("dev/sr0")).unwrap();
    world.script.say(steps(&[inventory()])).after(1, steps(&[]));
    world.run();
    assert_eq!(world.replies()[0]["exit_code"], 256);
}

#[test]
fn it_takes_the_name_the_hub_wants() {
    let world = dry();
    world
        .script
        .say(steps(&[("upgrade-agent", json!({"agent_image": "agent:2"}))]))
        .after(1, steps(&[]));
    world.run();
    let output: Value = serde_json::from_str(world.replies()[0]["output"].as_str().unwrap()).unwrap();
    assert_eq!(output, json!({"agent_image": "agent:2", "result": "success"}));
    let polls: Vec<Request> = world
        .seen
        .all()
        .into_iter()
        .filter(|request| request.is("GET", "/instructions"))
        .collect();
    // The second was on its way before the step was done.
    assert_eq!(polls[2].header("discovery_agent_version"), Some("agent:2"));
}

#[test]
fn replies_are_delivered_once_the_hub_is_back() {
    let failures = std::sync::atomic::AtomicUsize::new(3);
    let world = World::with(move |request| {
        use std::sync::atomic::Ordering::SeqCst;
        let is_down = request.is_reply()
            && failures
                .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
                .is_ok();
        is_down.then(|| status(500))
    })
    .flag("--dry-run");
    world.script.say(steps(&[inventory()])).after(4, steps(&[]));
    world.run();
    assert_eq!(world.replies().len(), 4);
}

#[test]
fn a_hub_that_is_down_at_first_is_waited_for() {
    let world = dry();
    for _ in 0..5 {
        world.script.registers.lock().unwrap().push_back(Answer {
            cut: Some(0),
            ..status(503)
        });
    }
    world.script.say(steps(&[inventory()])).after(1, steps(&[]));
    world.run();
    assert_eq!(world.replies().len(), 1);
}
