//! Steps that talk to servers or leave something on the machine.

use crate::world::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

fn output(told: &Value) -> Value {
    serde_json::from_str(told["output"].as_str().unwrap()).unwrap()
}

fn one(world: &World, kind: &str, arg: Value) -> Value {
    world.script.say(steps(&[(kind, arg)])).after(1, steps(&[]));
    world.run();
    world.replies()[0].clone()
}

#[test]
fn the_ignition_endpoint_is_asked_with_its_token() {
    let world = World::with(|request| {
        request
            .is("GET", "/config/worker")
            .then(|| match request.header("authorization") {
                Some("Bearer t") => reply(json!({"ignition": {"version": "3.2.0"}, "passwd": {}})),
                _ => status(401),
            })
    })
    .flag("--dry-run");
    let url = format!("{}/config/worker", world.url);
    world.script.say(steps(&[(
        "api-vip-connectivity-check",
        json!({"url": url, "ignition_endpoint_token": "t"}),
    )]));
    world
        .script
        .after(1, steps(&[("api-vip-connectivity-check", json!({"url": url}))]))
        .after(2, steps(&[]));
    world.run();
    let replies = world.replies();
    assert_eq!(output(&replies[0])["is_success"], true);
    assert!(
        output(&replies[1])["download_error"]
            .as_str()
            .unwrap()
            .contains("401")
    );
}

#[test]
fn tang_servers_are_asked_for_their_keys() {
    let world = World::with(|request| {
        request
            .is("GET", "/adv")
            .then(|| reply(json!({"payload": "p", "signatures": [{"protected": "a", "signature": "b"}]})))
    })
    .flag("--dry-run");
    let servers = json!([{"url": world.url, "thumbprint": "x"}]).to_string();
    let told = one(
        &world,
        "tang-connectivity-check",
        json!({"tang_servers": servers}),
    );
    assert_eq!(output(&told)["tang_server_response"][0]["payload"], "p");
}

#[test]
fn without_time_servers_the_hub_tells_the_time() {
    let world = World::with(|request| {
        let date = ("Date", "Thu, 01 Jan 1970 00:00:00 GMT".to_owned());
        (request.method == "HEAD").then(|| Answer {
            headers: vec![date],
            ..status(404)
        })
    })
    .flag("--dry-run");
    let told = one(&world, "ntp-synchronizer", json!({"ntp_source": ""}));
    let source = output(&told)["ntp_sources"][0].clone();
    // The clock of the test runs ahead while the step asks, so it may or may not agree.
    assert_eq!(source["source_name"], json!(world.url));
    assert_ne!(source["source_state"], "unreachable");
}

#[test]
fn names_are_looked_up() {
    let world = World::new().flag("--dry-run");
    world.file("etc/hosts", "192.0.2.5 api.c.example.com\n");
    let told = one(
        &world,
        "domain-resolution",
        json!({"domains": [{"domain_name": "api.c.example.com"}]}),
    );
    assert_eq!(
        output(&told)["resolutions"][0]["ipv4_addresses"],
        json!(["192.0.2.5"])
    );
}

