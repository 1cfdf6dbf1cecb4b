//! The load generator: one thread, blocking sockets and `poll`, so that it takes little from the hub it measures.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::process;

/// A run that takes longer than this is broken.
const LIMIT: Duration = Duration::from_secs(900);
/// Without any answer for so long the hub hangs.
const SILENCE: Duration = Duration::from_secs(30);

/// What is asked, item by item: an item is one or more requests in a row on one connection.
pub trait Work {
    /// Writes the `step`-th request of an item; `false` when the item has no such step.
    fn request(&self, item: u64, step: usize, out: &mut Vec<u8>) -> bool;
}

/// How much, and how fast.
#[derive(Clone, Copy)]
pub enum Amount {
    /// Each item once, as fast as the hub answers.
    Items(u64),
    /// As fast as the hub answers, for so long.
    For(Duration),
    /// This many items a second for so long, whether or not the hub keeps up.
    Paced(f64, Duration),
}

/// What came of it.
#[derive(Default)]
pub struct Outcome {
    pub items: u64,
    pub elapsed: Duration,
    /// Answers other than 2xx, and the first of them.
    pub errors: u64,
    pub first_error: Option<String>,
    /// Bytes of all answers, heads included.
    pub bytes: u64,
    /// Of whole items, in microseconds, sorted.
    latencies: Vec<u32>,
}

impl Outcome {
    pub fn per_second(&self) -> f64 {
        self.items as f64 / self.elapsed.as_secs_f64()
    }

    /// In milliseconds.
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.latencies
            .get(at)
            .map_or(0.0, |micros| f64::from(*micros) / 1000.0)
    }

    /// An answer that is not a success makes the figures worthless.
    pub fn clean(self, what: &str) -> Result<Self> {
        match &self.first_error {
            None => Ok(self),
            Some(first) => bail!(
                "{what}: {} of {} went wrong, first: {first}",
                self.errors,
                self.items
            ),
        }
    }
}

/// The hub closes connections that rest for half a minute; those of a slow pace may.
const LONGEST_REST: Duration = Duration::from_secs(10);

struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    job: Option<Job>,
    /// When something was sent last.
    used: Instant,
}

impl Connection {
    fn open(hub: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(hub).context("the hub does not accept connections")?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            read: Vec::with_capacity(16 * 1024),
            job: None,
            used: Instant::now(),
        })
    }
}

#[derive(Clone, Copy)]
struct Job {
    item: u64,
    step: usize,
    /// When it was due: waiting for a free connection counts.
    since: Instant,
}

pub fn run(hub: SocketAddr, connections: usize, amount: Amount, work: &dyn Work) -> Result<Outcome> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(Connection::open(hub)?);
    }
    let mut generator = Generator {
        hub,
        work,
        amount,
        started: Instant::now(),
        next: 0,
        out: Vec::new(),
        piece: vec![0; 256 * 1024].into(),
        done: Outcome::default(),
    };
    generator.run(&mut open)?;
    generator.done.elapsed = generator.started.elapsed();
    generator.done.latencies.sort_unstable();
    Ok(generator.done)
}

struct Generator<'a> {
    hub: SocketAddr,
    work: &'a dyn Work,
    amount: Amount,
    started: Instant,
    next: u64,
    out: Vec<u8>,
    piece: Box<[u8]>,
    done: Outcome,
}

