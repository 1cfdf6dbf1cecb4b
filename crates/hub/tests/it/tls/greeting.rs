//! Clients that are slow to agree on TLS, that speak an old one, or none.

use super::house::{Authority, PATIENCE};
use crate::door::Door;
use jiff::Timestamp;
use muster_contract::Trust;
use muster_contract::client::HubClient;
use muster_hub::http::crowd::Limits;
use muster_hub::http::server::{Secured, Serving, serve_with};
use muster_hub::tls::pair::Files;
use muster_hub::tls::{Source, Tls};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

struct Listening {
    address: SocketAddr,
    tls: Tls,
    trust: Trust,
    _files: tempfile::TempDir,
    _stop: oneshot::Sender<()>,
}

async fn listening(door: &Door, limits: Limits, time: Duration) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let files = Files {
        cert: dir.path().join("hub.crt"),
        key: dir.path().join("hub.key"),
    };
    let authority = Authority::new("lab");
    authority.put(&files, &["127.0.0.1"]);
    let trust = Trust::from_pem(authority.pem().as_bytes(), "ca.pem").unwrap();
    let tls = Tls::open(Source::Files(files), Timestamp::now()).unwrap();
    let serving = Serving {
        tls: Some(Secured {
            tls: tls.clone(),
            url: format!("https://{address}").into(),
        }),
        limits,
        hello_time: time,
        ..Serving::new(door.router.clone())
    };
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(serve_with(listener, serving, async { drop(stopped.await) }));
    Listening {
        address,
        tls,
        trust,
        _files: dir,
        _stop: stop,
    }
}

/// Its beginning, as a client sends it.
const HELLO: [u8; 9] = [22, 3, 1, 1, 0, 1, 0, 0, 252];

impl Listening {
    /// On a connection of its own: one that rests between two requests gives way to others, too.
    async fn ask(&self) {
        let url = format!("https://{}", self.address);
        let client = HubClient::trusting(&url, &self.trust).unwrap();
        client.hub_status().await.unwrap();
    }
}

/// Until so many are counted: the hub hangs up in one moment and counts in the next.
async fn counted(counter: &AtomicU64, wanted: u64) {
    let counted = async {
        while counter.load(Relaxed) < wanted {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.unwrap();
    assert_eq!(counter.load(Relaxed), wanted);
}

/// Connections that say this and no more.
fn slow(address: SocketAddr, count: usize, text: &[u8]) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // The hub may have hung up already.
        stream.write_all(text).ok();
        stream
    };
    (0..count).map(open).collect()
}

/// Whether the hub hangs up in time.
fn is_hung_up(mut stream: TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(read) => read == 0,
        Err(error) => ![ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_finish_their_handshake_keep_nobody_out() {
    const LIMITS: Limits = Limits {
        all: 32,
        of_peer: 32,
        peer_waiting: 16,
    };
    let door = Door::open().await;
    // Longer than this test may take: the crowd makes room, not the clock.
    let hub = listening(&door, LIMITS, Duration::from_secs(600)).await;
    let mut held = Vec::new();
    for text in [&b""[..], &HELLO, b"", &HELLO] {
        held.extend(slow(hub.address, 40, text));
        let begin = Instant::now();
        hub.ask().await;
        assert!(begin.elapsed() < PATIENCE);
    }
    assert!(is_hung_up(held.remove(0)), "the oldest made room");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_has_its_time_and_no_more() {
    let door = Door::open().await;
    let roomy = Limits {
        all: 1000,
        of_peer: 1000,
        peer_waiting: 1000,
    };
    let hub = listening(&door, roomy, Duration::from_secs(1)).await;
    let held: Vec<_> = [&b""[..], &HELLO[..1], &HELLO]
        .iter()
        .flat_map(|text| slow(hub.address, 2, text))
        .collect();
    let ended = tokio::task::spawn_blocking(move || held.into_iter().all(is_hung_up));
    assert!(ended.await.unwrap());
    counted(&hub.tls.handshakes().slow, 6).await;
    hub.ask().await;
    counted(&hub.tls.handshakes().done, 1).await;
}

/// All of a greeting in TLS 1.1: one suite of its time, nothing compressed.
fn old_hello() -> Vec<u8> {
    let mut body = vec![3, 2];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0xc0, 0x13, 1, 0]);
    let length = u8::try_from(body.len()).unwrap();
    let mut text = vec![22, 3, 1, 0, length + 4, 1, 0, 0, length];
    text.extend(body);
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_older_than_tls_1_2_is_spoken() {
    let door = Door::open().await;
    let hub = listening(&door, Limits::of_process(100), PATIENCE).await;
    let address = hub.address;
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = slow(address, 1, &old_hello()).remove(0);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        answer
    });
    let answer = answer.await.unwrap();
    // An alert, fatal: handshake_failure or protocol_version.
    assert!(matches!(answer[..], [21, _, _, _, _, 2, 40 | 70]), "{answer:?}");
    let mut nonsense = slow(hub.address, 1, &[0; 10]).remove(0);
    let ended = tokio::task::spawn_blocking(move || nonsense.read_to_end(&mut Vec::new()));
    if let Err(error) = ended.await.unwrap() {
        let is_patient = [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind());
        assert!(!is_patient, "who speaks no TLS is not waited for: {error}");
    }
    assert!(hub.tls.handshakes().failed.load(Relaxed) >= 1);
}
