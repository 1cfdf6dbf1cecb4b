//! Images over HTTP, the same through both servers.

use crate::sample::{self, unpacked};
use crate::world::{Client, Reply, Way, World, eventually};
use muster_image::Settings;
use std::sync::atomic::Ordering;

const FULL: &str = "/byid/x/4.20/x86_64/full.iso";
const ALL: [Way; 3] = [Way::Axum, Way::Wire, Way::Copied];

#[test]
fn an_image_is_sent_whole_and_by_ranges() {
    for way in ALL {
        let world = World::start(way);
        let whole = world.get(FULL, &[]);
        assert_eq!(whole.status, 200);
        assert_eq!(whole.header("accept-ranges"), "bytes");
        assert_eq!(whole.header("last-modified"), "Tue, 14 Nov 2023 22:13:20 GMT");
        assert_eq!(
            whole.header("content-disposition"),
            "attachment; filename=x-discovery.iso"
        );
        assert_eq!(whole.body.len(), 1_048_576 + (3 << 20));
        let area = &whole.body[68 * 2048..68 * 2048 + 262_144];
        assert_eq!(unpacked(area), [("config.ign".to_owned(), b"{}".to_vec())]);

        let head = world.ask("HEAD", FULL, &[]);
        assert_eq!(
            (head.status, head.header("content-length")),
            (200, whole.body.len().to_string().as_str())
        );
        assert_eq!(head.header("etag"), whole.header("etag"));

        let mut client = Client::connect(world.address);
        let len = whole.body.len();
        let cases = [
            (0, 1),
            (139_000, 400_000),
            (len - 5, len),
            (32_768, 34_816),
            (200_000, len - 1),
        ];
        for (from, to) in cases {
            let reply = client.ask("GET", FULL, &[("Range", &format!("bytes={from}-{}", to - 1))]);
            assert_eq!(reply.status, 206);
            assert_eq!(
                reply.header("content-range"),
                format!("bytes {from}-{}/{len}", to - 1)
            );
            assert!(reply.body == whole.body[from..to], "{from}..{to}");
        }
        let outside = client.ask("GET", FULL, &[("Range", &format!("bytes={len}-"))]);
        assert_eq!(
            (outside.status, outside.header("content-range")),
            (416, format!("bytes */{len}").as_str())
        );
    }
}

#[test]
fn several_ranges_come_as_parts() {
    for way in ALL {
        let world = World::start(way);
        let whole = world.get(FULL, &[]).body;
        let reply = world.get(FULL, &[("Range", "bytes=0-9, 139264-139300,-7")]);
        assert_eq!(reply.status, 206);
        let boundary = reply
            .header("content-type")
            .strip_prefix("multipart/byteranges; boundary=")
            .unwrap();
        let mut expected = Vec::new();
        for (number, (from, to)) in [(0, 10), (139_264, 139_301), (whole.len() - 7, whole.len())]
            .into_iter()
            .enumerate()
        {
            let start = if number == 0 { "" } else { "\r\n" };
            let kind = "application/octet-stream";
            let range = format!("bytes {from}-{}/{}", to - 1, whole.len());
            expected.extend(
                format!("{start}--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: {range}\r\n\r\n")
                    .into_bytes(),
            );
            expected.extend_from_slice(&whole[from..to]);
        }
        expected.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
        assert!(reply.body == expected);
    }
}

#[test]
fn conditions_are_kept() {
    let world = World::start(Way::Wire);
    let first = world.ask("HEAD", FULL, &[]);
    let (etag, date) = (first.header("etag"), first.header("last-modified"));
    let before = "Tue, 14 Nov 2023 22:13:19 GMT";
    let weak = format!("W/{etag}");
    let range = ("Range", "bytes=5-6");
    let table: &[(&[(&str, &str)], u16)] = &[
        (&[("If-None-Match", etag)], 304),
        (&[("If-None-Match", &weak)], 304),
        (&[("If-None-Match", "*")], 304),
        (&[("If-None-Match", "\"other\"")], 200),
        (
            &[("If-None-Match", "\"other\""), ("If-Modified-Since", date)],
            200,
        ),
        (&[("If-Modified-Since", date)], 304),
        (&[("If-Modified-Since", before)], 200),
        (&[("If-Modified-Since", "nonsense")], 200),
        (&[("If-Match", etag)], 200),
        (&[("If-Match", &weak)], 412),
        (&[("If-Match", "\"other\"")], 412),
        (&[("If-Unmodified-Since", before)], 412),
        (&[("If-Unmodified-Since", date)], 200),
        (&[range, ("If-Range", etag)], 206),
        (&[range, ("If-Range", &weak)], 200),
        (&[range, ("If-Range", "\"other\"")], 200),
        (&[range, ("If-Range", date)], 206),
        (&[range, ("If-Range", before)], 200),
        (&[range, ("If-Match", "\"other\"")], 412),
        (&[range], 206),
    ];
    for (headers, status) in table {
        assert_eq!(world.ask("HEAD", FULL, headers).status, *status, "{headers:?}");
        assert_eq!(world.get(FULL, headers).status, *status, "{headers:?}");
    }
}

