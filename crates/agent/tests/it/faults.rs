//! Images and networks that break: the disk can be started only when all of it is right.

use crate::installation::*;
use crate::world::*;
use muster_agent::install::writer::{Target, write_body};

fn cut(image: &[u8], after: usize) -> Answer {
    Answer {
        body: image.to_vec(),
        headers: vec![("ETag", "\"1\"".into())],
        cut: Some(after),
        ..status(200)
    }
}

/// Nothing that firmware could start is on the disk.
fn assert_not_bootable(world: &World) {
    assert!(disk(world)[..MIB].iter().all(|byte| *byte == 0));
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
fn a_damaged_image_never_becomes_bootable() {
    let sum = hash(&image());
    let mut damaged = image();
    damaged[5 * MIB] ^= 1;
    let world = Plan::new(damaged).world();
    let told = install(&world, &format!("#sha256={sum}"));
    let (stage, info) = told.last().unwrap();
    assert_eq!(stage, "Failed");
    assert!(info.contains("damaged"), "{info}");
    assert_not_bootable(&world);
}

#[test]
fn truncated_images_never_become_bootable() {
    let packed = gz(&image());
    for short in [
        packed[..packed.len() - 100].to_vec(),
        image()[..AREA_CUT].to_vec(),
    ] {
        let world = Plan::new(short).world();
        let told = install(&world, "");
        assert_eq!(told.last().unwrap().0, "Failed", "{told:?}");
        assert_not_bootable(&world);
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
    assert!(disk(&world) == vec![7; DISK_BYTES]);
}

#[test]
fn an_image_larger_than_the_disk_never_becomes_bootable() {
    let mut large = image();
    large.resize(DISK_BYTES + MIB, 5);
    let world = Plan::new(large).world();
    let told = install(&world, "");
    assert!(
        told.last().unwrap().1.contains("larger than the disk"),
        "{told:?}"
    );
    assert_not_bootable(&world);
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
fn an_image_without_a_place_for_the_config_never_becomes_bootable() {
    let mut plain = image();
    plain[1024..1152].fill(0);
    let world = Plan::new(plain).world();
    let told = install(&world, "");
    assert!(
        told.last().unwrap().1.contains("no place for the config"),
        "{told:?}"
    );
    assert_not_bootable(&world);
}