impl Generator<'_> {
    fn run(&mut self, open: &mut [Connection]) -> Result<()> {
        let mut heard = Instant::now();
        loop {
            for connection in open.iter_mut().filter(|connection| connection.job.is_none()) {
                let Some(since) = self.due() else { break };
                let job = Job {
                    item: self.next,
                    step: 0,
                    since,
                };
                self.next += 1;
                if connection.used.elapsed() > LONGEST_REST {
                    *connection = Connection::open(self.hub)?;
                }
                self.send(connection, job)?;
            }
            let busy = open.iter().filter(|connection| connection.job.is_some()).count();
            if busy == 0 && self.over() {
                return Ok(());
            }
            if self.wait(open, busy)? {
                heard = Instant::now();
            }
            if process::interrupted() {
                bail!("interrupted");
            }
            if (busy > 0 && heard.elapsed() > SILENCE) || self.started.elapsed() > LIMIT {
                bail!(
                    "the hub does not answer any more; {} items were done",
                    self.done.items
                );
            }
        }
    }

    /// When the next item is to start, if that is now.
    fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        match self.amount {
            Amount::Items(count) => (self.next < count).then_some(now),
            Amount::For(time) => (now.duration_since(self.started) < time).then_some(now),
            Amount::Paced(rate, time) => {
                let at = self.started + Duration::from_secs_f64(self.next as f64 / rate);
                (at <= now && at < self.started + time).then_some(at)
            }
        }
    }

    fn over(&self) -> bool {
        match self.amount {
            Amount::Items(count) => self.next >= count,
            Amount::For(time) | Amount::Paced(_, time) => self.started.elapsed() >= time,
        }
    }

    /// Waits for answers and takes them; `false` when none came.
    fn wait(&mut self, open: &mut [Connection], busy: usize) -> Result<bool> {
        let limit = match self.amount {
            Amount::Paced(..) => Timespec {
                tv_sec: 0,
                tv_nsec: 1_000_000,
            },
            Amount::Items(_) | Amount::For(_) => Timespec {
                tv_sec: 0,
                tv_nsec: 100_000_000,
            },
        };
        let mut at = Vec::with_capacity(busy);
        let ready: Vec<usize> = {
            let mut sockets = Vec::with_capacity(busy);
            for (number, connection) in open.iter().enumerate().filter(|(_, one)| one.job.is_some()) {
                at.push(number);
                sockets.push(PollFd::new(&connection.stream, PollFlags::IN));
            }
            poll(&mut sockets, Some(&limit))?;
            let ready = sockets
                .iter()
                .zip(&at)
                .filter(|(socket, _)| !socket.revents().is_empty());
            ready.map(|(_, number)| *number).collect()
        };
        for number in &ready {
            self.receive(&mut open[*number])?;
        }
        Ok(!ready.is_empty())
    }

    fn send(&mut self, connection: &mut Connection, job: Job) -> Result<()> {
        self.out.clear();
        if !self.work.request(job.item, job.step, &mut self.out) {
            let micros = job.since.elapsed().as_micros().try_into().unwrap_or(u32::MAX);
            self.done.latencies.push(micros);
            self.done.items += 1;
            connection.job = None;
            return Ok(());
        }
        connection.read.clear();
        connection.stream.write_all(&self.out)?;
        connection.used = Instant::now();
        connection.job = Some(job);
        Ok(())
    }

    fn receive(&mut self, connection: &mut Connection) -> Result<()> {
        let length = connection.stream.read(&mut self.piece)?;
        if length == 0 {
            bail!("the hub closed a connection");
        }
        connection.read.extend_from_slice(&self.piece[..length]);
        let Some(answer) = answer(&connection.read) else {
            return Ok(());
        };
        self.done.bytes += connection.read.len() as u64;
        if !(200..300).contains(&answer) {
            self.done.errors += 1;
            let text = || String::from_utf8_lossy(&connection.read).into_owned();
            self.done.first_error.get_or_insert_with(text);
        }
        if let Some(job) = connection.job {
            self.send(
                connection,
                Job {
                    step: job.step + 1,
                    ..job
                },
            )?;
        }
        Ok(())
    }
}

/// The status of an answer that is complete.
fn answer(read: &[u8]) -> Option<u16> {
    let head = &read[..find(read, b"\r\n\r\n")? + 4];
    let status = std::str::from_utf8(head.get(9..12)?).ok()?.parse().ok()?;
    let complete = match (
        status,
        find(head, b"content-length: "),
        find(head, b"transfer-encoding: chunked"),
    ) {
        (204, ..) => true,
        (_, Some(at), _) => {
            let digits = head[at + 16..].iter().take_while(|byte| byte.is_ascii_digit());
            let length = digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
            read.len() >= head.len() + length
        }
        // Good enough for JSON, which never ends like this.
        (_, None, Some(_)) => read.ends_with(b"\r\n0\r\n\r\n"),
        (_, None, None) => true,
    };
    complete.then_some(status)
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| *byte == what[0]) {
        if text[from + at..].starts_with(what) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_where_its_head_says() {
        assert_eq!(answer(b"HTTP/1.1 204 No Content\r\n\r\n"), Some(204));
        assert_eq!(answer(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab"), None);
        assert_eq!(
            answer(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"),
            Some(200)
        );
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n";
        assert_eq!(answer(chunked), None);
        assert_eq!(answer(&[chunked.as_slice(), b"0\r\n\r\n"].concat()), Some(200));
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let outcome = Outcome {
            latencies: (1..=100).map(|ms| ms * 1000).collect(),
            ..Outcome::default()
        };
        assert_eq!(outcome.percentile(0.0), 1.0);
        assert_eq!(outcome.percentile(1.0), 100.0);
        assert!((50.0..=51.0).contains(&outcome.percentile(0.5)));
    }
}