#[test]
fn a_resumed_download_never_mixes_two_images() {
    for way in ALL {
        let world = World::start(way);
        let old = world.get(FULL, &[]);
        world.source.set(r#"{"new":true}"#);
        let new = world.get(
            FULL,
            &[("Range", "bytes=1000-"), ("If-Range", old.header("etag"))],
        );
        assert_eq!(
            new.status, 200,
            "what was begun is gone: the whole new image comes"
        );
        assert_ne!(new.header("etag"), old.header("etag"));
        assert_eq!(new.body.len(), old.body.len());
        assert!(new.body != old.body);
        let same = world.get(
            FULL,
            &[("Range", "bytes=1000-1999"), ("If-Range", new.header("etag"))],
        );
        assert_eq!(same.status, 206);
        assert!(same.body == new.body[1000..2000]);
    }
}

#[test]
fn a_stream_that_runs_while_the_image_changes_ends_as_it_began() {
    for way in ALL {
        let world = World::start(way);
        let old = world.get(FULL, &[]);
        let mut slow = Client::connect(world.address);
        slow.send("GET", FULL, &[]);
        let head = slow.head();
        world.source.set(r#"{"new":true}"#);
        assert_ne!(world.get(FULL, &[]).header("etag"), old.header("etag"));
        assert_eq!(head.header("etag"), old.header("etag"));
        assert!(slow.take(old.body.len()) == old.body);
    }
}

/// Firmware mounts an image and reads pieces, with no way to notice a change.
#[test]
fn a_client_that_reads_by_pieces_keeps_its_image_until_it_begins_anew() {
    let world = World::start(Way::Wire);
    let mut bmc = Client::connect(world.address);
    let etag = bmc.ask("HEAD", FULL, &[]).header("etag").to_owned();
    world.source.set(r#"{"new":true}"#);
    let piece = bmc.ask("GET", FULL, &[("Range", "bytes=139264-141311")]);
    assert_eq!(piece.header("etag"), etag);
    let again = bmc.ask("HEAD", FULL, &[]);
    assert_ne!(again.header("etag"), etag);
    let piece = bmc.ask("GET", FULL, &[("Range", "bytes=139264-141311")]);
    assert_eq!(piece.header("etag"), again.header("etag"));
}

#[test]
fn an_address_of_another_edition_is_another_medium_and_has_the_image_of_now() {
    let world = World::start(Way::Wire);
    let (before, after) = (
        "/byid/x/4.20/x86_64/aaaa/full.iso",
        "/byid/x/4.20/x86_64/bbbb/full.iso",
    );
    let mut bmc = Client::connect(world.address);
    let etag = bmc.ask("HEAD", before, &[]).header("etag").to_owned();
    world.source.set(r#"{"new":true}"#);
    // The medium is changed, and the first read is one from the middle.
    let middle = ("Range", "bytes=139264-141311");
    let piece = bmc.ask("GET", after, &[middle]);
    assert_eq!(piece.status, 206);
    assert_ne!(piece.header("etag"), etag);
    let newer = piece.header("etag").to_owned();
    assert_eq!(
        bmc.ask("GET", before, &[middle]).header("etag"),
        etag,
        "what was begun goes on"
    );
    for address in [before, after, FULL] {
        assert_eq!(world.ask("HEAD", address, &[]).header("etag"), newer, "{address}");
    }
}

#[test]
fn the_payload_is_asked_for_once_for_each_change() {
    let world = World::start(Way::Wire);
    let mut client = Client::connect(world.address);
    for at in 0..50 {
        client.ask("GET", FULL, &[("Range", &format!("bytes={at}-{at}"))]);
    }
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let address = world.address;
            std::thread::spawn(move || {
                Client::connect(address)
                    .ask("HEAD", "/byid/x/1/x86_64/minimal.iso", &[])
                    .status
            })
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 200));
    assert_eq!(
        world.source.payloads.load(Ordering::SeqCst),
        2,
        "once for the full image, once for the minimal one"
    );
    world.source.set("{ }");
    client.ask("HEAD", FULL, &[]);
    assert_eq!(world.source.payloads.load(Ordering::SeqCst), 3);
}

#[test]
fn every_artifact_is_served_and_refusals_say_why() {
    for way in ALL {
        let world = World::start(way);
        let status = |path: &str| world.get(path, &[]).status;
        assert_eq!(status("/images/x?version=1&type=full-iso"), 200);
        assert_eq!(status("/images/x?version=1&type=minimal-iso&api_key=good"), 200);
        assert_eq!(status("/images/x/pxe-initrd?version=1"), 200);
        assert_eq!(status("/i/short.iso"), 200);
        assert_eq!(world.get("/i/any.ipxe", &[]).text(), "#!ipxe\nboot\n");
        assert_eq!(world.get("/boot-artifacts/rootfs?version=1", &[]).body.len(), 12);
        assert_eq!(
            world.get("/boot-artifacts/kernel?version=4.20", &[]).body.len(),
            11
        );
        // No such thing on this architecture.
        assert_eq!(status("/boot-artifacts/ins-file?version=1"), 400);
        assert_eq!(status("/boot-artifacts/kernel?version=9"), 400);
        assert_eq!(status("/images/x/pxe-initrd?version=9"), 400);
        assert_eq!(status("/byid/x/9/x86_64/full.iso"), 404);
        assert_eq!(status("/byid/y/1/x86_64/full.iso"), 404);
        assert_eq!(status("/byid/x/1/x86_64/full.iso?api_key=bad"), 401);
        assert_eq!(status("/i/long.iso"), 404);
        let refused = world.ask("DELETE", FULL, &[]);
        assert_eq!((refused.status, refused.header("allow")), (405, "GET, HEAD"));
        // What is not an image goes to the ordinary server on the same connection.
        let mut client = Client::connect(world.address);
        assert_eq!(client.ask("HEAD", FULL, &[]).status, 200);
        assert_eq!(client.ask("GET", "/live", &[]).status, 200);
        assert_eq!(client.ask("HEAD", FULL, &[]).status, 200);
    }
}

#[test]
fn the_minimal_image_fetches_its_root_file_system_here() {
    let world = World::start(Way::Wire);
    let body = world.get("/byid/x/4.20/x86_64/minimal.iso", &[]).body;
    let url =
        b"coreos.live.rootfs_url=\"http://images.example.com/boot-artifacts/rootfs?arch=x86_64&version=1\"";
    assert_eq!(
        body.windows(url.len()).filter(|part| part == url).count(),
        2,
        "in both boot menus"
    );
}

#[test]
fn too_much_configuration_is_an_error_with_numbers() {
    let world = World::start(Way::Wire);
    let noise: String = sample::noise(600_000)
        .iter()
        .map(|byte| char::from(b'0' + byte % 64))
        .collect();
    world.source.set(&noise);
    let reply = world.get(FULL, &[]);
    assert_eq!(reply.status, 500);
    assert!(reply.text().contains("room for 262144"), "{}", reply.text());
}

#[test]
fn one_sees_how_far_a_client_has_read() {
    for way in ALL {
        let world = World::start(way);
        let total = world
            .ask("HEAD", FULL, &[])
            .header("content-length")
            .parse::<usize>()
            .unwrap();
        let range = format!("bytes=0-{}", total * 2 / 5);
        world.get(FULL, &[("Range", &range)]);
        eventually("progress", || {
            let list = world.images.progress(Some("x"));
            list.iter()
                .any(|one| (one.percent, one.streams, one.reader.artifact.as_str()) == (40, 0, "full.iso"))
        });
        let told = world.get("/progress?image=x", &[]).text();
        assert!(told.contains(r#""percent":40"#), "{told}");
    }
}

#[test]
fn large_replies_wait_for_their_turn_and_small_ones_do_not() {
    let settings = Settings {
        streams: 1,
        ..Settings::default()
    };
    let world = World::with(Way::Wire, settings);
    let whole = world.get(FULL, &[]).body;
    // Does not read: its reply stays in the sockets' buffers, or is done if they are large; so ask for it many times.
    let mut first = Client::connect(world.address);
    for _ in 0..20 {
        first.send("GET", FULL, &[]);
    }
    first.head();
    let address = world.address;
    let second = std::thread::spawn(move || Client::connect(address).ask("GET", FULL, &[]).body);
    eventually("a queue", || world.images.waiting() > 0 || second.is_finished());
    let small = world.get(FULL, &[("Range", "bytes=0-4095")]);
    assert_eq!(small.status, 206);
    first.take(whole.len());
    for _ in 0..19 {
        first.head();
        assert!(first.take(whole.len()) == whole);
    }
    assert!(second.join().unwrap() == whole);
}

#[test]
fn requests_sent_at_once_are_answered_in_order() {
    let world = World::start(Way::Wire);
    let whole = world.get(FULL, &[]).body;
    let mut client = Client::connect(world.address);
    for at in [7, 70_000, 700_000] {
        client.send("GET", FULL, &[("Range", &format!("bytes={at}-{}", at + 99_999))]);
    }
    for at in [7, 70_000, 700_000] {
        let reply: Reply = client.head();
        assert_eq!(reply.status, 206);
        assert!(client.take(100_000) == whole[at..at + 100_000]);
    }
}
