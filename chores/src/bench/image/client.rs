//! Clients that read images and count; one thread each, so that the servers do the waiting of interest.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::wait;

/// Nothing to read for so long is a fault.
const STALL: Duration = Duration::from_secs(60);

pub struct Target {
    pub address: SocketAddr,
    pub path: String,
}

impl Target {
    fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(self.address).context("connecting to the server")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STALL))?;
        Ok(stream)
    }

    fn request(&self, at: u64, len: u64) -> String {
        format!(
            "GET {} HTTP/1.1\r\nHost: x\r\nRange: bytes={at}-{}\r\n\r\n",
            self.path,
            at + len - 1
        )
    }
}

/// Until the server has what is asked for: the first request makes it look at its base image.
pub fn ready(target: &Target) -> Result<()> {
    wait::until("the image to be ready", Duration::from_secs(120), || {
        let mut stream = target.connect()?;
        stream.write_all(target.request(0, 1).as_bytes())?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        Ok((&head == b"HTTP/1.1 206").then_some(()))
    })
}

/// So many clients at once, each of which reads so much from the start. The bytes of all.
pub fn crowd(target: &Target, clients: usize, bytes: u64) -> Result<u64> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|_| {
                let small = std::thread::Builder::new().stack_size(512 * 1024);
                small.spawn_scoped(scope, || download(target, bytes))
            })
            .collect::<std::io::Result<_>>()?;
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("a client panicked")))
            .sum()
    })
}

fn download(target: &Target, bytes: u64) -> Result<u64> {
    let mut stream = target.connect()?;
    stream.write_all(target.request(0, bytes).as_bytes())?;
    let mut buffer = vec![0; 256 * 1024];
    let mut have = 0;
    let head = loop {
        have += read(&mut stream, &mut buffer[have..])?;
        if let Some(end) = end_of_head(&buffer[..have]) {
            break end;
        }
    };
    expect_part(&buffer)?;
    let mut body = (have - head) as u64;
    while body < bytes {
        body += read(&mut stream, &mut buffer)? as u64;
    }
    Ok(body)
}

/// Small ranges all over the image, one after the other on one connection, as firmware reads.
pub fn small_reads(target: &Target, times: u32, len: u64, most: u64) -> Result<Vec<Duration>> {
    let mut stream = target.connect()?;
    let mut buffer = vec![0; 16 * 1024];
    let mut taken = Vec::new();
    for number in 0..u64::from(times) {
        let at = number * 7_919 * 4096 % most;
        let started = Instant::now();
        stream.write_all(target.request(at, len).as_bytes())?;
        let mut have = 0;
        loop {
            have += read(&mut stream, &mut buffer[have..])?;
            let done = end_of_head(&buffer[..have]).is_some_and(|head| (have - head) as u64 >= len);
            if done {
                break;
            }
        }
        taken.push(started.elapsed());
        expect_part(&buffer)?;
    }
    Ok(taken)
}

fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<usize> {
    match stream.read(buffer)? {
        0 => bail!("the server hung up in the middle"),
        read => Ok(read),
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map(|at| at + 4)
}

fn expect_part(reply: &[u8]) -> Result<()> {
    if !reply.starts_with(b"HTTP/1.1 206 ") {
        let line = reply.split(|byte| *byte == b'\r').next().unwrap_or_default();
        bail!(
            "instead of a part the server sent {}",
            String::from_utf8_lossy(line)
        );
    }
    Ok(())
}
