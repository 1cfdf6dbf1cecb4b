//! What goes wrong around images: sources that lie or die, full disks, changes and crowds.

use crate::depot::{Mirror, Mood, files, sha256};
use crate::sample;
use crate::world::{Client, Way, World, eventually};
use muster_image::{Depot, Settings};
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const FULL: &str = "/byid/x/4.20/x86_64/full.iso";

fn depot(dir: &Path) -> Depot {
    Depot::open(dir, 1 << 30).unwrap()
}

#[tokio::test]
async fn an_image_that_is_cut_off_at_its_source_is_refused_even_without_a_checksum() {
    let mut bytes = sample::bytes("2023-07.x86_64");
    bytes.truncate(700_000);
    let mirror = Mirror::start(bytes, &[Mood::Fine]);
    let dir = tempfile::tempdir().unwrap();
    let error = depot(dir.path()).get(&mirror.image(None)).await.unwrap_err();
    assert!(
        error.to_string().contains("cut off after 700000 of 741376 bytes"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_wrong_checksum_names_both_sums() {
    let bytes = sample::bytes("2022-02");
    let mirror = Mirror::start(bytes.clone(), &[Mood::Fine]);
    let dir = tempfile::tempdir().unwrap();
    let expected = "0123456789abcdef".repeat(4);
    let error = depot(dir.path())
        .get(&mirror.image(Some(&expected)))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&expected) && error.contains(&sha256(&bytes)),
        "{error}"
    );
}

#[tokio::test]
async fn a_source_that_dies_in_the_middle_is_asked_for_the_rest_when_it_is_back() {
    let bytes = sample::bytes("2022-02");
    let moods = [Mood::Breaks(400_000), Mood::Answers(503), Mood::Fine];
    let mirror = Mirror::start(bytes.clone(), &moods);
    let dir = tempfile::tempdir().unwrap();
    depot(dir.path())
        .get(&mirror.image(Some(&sha256(&bytes))))
        .await
        .unwrap();
    let asked = mirror.asked.lock().unwrap().clone();
    let ranges: Vec<bool> = asked
        .iter()
        .map(|head| head.to_lowercase().contains("range: bytes=400000-"))
        .collect();
    assert_eq!(ranges, [false, true, true]);
}

#[tokio::test]
async fn a_hub_that_was_stopped_in_the_middle_goes_on_with_what_it_has() {
    let bytes = sample::bytes("2022-02");
    let mirror = Mirror::start(bytes.clone(), &[Mood::Fine]);
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let image = mirror.image(Some(&sha256(&bytes)));
    depot(first.path()).get(&image).await.unwrap();
    // What is on disk when the process is killed at two thirds.
    let name = |end: &str| second.path().join(format!("{}.{end}", key_in(first.path())));
    std::fs::write(name("part"), &bytes[..700_000]).unwrap();
    let mark = serde_json::json!({ "url": image.url, "validator": "\"one\"" });
    std::fs::write(name("mark"), mark.to_string()).unwrap();
    depot(second.path()).get(&image).await.unwrap();
    let asked = mirror.asked.lock().unwrap().clone();
    assert!(
        asked[1].to_lowercase().contains("range: bytes=700000-"),
        "{}",
        asked[1]
    );
}

/// The name under which the one image of this directory is kept.
fn key_in(dir: &Path) -> String {
    let mut names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let image = names.find(|path| path.extension().is_some_and(|end| end == "iso"));
    image.unwrap().file_stem().unwrap().to_string_lossy().into_owned()
}

/// `/dev/full` answers every write as a disk without room does.
#[tokio::test]
async fn a_full_disk_is_told_and_what_was_begun_is_removed() {
    let bytes = sample::bytes("2022-02");
    let mirror = Mirror::start(bytes.clone(), &[Mood::Fine]);
    let image = mirror.image(Some(&sha256(&bytes)));
    let (fine, full) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    depot(fine.path()).get(&image).await.unwrap();
    symlink(
        "/dev/full",
        full.path().join(format!("{}.part", key_in(fine.path()))),
    )
    .unwrap();
    let depot = depot(full.path());
    let error = depot.get(&image).await.unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    assert_eq!(
        std::fs::read_dir(full.path()).unwrap().count(),
        0,
        "others need the room"
    );
    assert_eq!(depot.list()[0].state, "failed");
    assert_eq!(
        mirror.requests(),
        2,
        "a full disk is no reason to try again at once"
    );
}

#[tokio::test]
async fn an_image_that_cannot_fit_is_refused_before_a_byte_is_written_and_nothing_goes_for_it() {
    let bytes = sample::bytes("2022-02");
    let mirror = Mirror::start(bytes.clone(), &[Mood::Fine, Mood::Boasts(1 << 60)]);
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), u64::MAX).unwrap();
    depot.get(&mirror.image(None)).await.unwrap();
    let error = depot.get(&mirror.image(Some(&"0".repeat(64)))).await.unwrap_err();
    assert!(error.to_string().contains("the disk has room for"), "{error}");
    assert_eq!(
        (
            files(dir.path(), "iso"),
            files(dir.path(), "part"),
            depot.evictions()
        ),
        (1, 0, 0)
    );
}

