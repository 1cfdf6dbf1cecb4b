//! Whole installations: from the order to the reboot, onto a disk that is a file.

use crate::world::*;
use muster_agent::install::area;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};

pub const MIB: usize = 1 << 20;
pub const DISK_BYTES: usize = 12 * MIB;
pub const IGNITION: &str = r#"{"ignition":{"version":"3.4.0"}}"#;
const AREA_START: usize = 3 * MIB;

/// An image of a disk with a boot sector, a table, and a partition for the config.
pub fn image() -> Vec<u8> {
    let mut image: Vec<u8> = (0..8 * MIB).map(|at| (at / 7 % 253) as u8).collect();
    image[..64 * 512].fill(0);
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    image[512..520].copy_from_slice(b"EFI PART");
    image[512 + 72..512 + 80].copy_from_slice(&2u64.to_le_bytes());
    image[512 + 80..512 + 84].copy_from_slice(&4u32.to_le_bytes());
    image[512 + 84..512 + 88].copy_from_slice(&128u32.to_le_bytes());
    let entry = &mut image[1024..1152];
    entry[..16].fill(0x11);
    entry[32..40].copy_from_slice(&((AREA_START / 512) as u64).to_le_bytes());
    entry[40..48].copy_from_slice(&((AREA_START / 512 + 127) as u64).to_le_bytes());
    for (at, unit) in area::LABEL.encode_utf16().enumerate() {
        entry[56 + at * 2..58 + at * 2].copy_from_slice(&unit.to_le_bytes());
    }
    image
}

