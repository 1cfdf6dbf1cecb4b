//! Images, networks and machines that break: a bad image changes nothing, and half a system is never started.

use crate::installation::*;
use crate::world::*;
use muster_agent::clock::{Clock, Manual};
use muster_agent::install::writer::{Target, write_body};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

fn cut(image: &[u8], after: usize) -> Answer {
    Answer {
        body: image.to_vec(),
        headers: vec![("ETag", "\"1\"".into())],
        cut: Some(after),
        ..status(200)
    }
}

fn assert_untouched(world: &World) {
    assert!(disk(world) == vec![7; DISK_BYTES]);
}

#[test]
fn a_download_that_breaks_goes_on_where_it_ended() {
    let world = Plan::new(image()).fault(cut(&image(), 5 * MIB)).world();
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_installed(&world);
    let seen = world.seen.all();
    let resumed: Vec<&Request> = seen.iter().filter(|request| request.path == "/os.raw").collect();
    assert!(resumed[1].header("range").unwrap().starts_with("bytes="));
    assert_eq!(resumed[1].header("if-range"), Some("\"1\""));
}

#[test]
fn a_server_that_cannot_send_parts_is_read_past() {
    let plan = Plan {
        knows_ranges: false,
        ..Plan::new(image())
    };
    let world = plan.fault(cut(&image(), 5 * MIB)).world();
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_installed(&world);
}

#[test]
fn a_network_that_is_away_for_minutes_is_waited_for() {
    let mut plan = Plan::new(image()).fault(cut(&image(), 2 * MIB));
    for _ in 0..15 {
        plan = plan.fault(Answer {
            cut: Some(0),
            ..status(503)
        });
    }
    let world = plan.world();
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_installed(&world);
    assert!(world.clock.slept().iter().sum::<std::time::Duration>() > std::time::Duration::from_secs(120));
}

#[test]
fn a_hub_that_is_away_while_the_image_is_written_holds_nothing_up() {
    let world = Plan::new(image()).world_with(|_, request| {
        let is_percentage = request.is("PUT", "/progress") && request.json()["progress_info"].is_string();
        (is_percentage && request.json()["current_stage"] == "Writing image to disk").then(|| status(503))
    });
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_installed(&world);
    let told = stages(&world);
    let times = |percent: &str| told.iter().filter(|(_, info)| info == percent).count();
    assert_eq!((times("50%"), times("100%")), (1, 1), "{told:?}");
}

#[test]
fn an_image_that_changes_underway_is_not_mixed() {
    let other = Answer {
        headers: vec![("ETag", "\"2\"".into())],
        ..cut(&image(), 8 * MIB)
    };
    let world = Plan::new(image())
        .fault(cut(&image(), 5 * MIB))
        .fault(other)
        .world();
    // The second try reads one image from its start to its end.
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_installed(&world);
}

#[test]
fn a_damaged_image_is_refused_before_the_disk_is_touched() {
    let sum = hash(&image());
    let mut damaged = image();
    damaged[5 * MIB] ^= 1;
    let world = Plan::new(damaged).world();
    let told = install(&world, &format!("#sha256={sum}"));
    let (stage, info) = told.last().unwrap();
    assert_eq!(stage, "Failed");
    assert!(info.contains("damaged"), "{info}");
    assert_untouched(&world);
}

#[test]
fn truncated_images_are_refused_before_the_disk_is_touched() {
    let packed = gz(&image());
    for short in [
        packed[..packed.len() - 100].to_vec(),
        image()[..AREA_CUT].to_vec(),
    ] {
        let world = Plan::new(short).world();
        let told = install(&world, "");
        assert_eq!(told.last().unwrap().0, "Failed", "{told:?}");
        assert_untouched(&world);
    }
}

/// Before the end of the last partition.
const AREA_CUT: usize = 2 * MIB;

#[test]
fn what_is_not_an_image_is_refused_before_anything_is_touched() {
    let world = Plan::new(b"<html>not found</html>".repeat(100)).world();
    let told = install(&world, "");
    assert!(
        told.last().unwrap().1.contains("not an image of a disk"),
        "{told:?}"
    );
    assert_untouched(&world);
}