#[test]
fn a_base_file_that_is_cut_while_it_is_read_ends_the_stream_early_and_is_never_filled_up() {
    let world = World::sized(Way::Wire, Settings::default(), 32 << 20);
    let mut client = Client::connect(world.address);
    client.send("GET", FULL, &[]);
    let promised: u64 = client.head().header("content-length").parse().unwrap();
    let path = world.dir.path().join("base.iso");
    std::fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(2 << 20)
        .unwrap();
    assert!(client.until_the_end() < promised);
}

/// Through the whole service: who asks much waits, who asks little does not wait for them.
#[test]
fn five_hundred_requests_at_once_are_all_answered_and_one_greedy_client_does_not_keep_others_out() {
    let settings = Settings {
        streams: 2,
        ..Settings::default()
    };
    let world = World::sized(Way::Wire, settings, 32 << 20);
    let whole = Arc::new(world.get(FULL, &[]).body);
    // Two who do not read hold both passes, for the image is larger than all buffers on the way.
    let mut holders = [(); 2].map(|()| Client::connect(world.address));
    for holder in &mut holders {
        holder.send("GET", FULL, &[]);
        holder.head();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let start = |client: Ipv4Addr, many: usize| {
        let tasks: Vec<_> = (0..many)
            .map(|_| {
                let (address, whole) = (world.address, Arc::clone(&whole));
                let order = Arc::clone(&order);
                runtime.spawn(async move {
                    let mut stream = from(client, address).await;
                    stream.readable().await.unwrap();
                    order.lock().unwrap().push(client);
                    let body = read_part(&mut stream).await;
                    assert!(body == whole[..body.len()]);
                })
            })
            .collect();
        tasks
    };
    let mut tasks = start(Ipv4Addr::new(127, 0, 0, 2), 480);
    eventually("480 in the queue", || world.images.waiting() == 480);
    for number in 1..=20 {
        tasks.extend(start(Ipv4Addr::new(127, 0, 1, number), 1));
    }
    eventually("500 in the queue", || world.images.waiting() == 500);
    // Small reads are not kept waiting by any of them.
    assert_eq!(world.get(FULL, &[("Range", "bytes=0-4095")]).status, 206);
    for holder in &mut holders {
        assert!(holder.take(whole.len()) == *whole);
    }
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    let order = order.lock().unwrap();
    assert_eq!(order.len(), 500);
    let last_modest = order.iter().rposition(|client| client.octets()[2] == 1).unwrap();
    assert!(
        last_modest < 120,
        "one request each, behind 480 of one client, answered as number {last_modest}"
    );
    eventually("all ended", || world.images.totals().streams == 0);
}

/// One and a half megabytes: enough to need a pass.
const PART: usize = 3 << 19;

/// All of 127.0.0.0/8 is this machine, so one test can be many clients.
async fn from(client: Ipv4Addr, address: std::net::SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((client, 0).into()).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let request = format!(
        "GET {FULL} HTTP/1.1\r\nHost: x\r\nRange: bytes=0-{}\r\nConnection: close\r\n\r\n",
        PART - 1
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read_part(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PART + 1024);
    stream.read_to_end(&mut bytes).await.unwrap();
    assert!(bytes.starts_with(b"HTTP/1.1 206 "));
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert_eq!(bytes.len() - head, PART);
    bytes.split_off(head)
}
