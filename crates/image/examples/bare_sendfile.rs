//! The floor that `cargo xtask bench image` measures against: a server that does nothing but `sendfile`, a thread for
//! each connection. Also makes the base image of that measurement.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["make", path, mib] => make(Path::new(path), mib.parse().map_err(std::io::Error::other)?),
        ["serve", path] => serve(Path::new(path)),
        _ => Err(std::io::Error::other(
            "use: bare_sendfile make FILE MIB, or bare_sendfile serve FILE",
        )),
    }
}

/// The smallest genuine image with an embed area, made as large as a real one.
fn make(path: &Path, mib: u32) -> std::io::Result<()> {
    let packed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/embed-areas-2023-07.x86_64.iso.xz"
    );
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(File::open(packed)?, true).read_to_end(&mut bytes)?;
    let mut file = File::create(path)?;
    file.write_all(&bytes)?;
    let block: Vec<u8> = (0..1 << 20)
        .map(|n: u32| n.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    (0..mib).try_for_each(|_| file.write_all(&block))
}

fn serve(path: &Path) -> std::io::Result<()> {
    let file = Arc::new(File::open(path)?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("http://{}", listener.local_addr()?);
    for stream in listener.incoming() {
        let (stream, file) = (stream?, Arc::clone(&file));
        // A client that goes away ends its own thread only.
        std::thread::spawn(move || attend(&stream, &file).ok());
    }
    Ok(())
}

/// Every request is for one range, and is answered with it.
fn attend(mut stream: &TcpStream, file: &File) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut range = None;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            range = range.or(parsed(&line));
        }
        let (mut at, last) = range.ok_or_else(|| std::io::Error::other("no range"))?;
        let len = last + 1 - at;
        let head = format!("HTTP/1.1 206 Partial Content\r\nContent-Length: {len}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        while at <= last {
            let most = usize::try_from(last + 1 - at).unwrap_or(usize::MAX);
            if rustix::fs::sendfile(stream, file, Some(&mut at), most)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn parsed(line: &str) -> Option<(u64, u64)> {
    let (first, last) = line.trim().strip_prefix("Range: bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}