pub fn gz(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

/// What the hub and the image server do in one installation.
#[derive(Clone)]
pub struct Plan {
    pub image: Arc<Vec<u8>>,
    /// Answers of the image server, in turn; then it sends what was asked for.
    pub faults: Arc<Mutex<Vec<Answer>>>,
    pub knows_ranges: bool,
    /// What `GET host` says, in turn; the last stays.
    pub hosts: Arc<Mutex<Vec<Value>>>,
    /// Answers to progress, in turn; then 200.
    pub progress: Arc<Mutex<Vec<u16>>>,
}

pub fn host() -> Value {
    let disk = json!({"id": "/dev/vda", "path": "/dev/vda", "name": "vda", "serial": "S1", "size_bytes": DISK_BYTES});
    let inventory = json!({"disks": [disk], "interfaces": [], "gpus": [], "routes": []});
    let date = "2026-01-01T00:00:00.000Z";
    let time = "2026-01-01T00:00:00Z";
    json!({"kind": "Host", "id": HOST, "href": "", "infra_env_id": INFRA_ENV, "cluster_id": CLUSTER, "status": "installing",
        "status_info": "", "inventory": inventory.to_string(), "installation_disk_id": "/dev/vda",
        "status_updated_at": date, "progress_stages": null, "stage_started_at": date, "stage_updated_at": date,
        "checked_in_at": date, "registered_at": date, "created_at": time, "updated_at": time, "deleted_at": null,
        "logs_started_at": date, "logs_collected_at": date})
}

impl Plan {
    pub fn new(image: Vec<u8>) -> Self {
        Self {
            image: Arc::new(image),
            faults: Arc::default(),
            knows_ranges: true,
            hosts: Arc::new(Mutex::new(vec![host()])),
            progress: Arc::default(),
        }
    }

    pub fn fault(self, answer: Answer) -> Self {
        self.faults.lock().unwrap().push(answer);
        self
    }

    fn answer(&self, request: &Request) -> Option<Answer> {
        let next = |list: &Mutex<Vec<Answer>>| {
            let mut list = list.lock().unwrap();
            (!list.is_empty()).then(|| list.remove(0))
        };
        if request.path == "/os.raw" {
            return Some(next(&self.faults).unwrap_or_else(|| self.send(request)));
        }
        if request.is("GET", &format!("/hosts/{HOST}")) {
            let mut hosts = self.hosts.lock().unwrap();
            return Some(reply(if hosts.len() > 1 {
                hosts.remove(0)
            } else {
                hosts[0].clone()
            }));
        }
        if request.is("PUT", "/progress") {
            let mut codes = self.progress.lock().unwrap();
            return Some(status(if codes.is_empty() { 200 } else { codes.remove(0) }));
        }
        if request.is("GET", "/downloads/ignition") {
            assert!(request.path.contains("/infra-env/"), "{}", request.path);
            return Some(Answer {
                body: IGNITION.into(),
                ..status(200)
            });
        }
        request
            .is("GET", &format!("/clusters/{CLUSTER}"))
            .then(|| reply(json!({"kind": "Cluster"})))
    }

    fn send(&self, request: &Request) -> Answer {
        let all = Answer {
            body: self.image.to_vec(),
            headers: vec![("ETag", "\"1\"".into())],
            ..status(200)
        };
        let range = request.header("range").filter(|_| self.knows_ranges);
        let Some(range) = range else { return all };
        let start: usize = range
            .trim_start_matches("bytes=")
            .trim_end_matches('-')
            .parse()
            .unwrap();
        let total = self.image.len();
        let mut answer = Answer {
            status: 206,
            body: self.image[start..].to_vec(),
            ..all
        };
        answer
            .headers
            .push(("Content-Range", format!("bytes {start}-{}/{total}", total - 1)));
        answer
    }

    /// A machine with one disk full of sevens.
    pub fn world(self) -> World {
        self.world_with(|_, _| None)
    }

    /// `first` is asked before the plan.
    pub fn world_with(
        self,
        first: impl Fn(&Self, &Request) -> Option<Answer> + Send + Sync + 'static,
    ) -> World {
        let answer = move |request: &Request| first(&self, request).or_else(|| self.answer(request));
        let world = World::with(answer).flag("--reboot-hook=true");
        world.file("dev/vda", vec![7; DISK_BYTES]);
        world.file("sys/block/vda/size", (DISK_BYTES / 512).to_string());
        world.file("sys/block/vda/serial", "S1\n");
        world.file("sys/block/vda/queue/rotational", "0\n");
        world.file("proc/meminfo", "MemAvailable: 1000000 kB\n");
        world
    }
}

pub fn order(world: &World, sum: &str) -> Value {
    let args = json!([
        "--append-karg",
        "ip=eth0:dhcp",
        "--image-url",
        format!("{}/os.raw{sum}", world.url)
    ]);
    json!({"cluster_id": CLUSTER, "infra_env_id": INFRA_ENV, "host_id": HOST, "role": "master", "boot_device": "/dev/vda",
        "installer_args": args.to_string()})
}

/// Gives the order, and says nothing more until the host has reported the end.
pub fn install(world: &World, sum: &str) -> Vec<(String, String)> {
    world.script.say(steps(&[("install", order(world, sum))]));
    *world.script.until.lock().unwrap() = Some(has_ended);
    world.run();
    stages(world)
}

pub fn has_ended(requests: &[Request]) -> bool {
    let last = |request: &Request| {
        matches!(
            request.json()["current_stage"].as_str(),
            Some("Rebooting" | "Failed")
        )
    };
    requests.iter().any(|request| {
        (request.is("PUT", "/progress") && last(request))
            || (request.is_reply() && request.json()["exit_code"] != 0)
    })
}

pub fn stages(world: &World) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let seen = world.seen.all();
    let told = seen.iter().filter(|request| request.is("PUT", "/progress"));
    told.map(|request| {
        (
            text(&request.json()["current_stage"]),
            text(&request.json()["progress_info"]),
        )
    })
    .collect()
}

pub fn disk(world: &World) -> Vec<u8> {
    std::fs::read(world.path("dev/vda")).unwrap()
}

/// The disk holds the image and the config.
pub fn assert_installed(world: &World) {
    let disk = disk(world);
    let mut expected = image();
    let place = area::Area {
        start_byte: AREA_START as u64,
        length_bytes: 65536,
    };
    let record = area::record(place, IGNITION.as_bytes()).unwrap();
    expected[AREA_START..AREA_START + record.len()].copy_from_slice(&record);
    assert!(
        disk[..expected.len()] == expected,
        "the disk differs from the image"
    );
    assert_eq!(area::config(&disk[AREA_START..]).unwrap(), IGNITION.as_bytes());
    assert!(
        disk[DISK_BYTES - MIB..].iter().all(|byte| *byte == 0),
        "an old table is left at the end"
    );
}

