//! A service over a real socket: its depot, a source whose payload tests change, and a client.

use crate::sample;
use futures_util::future::BoxFuture;
use muster_image::serve::outlet::{Copied, Outlet};
use muster_image::serve::{router, wire};
use muster_image::source::{Ask, Form, PayloadSource, Proof, SourceError, Target};
use muster_image::{Catalog, Depot, Images, OsImage, Payload, Settings};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The payload everybody gets, and how often it was asked for.
pub struct Source {
    pub state: Mutex<(Payload, SystemTime)>,
    pub payloads: AtomicU64,
}

impl Source {
    pub fn set(&self, ignition: &str) {
        let mut state = self.state.lock().unwrap();
        state.0.ignition = ignition.to_owned().into();
        state.1 += Duration::from_secs(1);
    }
}

impl PayloadSource for Source {
    fn changed<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<SystemTime, SourceError>> {
        let known = ask.id == "x";
        let allowed = !matches!(&ask.proof, Proof::ApiKey(key) if key == "bad");
        let changed = self.state.lock().unwrap().1;
        Box::pin(async move {
            match (known, allowed) {
                (true, true) => Ok(changed),
                (true, false) => Err(SourceError {
                    status: 401,
                    text: "who are you?".into(),
                }),
                (false, _) => Err(SourceError::missing("there is no such InfraEnv")),
            }
        })
    }

    fn payload<'a>(&'a self, _: &'a Ask) -> BoxFuture<'a, Result<(Payload, SystemTime), SourceError>> {
        self.payloads.fetch_add(1, Ordering::SeqCst);
        let state = self.state.lock().unwrap().clone();
        Box::pin(async move { Ok(state) })
    }

    fn short<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Target, SourceError>> {
        Box::pin(async move {
            match name {
                "short" => Ok(Target {
                    id: "x".into(),
                    version: "1".into(),
                    architecture: "x86_64".into(),
                    form: Form::Minimal,
                    proof: Proof::None,
                }),
                _ => Err(SourceError::missing("no")),
            }
        })
    }

    fn script<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async { Ok("#!ipxe\nboot\n".to_owned()) })
    }
}

/// Which server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Axum,
    Wire,
    /// As `Wire`, through a stream that the kernel cannot write files to.
    Copied,
}

pub struct World {
    pub address: SocketAddr,
    pub source: Arc<Source>,
    pub images: Images,
    _runtime: tokio::runtime::Runtime,
    pub dir: tempfile::TempDir,
}

impl World {
    pub fn start(way: Way) -> World {
        World::with(way, Settings::default())
    }

    /// Large enough that replies go through every path of the server.
    pub fn with(way: Way, settings: Settings) -> World {
        World::sized(way, settings, 3 << 20)
    }

    /// A base image with so many bytes behind its contents.
    pub fn sized(way: Way, settings: Settings, more: u32) -> World {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("base.iso");
        let mut bytes = sample::bytes("2023-07.x86_64");
        bytes.extend((0..more).map(|n: u32| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]));
        std::fs::write(&path, bytes).unwrap();
        let os = OsImage {
            openshift_version: "4.20".into(),
            cpu_architecture: "x86_64".into(),
            url: path.to_string_lossy().into_owned(),
            version: "1".into(),
            sha256: None,
        };
        World::over(way, settings, os, dir)
    }

    /// With this one base image.
    pub fn over(way: Way, mut settings: Settings, os: OsImage, dir: tempfile::TempDir) -> World {
        settings.base_url = "http://images.example.com".into();
        let source = Arc::new(Source {
            state: Mutex::new((
                Payload {
                    ignition: "{}".into(),
                    ..Payload::default()
                },
                UNIX_EPOCH + Duration::from_secs(1_700_000_000),
            )),
            payloads: AtomicU64::new(0),
        });
        let depot = Depot::open(&dir.path().join("depot"), 1 << 30).unwrap();
        let images = Images::new(depot, Catalog { images: vec![os] }, source.clone(), settings);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let address = runtime.block_on(serve(way, images.clone()));
        World {
            address,
            source,
            images,
            _runtime: runtime,
            dir,
        }
    }

    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.ask("GET", path, headers)
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut client = Client::connect(self.address);
        client.ask(method, path, headers)
    }
}

struct Anybody;

impl wire::Attended for Anybody {
    fn admits(&self, _: &str) -> bool {
        true
    }
    fn works(&self) {}
    fn rests(&self) {}
    fn begins(&self) {}
    fn head_time(&self) -> Duration {
        Duration::from_secs(30)
    }
}

async fn serve(way: Way, images: Images) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = router::alone(&images);
    let stop = tokio::sync::watch::Sender::new(false);
    tokio::spawn(async move {
        if way == Way::Axum {
            axum::serve(listener, app).await.unwrap();
            return;
        }
        // As the hub does it: images first, the rest to the ordinary server.
        while let Ok((stream, peer)) = listener.accept().await {
            let (images, app, stopping) = (images.clone(), app.clone(), stop.subscribe());
            let peer = peer.ip();
            match way {
                Way::Axum | Way::Wire => drop(tokio::spawn(attend(stream, peer, images, app, stopping))),
                Way::Copied => {
                    let stream = Copied::new(stream);
                    drop(tokio::spawn(attend(stream, peer, images, app, stopping)));
                }
            }
        }
    });
    address
}

async fn attend(
    stream: impl Outlet + 'static,
    peer: IpAddr,
    images: Images,
    app: axum::Router,
    stopping: tokio::sync::watch::Receiver<bool>,
) {
    if let Ok(Some(begun)) = wire::attend(stream, peer, &images, &Anybody, stopping).await {
        let service = hyper_util::service::TowerToHyperService::new(app);
        let io = hyper_util::rt::TokioIo::new(begun);
        hyper::server::conn::http1::Builder::new()
            .serve_connection(io, service)
            .await
            .ok();
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One connection, kept alive; by hand, so that nothing is mended on the way.
pub struct Client {
    stream: TcpStream,
    rest: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Client {
            stream,
            rest: Vec::new(),
        }
    }

    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        self.stream.write_all((text + "\r\n").as_bytes()).unwrap();
    }

    pub fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(method, path, headers);
        let mut reply = self.head();
        let len = if method == "HEAD" || reply.status == 304 {
            0
        } else {
            self.length(&reply)
        };
        reply.body = self.take(len);
        reply
    }

    pub fn head(&mut self) -> Reply {
        loop {
            if let Some(end) = self.rest.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(self.rest.drain(..end + 4).collect()).unwrap();
                let mut lines = head.lines();
                let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
                let pairs = lines.filter_map(|line| line.split_once(": "));
                let headers = pairs
                    .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                    .collect();
                return Reply {
                    status,
                    headers,
                    body: Vec::new(),
                };
            }
            self.read();
        }
    }

    fn length(&self, reply: &Reply) -> usize {
        reply.header("content-length").parse().unwrap_or(0)
    }

    pub fn take(&mut self, len: usize) -> Vec<u8> {
        while self.rest.len() < len {
            self.read();
        }
        self.rest.drain(..len).collect()
    }

    /// How many bytes come until the server hangs up.
    pub fn until_the_end(&mut self) -> u64 {
        let mut rest = Vec::new();
        // A connection that is cut hard brought what it brought.
        self.stream.read_to_end(&mut rest).ok();
        (self.rest.len() + rest.len()) as u64
    }

    fn read(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        let read = self.stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the server hung up");
        self.rest.extend_from_slice(&buffer[..read]);
    }
}

/// Waits for what another thread does.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what} did not come");
        std::thread::yield_now();
    }
}
