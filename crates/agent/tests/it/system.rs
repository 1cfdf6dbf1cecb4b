//! The installed side of Muster's own system: from the config on its disk to the way back to discovery.

use crate::world::*;
use clap::Parser;
use muster_agent::install::area::{self, Area};
use muster_agent::settings::Settings;
use muster_agent::system;
use serde_json::{Value, json};

fn data_url(text: &str) -> Value {
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    json!({"source": format!("data:,{encoded}")})
}

/// What the hub puts into the config of a host that has to report by itself.
fn config(world: &World) -> Vec<u8> {
    let url = format!(
        "{}/api/assisted-install/v2/infra-envs/{INFRA_ENV}/hosts/{HOST}/progress",
        world.url
    );
    let script = format!("#!/bin/bash\ntell() {{\n    code=$(curl --silent --request PUT '{url}')\n}}\n");
    json!({
        "ignition": {"version": "3.2.0"},
        "storage": {"files": [
            {"path": "/etc/hostname", "mode": 420, "contents": data_url("node-1")},
            {"path": "/usr/local/bin/muster-installed", "mode": 493, "contents": data_url(&script)},
            {"path": "/etc/muster-installed.headers", "mode": 384,
                "contents": data_url("Content-Type: application/json\nX-Secret-Key: from-the-config\n")},
        ]},
    })
    .to_string()
    .into_bytes()
}

/// A machine that was installed and starts from its disk.
fn installed(world: &World) {
    let area = Area {
        start_byte: 3 << 20,
        length_bytes: 65536,
    };
    let record = area::record(area, &config(world)).unwrap();
    let mut disk = vec![0; 8 << 20];
    disk[3 << 20..(3 << 20) + record.len()].copy_from_slice(&record);
    world.file("dev/vda", disk);
    world.file("dev/sr0", "CD");
    for name in ["sr0", "vda"] {
        world.file(&format!("sys/block/{name}/size"), "16384");
    }
    world.file("proc/cmdline", "console=ttyS0 muster.system");
}

fn run(world: &World) {
    let root = world.root.path().to_str().unwrap();
    let settings = Settings::try_parse_from(["agent", "--root", root, "--reboot-hook=true"]).unwrap();
    system::run(&settings, world.clock.clone()).unwrap();
}

fn told(world: &World) -> Vec<String> {
    let seen = world.seen.all();
    let puts = seen.iter().filter(|request| request.is("PUT", "/progress"));
    puts.map(|request| request.json()["current_stage"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_installed_system_reports_with_what_its_config_says_and_does_not_register() {
    let world = World::new();
    installed(&world);
    run(&world);
    assert_eq!(told(&world), ["Configuring", "Joined", "Done"]);
    assert_eq!(world.count(Request::is_register), 0);
    let seen = world.seen.all();
    assert!(
        seen.iter()
            .all(|request| request.header("x-secret-key") == Some("from-the-config"))
    );
    assert_eq!(std::fs::read(world.path("etc/hostname")).unwrap(), b"node-1");
}

#[test]
fn a_hub_that_is_away_hears_the_report_later() {
    let failures = std::sync::atomic::AtomicUsize::new(0);
    let world = World::with(move |request| {
        let is_early =
            request.is("PUT", "/progress") && failures.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 60;
        is_early.then(|| Answer {
            cut: Some(0),
            ..status(503)
        })
    });
    installed(&world);
    run(&world);
    let mut stages = told(&world);
    stages.dedup();
    assert_eq!(stages, ["Configuring", "Joined", "Done"]);
}

#[test]
fn a_refused_report_is_final() {
    let world = World::with(|request| request.is("PUT", "/progress").then(|| status(409)));
    installed(&world);
    run(&world);
    assert_eq!(told(&world), ["Configuring", "Joined", "Done"]);
}

#[test]
fn an_installed_system_follows_no_order_but_the_one_to_come_back() {
    let world = World::with(|request| match request.path.as_str() {
        "/kernel" | "/initrd" => Some(Answer {
            body: b"bytes".to_vec(),
            ..status(200)
        }),
        _ => None,
    });
    installed(&world);
    world.file("boot/loader/loader.conf", "");
    let url = |path: &str| format!("{}/{path}", world.url);
    let artifacts = json!({"kernel_url": url("kernel"), "initrd_url": url("initrd"), "rootfs_url": "",
        "host_fs_mount_dir": "/host"});
    world
        .script
        .say(exit(&[]))
        .say(steps(&[("inventory", json!(["x"]))]))
        .after(1, steps(&[("install", json!({}))]))
        .after(2, steps(&[("download-boot-artifacts", artifacts)]))
        .after(3, steps(&[]));
    run(&world);
    let replies: Vec<(String, i64)> = world
        .replies()
        .iter()
        .map(|reply| {
            let kind = reply["step_type"].as_str().unwrap().to_owned();
            (kind, reply["exit_code"].as_i64().unwrap())
        })
        .take(3)
        .collect();
    let expected = [("inventory", -1), ("install", -1), ("download-boot-artifacts", 0)];
    assert_eq!(replies, expected.map(|(kind, code)| (kind.to_owned(), code)));
    assert_eq!(
        std::fs::read(world.path("boot/discovery/initrd")).unwrap(),
        b"bytes"
    );
    let line = std::fs::read_to_string(world.path("boot/discovery/cmdline")).unwrap();
    assert!(
        line.contains("console=ttyS0") && !line.contains("muster.system"),
        "{line}"
    );
    assert_eq!(world.count(Request::is_register), 0);
}
