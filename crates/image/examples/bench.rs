//! Measures serving: CPU seconds per GiB and latency of small ranges, for each way of sending, against a server that
//! does nothing but `sendfile`. `cargo run --release -p muster-image --example bench`.

use futures_util::future::BoxFuture;
use muster_image::serve::{router, wire};
use muster_image::source::{Ask, PayloadSource, SourceError};
use muster_image::{Catalog, Depot, Images, OsImage, Payload, Settings};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const GIB: u64 = 1 << 30;
const PATH: &str = "/byid/x/1/x86_64/full.iso";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => serve(&arguments[2], Path::new(&arguments[3])),
        _ => measure(arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(400)),
    }
}

fn measure(many: usize) {
    let dir = std::env::temp_dir().join(format!("muster-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory for the measurement");
    let image = dir.join("base.iso");
    write_image(&image);
    println!(
        "{:<7} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "way",
        "s/GiB 1",
        "s/GiB 4",
        &format!("s/GiB {many}"),
        "GiB/s 4",
        "p50 us",
        "p99 us",
        "RSS MiB"
    );
    for round in 0..2 {
        for way in ["plain", "wire", "axum"] {
            report(way, &image, many, round);
        }
    }
    std::fs::remove_dir_all(&dir).ok();
}

fn report(way: &str, image: &Path, many: usize, round: u32) {
    let server = Server::start(way, image);
    let one = server.cost(1, GIB);
    let four = server.cost(4, GIB);
    let crowd = server.cost(many, 16 << 20);
    let (p50, p99) = if way == "plain" {
        (0, 0)
    } else {
        server.latency(if round == 0 { 4000 } else { 8000 })
    };
    println!(
        "{way:<7} {:>10.3} {:>10.3} {:>10.3} {:>9.2} {p50:>9} {p99:>9} {:>9}",
        one.0,
        four.0,
        crowd.0,
        four.1,
        server.memory_mib()
    );
}

/// The smallest genuine image with an embed area, made as large as a real one.
fn write_image(path: &Path) {
    let packed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/embed-areas-2023-07.x86_64.iso.xz"
    );
    let mut bytes = Vec::new();
    let packed = File::open(packed).expect("the fixture");
    lzma_rust2::XzReader::new(packed, true)
        .read_to_end(&mut bytes)
        .expect("the fixture unpacks");
    let mut file = File::create(path).expect("room for the image");
    file.write_all(&bytes).expect("room for the image");
    let block: Vec<u8> = (0..1 << 20)
        .map(|n: u32| n.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    for _ in 0..1024 {
        file.write_all(&block).expect("room for the image");
    }
}

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(way: &str, image: &Path) -> Server {
        let own = std::env::current_exe().expect("this program");
        let mut child = Command::new(own)
            .args(["serve", way, &image.to_string_lossy()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("the server tells its address");
        let server = Server {
            child,
            address: line.trim().parse().expect("an address"),
        };
        // The image is read whole once: everybody starts from the page cache.
        download(server.address, GIB);
        server
    }

    /// Server CPU seconds for each GiB, and GiB each second, with so many clients at once.
    fn cost(&self, clients: usize, bytes: u64) -> (f64, f64) {
        let (before, start) = (self.cpu_seconds(), Instant::now());
        let threads: Vec<_> = (0..clients)
            .map(|_| {
                let address = self.address;
                std::thread::Builder::new()
                    .stack_size(512 * 1024)
                    .spawn(move || download(address, bytes))
                    .expect("a thread")
            })
            .collect();
        let total: u64 = threads
            .into_iter()
            .map(|thread| thread.join().expect("a download"))
            .sum();
        let gib = total as f64 / GIB as f64;
        (
            (self.cpu_seconds() - before) / gib,
            gib / start.elapsed().as_secs_f64(),
        )
    }

    fn latency(&self, times: u32) -> (u128, u128) {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_nodelay(true).expect("nodelay");
        let mut taken: Vec<Duration> = Vec::new();
        let mut buffer = vec![0; 16 * 1024];
        for number in 0..u64::from(times) {
            let at = (number * 7_919 * 4096) % GIB;
            let begin = Instant::now();
            let request = format!(
                "GET {PATH} HTTP/1.1\r\nHost: x\r\nRange: bytes={at}-{}\r\n\r\n",
                at + 4095
            );
            stream.write_all(request.as_bytes()).expect("a request");
            let mut have = 0;
            loop {
                have += stream.read(&mut buffer[have..]).expect("a reply");
                let head = buffer[..have].windows(4).position(|four| four == b"\r\n\r\n");
                if head.is_some_and(|head| have >= head + 4 + 4096) {
                    break;
                }
            }
            taken.push(begin.elapsed());
        }
        taken.sort_unstable();
        (
            taken[taken.len() / 2].as_micros(),
            taken[taken.len() * 99 / 100].as_micros(),
        )
    }

    fn cpu_seconds(&self) -> f64 {
        let text =
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the server lives");
        let after_name = text.rsplit(") ").next().expect("the fields");
        let fields: Vec<&str> = after_name.split(' ').collect();
        let ticks: u32 = [fields[11], fields[12]]
            .iter()
            .map(|text| text.parse::<u32>().expect("a number"))
            .sum();
        // Ticks are hundredths of a second on every Linux there is.
        f64::from(ticks) / 100.0
    }

    fn memory_mib(&self) -> u64 {
        let text =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the server lives");
        let line = text
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .expect("the field");
        line.split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse::<u64>().ok())
            .expect("a number")
            / 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn download(address: SocketAddr, most: u64) -> u64 {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let request = format!(
        "GET {PATH} HTTP/1.1\r\nHost: x\r\nRange: bytes=0-{}\r\nConnection: close\r\n\r\n",
        most - 1
    );
    stream.write_all(request.as_bytes()).expect("a request");
    let mut buffer = vec![0; 256 * 1024];
    let mut total = 0;
    loop {
        match stream.read(&mut buffer).expect("a reply") {
            0 => return total,
            read => total += read as u64,
        }
    }
}

fn serve(way: &str, image: &Path) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    if way == "plain" {
        return plain(&listener, image);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let dir = image.with_extension("depot");
        let depot = Depot::open(&dir, 1 << 40).expect("a directory");
        let os = OsImage {
            openshift_version: "1".into(),
            cpu_architecture: "x86_64".into(),
            url: image.to_string_lossy().into_owned(),
            version: "1".into(),
            sha256: None,
        };
        let settings = Settings {
            patience: Duration::from_secs(60),
            ..Settings::default()
        };
        let images = Images::new(depot, Catalog { images: vec![os] }, Arc::new(Fixed), settings);
        listener.set_nonblocking(true).expect("nonblocking");
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        if way == "axum" {
            return axum::serve(listener, router::alone(&images))
                .await
                .expect("serving");
        }
        let stop = tokio::sync::watch::Sender::new(false);
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).ok();
            let (images, stopping) = (images.clone(), stop.subscribe());
            tokio::spawn(async move { wire::attend(stream, &images, stopping).await.map(drop) });
        }
    });
}