#[test]
fn an_image_larger_than_the_disk_is_refused_before_it_is_touched() {
    let mut large = image();
    large.resize(DISK_BYTES + MIB, 5);
    let world = Plan::new(large).world();
    let told = install(&world, "");
    assert!(
        told.last().unwrap().1.contains("larger than the disk"),
        "{told:?}"
    );
    assert_untouched(&world);
}

#[test]
fn a_disk_that_refuses_to_be_written_to_is_told() {
    let full = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/full")
        .unwrap();
    let error = write_body(&mut &image()[..], &Target::of(full, 64 << 20), || ()).unwrap_err();
    assert!(format!("{error:#}").contains("No space left"), "{error:#}");
}

#[test]
fn an_image_without_a_place_for_the_config_is_refused_before_the_disk_is_touched() {
    let mut plain = image();
    plain[1024..1152].fill(0);
    let world = Plan::new(plain).world();
    let told = install(&world, "");
    assert!(
        told.last().unwrap().1.contains("no place for the config"),
        "{told:?}"
    );
    assert_untouched(&world);
}

/// A hub and an image server that are both down for five minutes from the second MiB of the image on.
#[test]
fn a_network_that_is_lost_for_five_minutes_costs_only_time() {
    let clock: Arc<OnceLock<Arc<Manual>>> = Arc::default();
    let lost_at: Arc<OnceLock<Duration>> = Arc::default();
    let plan = Plan::new(image());
    let (own_clock, own_lost_at) = (clock.clone(), lost_at.clone());
    let world = plan.world_with(move |plan, request| {
        let now = own_clock.get().map(|clock| clock.now()).unwrap_or_default();
        if let Some(lost) = own_lost_at.get() {
            let is_away = now < *lost + Duration::from_secs(300);
            return is_away.then(|| Answer {
                cut: Some(0),
                ..status(500)
            });
        }
        let is_first = request.path == "/os.raw";
        is_first.then(|| {
            own_lost_at.set(now).unwrap();
            cut(&plan.image, 2 * MIB)
        })
    });
    clock.set(world.clock.clone()).unwrap();
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_installed(&world);
    assert!(world.clock.now() > Duration::from_secs(300));
    assert_eq!(world.count(Request::is_register), 1, "the agent kept its place");
}

/// The hub is down for most of an hour from one of the agent's reads of the host on: the one when the order comes, the
/// one before the image is fetched, the one before the first byte.
#[test]
fn a_hub_that_dies_at_the_last_question_is_waited_for() {
    for (nth, code) in [(1, 500), (2, 502), (3, 500)] {
        let clock: Arc<OnceLock<Arc<Manual>>> = Arc::default();
        let lost_at: Arc<OnceLock<Duration>> = Arc::default();
        let (own_clock, own_lost_at, looks) = (clock.clone(), lost_at.clone(), AtomicUsize::new(0));
        let world = Plan::new(image()).world_with(move |_, request| {
            if !request.is("GET", &format!("/hosts/{HOST}")) {
                return None;
            }
            let now = own_clock.get().map(|clock| clock.now()).unwrap_or_default();
            if looks.fetch_add(1, Ordering::SeqCst) + 1 == nth {
                own_lost_at.set(now).unwrap();
            }
            let lost = own_lost_at.get()?;
            (now < *lost + Duration::from_secs(55 * 60)).then(|| status(code))
        });
        clock.set(world.clock.clone()).unwrap();
        let told = install(&world, "");
        assert_eq!(told.last().unwrap().0, "Rebooting", "look {nth}: {told:?}");
        assert_installed(&world);
        assert!(world.clock.now() > Duration::from_secs(55 * 60), "look {nth}");
    }
}

