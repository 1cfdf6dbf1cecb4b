//! Fetching base images: once, checked, resumed, within the bound.

use crate::sample;
use muster_image::depot::State;
use muster_image::{Depot, OsImage};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex};

/// How the server behaves for each request, in order; the last one stays.
#[derive(Clone, Copy, Debug)]
pub enum Mood {
    Fine,
    /// Breaks off after so many bytes.
    Breaks(usize),
    Answers(u16),
    /// Says that it has so many bytes, and sends what it has.
    Boasts(u64),
    /// Sends the first half, and the other when it is told to.
    Halts,
}

/// A file server with moods that remembers what it was asked.
pub struct Mirror {
    address: SocketAddr,
    pub asked: Arc<Mutex<Vec<String>>>,
    file: Arc<Mutex<(Vec<u8>, String)>>,
    told: Arc<(Mutex<bool>, Condvar)>,
}

impl Mirror {
    pub fn start(bytes: Vec<u8>, moods: &[Mood]) -> Mirror {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mirror = Mirror {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            file: Arc::new(Mutex::new((bytes, "\"one\"".to_owned()))),
            told: Arc::default(),
        };
        let told = mirror.told.clone();
        let (asked, file, moods) = (mirror.asked.clone(), mirror.file.clone(), moods.to_vec());
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let mood = *moods.get(number).or(moods.last()).unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while reader.read_line(&mut head).unwrap() > 2 {}
                asked.lock().unwrap().push(head.clone());
                let (bytes, etag) = file.lock().unwrap().clone();
                let reply = reply(&head, &bytes, &etag, mood);
                if !matches!(mood, Mood::Halts) {
                    stream.write_all(&reply).ok();
                    continue;
                }
                let told = told.clone();
                std::thread::spawn(move || {
                    let (first, second) = reply.split_at(reply.len() / 2);
                    stream.write_all(first).ok();
                    let (told, news) = &*told;
                    drop(news.wait_while(told.lock().unwrap(), |told| !*told).unwrap());
                    stream.write_all(second).ok();
                });
            }
        });
        mirror
    }

    pub fn image(&self, sha256: Option<&str>) -> OsImage {
        self.named("v1", sha256)
    }

    /// Those who halted go on.
    pub fn go_on(&self) {
        *self.told.0.lock().unwrap() = true;
        self.told.1.notify_all();
    }

    pub fn named(&self, name: &str, sha256: Option<&str>) -> OsImage {
        OsImage {
            openshift_version: name.into(),
            cpu_architecture: "x86_64".into(),
            url: format!("http://{}/{name}.iso", self.address),
            version: name.into(),
            sha256: sha256.map(str::to_owned),
        }
    }

    pub fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn reply(head: &str, bytes: &[u8], etag: &str, mood: Mood) -> Vec<u8> {
    let head = head.to_lowercase();
    let field = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let from = field("range: bytes=").and_then(|range| range.trim_end_matches('-').parse::<usize>().ok());
    let from = from.filter(|_| field("if-range:") == Some(etag)).unwrap_or(0);
    let end = match mood {
        Mood::Answers(status) => {
            return format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .into_bytes();
        }
        Mood::Fine | Mood::Boasts(_) | Mood::Halts => bytes.len(),
        Mood::Breaks(after) => (from + after).min(bytes.len()),
    };
    let (first, last, len) = (from, bytes.len() - 1, bytes.len());
    let status = match from {
        0 => "200 OK\r\n".to_owned(),
        _ => format!("206 Partial Content\r\nContent-Range: bytes {first}-{last}/{len}\r\n"),
    };
    let rest = match mood {
        Mood::Boasts(claimed) => claimed,
        Mood::Fine | Mood::Halts | Mood::Breaks(_) | Mood::Answers(_) => (len - from) as u64,
    };
    let mut reply =
        format!("HTTP/1.1 {status}ETag: {etag}\r\nContent-Length: {rest}\r\nConnection: close\r\n\r\n")
            .into_bytes();
    reply.extend_from_slice(&bytes[from..end]);
    reply
}

pub fn sha256(bytes: &[u8]) -> String {
    muster_image::base::sha256(&sample::file(bytes), bytes.len() as u64).unwrap()
}

pub fn files(dir: &std::path::Path, end: &str) -> usize {
    let list = std::fs::read_dir(dir).unwrap();
    list.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|found| found == end)
    })
    .count()
}

