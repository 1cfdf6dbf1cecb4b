//! Boot loaders do not come back: what they ask for may be on its way, and they wait for it.

use crate::depot::{Mirror, Mood};
use crate::sample;
use crate::world::{Client, Way, World, eventually};
use muster_image::{OsImage, Settings};
use std::time::Duration;

const INITRD: &str = "/images/x/pxe-initrd?version=1";

/// A base image of which the first half is here until its server is told to go on.
fn halfway(way: Way) -> (Mirror, World) {
    let mirror = Mirror::start(sample::bytes("2023-07.x86_64"), &[Mood::Halts]);
    let os = OsImage {
        version: "1".into(),
        ..mirror.image(None)
    };
    let settings = Settings {
        patience: Duration::from_millis(20),
        ..Settings::default()
    };
    let world = World::over(way, settings, os, tempfile::tempdir().unwrap());
    (mirror, world)
}

#[test]
fn a_boot_loader_waits_for_a_base_image_that_is_being_fetched() {
    for way in [Way::Axum, Way::Wire, Way::Copied] {
        let (mirror, world) = halfway(way);
        let mut loader = Client::connect(world.address);
        loader.send("GET", INITRD, &[("User-Agent", "iPXE/1.21.1+git")]);
        eventually("the download has begun", || mirror.requests() == 1);
        // Somebody who can come back is told to, though it has asked later.
        let other = world.get(INITRD, &[("User-Agent", "curl/8")]);
        assert_eq!(
            (other.status, other.header("retry-after")),
            (503, "15"),
            "{way:?}"
        );
        mirror.go_on();
        let reply = loader.head();
        assert_eq!(reply.status, 200, "{way:?}");
        let len = reply.header("content-length").parse().unwrap();
        assert!(loader.take(len) == world.get(INITRD, &[]).body, "{way:?}");
        assert_eq!(mirror.requests(), 1);
    }
}

#[test]
fn a_base_image_can_be_expected_before_anybody_asks_for_it() {
    let (mirror, world) = halfway(Way::Wire);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        world.images.expect("none", "x86_64");
        world.images.expect("1", "x86_64");
        world.images.expect("1", "x86_64");
    });
    eventually("the download has begun", || mirror.requests() == 1);
    mirror.go_on();
    eventually("it is here", || world.images.depot().list()[0].state == "ready");
    assert_eq!(mirror.requests(), 1);
}