/// The floor: one thread for each connection, the file and nothing else.
fn plain(listener: &TcpListener, image: &Path) {
    let file = Arc::new(File::open(image).expect("the image"));
    for stream in listener.incoming() {
        let (mut stream, file) = (stream.expect("a connection"), Arc::clone(&file));
        std::thread::spawn(move || {
            let mut head = [0; 4096];
            let read = stream.read(&mut head).expect("a request");
            let text = String::from_utf8_lossy(&head[..read]).into_owned();
            let last = text
                .split("bytes=0-")
                .nth(1)
                .and_then(|rest| rest.lines().next())
                .expect("a range");
            let total = last.trim().parse::<u64>().expect("a number") + 1;
            let reply = format!("HTTP/1.1 206 Partial Content\r\nContent-Length: {total}\r\n\r\n");
            stream.write_all(reply.as_bytes()).expect("a reply");
            let mut at = 0;
            while at < total {
                let most = usize::try_from(total - at).expect("fits");
                rustix::fs::sendfile(&stream, &*file, Some(&mut at), most).expect("sendfile");
            }
        });
    }
}

struct Fixed;

impl PayloadSource for Fixed {
    fn changed<'a>(&'a self, _: &'a Ask) -> BoxFuture<'a, Result<SystemTime, SourceError>> {
        Box::pin(async { Ok(UNIX_EPOCH) })
    }

    fn payload<'a>(&'a self, _: &'a Ask) -> BoxFuture<'a, Result<(Payload, SystemTime), SourceError>> {
        let payload = Payload {
            ignition: vec![b'x'; 40_000].into(),
            ramdisk: None,
            kernel_arguments: vec!["console=ttyS0".into()],
        };
        Box::pin(async { Ok((payload, UNIX_EPOCH)) })
    }
}