#[tokio::test]
async fn nothing_is_fetched_before_it_is_needed_and_then_once_for_all() {
    let bytes = sample::bytes("2022-02");
    let mirror = Mirror::start(bytes.clone(), &[Mood::Fine]);
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), 1 << 30).unwrap();
    assert_eq!(mirror.requests(), 0);
    let image = mirror.image(Some(&sha256(&bytes)));
    let all = futures_util::future::join_all((0..20).map(|_| depot.get(&image))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(mirror.requests(), 1);
    assert_eq!(depot.list()[0].state, "ready");
    // A second life finds it on disk.
    let again = Depot::open(dir.path(), 1 << 30).unwrap();
    assert_eq!(
        again.get(&image).await.unwrap().areas,
        all[0].as_ref().unwrap().areas
    );
    assert_eq!(mirror.requests(), 1);
    assert_eq!((files(dir.path(), "part"), files(dir.path(), "mark")), (0, 0));
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_stopped() {
    let bytes = sample::bytes("2022-02");
    let mirror = Mirror::start(
        bytes.clone(),
        &[Mood::Breaks(300_000), Mood::Breaks(300_000), Mood::Fine],
    );
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), 1 << 30).unwrap();
    depot.get(&mirror.image(Some(&sha256(&bytes)))).await.unwrap();
    let asked = mirror.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 3);
    assert!(
        asked[1].to_lowercase().contains("range: bytes=300000-"),
        "{}",
        asked[1]
    );
    assert!(
        asked[2].to_lowercase().contains("if-range: \"one\""),
        "{}",
        asked[2]
    );
}

#[tokio::test]
async fn a_file_that_changed_meanwhile_is_fetched_from_its_beginning() {
    let (old, new) = (sample::bytes("2022-02"), sample::bytes("2022-09"));
    let mirror = Mirror::start(old, &[Mood::Breaks(300_000), Mood::Fine]);
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), 1 << 30).unwrap();
    let mut state = depot.watch(&mirror.image(Some(&sha256(&new))));
    state
        .wait_for(|state| matches!(state, State::Fetching { done_bytes: 1.., .. }))
        .await
        .unwrap();
    *mirror.file.lock().unwrap() = (new.clone(), "\"two\"".to_owned());
    depot.get(&mirror.image(Some(&sha256(&new)))).await.unwrap();
}

#[tokio::test]
async fn a_wrong_checksum_is_refused_and_leaves_nothing_behind() {
    let mirror = Mirror::start(sample::bytes("2022-02"), &[Mood::Fine]);
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), 1 << 30).unwrap();
    let error = depot.get(&mirror.image(Some(&"0".repeat(64)))).await.unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    // Those who come at once are told the same without another download.
    depot.get(&mirror.image(Some(&"0".repeat(64)))).await.unwrap_err();
    assert_eq!(mirror.requests(), 1);
}

#[tokio::test]
async fn what_is_not_there_is_told_at_once() {
    let mirror = Mirror::start(Vec::new(), &[Mood::Answers(404)]);
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), 1 << 30).unwrap();
    let error = depot.get(&mirror.image(None)).await.unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
    assert_eq!(depot.list()[0].state, "failed");
}

#[tokio::test]
async fn a_page_that_is_not_an_image_is_refused() {
    let mirror = Mirror::start(vec![b'<'; 100_000], &[Mood::Fine]);
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), 1 << 30).unwrap();
    let error = depot.get(&mirror.image(None)).await.unwrap_err();
    assert!(error.to_string().contains("not an ISO"), "{error}");
}

#[tokio::test]
async fn the_least_recently_used_goes_when_room_is_needed() {
    let bytes = sample::bytes("2022-02");
    let mirror = Mirror::start(bytes.clone(), &[Mood::Fine]);
    let dir = tempfile::tempdir().unwrap();
    let depot = Depot::open(dir.path(), 2 * bytes.len() as u64).unwrap();
    let [first, second, third] = ["a", "b", "c"].map(|name| mirror.named(name, None));
    let held = depot.get(&first).await.unwrap();
    depot.get(&second).await.unwrap();
    assert_eq!(depot.evictions(), 0);
    depot.get(&third).await.unwrap();
    assert_eq!((depot.evictions(), files(dir.path(), "iso")), (1, 2));
    // Who reads it still can.
    held.full().unwrap().layout.bytes(0..1000).unwrap();
    let small = Depot::open(&dir.path().join("small"), 1000).unwrap();
    let error = small.get(&first).await.unwrap_err();
    assert!(error.to_string().contains("more than the 1000"), "{error}");
}

#[tokio::test]
async fn a_local_file_is_used_where_it_is_and_looked_at_again_when_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.iso");
    std::fs::write(&path, sample::bytes("2022-02")).unwrap();
    let image = OsImage {
        url: format!("file://{}", path.display()),
        version: "own".into(),
        ..OsImage::default()
    };
    let first = Depot::open(&dir.path().join("depot"), 10)
        .unwrap()
        .get(&image)
        .await
        .unwrap();
    // Another file under the same name, as an administrator would replace it.
    let aside = dir.path().join("new.iso");
    std::fs::write(&aside, sample::bytes("2020-09")).unwrap();
    std::fs::rename(&aside, &path).unwrap();
    let second = Depot::open(&dir.path().join("depot"), 10)
        .unwrap()
        .get(&image)
        .await
        .unwrap();
    assert_ne!(first.areas.sha256, second.areas.sha256);
}
