//! Asks a hub again and again whether it lives and whether it is ready, as an orchestrator does.

use crate::wire;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(100);
/// Orchestrators wait for a second or a few; this machine has other things to do.
const PATIENCE: Duration = Duration::from_secs(3);
pub const ALIVE: &str = "/livez";
pub const READY: &str = "/ready";
pub const HEALTH: &str = "/health";

#[derive(Debug, Clone)]
pub struct Sight {
    /// When it was asked.
    pub at: Instant,
    pub path: &'static str,
    /// `None` when there was no answer in time.
    pub status: Option<u16>,
    pub text: String,
}

/// Runs until it is dropped.
pub struct Watch {
    seen: Arc<Mutex<Vec<Sight>>>,
    end: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    pub fn over(address: &str) -> Self {
        let address: SocketAddr = address.parse().unwrap();
        let seen: Arc<Mutex<Vec<Sight>>> = Arc::default();
        let (mut threads, mut ends) = (Vec::new(), Vec::new());
        for path in [ALIVE, READY, HEALTH] {
            let (end, ended) = channel::<()>();
            let seen = Arc::clone(&seen);
            threads.push(std::thread::spawn(move || {
                while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    let sight = look(address, path);
                    seen.lock().unwrap().push(sight);
                }
            }));
            ends.push(end);
        }
        let (end, ended) = channel::<()>();
        // Both threads end when their senders go.
        threads.push(std::thread::spawn(move || {
            let _ = ended.recv();
            drop(ends);
        }));
        Self {
            seen,
            end: Some(end),
            threads,
        }
    }

    /// What was seen of one path since then.
    pub fn since(&self, path: &str, from: Instant) -> Vec<Sight> {
        let seen = self.seen.lock().unwrap();
        let wanted = seen.iter().filter(|sight| sight.path == path && sight.at >= from);
        wanted.cloned().collect()
    }
}

fn look(address: SocketAddr, path: &'static str) -> Sight {
    let at = Instant::now();
    let answer = TcpStream::connect_timeout(&address, PATIENCE)
        .and_then(|stream| stream.set_read_timeout(Some(PATIENCE)).map(|()| stream))
        .and_then(|mut stream| {
            std::io::Write::write_all(&mut stream, &wire::request("GET", path, None))?;
            wire::read(&mut stream).ok_or_else(|| std::io::ErrorKind::TimedOut.into())
        });
    let (status, text) = match answer {
        Ok(answer) => (Some(answer.status), answer.text()),
        Err(error) => (None, error.to_string()),
    };
    Sight {
        at,
        path,
        status,
        text,
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end.take();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