#[test]
fn the_speed_of_a_disk_is_told() {
    let world = World::new();
    world.file("dev/vda", vec![7; 3 << 20]);
    let world = world.flag("--dry-run");
    let told = one(
        &world,
        "installation-disk-speed-check",
        json!([r#"{"path":"/dev/vda"}"#, "480.00"]),
    );
    assert_eq!(output(&told)["path"], "/dev/vda");
    assert!(output(&told)["io_sync_duration"].as_i64().unwrap() >= 1);
}

#[test]
fn logs_are_sent_as_a_form() {
    let world = World::new().flag("--dry-run");
    let args = json!({"cluster_id": CLUSTER, "infra_env_id": INFRA_ENV, "host_id": HOST});
    let told = one(&world, "logs-gather", args);
    assert_eq!(told["exit_code"], 0);
    let seen = world.seen.all();
    let upload = seen.iter().find(|request| request.is("POST", "/logs")).unwrap();
    assert!(upload.path.contains("logs_type=host") && upload.path.contains(&format!("host_id={HOST}")));
    assert!(
        upload
            .header("content-type")
            .unwrap()
            .starts_with("multipart/form-data")
    );
    // The archive starts behind the head of its part.
    let start = upload
        .body
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap()
        + 4;
    assert_eq!(upload.body[start..start + 2], [0x1f, 0x8b]);
    let states: Vec<Value> = seen
        .iter()
        .filter(|request| request.is("PUT", "/logs-progress"))
        .map(|request| request.json()["logs_state"].clone())
        .collect();
    assert_eq!(states, ["collecting", "completed"]);
}

fn artifacts() -> World {
    let body = |text: &str| Answer {
        body: text.as_bytes().to_vec(),
        ..status(200)
    };
    World::with(move |request| match request.path.as_str() {
        "/kernel" => Some(body("kernel")),
        "/initrd" => Some(body("initrd")),
        _ => None,
    })
    .flag("--reboot-hook=true")
}

fn fetch(world: &World) -> Value {
    let url = |path: &str| format!("{}/{path}", world.url);
    let args = json!({"kernel_url": url("kernel"), "initrd_url": url("initrd"), "rootfs_url": url("rootfs"),
        "host_fs_mount_dir": "/host"});
    one(world, "download-boot-artifacts", args)
}

#[test]
fn the_way_back_to_discovery_is_laid_on_the_disk() {
    let world = artifacts();
    world.file("host/boot/loader/loader.conf", "");
    let told = fetch(&world);
    assert_eq!(told["exit_code"], 0, "{told}");
    let folder = world.path("host/boot/discovery");
    assert_eq!(std::fs::read(folder.join("vmlinuz")).unwrap(), b"kernel");
    assert_eq!(std::fs::read(folder.join("initrd")).unwrap(), b"initrd");
    let entry =
        std::fs::read_to_string(world.path("host/boot/loader/entries/00-muster-discovery.conf")).unwrap();
    assert!(entry.contains("coreos.live.rootfs_url="), "{entry}");
    assert!(!exists(&folder.join("vmlinuz.part")));
}

/// A file system that goes with this.
struct Mounted(PathBuf);

impl Mounted {
    fn at(path: PathBuf) -> Self {
        std::fs::create_dir_all(&path).unwrap();
        muster_agent::sys::mount("tmpfs", &path, "tmpfs", false).expect("only root may mount");
        Self(path)
    }

    fn remount(&self, how: &str) {
        let done = Command::new("mount").args(["-o", how]).arg(&self.0).status();
        assert!(done.unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_read_only_boot_file_system_is_made_writable_for_the_way_back() {
    let world = artifacts();
    let boot = Mounted::at(world.path("host/boot"));
    world.file("host/boot/loader/loader.conf", "");
    boot.remount("remount,ro,nosuid");
    assert!(
        std::fs::write(boot.0.join("probe"), "").is_err(),
        "it is read-only"
    );
    let told = fetch(&world);
    assert_eq!(told["exit_code"], 0, "{told}");
    assert!(exists(&boot.0.join("discovery/vmlinuz")));
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let line = mounts
        .lines()
        .find(|line| line.contains(boot.0.to_str().unwrap()));
    let line = line.unwrap();
    assert!(line.contains("nosuid"), "the rest of it stays: {line}");
}

#[test]
fn a_system_that_cannot_start_discovery_says_so_before_it_is_told_to() {
    let world = artifacts();
    let told = fetch(&world);
    assert_eq!(told["exit_code"], 1, "{told}");
    assert!(
        told["error"].as_str().unwrap().contains("no loader entries"),
        "{told}"
    );
}

#[test]
fn a_full_disk_fails_the_way_back_and_nothing_is_left_of_it() {
    let world = artifacts();
    world.file("host/boot/loader/loader.conf", "");
    let part = world.path("host/boot/discovery/vmlinuz.part");
    std::fs::create_dir_all(part.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/full", &part).unwrap();
    let told = fetch(&world);
    assert_eq!(told["exit_code"], 1, "{told}");
    assert!(
        told["error"].as_str().unwrap().contains("No space left"),
        "{told}"
    );
    assert!(std::fs::symlink_metadata(&part).is_err());
    assert!(!exists(&world.path("host/boot/loader/entries")));
}
