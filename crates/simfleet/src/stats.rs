//! What a fleet has done so far; readable while it runs.

use crate::host::{Condition, Installs};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Eight buckets per power of two: a percentile is at most an eighth off.
const SUB_BITS: u32 = 3;
/// Up to 2^36 µs, longer than any request may take.
const BUCKETS: usize = 36 << SUB_BITS;

/// Counters that many tasks write and anyone may read.
#[derive(Debug)]
pub struct Stats {
    registers: AtomicU64,
    polls: AtomicU64,
    replies: AtomicU64,
    progress: AtomicU64,
    install_calls: AtomicU64,
    logs: AtomicU64,
    watches: AtomicU64,
    lost: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    registering: AtomicU64,
    running: AtomicU64,
    blocked: AtomicU64,
    installed: AtomicU64,
    off: AtomicU64,
    installs_done: AtomicU64,
    installs_failed: AtomicU64,
    latency: Histogram,
    poll_latency: Histogram,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatsView {
    /// Requests by kind, answered or not.
    pub registers: u64,
    pub polls: u64,
    pub replies: u64,
    pub progress: u64,
    /// Calls of installers, installed systems and controllers, besides progress.
    pub install_calls: u64,
    pub logs: u64,
    /// Looks after installed machines.
    pub watches: u64,
    /// Requests without an answer.
    pub lost: u64,
    /// Answers of 400 to 499.
    pub refused: u64,
    /// Answers of 500 and more.
    pub failed: u64,
    /// Hosts by condition.
    pub registering: u64,
    pub running: u64,
    pub blocked: u64,
    pub installed: u64,
    pub off: u64,
    /// Installations that came to their end, and those that gave up, since the start.
    pub installs_done: u64,
    pub installs_failed: u64,
    /// Time to the whole answer, over all requests and over polls.
    pub p50_us: u64,
    pub p99_us: u64,
    pub poll_p50_us: u64,
    pub poll_p99_us: u64,
}

impl StatsView {
    pub fn requests(&self) -> u64 {
        let installs = self.progress + self.install_calls + self.logs + self.watches;
        self.registers + self.polls + self.replies + installs
    }

    pub fn errors(&self) -> u64 {
        self.lost + self.refused + self.failed
    }
}

/// The kind of a request, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Register,
    Poll,
    Reply,
    Progress,
    Install,
    Logs,
    Watch,
}

impl Default for Stats {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            registers: zero(),
            polls: zero(),
            replies: zero(),
            progress: zero(),
            install_calls: zero(),
            logs: zero(),
            watches: zero(),
            lost: zero(),
            refused: zero(),
            failed: zero(),
            registering: zero(),
            running: zero(),
            blocked: zero(),
            installed: zero(),
            off: zero(),
            installs_done: zero(),
            installs_failed: zero(),
            latency: Histogram::default(),
            poll_latency: Histogram::default(),
        }
    }
}

impl Stats {
    /// Counts a request; no status means no answer.
    pub fn count(&self, kind: Kind, status: Option<u16>, elapsed_us: u64) {
        let counter = match kind {
            Kind::Register => &self.registers,
            Kind::Poll => &self.polls,
            Kind::Reply => &self.replies,
            Kind::Progress => &self.progress,
            Kind::Install => &self.install_calls,
            Kind::Logs => &self.logs,
            Kind::Watch => &self.watches,
        };
        counter.fetch_add(1, Relaxed);
        match status {
            None => _ = self.lost.fetch_add(1, Relaxed),
            Some(400..=499) => _ = self.refused.fetch_add(1, Relaxed),
            Some(500..) => _ = self.failed.fetch_add(1, Relaxed),
            Some(_) => {}
        }
        self.latency.record(elapsed_us);
        if kind == Kind::Poll {
            self.poll_latency.record(elapsed_us);
        }
    }

    /// A host came into being.
    pub fn enter(&self, condition: Condition) {
        self.hosts(condition).fetch_add(1, Relaxed);
    }

    pub fn change(&self, from: Condition, to: Condition) {
        if from != to {
            self.hosts(from).fetch_sub(1, Relaxed);
            self.hosts(to).fetch_add(1, Relaxed);
        }
    }