#[test]
fn a_disk_that_becomes_another_one_while_the_image_is_checked_is_not_written_to() {
    let root: Arc<OnceLock<std::path::PathBuf>> = Arc::default();
    let own = root.clone();
    let world = Plan::new(image()).world_with(move |_, request| {
        if request.path == "/os.raw" {
            std::fs::write(own.get().unwrap().join("sys/block/vda/serial"), "S2\n").unwrap();
        }
        None
    });
    root.set(world.root.path().to_owned()).unwrap();
    let told = install(&world, "");
    let (stage, info) = told.last().unwrap();
    assert!(
        stage == "Failed" && info.contains("another disk than planned"),
        "{told:?}"
    );
    assert_untouched(&world);
}

/// Holds a request back until the test lets it go.
#[derive(Default)]
struct Gate {
    is_reached: Mutex<bool>,
    changed: Condvar,
    is_open: AtomicBool,
}

impl Gate {
    fn hold(&self) {
        if self.is_open.load(Ordering::SeqCst) {
            return;
        }
        let mut reached = self.is_reached.lock().unwrap();
        *reached = true;
        self.changed.notify_all();
        let closed = |_: &mut bool| !self.is_open.load(Ordering::SeqCst);
        drop(self.changed.wait_while(reached, closed).unwrap());
    }

    fn wait(&self) {
        let guard = self.is_reached.lock().unwrap();
        let (_guard, result) = self
            .changed
            .wait_timeout_while(guard, Duration::from_secs(60), |reached| !*reached)
            .unwrap();
        assert!(!result.timed_out(), "the agent never came so far");
    }

    fn open(&self) {
        let _guard = self.is_reached.lock().unwrap();
        self.is_open.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }
}

/// The real program, in a process that can lose its power.
fn boot(world: &World) -> Child {
    let root = world.root.path().to_str().unwrap();
    Command::new(env!("CARGO_BIN_EXE_muster-agent"))
        .args([
            "--url",
            &world.url,
            "--root",
            root,
            "--reboot-hook=true",
            "--poll=1",
        ])
        .args([
            "--infra-env-id",
            &INFRA_ENV.to_string(),
            "--host-id",
            &HOST.to_string(),
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The download that stops in the middle is the `nth` of the image.
fn power_cut(nth: usize) -> (World, Vec<u8>) {
    let gate: Arc<Gate> = Arc::default();
    let (own, count) = (gate.clone(), AtomicUsize::new(0));
    let world = Plan::new(image()).world_with(move |plan, request| {
        if request.path != "/os.raw" || own.is_open.load(Ordering::SeqCst) {
            return None;
        }
        if request.header("range").is_some() {
            own.hold();
            return None;
        }
        let is_it = count.fetch_add(1, Ordering::SeqCst) + 1 == nth;
        is_it.then(|| cut(&plan.image, 6 * MIB))
    });
    // Too little to keep the image: it is fetched to be checked, and again to be written.
    world.file("proc/meminfo", "MemAvailable: 1000 kB\n");
    world.script.say(steps(&[("install", order(&world, ""))]));
    for _ in 0..100 {
        world.script.say(steps(&[]));
    }
    let mut machine = boot(&world);
    gate.wait();
    machine.kill().unwrap();
    machine.wait().unwrap();
    gate.open();
    let left = disk(&world);
    world.script.forget();
    (world, left)
}

#[test]
fn a_power_cut_while_the_image_is_checked_leaves_the_old_system() {
    let (world, left) = power_cut(1);
    assert!(left == vec![7; DISK_BYTES]);
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_installed(&world);
}

#[test]
fn a_power_cut_in_the_middle_of_writing_leaves_nothing_to_start_and_the_next_try_completes() {
    let (world, left) = power_cut(2);
    assert!(
        left[..MIB].iter().all(|byte| *byte == 0),
        "half a system could be started"
    );
    assert!(left[DISK_BYTES - MIB..].iter().all(|byte| *byte == 0));
    assert!(
        left[MIB..5 * MIB] == image()[MIB..5 * MIB],
        "it was in the middle of writing"
    );
    assert!(
        left[7 * MIB..DISK_BYTES - MIB] == vec![7; 4 * MIB],
        "it was not at the end"
    );
    assert_eq!(install(&world, "").last().unwrap().0, "Rebooting");
    assert_installed(&world);
}