#[test]
fn a_host_is_installed_stage_by_stage() {
    let world = Plan::new(image()).world();
    let told = install(&world, "");
    let mut names: Vec<&str> = told.iter().map(|(stage, _)| stage.as_str()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "Starting installation",
            "Installing",
            "Writing image to disk",
            "Rebooting"
        ]
    );
    let percents: Vec<&str> = told
        .iter()
        .map(|(_, info)| info.as_str())
        .filter(|info| info.ends_with('%'))
        .collect();
    assert_eq!(percents.last(), Some(&"100%"));
    assert!(
        percents
            .iter()
            .all(|text| text.trim_end_matches('%').parse::<u64>().unwrap() % 5 == 0)
    );
    assert_installed(&world);
    assert_eq!(world.replies()[0]["exit_code"], 0);
}

#[test]
fn packed_images_are_unpacked_and_their_sum_is_checked() {
    let packed = gz(&image());
    let sum = hash(&packed);
    let world = Plan::new(packed).world();
    let told = install(&world, &format!("#sha256={sum}"));
    assert_eq!(told.last().unwrap().0, "Rebooting");
    assert_installed(&world);
}

pub fn hash(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn a_dry_run_does_everything_but_write() {
    let world = Plan::new(image()).world().flag("--dry-run");
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert!(disk(&world) == vec![7; DISK_BYTES]);
}

#[test]
fn an_image_that_memory_does_not_hold_is_fetched_twice() {
    let world = Plan::new(image()).world();
    world.file("proc/meminfo", "MemAvailable: 1000 kB\n");
    assert_eq!(
        install(&world, &format!("#sha256={}", hash(&image())))
            .last()
            .unwrap()
            .0,
        "Rebooting"
    );
    assert_installed(&world);
    assert_eq!(world.count(|request| request.path == "/os.raw"), 2);
    let world = Plan::new(image()).world();
    install(&world, "");
    assert_eq!(world.count(|request| request.path == "/os.raw"), 1);
}

#[test]
fn network_settings_are_copied_to_the_installed_system_when_the_order_says_so() {
    let world = Plan::new(image()).world();
    world.file(
        "etc/NetworkManager/system-connections/eth0.nmconnection",
        "[ipv4]\n",
    );
    let mut order = order(&world, "");
    let mut args: Vec<String> = serde_json::from_str(order["installer_args"].as_str().unwrap()).unwrap();
    args.push("--copy-network".into());
    order["installer_args"] = serde_json::to_string(&args).unwrap().into();
    world.script.say(steps(&[("install", order)]));
    *world.script.until.lock().unwrap() = Some(has_ended);
    world.run();
    let config: Value = serde_json::from_slice(area::config(&disk(&world)[AREA_START..]).unwrap()).unwrap();
    let file = &config["storage"]["files"][0];
    assert_eq!(
        file["path"],
        "/etc/NetworkManager/system-connections/eth0.nmconnection"
    );
    assert_eq!(file["contents"]["source"], "data:;base64,W2lwdjRdCg==");
}

#[test]
fn a_disk_with_another_serial_number_is_refused_untouched() {
    let world = Plan::new(image()).world();
    world.file("sys/block/vda/serial", "S2\n");
    assert_eq!(install(&world, ""), []);
    assert!(
        world.replies()[0]["error"]
            .as_str()
            .unwrap()
            .contains("another disk than planned")
    );
    assert!(disk(&world) == vec![7; DISK_BYTES]);
}

#[test]
fn a_mounted_disk_is_refused_untouched() {
    let world = Plan::new(image()).world();
    world.file("proc/mounts", "/dev/vda /mnt ext4 rw 0 0\n");
    assert_eq!(install(&world, ""), []);
    assert!(world.replies()[0]["error"].as_str().unwrap().contains("in use"));
    assert!(disk(&world) == vec![7; DISK_BYTES]);
}

#[test]
fn a_host_that_was_taken_away_before_the_first_byte_is_not_written_to() {
    let plan = Plan::new(image());
    let mut free = host();
    free.as_object_mut().unwrap().remove("cluster_id");
    plan.hosts.lock().unwrap().push(free);
    let world = plan.world();
    let told = install(&world, "");
    assert!(told.last().unwrap().1.contains("no longer bound"), "{told:?}");
    assert!(disk(&world) == vec![7; DISK_BYTES]);
}

#[test]
fn a_hub_that_is_down_for_a_while_does_not_stop_an_installation() {
    let plan = Plan::new(image());
    plan.progress
        .lock()
        .unwrap()
        .extend([200, 503, 503, 502, 500, 503, 503, 503, 503, 503]);
    let world = plan.world();
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_installed(&world);
}
