//! A hub that listens among strangers: other sites' pages, names that are not its own, and clients that never finish.

use crate::door::{Door, V1, V2};
use muster_hub::http::crowd::Limits;
use muster_hub::http::guard::Names;
use muster_hub::http::server::{Serving, serve_with};
use muster_hub::{Config, http};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use uuid::Uuid;

/// For what happens at once or not at all.
const PATIENCE: Duration = Duration::from_secs(20);
const ROOMY: Limits = Limits {
    all: 1000,
    of_peer: 1000,
    peer_waiting: 1000,
};

struct Listening {
    address: SocketAddr,
    _cache: tempfile::TempDir,
    _stop: oneshot::Sender<()>,
}

/// With images, as the program does it.
async fn listening(door: &Door, limits: Limits, time: Duration) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let config = Config {
        image_cache: Some(cache.path().into()),
        ..Config::default()
    };
    let images = http::images::open(&door.hub, &config).unwrap();
    let serving = Serving {
        images: Some(images.clone()),
        names: Names::new(["http://hub.example.com:8090"], &["*.lab.example".to_owned()]).unwrap(),
        limits,
        head_time: time,
        body_time: time,
        ..Serving::new(door.router.clone().merge(http::images::routes(&images)))
    };
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(serve_with(listener, serving, async { drop(stopped.await) }));
    Listening {
        address,
        _cache: cache,
        _stop: stop,
    }
}

impl Listening {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Status and text of the answer to these lines.
    async fn say(&self, lines: &[&str]) -> (u16, String) {
        let (mut stream, text) = (
            self.connect(),
            lines.join("\r\n") + "\r\nConnection: close\r\n\r\n",
        );
        tokio::task::spawn_blocking(move || {
            stream.write_all(text.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
        })
        .await
        .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_not_the_hubs_are_refused_on_every_path() {
    let door = Door::open().await;
    let hub = listening(&door, ROOMY, PATIENCE).await;
    let image = format!("/byid/{}/4.20/x86_64/full.iso", Uuid::nil());
    let v2 = format!("{V2}/infra-envs");
    let v1 = format!("{V1}/hosts");
    for path in ["/ready", v2.as_str(), v1.as_str(), image.as_str(), "/nowhere"] {
        let line = format!("GET {path} HTTP/1.1");
        for known in [
            "127.0.0.1:8090",
            "localhost",
            "hub.example.com",
            "muster.ns.svc:8090",
            "a.lab.example",
        ] {
            let (status, text) = hub.say(&[&line, &format!("Host: {known}")]).await;
            assert!([200, 404].contains(&status), "{path} {known}: {text}");
        }
        let (status, text) = hub.say(&[&line, "Host: evil.example:8090"]).await;
        assert_eq!(status, 421, "{path}: {text}");
        assert!(
            text.contains("evil.example") && text.contains("--allowed-host"),
            "{text}"
        );
        let (status, text) = hub
            .say(&[
                &format!("GET http://evil.example{path} HTTP/1.1"),
                "Host: localhost",
            ])
            .await;
        assert_eq!(status, 421, "{path}: {text}");
        let (status, text) = hub.say(&[&format!("GET {path} HTTP/1.0")]).await;
        assert!([200, 404].contains(&status), "{path} without a name: {text}");
    }
    assert!(
        hub.say(&["GET /api/muster/v1/hosts HTTP/1.1", "Host: evil.example"])
            .await
            .1
            .contains("problem+json")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_another_site_cannot_unbind_a_host() {
    let door = Door::open().await;
    let hub = listening(&door, ROOMY, PATIENCE).await;
    let (pool, cluster) = (door.infra_env("pool").await, door.cluster("prod").await);
    let host = door.worker(pool, 1).await;
    assert!(door.bind(pool, host, cluster).await.status.is_success());
    let line = format!("POST {V2}/infra-envs/{pool}/hosts/{host}/actions/unbind HTTP/1.1");
    let start = [line.as_str(), "Host: hub.example.com:8090", "Content-Length: 0"];
    for headers in [
        &["Origin: https://evil.example", "Sec-Fetch-Site: cross-site"][..],
        &["Sec-Fetch-Site: cross-site"],
        &["Sec-Fetch-Site: same-site", "Origin: http://hub.example.com:3000"],
        &["Origin: https://evil.example"],
        &["Origin: null"],
    ] {
        let (status, text) = hub.say(&[&start[..], headers].concat()).await;
        assert_eq!(status, 403, "{headers:?}: {text}");
        assert!(
            text.contains("another site") && text.contains("--allowed-host"),
            "{text}"
        );
        assert_eq!(door.status(pool, host).await, "binding");
    }
    // Looking does no harm, and programs say nothing of sites.
    let look = format!("GET {V2}/infra-envs HTTP/1.1");
    let (status, _) = hub
        .say(&[&look, "Host: localhost", "Sec-Fetch-Site: cross-site"])
        .await;
    assert_eq!(status, 200);
    let (status, text) = hub.say(&start).await;
    assert_eq!(status, 200, "{text}");
    assert_eq!(door.status(pool, host).await, "unbinding");
}

/// Sends a head a byte at a time until the hub has had enough.
fn trickle(stream: &mut TcpStream, head: &[u8]) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let begin = Instant::now();
    let mut bytes = head.iter().cycle();
    while begin.elapsed() < PATIENCE {
        if stream.write_all(&[*bytes.next().unwrap()]).is_err() {
            return true;
        }
        match stream.read(&mut [0; 1024]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
            Err(_) => return true,
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_never_ends_is_given_up_however_it_is_dealt_out() {
    let door = Door::open().await;
    let hub = listening(&door, ROOMY, Duration::from_millis(400)).await;
    // The second line goes on and on.
    let heads: [&[u8]; 3] = [
        b"GET /byid/x HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"GET /ready HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"POST /api/assisted-install/v2/clusters HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    ];
    for head in heads {
        let mut stream = hub.connect();
        stream.write_all(head).unwrap();
        let given_up = tokio::task::spawn_blocking(move || trickle(&mut stream, b"x"))
            .await
            .unwrap();
        assert!(given_up, "{}", String::from_utf8_lossy(head));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_never_ends_is_given_up_however_it_is_dealt_out() {
    let door = Door::open().await;
    let hub = listening(&door, ROOMY, Duration::from_millis(400)).await;
    // The second one is large enough for a lane of its own.
    for length in [1000, 1_000_000] {
        let mut stream = hub.connect();
        let head = format!(
            "POST {V2}/clusters HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let given_up = tokio::task::spawn_blocking(move || trickle(&mut stream, b" "))
            .await
            .unwrap();
        assert!(given_up, "{length}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_give_way_to_those_who_ask() {
    let door = Door::open().await;
    let few = Limits {
        all: 12,
        of_peer: 12,
        peer_waiting: 12,
    };
    let hub = listening(&door, few, PATIENCE).await;
    let mut slow = Vec::new();
    let starts: [&[u8]; 4] = [
        b"",
        b"GET /byid/",
        b"GET /ready HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /api/assisted-install/v2/clusters HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ];
    for number in 0..100 {
        let mut stream = hub.connect();
        // Some of them are gone already.
        let _ = stream.write_all(starts[number % starts.len()]);
        slow.push(stream);
        if number % 10 == 0 {
            let (status, text) = hub.say(&["GET /ready HTTP/1.1", "Host: localhost"]).await;
            assert_eq!(status, 200, "{text}");
        }
    }
    let (status, text) = hub.say(&["GET /ready HTTP/1.1", "Host: localhost"]).await;
    assert_eq!(status, 200, "{text}");
}
