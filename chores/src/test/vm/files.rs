//! A small web server for disk images: ranges, entity tags, and gates that hold a transfer where a test wants it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Small enough that a gate is exact, large enough to cost nothing.
const PIECE: usize = 64 * 1024;

/// A client that takes nothing for this long is gone; machines may be that slow.
const STALL: Duration = Duration::from_secs(120);

pub struct Files {
    address: SocketAddr,
    shelf: Arc<Mutex<HashMap<String, Entry>>>,
}

#[derive(Clone)]
struct Entry {
    path: PathBuf,
    gate: Option<Arc<Gate>>,
}

/// Lets only so many bytes of a file pass.
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    open_to: u64,
    held: bool,
}

impl Gate {
    /// Waits until somebody has read up to the gate and wants more.
    pub fn until_held(&self, limit: Duration) -> Result<()> {
        let started = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.held {
            if started.elapsed() > limit || crate::process::interrupted() {
                bail!("nobody read as far as the gate within {} s", limit.as_secs());
            }
            let short = Duration::from_millis(200);
            let waited = self.changed.wait_timeout(state, short);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// From now on the file passes up to this byte.
    pub fn open_to(&self, byte: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open_to = byte;
        state.held = false;
        self.changed.notify_all();
    }

    pub fn open(&self) {
        self.open_to(u64::MAX);
    }

    fn pass(&self, byte: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while byte >= state.open_to {
            state.held = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Files {
    /// Serves on a free port of loopback until the process ends.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for the file server")?;
        let address = listener.local_addr()?;
        let shelf: Arc<Mutex<HashMap<String, Entry>>> = Arc::default();
        let shared = Arc::clone(&shelf);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shelf = Arc::clone(&shared);
                // A client that goes away in the middle is what some tests are about.
                std::thread::spawn(move || drop(answer(&stream, &shelf)));
            }
        });
        Ok(Self { address, shelf })
    }

    pub fn put(&self, name: &str, path: &Path) {
        self.shelve(name, path, None);
    }

    /// A file that passes up to a byte, and further when its gate is opened.
    pub fn put_gated(&self, name: &str, path: &Path, open_to: u64) -> Arc<Gate> {
        let gate = Arc::new(Gate {
            state: Mutex::new(State { open_to, held: false }),
            changed: Condvar::new(),
        });
        self.shelve(name, path, Some(Arc::clone(&gate)));
        gate
    }

    fn shelve(&self, name: &str, path: &Path, gate: Option<Arc<Gate>>) {
        let entry = Entry {
            path: path.to_owned(),
            gate,
        };
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.insert(name.to_owned(), entry);
    }

    /// As this machine reaches it.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// As guests reach it.
    pub fn guest_url(&self, name: &str) -> String {
        format!("http://{}:{}/{name}", super::net::HOST, self.address.port())
    }
}

struct Request {
    head_only: bool,
    name: String,
    range: Option<(u64, Option<u64>)>,
    if_range: Option<String>,
}

fn read(stream: &TcpStream) -> Result<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().context("no request")??;
    let mut words = first.split_whitespace();
    let head_only = words.next() == Some("HEAD");
    let name = words
        .next()
        .context("no path")?
        .trim_start_matches('/')
        .to_owned();
    let (mut range, mut if_range) = (None, None);
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        match key.to_ascii_lowercase().as_str() {
            "range" => range = parse_range(value.trim()),
            "if-range" => if_range = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    Ok(Request {
        head_only,
        name,
        range,
        if_range,
    })
}

fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (start, end) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some((start.parse().ok()?, end.parse().ok()))
}

fn answer(stream: &TcpStream, shelf: &Mutex<HashMap<String, Entry>>) -> Result<()> {
    stream.set_write_timeout(Some(STALL))?;
    let request = read(stream)?;
    let entry = {
        let shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.get(&request.name).cloned()
    };
    let mut out = stream;
    let Some(entry) = entry else {
        return Ok(
            out.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?
        );
    };
    let mut file = File::open(&entry.path)?;
    let length = file.metadata()?.len();
    let etag = format!("\"{}-{length}\"", request.name);
    let same = request.if_range.as_ref().is_none_or(|tag| *tag == etag);
    let part = request.range.filter(|(start, _)| same && *start < length);
    let (start, end) = part.map_or((0, length), |(start, end)| {
        (start, end.map_or(length, |end| (end + 1).min(length)))
    });
    let status = match part {
        Some(_) => format!(
            "206 Partial Content\r\nContent-Range: bytes {start}-{}/{length}",
            end - 1
        ),
        None => "200 OK".to_owned(),
    };
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Type: application/octet-stream\r\n\
         Accept-Ranges: bytes\r\nETag: {etag}\r\nConnection: close\r\n\r\n",
        end - start
    )?;
    if request.head_only {
        return Ok(());
    }
    file.seek(SeekFrom::Start(start))?;
    let mut at = start;
    let mut piece = vec![0; PIECE];
    while at < end {
        if let Some(gate) = &entry.gate {
            gate.pass(at);
        }
        let wanted = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
        file.read_exact(&mut piece[..wanted])?;
        out.write_all(&piece[..wanted])?;
        at += wanted as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(content: &[u8], open_to: u64) -> (tempfile::TempDir, Files, Arc<Gate>) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("image");
        std::fs::write(&path, content).unwrap();
        let files = Files::start().unwrap();
        let gate = files.put_gated("image", &path, open_to);
        (home, files, gate)
    }

    fn fetch(files: &Files, headers: &[(&str, &str)]) -> (u16, Vec<u8>) {
        let mut request = ureq::get(files.url("image"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut reply = request.call().unwrap();
        (reply.status().as_u16(), reply.body_mut().read_to_vec().unwrap())
    }

    #[test]
    fn files_are_served_whole_and_in_parts_and_a_changed_file_whole_again() {
        let content: Vec<u8> = (0..200_000u32).map(|at| at as u8).collect();
        let (_home, files, _gate) = served(&content, u64::MAX);
        assert_eq!(fetch(&files, &[]), (200, content.clone()));
        assert_eq!(
            fetch(&files, &[("Range", "bytes=150000-")]),
            (206, content[150_000..].to_vec())
        );
        assert_eq!(
            fetch(&files, &[("Range", "bytes=5-9")]),
            (206, content[5..10].to_vec())
        );
        let other = [("Range", "bytes=5-9"), ("If-Range", "\"another\"")];
        assert_eq!(fetch(&files, &other).0, 200);
    }

    #[test]
    fn a_gate_holds_a_transfer_until_it_is_opened() {
        let content = vec![7; 3 * PIECE];
        let (_home, files, gate) = served(&content, PIECE as u64);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| fetch(&files, &[]));
            gate.until_held(Duration::from_secs(10)).unwrap();
            assert!(!reader.is_finished());
            gate.open();
            assert_eq!(reader.join().unwrap(), (200, content.clone()));
        });
    }
}
