//! Processes that are stopped where they are, and go on when the guard is dropped.

use crate::served::Place;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Words in front of a program that make it end with us, even if we end without a chance to clean up.
pub const ENDING_WITH_US: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--"];
/// Signals take effect at once, as soon as the process has a turn.
const SOON: Duration = Duration::from_secs(10);

/// A place whose hubs end with us, also when they are frozen.
pub fn place() -> Place {
    Place::sqlite().within(ENDING_WITH_US.map(str::to_owned).into())
}

/// Processes that do nothing until this is dropped.
pub struct Frozen(Vec<u32>);

impl Frozen {
    pub fn one(pid: u32) -> Self {
        let frozen = Self(vec![pid]);
        frozen.stop();
        frozen
    }

    /// A process's children, and their children; they may start more while we are at it.
    pub fn all_below(pid: u32) -> Self {
        let mut frozen = Self(Vec::new());
        loop {
            let found = below(pid);
            if found == frozen.0 {
                return frozen;
            }
            frozen.0 = found;
            frozen.stop();
        }
    }

    fn stop(&self) {
        for pid in &self.0 {
            send(*pid, Signal::STOP);
        }
        let start = Instant::now();
        while !self
            .0
            .iter()
            .all(|pid| matches!(state(*pid), None | Some('T' | 'Z')))
        {
            assert!(start.elapsed() < SOON, "the processes {:?} do not stop", self.0);
            std::thread::yield_now();
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for pid in &self.0 {
            send(*pid, Signal::CONT);
        }
    }
}

/// The direct children of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let children = parents().into_iter().filter(|(_, parent)| *parent == pid);
    children.map(|(child, _)| child).collect()
}

/// One that is gone already needs no signal.
pub fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let _ = pid.map(|pid| kill_process(pid, signal));
}

/// In the order of their numbers.
fn below(top: u32) -> Vec<u32> {
    let parents = parents();
    let mut found = BTreeSet::from([top]);
    loop {
        let before = found.len();
        let more = parents.iter().filter(|(_, parent)| found.contains(parent));
        let more: Vec<u32> = more.map(|(pid, _)| *pid).collect();
        found.extend(more);
        if found.len() == before {
            found.remove(&top);
            return found.into_iter().collect();
        }
    }
}

fn parents() -> Vec<(u32, u32)> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, after_name(pid)?.get(1)?.parse().ok()?)))
        .collect()
}

fn state(pid: u32) -> Option<char> {
    after_name(pid)?.first()?.chars().next()
}

/// The name may contain anything, spaces and brackets as well; what follows it does not.
fn after_name(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}