    fn hosts(&self, condition: Condition) -> &AtomicU64 {
        match condition {
            Condition::Registering => &self.registering,
            Condition::Running => &self.running,
            Condition::Blocked => &self.blocked,
            Condition::Installed => &self.installed,
            Condition::Off => &self.off,
        }
    }

    /// How often hosts were installed, and how often it failed, by the difference between two counts of one host.
    pub fn installs(&self, before: Installs, after: Installs) {
        let done = after.done.wrapping_sub(before.done);
        let failed = after.failed.wrapping_sub(before.failed);
        self.installs_done.fetch_add(u64::from(done), Relaxed);
        self.installs_failed.fetch_add(u64::from(failed), Relaxed);
    }

    /// Forgets the times measured so far, for figures without the warm-up.
    pub fn reset_latency(&self) {
        self.latency.reset();
        self.poll_latency.reset();
    }

    pub fn view(&self) -> StatsView {
        StatsView {
            registers: self.registers.load(Relaxed),
            polls: self.polls.load(Relaxed),
            replies: self.replies.load(Relaxed),
            progress: self.progress.load(Relaxed),
            install_calls: self.install_calls.load(Relaxed),
            logs: self.logs.load(Relaxed),
            watches: self.watches.load(Relaxed),
            lost: self.lost.load(Relaxed),
            refused: self.refused.load(Relaxed),
            failed: self.failed.load(Relaxed),
            registering: self.registering.load(Relaxed),
            running: self.running.load(Relaxed),
            blocked: self.blocked.load(Relaxed),
            installed: self.installed.load(Relaxed),
            off: self.off.load(Relaxed),
            installs_done: self.installs_done.load(Relaxed),
            installs_failed: self.installs_failed.load(Relaxed),
            p50_us: self.latency.quantile(0.50),
            p99_us: self.latency.quantile(0.99),
            poll_p50_us: self.poll_latency.quantile(0.50),
            poll_p99_us: self.poll_latency.quantile(0.99),
        }
    }
}

/// Counts of times in buckets that grow with the time.
#[derive(Debug)]
struct Histogram(Box<[AtomicU64]>);

impl Default for Histogram {
    fn default() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Histogram {
    fn record(&self, us: u64) {
        self.0[bucket(us)].fetch_add(1, Relaxed);
    }

    fn reset(&self) {
        for bucket in &self.0 {
            bucket.store(0, Relaxed);
        }
    }

    /// The upper end of the bucket that the quantile falls in.
    fn quantile(&self, share: f64) -> u64 {
        let counts: Vec<u64> = self.0.iter().map(|count| count.load(Relaxed)).collect();
        let wanted = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (at, count) in counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return upper_end(at);
            }
        }
        0
    }
}

fn bucket(us: u64) -> usize {
    let sub = 1u64 << SUB_BITS;
    if us < sub {
        return us as usize;
    }
    let octave = us.ilog2() - SUB_BITS;
    let at = ((u64::from(octave) + 1) << SUB_BITS) + ((us >> octave) - sub);
    (at as usize).min(BUCKETS - 1)
}

fn upper_end(bucket: usize) -> u64 {
    let sub = 1u64 << SUB_BITS;
    let bucket = bucket as u64;
    if bucket < sub {
        return bucket;
    }
    let octave = (bucket >> SUB_BITS) - 1;
    (((bucket & (sub - 1)) + sub + 1) << octave) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_an_eighth() {
        let stats = Stats::default();
        for us in 1..=1000 {
            stats.count(Kind::Poll, Some(200), us);
        }
        let view = stats.view();
        assert!((500..=563).contains(&view.p50_us), "{}", view.p50_us);
        assert!((990..=1114).contains(&view.p99_us), "{}", view.p99_us);
        assert_eq!(view.polls, 1000);
    }

    #[test]
    fn every_time_falls_in_a_bucket_that_ends_after_it() {
        for us in [
            0,
            1,
            7,
            8,
            9,
            15,
            16,
            17,
            1_000,
            123_456,
            30_000_000,
            u64::MAX >> 30,
        ] {
            assert!(upper_end(bucket(us)) >= us, "{us}");
        }
    }
}
